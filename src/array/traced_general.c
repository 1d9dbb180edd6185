/* One recording for many shapes.
 *
 * Builders put lengths into the graph as plain numbers: shapes to broadcast to, the count that a
 * mean divides by. So a graph recorded on one shape is wrong on another, and which of its numbers
 * are lengths cannot be seen. Two recordings show it: the second is made on shapes whose varying
 * lengths are the first ones times a prime each. Walked side by side, the graphs must be the same
 * expression; a number that is the same in both is a constant, one that differs must follow from
 * the lengths by a law that explains both values. Primes tell the lengths apart, and multiples keep
 * what a function may ask of a length (that 8 divides it).
 *
 * What has two explanations has none: a guess would be a wrong number later. Rejected: symbolic
 * lengths in the graph, which every builder and rule would have to carry for this alone. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "array/storage.h"
#include "array/traced.h"
#include "base/error.h"
#include "base/half.h"
#include "tiki/devices.h"

static const int64_t primes[TK_VARYING_MAX] = {11, 13, 17, 19, 23, 29, 31, 37};

/* ---- which lengths vary ---- */

static int group_of(const tk_varying *varying, int64_t length) {
    for (int i = 0; i < varying->count; i++)
        if (varying->near[i] == length) return i;
    return -1;
}

void tk_varying_add(tk_varying *varying, int64_t length) {
    int64_t far;
    int next = varying->count;
    if (length <= 1 || next == TK_VARYING_MAX || group_of(varying, length) >= 0) return;
    if (tk_mul_overflow_i64(length, primes[next], &far)) return;
    varying->near[next] = length;
    varying->far[next] = far;
    varying->count++;
}

void tk_varying_all(const tk_array *args, size_t n_args, tk_varying *out_varying) {
    *out_varying = (tk_varying){0};
    for (size_t i = 0; i < n_args; i++)
        for (int axis = 0; axis < args[i].node->rank; axis++)
            tk_varying_add(out_varying, args[i].node->shape[axis]);
}

void tk_varying_between(const tk_array *args, const tk_array *others, size_t n_args,
                        tk_varying *out_varying) {
    *out_varying = (tk_varying){0};
    for (size_t i = 0; i < n_args; i++)
        for (int axis = 0; axis < args[i].node->rank; axis++)
            if (args[i].node->shape[axis] != others[i].node->shape[axis])
                tk_varying_add(out_varying, args[i].node->shape[axis]);
}

tk_shape tk_varying_far(const tk_varying *varying, tk_shape shape) {
    for (int64_t i = 0; i < shape.count; i++) {
        int group = group_of(varying, shape.items[i]);
        if (group >= 0) shape.items[i] = varying->far[group];
    }
    return shape;
}

tk_status tk_varying_args(tk_context *context, const tk_varying *varying, const tk_array *args,
                          size_t n_args, tk_arrays *out) {
    tk_scope scope = tk_scope_open(context);
    tk_status status = TK_OK;
    for (size_t i = 0; status == TK_OK && i < n_args; i++) {
        tk_shape shape = tk_varying_far(varying, tk_array_shape(args[i]));
        tk_stream_id before = tk_stream_use(context, tk_array_stream(args[i]));
        tk_array zeros = tk_zeros(context, shape, tk_array_dtype(args[i]));
        (void)tk_stream_use(context, before);
        status = tk_array_status(zeros);
        if (status == TK_OK) status = tk_arrays_push(out, zeros);
    }
    tk_scope_close(scope);
    return status;
}

tk_status tk_traced_lengths(const tk_traced *traced, const tk_array *args, int64_t *out_lengths) {
    const tk_varying *varying = &traced->varying;
    for (int i = 0; i < varying->count; i++) out_lengths[i] = -1;
    for (size_t i = 0; i < traced->placeholders.count; i++) {
        const tk_node *recorded = traced->placeholders.items[i], *given = args[i].node;
        for (int axis = 0; axis < recorded->rank; axis++) {
            int group = group_of(varying, recorded->shape[axis]);
            int64_t expected = group < 0 ? recorded->shape[axis] : out_lengths[group];
            if (group >= 0 && expected < 0)
                out_lengths[group] = given->shape[axis];
            else if (given->shape[axis] != expected)
                return tk_fail(TK_SHAPE_ERROR,
                               "axis %d of argument %zu has length %lld, expected %lld as in the "
                               "recording and the arguments before",
                               axis, i, (long long)given->shape[axis], (long long)expected);
        }
    }
    return TK_OK;
}

/* ---- laws of integers ---- */

/* A length that grew by as much as the number did. */
static int find_shift(const tk_varying *v, int64_t near, int64_t far, tk_law *law) {
    int found = 0;
    int64_t growth;
    if (__builtin_sub_overflow(far, near, &growth)) return 0;
    for (int i = 0; i < v->count; i++) {
        if (growth != v->far[i] - v->near[i]) continue;
        law->kind = TK_LAW_SHIFT;
        law->group = i;
        if (near == v->near[i]) return 1; /* the length itself */
        found++;
    }
    return found;
}

/* The powers of the lengths whose factors make up far / near. */
static bool find_scale(const tk_varying *v, int64_t near, int64_t far, int64_t beside,
                       tk_law *law) {
    bool fits = !tk_add_overflow_i64(near, beside, &near) &&
                !tk_add_overflow_i64(far, beside, &far) && near != 0 && far != 0 &&
                far != INT64_MIN;
    if (!fits || far % near) return false;
    int64_t ratio = far / near;
    *law = (tk_law){.kind = TK_LAW_SCALE, .beside = beside};
    for (int i = 0; i < v->count; i++)
        for (; ratio % primes[i] == 0; ratio /= primes[i]) law->twice[i] += 2;
    return ratio == 1;
}

static bool explain_integer(const tk_varying *v, int64_t near, int64_t far, tk_law *out) {
    tk_law shift = {0}, scale = {0};
    int n_shifts = find_shift(v, near, far, &shift);
    bool scales = false;
    for (int64_t beside = 0; !scales && beside <= 1; beside++)
        scales = find_scale(v, near, far, beside, &scale) ||
                 (beside && find_scale(v, near, far, -beside, &scale));
    if (n_shifts == 1 && scales && scale.beside == 0 && near != v->near[shift.group]) return false;
    if (n_shifts != 1 && !scales) return false;
    *out = n_shifts == 1 ? shift : scale;
    out->number = near;
    return true;
}

/* ---- laws of floats ---- */

static double power(double base, int twice) {
    double root = twice % 2 ? sqrt(base) : 1;
    int whole = twice / 2;
    for (; whole > 0; whole--) root *= base;
    for (; whole < 0; whole++) root /= base;
    return twice % 2 && twice < 0 ? root / base : root;
}

static double powers(const tk_law *law, const int64_t *lengths, int count) {
    double product = 1;
    for (int i = 0; i < count; i++) product *= power((double)lengths[i], law->twice[i]);
    return product;
}

/* How far a number may be off, rounded to the dtype that it is of. */
static double slack(tk_dtype dtype) {
    if (dtype == TK_FLOAT64) return 1e-12;
    if (dtype == TK_FLOAT16) return 1e-3;
    return dtype == TK_BFLOAT16 ? 8e-3 : 1e-6;
}

/* Powers of -1, -1/2, 0, 1/2 and 1 of at most three lengths. */
static int search(const tk_varying *v, double rest, double bound, int group, int used, tk_law *law,
                  tk_law *out) {
    if (group == v->count) {
        if (used == 0 || fabs(rest) > bound) return 0;
        *out = *law;
        return 1;
    }
    int found = 0;
    for (int twice = -2; twice <= 2 && found < 2; twice++) {
        if (twice && used == 3) continue;
        law->twice[group] = (int8_t)twice;
        found += search(v, rest - 0.5 * twice * log((double)primes[group]), bound, group + 1,
                        used + (twice != 0), law, out);
    }
    law->twice[group] = 0;
    return found;
}

static bool explain_real(const tk_varying *v, tk_dtype dtype, double near, double far,
                         tk_law *out) {
    double bound = slack(dtype);
    tk_law law = {.kind = TK_LAW_REAL};
    if (!isfinite(near) || !isfinite(far) || near == 0 || far / near <= 0) return false;
    if (search(v, log(far / near), 2 * bound, 0, 0, &law, out) != 1) return false;
    out->factor = near / powers(out, v->near, v->count);
    double whole = round(out->factor); /* the 1 of 1 / n, without the rounding of the quotient */
    if (fabs(whole) < 1e6 && whole != 0 && fabs(out->factor / whole - 1) < bound)
        out->factor = whole;
    return true;
}

/* ---- laws of a step ---- */

static double real_of(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Fields that say which node this is, not what it computes. */
static bool is_identity(const tk_field *field) { return !strcmp(field->name, "serial"); }

typedef struct entry {
    tk_node *far;
    uint32_t slot, next; /* next: entry of the same near node, TK_NODE_ABSENT at the end */
} entry;

typedef struct frame {
    tk_node *near, *far;
    uint32_t next; /* operand */
} frame;

typedef struct pairing {
    tk_traced *near;
    const tk_varying *varying;
    tk_node_vec steps, fars; /* fars: their counterparts, borrowed */
    tk_counts counts;
    tk_trace_operands operands, results;
    tk_laws laws;
    tk_node_map map; /* from a near node to its last entry */
    TK_VEC(entry) entries;
    TK_VEC(frame) stack;
} pairing;

static tk_status add_law(pairing *p, tk_law law, bool found, uint32_t offset, int32_t item,
                         const tk_node *near) {
    if (!found)
        return tk_fail(TK_UNSUPPORTED,
                       "%s: a number in the recorded function changes with the shapes in a way "
                       "that cannot be followed",
                       tk_op_title((tk_op)near->op));
    law.step = (uint32_t)p->steps.count;
    law.offset = offset;
    law.item = item;
    return tk_vec_push(&p->laws, law) ? TK_OK : tk_traced_no_memory();
}

/* Most axes of a step whose products are tried. */
#define MOST_AXES 6

static int64_t product_of(const tk_node *node, uint32_t axes) {
    int64_t product = 1;
    for (int axis = 0; axis < node->rank; axis++)
        if (axes >> axis & 1u && tk_mul_overflow_i64(product, node->shape[axis], &product))
            return -1;
    return product;
}

/* Lengths of an earlier step, or a product of some, that are the number in both recordings. */
static bool find_axes(const pairing *p, int64_t near, int64_t far, tk_law *law) {
    for (size_t i = p->steps.count; i-- > 0;) {
        const tk_node *one = p->steps.items[i], *other = p->fars.items[i];
        if (one->rank != other->rank || one->rank > MOST_AXES) continue;
        for (uint32_t axes = 1; axes < 1u << one->rank; axes++) {
            if (product_of(one, axes) != near || product_of(other, axes) != far) continue;
            *law = (tk_law){.kind = TK_LAW_AXES,
                            .axes = axes,
                            .slot = (uint32_t)(p->near->placeholders.count + i)};
            return true;
        }
    }
    return false;
}

static bool explain_length(const pairing *p, int64_t near, int64_t far, tk_law *law) {
    return explain_integer(p->varying, near, far, law) || find_axes(p, near, far, law);
}

/* Whether a float is a whole number that every dtype of its size holds. */
static bool is_whole(double value) { return fabs(value) < 2048 * 4096.0 && value == floor(value); }

/* Powers of lengths, or a count. */
static bool explain_float(const pairing *p, tk_dtype dtype, double near, double far, tk_law *law) {
    if (explain_real(p->varying, dtype, near, far, law)) return true;
    if (!is_whole(near) || !is_whole(far)) return false;
    *law = (tk_law){0};
    bool found = explain_length(p, (int64_t)near, (int64_t)far, law);
    law->is_real = true;
    return found;
}

/* One length of a reshape follows from the others. */
static tk_status compare_lists(pairing *p, const tk_list *one, const tk_list *other,
                               uint32_t offset, const tk_node *near) {
    int n_rest = near->op == TK_OP_reshape_to ? 0 : 1;
    tk_law law = {0};
    if (one->count != other->count) return add_law(p, law, false, offset, 0, near);
    for (int64_t i = 0; i < one->count; i++) {
        int64_t here = one->items[i], there = other->items[i];
        if (here == there) continue;
        law = (tk_law){0};
        bool found = explain_length(p, here, there, &law);
        if (!found && n_rest++ == 0) {
            law.kind = TK_LAW_REST;
            found = true;
        }
        TK_TRY(add_law(p, law, found, offset, (int32_t)i, near));
    }
    return TK_OK;
}

/* BITS and FLOAT fields: of the record's own dtype where it has one. */
static bool explain_bits(const pairing *p, tk_field_kind kind, tk_dtype dtype, const char *one,
                         const char *other, tk_law *law) {
    uint64_t near, far;
    memcpy(&near, one, sizeof near);
    memcpy(&far, other, sizeof far);
    if (kind == TK_FIELD_FLOAT) dtype = TK_FLOAT64;
    if (kind == TK_FIELD_INT || !tk_dtype_is_inexact(dtype))
        return explain_length(p, (int64_t)near, (int64_t)far, law);
    return explain_float(p, dtype, real_of(near), real_of(far), law);
}

static tk_status compare_attrs(pairing *p, const tk_node *near, const tk_node *far) {
    const tk_record_info *info = tk_record_of(tk_node_op(near)->record);
    const char *one = near->attrs, *other = far->attrs;
    bool weak = (near->flags & TK_NODE_WEAK) != 0;
    tk_dtype dtype =
        weak && tk_dtype_is_inexact((tk_dtype)near->dtype) ? TK_FLOAT64 : (tk_dtype)near->dtype;
    uint32_t offset = 0;
    for (int i = 0; i < info->n_fields; i++) {
        const tk_field *field = &info->fields[i];
        size_t bytes = tk_field_bytes(field->kind);
        tk_law law = {0};
        if (field->kind == TK_FIELD_LIST) {
            TK_TRY(compare_lists(p, (const void *)(one + offset), (const void *)(other + offset),
                                 offset, near));
        } else if (field->kind == TK_FIELD_TEXT) {
            const char *texts[2];
            memcpy(&texts[0], one + offset, bytes);
            memcpy(&texts[1], other + offset, bytes);
            bool same = texts[0] && texts[1] ? !strcmp(texts[0], texts[1]) : texts[0] == texts[1];
            if (!same) return add_law(p, law, false, offset, -1, near);
        } else if (!is_identity(field) && memcmp(one + offset, other + offset, bytes)) {
            bool number = field->kind == TK_FIELD_INT || field->kind == TK_FIELD_FLOAT ||
                          field->kind == TK_FIELD_BITS;
            bool found =
                number && explain_bits(p, field->kind, dtype, one + offset, other + offset, &law);
            TK_TRY(add_law(p, law, found, offset, -1, near));
        }
        offset += (uint32_t)bytes;
    }
    return TK_OK;
}

/* ---- the two graphs side by side ---- */

static bool find_pair(const pairing *p, const tk_node *near, const tk_node *far,
                      uint32_t *out_slot) {
    uint32_t at = tk_node_map_get(&p->map, near);
    for (; at != TK_NODE_ABSENT; at = p->entries.items[at].next)
        if (p->entries.items[at].far == far) {
            *out_slot = p->entries.items[at].slot;
            return true;
        }
    return false;
}

static tk_status add_pair(pairing *p, tk_node *near, tk_node *far, uint32_t slot) {
    entry added = {far, slot, tk_node_map_get(&p->map, near)};
    if (!tk_vec_push(&p->entries, added) ||
        !tk_node_map_put(&p->map, near, (uint32_t)(p->entries.count - 1)))
        return tk_traced_no_memory();
    return TK_OK;
}

static tk_status check_pair(const tk_node *near, const tk_node *far) {
    bool same = near->op == far->op && near->n_inputs == far->n_inputs &&
                near->dtype == far->dtype && near->stream == far->stream &&
                near->n_outputs == far->n_outputs;
    bool is_leaf = near->op == TK_OP_buffer || near->op == TK_OP_placeholder ||
                   near->op == TK_OP_error || near->op == TK_OP_custom;
    bool is_evaluated = near->storage && near->n_inputs == 0 && /* it has dropped its operands */
                        tk_node_op(near)->lower != TK_LOWER_LEAF;
    is_leaf |= is_evaluated;
    if (same && !is_leaf) return TK_OK;
    return tk_fail(TK_UNSUPPORTED,
                   "the recorded function computes %s for some shapes and %s for "
                   "others: it cannot be recorded for all of them",
                   tk_op_title((tk_op)near->op), tk_op_title((tk_op)far->op));
}

/* Arrays of the same bytes: a function may make one from data in each recording. */
static bool same_memory(const tk_node *near, const tk_node *far) {
    if (near->op != TK_OP_buffer || far->op != TK_OP_buffer || !near->storage || !far->storage)
        return false;
    if (near->dtype != far->dtype || !tk_shape_equal(near, far)) return false;
    const tk_storage *one = near->storage, *other = far->storage;
    size_t bytes = (size_t)near->size * tk_dtype_size((tk_dtype)near->dtype);
    return one->row_major && other->row_major && !memcmp(one->data, other->data, bytes);
}

static bool is_constant(const tk_node *near, const tk_node *far) {
    return near == far || same_memory(near, far);
}

/* The value that an inner transform's placeholder carries. */
static tk_node *value_of(tk_node *node) {
    while (node->op == TK_OP_placeholder && node->n_inputs) node = node->inputs[0];
    return node;
}

/* A constant, or what was paired before. */
static bool add_operand(pairing *p, tk_trace_operands *list, tk_node *near, tk_node *far) {
    uint32_t slot = TK_NODE_ABSENT;
    near = value_of(near);
    far = value_of(far);
    bool known = is_constant(near, far) || find_pair(p, near, far, &slot);
    assert(known);
    (void)known;
    return tk_trace_operands_add(list, slot, near);
}

static tk_status add_step(pairing *p, tk_node *near, tk_node *far) {
    TK_TRY(compare_attrs(p, near, far));
    for (uint32_t i = 0; i < near->n_inputs; i++)
        if (!add_operand(p, &p->operands, near->inputs[i], far->inputs[i]))
            return tk_traced_no_memory();
    if (!tk_vec_push(&p->counts, near->n_inputs) || !tk_vec_push(&p->fars, far) ||
        !tk_vec_push(&p->steps, near))
        return tk_traced_no_memory();
    tk_node_retain(near);
    return add_pair(p, near, far, (uint32_t)(p->near->placeholders.count + p->steps.count - 1));
}

static tk_status push(pairing *p, tk_node *near, tk_node *far) {
    uint32_t slot;
    near = value_of(near);
    far = value_of(far);
    if (is_constant(near, far) || find_pair(p, near, far, &slot)) return TK_OK;
    TK_TRY(check_pair(near, far));
    frame next = {near, far, 0};
    return tk_vec_push(&p->stack, next) ? TK_OK : tk_traced_no_memory();
}

/* Operands first, without recursion. */
static tk_status walk(pairing *p, tk_node *near, tk_node *far) {
    TK_TRY(push(p, near, far));
    while (p->stack.count) {
        frame *top = &p->stack.items[p->stack.count - 1];
        uint32_t slot, i = top->next++;
        if (i < top->near->n_inputs) {
            TK_TRY(push(p, top->near->inputs[i], top->far->inputs[i]));
            continue;
        }
        frame done = *top;
        p->stack.count--;
        if (!find_pair(p, done.near, done.far, &slot)) TK_TRY(add_step(p, done.near, done.far));
    }
    return TK_OK;
}

static tk_status walk_results(pairing *p, const tk_traced *far) {
    const tk_traced *near = p->near;
    if (near->results.count != far->results.count)
        return tk_fail(TK_UNSUPPORTED,
                       "the recorded function gives %zu results for some shapes "
                       "and %zu for others",
                       near->results.count, far->results.count);
    tk_status status = TK_OK;
    for (size_t i = 0; status == TK_OK && i < near->placeholders.count; i++)
        status = add_pair(p, near->placeholders.items[i], far->placeholders.items[i], (uint32_t)i);
    for (size_t i = 0; status == TK_OK && i < near->results.count; i++) {
        tk_node *one = near->results.items[i].constant, *other = far->results.items[i].constant;
        status = walk(p, one, other);
        if (status == TK_OK && !add_operand(p, &p->results, one, other))
            status = tk_traced_no_memory();
    }
    return status;
}

/* What the pairing found takes the place of what was recorded, or goes. */
static void finish(pairing *p, bool take) {
    tk_traced *near = p->near;
    tk_trace_operands operands = take ? near->operands : p->operands;
    tk_trace_operands results = take ? near->results : p->results;
    tk_node_vec steps = take ? near->steps : p->steps;
    tk_counts counts = take ? near->counts : p->counts;
    if (take) {
        near->counts = p->counts;
        near->operands = p->operands;
        near->results = p->results;
        near->steps = p->steps;
        near->laws = p->laws;
        near->varying = *p->varying;
    } else {
        tk_vec_deinit(&p->laws);
    }
    tk_trace_operands_release(&operands);
    tk_trace_operands_release(&results);
    for (size_t i = 0; i < steps.count; i++) tk_node_release(steps.items[i]);
    tk_vec_deinit(&steps);
    tk_vec_deinit(&counts);
    tk_vec_deinit(&p->fars);
    tk_node_map_deinit(&p->map);
    tk_vec_deinit(&p->entries);
    tk_vec_deinit(&p->stack);
}

tk_status tk_traced_generalise(tk_traced *near, const tk_traced *far, const tk_varying *varying) {
    pairing p = {.near = near, .varying = varying};
    if (varying->count == 0) return TK_OK;
    tk_graph_lock(&near->context->graph);
    tk_status status = walk_results(&p, far);
    finish(&p, status == TK_OK);
    tk_graph_unlock(&near->context->graph);
    return status;
}

/* ---- calls ---- */

/* number times the lengths that it is a multiple of, in proportion. */
static tk_status scaled(const tk_law *law, const tk_varying *v, const int64_t *lengths,
                        int64_t *out) {
    int64_t value = law->number + law->beside, before = 1; /* as find_scale has added them */
    for (int i = 0; i < v->count; i++)
        for (int k = 0; k < law->twice[i]; k += 2)
            if (tk_mul_overflow_i64(value, lengths[i], &value) ||
                tk_mul_overflow_i64(before, v->near[i], &before))
                return tk_fail(TK_OVERFLOW, "lengths of a recorded function do not fit 63 bits");
    if (value % before)
        return tk_fail(TK_SHAPE_ERROR,
                       "a recorded function has a length that is no integer for these shapes");
    if (tk_add_overflow_i64(value / before, -law->beside, out))
        return tk_fail(TK_OVERFLOW, "lengths of a recorded function do not fit 63 bits");
    return TK_OK;
}

static tk_status integer_now(const tk_law *law, const tk_varying *v, const int64_t *lengths,
                             int64_t *out) {
    if (law->kind == TK_LAW_SCALE) return scaled(law, v, lengths, out);
    if (tk_add_overflow_i64(law->number, lengths[law->group] - v->near[law->group], out))
        return tk_fail(TK_OVERFLOW, "lengths of a recorded function do not fit 63 bits");
    return TK_OK;
}

static double round_constant(const tk_node *step, double value) {
    if ((step->flags & TK_NODE_WEAK) || step->dtype == TK_FLOAT64) return value;
    if (step->dtype == TK_FLOAT16) return tk_f16_to_f32(tk_f64_to_f16(value));
    if (step->dtype == TK_BFLOAT16) return tk_bf16_to_f32(tk_f64_to_bf16(value));
    return (double)(float)value;
}

static void put_real(const tk_node *step, double value, char *at) {
    if (step->op == TK_OP_const) value = round_constant(step, value);
    memcpy(at, &value, sizeof value);
}

/* What is missing to the size of the operand; the item itself does not count. */
static tk_status rest_of(const tk_list *list, int32_t item, const tk_node *operand, int64_t *out) {
    int64_t others = 1;
    for (int64_t i = 0; i < list->count; i++)
        if (i != item && tk_mul_overflow_i64(others, list->items[i], &others))
            return tk_fail(TK_OVERFLOW, "lengths of a recorded function do not fit 63 bits");
    if (others == 0 || operand->size % others)
        return tk_fail(TK_SHAPE_ERROR,
                       "a reshape of a recorded function does not fit %lld "
                       "elements",
                       (long long)operand->size);
    *out = operand->size / others;
    return TK_OK;
}

/* The law of a reshape's rest comes last, when the other lengths are known. */
static tk_status apply_rest(const tk_traced *traced, size_t first, size_t last,
                            const tk_node *operand, char *attrs) {
    for (size_t i = first; i < last; i++) {
        const tk_law *law = &traced->laws.items[i];
        if (law->kind != TK_LAW_REST) continue;
        const tk_list *list = (const void *)(attrs + law->offset);
        TK_TRY(rest_of(list, law->item, operand, &((int64_t *)(uintptr_t)list->items)[law->item]));
    }
    return TK_OK;
}

tk_status tk_traced_apply_laws(const tk_traced *traced, size_t step, const int64_t *lengths,
                               tk_node *const *values, tk_node *const *inputs, size_t *next_law,
                               void *attrs) {
    size_t first = *next_law;
    const tk_node *node = traced->steps.items[step];
    for (; *next_law < traced->laws.count; ++*next_law) {
        const tk_law *law = &traced->laws.items[*next_law];
        char *at = (char *)attrs + law->offset;
        int64_t number = 0;
        if (law->step != step) break;
        if (law->kind == TK_LAW_REAL) {
            put_real(node, law->factor * powers(law, lengths, traced->varying.count), at);
            continue;
        }
        if (law->kind == TK_LAW_REST) continue;
        if (law->kind == TK_LAW_AXES)
            number = product_of(values[law->slot], law->axes);
        else
            TK_TRY(integer_now(law, &traced->varying, lengths, &number));
        if (law->is_real) {
            put_real(node, (double)number, at);
            continue;
        }
        if (law->item >= 0) {
            const tk_list *list = (const void *)at;
            ((int64_t *)(uintptr_t)list->items)[law->item] = number;
        } else {
            memcpy(at, &number, sizeof number);
        }
    }
    return traced->counts.items[step] ? apply_rest(traced, first, *next_law, inputs[0], attrs)
                                      : TK_OK;
}
