/* Unrolling of `for`, as its attribute asks: -1 writes every trip of a loop with constant bounds
 * out, n > 1 makes n trips of one, with a loop for the rest behind it.
 *
 * The first loop ends where at least one trip is left, so its end is a value that the index takes:
 * no arithmetic of bounds can wrap, near the ends of the range of integers either. */
#include "base/error.h"
#include "kernel/pass.h"

enum { FIRST, END, STEP, BOUNDS };

#define MOST_TRIPS 4096

typedef struct unroller {
    tk_kernel *kernel;
    tk_kexchange results; /* of loops that are gone */
} unroller;

/* ---- copies of operations ---- */

static tk_status copy_block(tk_kput *put, const tk_kblock *block, tk_kexchange *map, bool with_end);

static tk_status copy_values(tk_kput *put, size_t count, tk_kvalue *const *from, tk_kvalue **to,
                             tk_kexchange *map) {
    (void)put;
    for (size_t i = 0; i < count; i++) {
        to[i]->name = from[i]->name;
        TK_TRY(tk_kexchange_set(map, from[i], to[i]));
    }
    return TK_OK;
}

static tk_status types_of(tk_kput *put, size_t count, tk_kvalue *const *values, tk_ktype **out) {
    *out = tk_arena_alloc(&put->kernel->arena, (count + 1) * sizeof **out);
    if (!*out) return tk_fail(TK_OUT_OF_MEMORY, "no memory for a pass");
    for (size_t i = 0; i < count; i++) (*out)[i] = values[i]->type;
    return TK_OK;
}

static tk_status copy_regions(tk_kput *put, const tk_kop *op, tk_kop *copy, tk_kexchange *map) {
    for (int i = 0; i < op->n_regions; i++) {
        const tk_kblock *region = op->regions[i];
        tk_kblock *made;
        tk_ktype *types;
        TK_TRY(types_of(put, region->n_args, region->args, &types));
        TK_TRY(tk_kop_add_region(put->kernel, copy, region->n_args, types, &made));
        TK_TRY(copy_values(put, region->n_args, region->args, made->args, map));
        tk_kput inner = tk_kput_into(put, copy, i);
        TK_TRY(copy_block(&inner, region, map, true));
    }
    return TK_OK;
}

static tk_status copy_op(tk_kput *put, const tk_kop *op, tk_kexchange *map) {
    tk_ktype *types;
    tk_kop *copy;
    tk_kvalue **operands =
        tk_arena_alloc(&put->kernel->arena, (op->n_operands + 1) * sizeof *operands);
    if (!operands) return tk_fail(TK_OUT_OF_MEMORY, "no memory for a pass");
    for (uint32_t i = 0; i < op->n_operands; i++)
        operands[i] = tk_kexchange_get(map, op->operands[i]);
    TK_TRY(types_of(put, op->n_results, op->results, &types));
    tk_kop_spec spec = {.code = (tk_kopcode)op->code,
                        .n_operands = op->n_operands,
                        .operands = operands,
                        .attrs = op->attrs,
                        .n_types = op->n_results,
                        .types = types,
                        .loc = op->loc};
    TK_TRY(tk_kop_make(put->kernel, &spec, &copy));
    if (put->before)
        tk_kop_insert_before(put->before, copy);
    else
        tk_kop_append(put->block, copy);
    TK_TRY(copy_values(put, op->n_results, op->results, copy->results, map));
    return copy_regions(put, op, copy, map);
}

static tk_status copy_block(tk_kput *put, const tk_kblock *block, tk_kexchange *map,
                            bool with_end) {
    for (const tk_kop *op = block->first; op && (with_end || op != block->last); op = op->next)
        TK_TRY(copy_op(put, op, map));
    return TK_OK;
}

/* One trip: `carried` holds what it begins with, then what it ends with. */
static tk_status copy_trip(tk_kput *put, const tk_kop *loop, tk_kvalue *index,
                           tk_kvalue **carried) {
    const tk_kblock *body = loop->regions[0];
    tk_kexchange map = {0};
    tk_status status = tk_kexchange_set(&map, body->args[0], index);
    for (uint32_t i = 1; i < body->n_args && status == TK_OK; i++)
        status = tk_kexchange_set(&map, body->args[i], carried[i - 1]);
    if (status == TK_OK) status = copy_block(put, body, &map, false);
    for (uint32_t i = 0; i < body->last->n_operands && status == TK_OK; i++)
        carried[i] = tk_kexchange_get(&map, body->last->operands[i]);
    tk_vec_deinit(&map);
    return status;
}

static tk_status carried_of(unroller *u, const tk_kop *op, tk_kvalue ***out) {
    uint32_t count = op->n_operands - BOUNDS;
    *out = tk_arena_alloc(&u->kernel->arena, (count + 1) * sizeof **out);
    if (!*out) return tk_fail(TK_OUT_OF_MEMORY, "no memory for a pass");
    for (uint32_t i = 0; i < count; i++) (*out)[i] = op->operands[BOUNDS + i];
    return TK_OK;
}

static tk_status replace(unroller *u, tk_kop *op, tk_kvalue *const *results) {
    for (int i = 0; i < op->n_results; i++)
        TK_TRY(tk_kexchange_set(&u->results, op->results[i], results[i]));
    tk_kop_unlink(op);
    return TK_OK;
}

/* ---- all trips ---- */

static bool trips_of(const tk_kop *op, int64_t *first, int64_t *step, int64_t *out) {
    int64_t end, length;
    if (!tk_kvalue_integer(op->operands[FIRST], first) ||
        !tk_kvalue_integer(op->operands[END], &end) ||
        !tk_kvalue_integer(op->operands[STEP], step) || *step < 1)
        return false;
    if (__builtin_sub_overflow(end, *first, &length)) return false;
    *out = length <= 0 ? 0 : 1 + (length - 1) / *step;
    return *out <= MOST_TRIPS;
}

static tk_status unroll_all(unroller *u, tk_kop *op) {
    int64_t first, step, trips;
    tk_status status = TK_OK;
    tk_kvalue **carried;
    if (!trips_of(op, &first, &step, &trips)) return TK_OK;
    tk_kput put = tk_kput_before(u->kernel, op, &status);
    TK_TRY(carried_of(u, op, &carried));
    for (int64_t i = 0; i < trips; i++) {
        tk_kscalar type = (tk_kscalar)op->operands[FIRST]->type.scalar;
        tk_kvalue *index = tk_kput_integer(&put, type, first + i * step);
        TK_TRY(status);
        TK_TRY(copy_trip(&put, op, index, carried));
    }
    return replace(u, op, carried);
}

/* ---- some trips ---- */

/* first + n step * (trips - 1) / n, or first when there is no trip. */
static tk_kvalue *main_end(tk_kput *p, const tk_kop *op, int64_t span) {
    tk_kvalue *first = op->operands[FIRST], *end = op->operands[END];
    tk_kscalar type = (tk_kscalar)first->type.scalar;
    tk_kvalue *each = tk_kput_integer(p, type, span), *zero = tk_kput_integer(p, type, 0);
    tk_kvalue *length = tk_kput_2(p, TK_KOP_sub, end, first);
    tk_kvalue *most = tk_kput_2(p, TK_KOP_sub, length, tk_kput_integer(p, type, 1));
    tk_kvalue *whole = tk_kput_2(p, TK_KOP_mul, tk_kput_2(p, TK_KOP_udiv, most, each), each);
    tk_kvalue *any = tk_kput_compare(p, TK_KOP_icmp, "slt", first, end);
    return tk_kput_2(p, TK_KOP_add, first, tk_kput_3(p, TK_KOP_select, any, whole, zero));
}

static tk_status make_loop(tk_kput *put, const tk_kop *like, tk_kvalue *const *bounds,
                           tk_kvalue *const *carried, tk_kop **out) {
    uint32_t count = like->n_operands - BOUNDS;
    int64_t unroll = 1;
    tk_ktype *types;
    tk_kblock *unused;
    tk_kvalue **operands = tk_arena_alloc(&put->kernel->arena, like->n_operands * sizeof *operands);
    if (!operands) return tk_fail(TK_OUT_OF_MEMORY, "no memory for a pass");
    for (int i = 0; i < BOUNDS; i++) operands[i] = bounds[i];
    for (uint32_t i = 0; i < count; i++) operands[BOUNDS + i] = carried[i];
    tk_kop_spec spec = {.code = TK_KOP_for,
                        .n_operands = like->n_operands,
                        .operands = operands,
                        .attrs = &unroll,
                        .loc = like->loc};
    TK_TRY(tk_kop_make(put->kernel, &spec, out));
    tk_kop_insert_before(put->before, *out);
    TK_TRY(types_of(put, like->regions[0]->n_args, like->regions[0]->args, &types));
    TK_TRY(tk_kop_add_region(put->kernel, *out, count + 1, types, &unused));
    return tk_kop_add_results(put->kernel, *out, count, types + 1);
}

/* Fills a loop's region with `copies` trips of another. */
static tk_status fill_loop(unroller *u, tk_kop *loop, const tk_kop *like, int64_t copies,
                           int64_t step) {
    tk_status status = TK_OK;
    tk_kput before = tk_kput_before(u->kernel, loop, &status), put = tk_kput_into(&before, loop, 0);
    tk_kvalue **carried, *index = loop->regions[0]->args[0];
    TK_TRY(carried_of(u, loop, &carried));
    for (int i = 0; i < loop->n_results; i++) carried[i] = loop->regions[0]->args[1 + i];
    for (int64_t i = 0; i < copies; i++) {
        tk_kvalue *by = tk_kput_integer(&put, (tk_kscalar)index->type.scalar, i * step);
        tk_kvalue *at = i ? tk_kput_2(&put, TK_KOP_add, index, by) : index;
        TK_TRY(status);
        TK_TRY(copy_trip(&put, like, at, carried));
    }
    tk_kput_yield(&put, loop->n_results, carried);
    return status;
}

static tk_status unroll_some(unroller *u, tk_kop *op, int64_t copies) {
    int64_t step, span, most = op->operands[FIRST]->type.scalar == TK_K_I32 ? INT32_MAX : INT64_MAX;
    tk_status status = TK_OK;
    tk_kop *main_loop, *rest;
    if (!tk_kvalue_integer(op->operands[STEP], &step) || step < 1 ||
        __builtin_mul_overflow(step, copies, &span) || span > most)
        return TK_OK;
    tk_kput put = tk_kput_before(u->kernel, op, &status);
    tk_kvalue *end = main_end(&put, op, span),
              *wide = tk_kput_integer(&put, (tk_kscalar)op->operands[FIRST]->type.scalar, span);
    TK_TRY(status);
    tk_kvalue *first_bounds[] = {op->operands[FIRST], end, wide},
              *rest_bounds[] = {end, op->operands[END], op->operands[STEP]};
    TK_TRY(make_loop(&put, op, first_bounds, op->operands + BOUNDS, &main_loop));
    TK_TRY(fill_loop(u, main_loop, op, copies, step));
    TK_TRY(make_loop(&put, op, rest_bounds, main_loop->results, &rest));
    TK_TRY(fill_loop(u, rest, op, 1, step));
    return replace(u, op, rest->results);
}

/* ---- the pass ---- */

static tk_status visit_block(unroller *u, tk_kblock *block) {
    for (tk_kop *op = block->first, *next; op; op = next) {
        next = op->next;
        for (uint32_t i = 0; i < op->n_operands; i++)
            op->operands[i] = tk_kexchange_get(&u->results, op->operands[i]);
        for (int i = 0; i < op->n_regions; i++) TK_TRY(visit_block(u, op->regions[i]));
        if (op->code != TK_KOP_for) continue;
        int64_t copies = tk_kop_attr(op, TK_KA_unroll);
        if (copies == -1) TK_TRY(unroll_all(u, op));
        if (copies > 1) TK_TRY(unroll_some(u, op, copies));
    }
    return TK_OK;
}

tk_status tk_kpass_run_unroll(tk_kernel *kernel) {
    unroller u = {.kernel = kernel};
    tk_status status = visit_block(&u, &kernel->body);
    if (status == TK_OK) tk_kexchange_apply(&u.results, kernel);
    tk_vec_deinit(&u.results);
    return status;
}
