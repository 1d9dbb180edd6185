/* Tensor form to view form: work of groups becomes loads, stores and instructions of threads.
 *
 * copy, fill: the elements of a tile go to the threads of the group in vectors: vector v belongs to
 * thread v modulo the group's size. The order is that of the tile's coordinates, or, where vectors
 * are wider so, that with its two modes exchanged. A vector is as wide as both layouts keep
 * elements together, the attribute `vector` allows, and alignments prove. Tiles whose size is not
 * known are copied by a loop, element by element; others are written out. With cp_async the same
 * pieces go to shared memory by cp.async; commit and wait are the kernel's own. A fragment
 * (register tensor with a thread-value layout) against a tile: each thread moves what the layout
 * says. Register tensors among themselves, and a fill of one: each thread has its own and does all
 * of it.
 *
 * Who works is a condition around the work only for a group of some warps; all threads of other
 * groups are there, which is proven before. What a group writes is ordered by no barrier: those
 * are operations of their own. */
#include <string.h>

#include "base/error.h"
#include "kernel/check.h"
#include "kernel/lower.h"
#include "kernel/sym.h"
#include "kernel/verify.h"

typedef tk_kvalue *val;
typedef tk_klowerer lowerer;

/* A fragment is spread over threads by its thread-value layout. */
static bool is_fragment(val tile) { return tk_ktile_is_registers(tile) && tile->type.tv; }

/* In 64 bits: a tile whose size is not known may have any. */
static val whole_extent(tk_kput *p, val tile) {
    val product = NULL;
    for (int i = 0; i < tk_layout_rank(tk_ktile_layout(p->kernel, tile)); i++) {
        tk_kput_attr mode = {TK_KA_mode_index, i};
        val extent = tk_kput_op(p, TK_KOP_extent, 1, &tile, 1, &mode, tk_ktype_scalar(TK_K_I64));
        product = product ? tk_kput_2(p, TK_KOP_mul, product, extent) : extent;
    }
    return product;
}

/* ---- elements ---- */

static val extract(tk_kput *p, val vector, int index) {
    tk_kput_attr attr = {TK_KA_index, index};
    if (!vector || vector->type.lanes == 1) return vector;
    return tk_kput_op(p, TK_KOP_extract, 1, &vector, 1, &attr,
                      tk_ktype_scalar((tk_kscalar)vector->type.scalar));
}

static val convert(tk_kput *p, val value, val target) {
    tk_kscalar to = (tk_kscalar)target->type.scalar;
    val parts[16];
    if (!value || value->type.scalar == to) return value;
    int lanes = value->type.lanes;
    for (int i = 0; i < lanes; i++)
        parts[i] = tk_kput_as(p, TK_KOP_convert, extract(p, value, i), to);
    if (lanes == 1 || *p->status != TK_OK) return parts[0];
    return tk_kput_op(p, TK_KOP_vector, (size_t)lanes, parts, 0, NULL, tk_ktype_vector(to, lanes));
}

/* ---- widths ---- */

/* What is done to elements: between two tiles of one size, or to one. */
typedef struct job {
    const tk_kop *op;
    val source, target; /* source NULL: of one tile */
} job;

static int64_t widest(const job *j) {
    int64_t bytes = tk_kscalar_bytes((tk_kscalar)j->target->type.scalar), lanes = 16;
    int64_t most = j->op->code == TK_KOP_copy && tk_kop_attr(j->op, TK_KA_vector)
                       ? tk_kop_attr(j->op, TK_KA_vector)
                       : 16;
    if (j->source && tk_kscalar_bytes((tk_kscalar)j->source->type.scalar) > bytes)
        bytes = tk_kscalar_bytes((tk_kscalar)j->source->type.scalar);
    while (lanes > 1 && lanes * bytes > most) lanes /= 2;
    return lanes;
}

static int64_t width_of(const lowerer *w, const job *j, const tk_composed *source,
                        const tk_composed *target) {
    int64_t lanes = widest(j);
    while (lanes > 1 && !(tk_ktile_is_together(w, j->target, target, lanes) &&
                          (!j->source || tk_ktile_is_together(w, j->source, source, lanes))))
        lanes /= 2;
    return lanes;
}

/* Exchanges the modes of both tiles where that makes vectors wider. */
static int64_t choose_order(const lowerer *w, tk_kput *p, job *j) {
    tk_composed source, target;
    int64_t lanes = width_of(w, j, j->source ? tk_ktype_layout(w->kernel, j->source->type) : NULL,
                             tk_ktype_layout(w->kernel, j->target->type));
    if (!tk_ktile_turned(w->kernel, j->target, &target) ||
        (j->source && !tk_ktile_turned(w->kernel, j->source, &source)))
        return lanes;
    int64_t turned = width_of(w, j, &source, &target);
    if (turned <= lanes) return lanes;
    if (j->source) j->source = tk_ktile_turn(p, j->source);
    j->target = tk_ktile_turn(p, j->target);
    return turned;
}

/* ---- the work, divided ---- */

/* Does the work for elements from `at` on, where the condition holds. */
typedef void (*piece)(tk_kput *p, const job *j, val at, int64_t lanes, val condition);

static val both(tk_kput *p, val a, val b) {
    return a && b ? tk_kput_2(p, TK_KOP_and, a, b) : a ? a : b;
}

static tk_status write_out(tk_kput *p, const job *j, int64_t size, int64_t lanes, piece work,
                           val condition) {
    bool alone =
        tk_ktile_is_registers(j->target) || (j->source && tk_ktile_is_registers(j->source));
    int64_t group = alone ? 1 : tk_kgroup_size(p->kernel, j->op), vectors = size / lanes,
            rounds = (vectors + group - 1) / group;
    val own = alone ? tk_kput_index(p, TK_K_I32, 0) : tk_kgroup_member(p, j->op);
    val each = tk_kput_index(p, TK_K_I32, lanes);
    if (rounds > TK_KMOST_WRITTEN_OUT)
        return tk_fail(TK_UNSUPPORTED, "%s: %lld pieces a thread, at most %d are written out",
                       tk_kop_row_of(j->op->code)->name, (long long)rounds, TK_KMOST_WRITTEN_OUT);
    for (int64_t i = 0; i < rounds && *p->status == TK_OK; i++) {
        bool all = (i + 1) * group <= vectors;
        int64_t number;
        if (tk_kvalue_integer(own, &number)) {
            work(p, j, tk_kput_index(p, TK_K_I32, i * lanes), lanes, condition);
            continue;
        }
        val at = i ? tk_kput_2(p, TK_KOP_add, own, tk_kput_index(p, TK_K_I32, i * group)) : own;
        val inside =
            all ? NULL
                : tk_kput_compare(p, TK_KOP_icmp, "slt", at, tk_kput_index(p, TK_K_I32, vectors));
        if (lanes > 1) at = tk_kput_2(p, TK_KOP_mul, at, each);
        work(p, j, at, lanes, both(p, condition, inside));
    }
    return *p->status;
}

tk_status tk_klower_loop(tk_kput *p, const tk_kop *op, val end, tk_kput *out_inner,
                         val *out_number) {
    tk_kop *loop;
    tk_kblock *body;
    int64_t unroll = 0;
    TK_TRY(*p->status);
    tk_ktype index = end->type;
    tk_kscalar scalar = (tk_kscalar)index.scalar;
    val first = tk_ksym_as(p, scalar, tk_kgroup_member(p, op));
    val bounds[] = {first, end, tk_kput_index(p, scalar, tk_kgroup_size(p->kernel, op))};
    TK_TRY(*p->status);
    tk_kop_spec spec = {
        .code = TK_KOP_for, .n_operands = 3, .operands = bounds, .attrs = &unroll, .loc = p->loc};
    TK_TRY(tk_kop_make(p->kernel, &spec, &loop));
    tk_kop_insert_before(p->before, loop);
    TK_TRY(tk_kop_add_region(p->kernel, loop, 1, &index, &body));
    TK_TRY(tk_kop_add_results(p->kernel, loop, 0, NULL));
    *out_inner = tk_kput_into(p, loop, 0);
    *out_number = body->args[0];
    tk_kput_yield(out_inner, 0, NULL);
    TK_TRY(*p->status);
    out_inner->before = body->last;
    return TK_OK;
}

tk_status tk_klower_if(tk_kput *p, val condition, tk_kput *out_inner) {
    tk_kop *branch = tk_kput_if(p, condition);
    tk_kput yes = tk_kput_into(p, branch, 0), no = tk_kput_into(p, branch, 1);
    tk_kput_yield(&yes, 0, NULL);
    tk_kput_yield(&no, 0, NULL);
    tk_kput_results(p, branch);
    TK_TRY(*p->status);
    *out_inner = tk_kput_before(p->kernel, branch->regions[0]->last, p->status);
    out_inner->loc = p->loc;
    return TK_OK;
}

static tk_status divide(const lowerer *w, tk_kput *p, job j, piece work, val condition) {
    int64_t size = tk_ktile_size(w->kernel, j.source ? j.source : j.target);
    val number;
    tk_kput inner;
    if (size >= 0) {
        int64_t lanes = choose_order(w, p, &j);
        return write_out(p, &j, size, lanes, work, condition);
    }
    if (tk_ktile_is_registers(j.target) || (j.source && tk_ktile_is_registers(j.source)))
        return tk_fail(TK_UNSUPPORTED, "%s: between registers and a tile of unknown size",
                       tk_kop_row_of(j.op->code)->name);
    val end = whole_extent(p, j.source ? j.source : j.target);
    TK_TRY(tk_klower_loop(p, j.op, end, &inner, &number));
    work(&inner, &j, number, 1, condition);
    return *p->status;
}

/* ---- copy, fill ---- */

static void copy_piece(tk_kput *p, const job *j, val at, int64_t lanes, val condition) {
    val value = convert(p, tk_ktile_read(p, j->source, at, lanes, condition), j->target);
    tk_ktile_write(p, j->target, at, value, condition);
}

/* Its size is 4, 8 or 16 bytes, else the operation is refused. */
static void async_piece(tk_kput *p, const job *j, val at, int64_t lanes, val condition) {
    int64_t bytes = lanes * tk_kscalar_bytes((tk_kscalar)j->target->type.scalar);
    val target = tk_ktile_locate(p, j->target, at);
    val list[] = {target, tk_ktile_locate(p, j->source, at), NULL, condition, NULL};
    const char *words = tk_kattr_row_of(TK_KA_cache)->words;
    tk_kput_attr attrs[] = {{TK_KA_bytes, bytes}, {TK_KA_cache, tk_kwords_find(words, "cg", 2)}};
    if (bytes < 4 && *p->status == TK_OK)
        *p->status = tk_fail(TK_UNSUPPORTED,
                             "copy: cp.async moves 4, 8 or 16 bytes, and only %lld are proven to "
                             "lie together and aligned",
                             (long long)bytes);
    tk_kput_op(p, TK_KOP_cp_async, 5, list, bytes == 16 ? 2 : 1, attrs, (tk_ktype){0});
}

static void fill_piece(tk_kput *p, const job *j, val at, int64_t lanes, val condition) {
    val value = j->op->operands[1];
    if (lanes > 1)
        value = tk_kput_op(p, TK_KOP_splat, 1, &value, 0, NULL, tk_ktile_lanes(j->target, lanes));
    tk_ktile_write(p, j->target, at, value, condition);
}

/* The first leaf turns fastest. */
val tk_klower_place(tk_kput *p, const tk_layout *layout, val number) {
    val sum = NULL;
    for (int i = 0; i < layout->leaf_count; i++) {
        val extent = tk_kput_index(p, TK_K_I32, layout->leaf[i].shape.value);
        bool last = i == layout->leaf_count - 1;
        val part = last ? number : tk_kput_2(p, TK_KOP_urem, number, extent);
        if (!last) number = tk_kput_2(p, TK_KOP_udiv, number, extent);
        part = tk_kput_2(p, TK_KOP_mul, part,
                         tk_kput_index(p, TK_K_I32, layout->leaf[i].stride.value));
        sum = sum ? tk_kput_2(p, TK_KOP_add, sum, part) : part;
    }
    return sum;
}

/* Whether the layout has what the group, the register tensor and the tile have. */
static tk_status check_fragment(const tk_kernel *kernel, const tk_kop *op, val fragment, val tile,
                                const tk_layout *tv) {
    int64_t group = tk_kgroup_size(kernel, op), held = tk_ktile_size(kernel, fragment);
    int64_t threads = tk_ktile_mode(tv, 0), values = tk_ktile_mode(tv, 1);
    int64_t elements = tk_ktile_size(kernel, tile);
    tk_term reach;
    if (tk_layout_rank(tv) != 2 || threads != group || values != held)
        return tk_fail(
            TK_SHAPE_ERROR,
            "copy: a thread-value layout of %lld threads and %lld values, for a group of "
            "%lld threads and %lld registers",
            (long long)threads, (long long)values, (long long)group, (long long)held);
    TK_TRY(tk_layout_cosize(tv, &reach));
    if (elements < 0 || reach.value <= elements) return TK_OK;
    return tk_fail(TK_SHAPE_ERROR,
                   "copy: a thread-value layout that reaches element %lld, of a tile of %lld",
                   (long long)reach.value - 1, (long long)elements);
}

/* A fragment against a tile: value v of thread t is element tv(t, v) of the tile. */
static tk_status copy_fragment(tk_kput *p, const tk_kop *op, val condition) {
    val source = op->operands[0], target = op->operands[1];
    bool out = is_fragment(source);
    val fragment = out ? source : target;
    const tk_layout *tv = &p->kernel->layouts.items[fragment->type.tv - 1]->outer;
    tk_layout threads, values;
    tk_term size;
    TK_TRY(check_fragment(p->kernel, op, fragment, out ? target : source, tv));
    TK_TRY(tk_layout_mode(tv, 0, &threads));
    TK_TRY(tk_layout_mode(tv, 1, &values));
    TK_TRY(tk_layout_size(&values, &size));
    val own = tk_kgroup_member(p, op), first;
    first = tk_klower_place(p, &threads, own);
    for (int64_t v = 0; v < size.value && *p->status == TK_OK; v++) {
        val at =
            tk_kput_2(p, TK_KOP_add, first, tk_kput_index(p, TK_K_I32, tk_layout_at(&values, v)));
        val number = tk_kput_index(p, TK_K_I32, v);
        val value = tk_ktile_read(p, source, out ? number : at, 1, out ? NULL : condition);
        tk_ktile_write(p, target, out ? at : number, convert(p, value, target),
                       out ? condition : NULL);
    }
    return *p->status;
}

enum { PLAIN, CP_ASYNC, BULK, TMA }; /* by place in the words of the attribute copy */

static tk_status lower_async(const lowerer *w, tk_kput *p, const tk_kop *op) {
    val source = op->operands[0], target = op->operands[1];
    bool fits = source->type.kind == TK_KT_VIEW && target->type.kind == TK_KT_VIEW &&
                source->type.space == TK_KS_GLOBAL && target->type.space == TK_KS_SHARED &&
                source->type.scalar == target->type.scalar;
    if (!fits)
        return tk_fail(TK_UNSUPPORTED, "copy: cp.async goes from global to shared memory and "
                                       "converts nothing");
    return divide(w, p, (job){op, source, target}, async_piece, op->operands[2]);
}

static tk_status lower_copy(const lowerer *w, tk_kput *p, const tk_kop *op) {
    val source = op->operands[0], target = op->operands[1], condition = op->operands[2];
    int64_t how = tk_kop_attr(op, TK_KA_copy), group = tk_kop_attr(op, TK_KA_group);
    if (how == CP_ASYNC) return lower_async(w, p, op);
    if (how == TMA) return tk_klower_tma(w, p, op);
    if (how == BULK)
        return tk_fail(TK_UNSUPPORTED,
                       "copy: runs of bytes are copied by bulk_load and bulk_store");
    bool out = tk_ktile_is_registers(source), in = tk_ktile_is_registers(target);
    if (out && in && group != TK_KG_THREAD && source->type.tv != target->type.tv)
        return tk_fail(TK_UNSUPPORTED, "copy: between register tensors with different thread-value "
                                       "layouts: through shared memory, by two copies");
    if (out != in && (is_fragment(source) || is_fragment(target)))
        return copy_fragment(p, op, condition);
    if (group != TK_KG_THREAD && out != in)
        return tk_fail(TK_UNSUPPORTED,
                       "copy: registers without a thread-value layout against a tile of a group");
    tk_kput inner = *p;
    bool chosen = out && in && condition;
    if (chosen) TK_TRY(tk_klower_if(p, condition, &inner));
    return divide(w, &inner, (job){op, source, target}, copy_piece, chosen ? NULL : condition);
}

/* ---- the pass ---- */

static tk_status lower_work(const lowerer *w, tk_kput *p, tk_kop *op) {
    switch (op->code) {
    case TK_KOP_copy:
        return lower_copy(w, p, op);
    case TK_KOP_fill:
        return divide(w, p, (job){op, NULL, op->operands[0]}, fill_piece, NULL);
    case TK_KOP_combine:
        return tk_klower_combine(w, p, op);
    default:
        return tk_klower_gemm(w, p, op);
    }
}

/* Some warps: the others pass by. */
static tk_status among_warps(const lowerer *w, tk_kput *p, tk_kop *op) {
    int64_t first = 32 * tk_kop_attr(op, TK_KA_first), count = 32 * tk_kop_attr(op, TK_KA_count);
    val number = tk_kgroup_thread(p);
    val own = tk_kput_2(p, TK_KOP_sub, number, tk_kput_index(p, TK_K_I32, first));
    val among = tk_kput_compare(p, TK_KOP_icmp, "ult", own, tk_kput_index(p, TK_K_I32, count));
    tk_kput inner;
    TK_TRY(tk_klower_if(p, among, &inner));
    return lower_work(w, &inner, op);
}

static bool is_under_condition(const tk_kop *op) {
    const tk_kop *parent = op->block->parent;
    return parent && (parent->code == TK_KOP_if || is_under_condition(parent));
}

/* A condition may leave out the warps of a group that is not whole. */
static tk_status check_group(const tk_kernel *kernel, const tk_kop *op) {
    const int64_t *block = kernel->contract.block;
    int64_t threads = block[0] * block[1] * block[2], size = tk_kgroup_size(kernel, op);
    int64_t needed = size + 32 * tk_kop_attr(op, TK_KA_first);
    bool some = tk_kop_attr(op, TK_KA_group) == TK_KG_WARPS;
    if (threads >= (some ? needed : size) &&
        (some || threads % size == 0 || is_under_condition(op)))
        return TK_OK;
    return tk_fail(TK_INVALID_ARGUMENT, "%s: groups of %lld threads%s in a block of %lld",
                   tk_kop_row_of(op->code)->name, (long long)size,
                   some ? ", behind those of other warps," : "", (long long)threads);
}

static tk_status lower_op(const lowerer *w, tk_kop *op) {
    tk_status status = TK_OK;
    tk_kput put = tk_kput_before(w->kernel, op, &status);
    TK_TRY(check_group(w->kernel, op));
    bool some = tk_kop_attr(op, TK_KA_group) == TK_KG_WARPS;
    TK_TRY((some ? among_warps : lower_work)(w, &put, op));
    tk_kop_unlink(op);
    return TK_OK;
}

static bool is_group_work(unsigned code) {
    return code == TK_KOP_copy || code == TK_KOP_fill || code == TK_KOP_combine ||
           code == TK_KOP_gemm;
}

static tk_status visit(void *arg, tk_kop *op) {
    const lowerer *w = arg;
    if (!is_group_work(op->code)) return TK_OK;
    tk_status status = lower_op(w, op);
    return status == TK_OK ? TK_OK : tk_kop_fail_at(w->kernel, op, status);
}

tk_status tk_kpass_run_tensor_to_view(tk_kernel *kernel) {
    if (kernel->form != TK_KFORM_TENSOR) return TK_OK;
    lowerer w = {.kernel = kernel, .count = kernel->n_values};
    TK_TRY(tk_kanalyse_groups(kernel));
    TK_TRY(tk_kanalyse_ranges(kernel, &w.facts));
    kernel->form = TK_KFORM_VIEW;
    tk_status status = tk_kblock_walk(&kernel->body, visit, &w);
    tk_free(w.facts);
    return status;
}
