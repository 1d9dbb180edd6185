/* Tensor form to view form: work of groups becomes loads, stores and instructions of threads.
 *
 * copy, fill: the elements of a tile, in the order of its coordinates, go to the threads of the
 * group in vectors: vector v belongs to thread v modulo the group's size. A vector is as wide as
 * both layouts keep elements together, the attribute `vector` allows, and alignments prove. Tiles
 * whose size is not known are copied by a loop, element by element; others are written out. A
 * fragment (register tensor with a thread-value layout) against a tile: each thread moves what the
 * layout says. gemm: every mma.sync of the fragments, k outermost. combine: by each thread.
 *
 * Who works is a condition around the work only for a group of some warps; all threads of other
 * groups are there, which the verifier asks. What a group writes is ordered by no barrier: those
 * are operations of their own. */
#include <string.h>

#include "base/error.h"
#include "kernel/analyse.h"
#include "kernel/check.h"
#include "kernel/pass.h"
#include "kernel/verify.h"

typedef tk_kvalue *val;

typedef struct lowerer {
    tk_kernel *kernel;
    tk_kfact_of *facts;
    uint32_t count; /* values that have facts */
} lowerer;

#define MOST_WRITTEN_OUT 1024

/* ---- groups: by place in the words of the attribute ---- */

enum { THREAD, WARP, WARPGROUP, BLOCK, WARPS };

static int64_t block_threads(const tk_kernel *kernel) {
    const int64_t *block = kernel->contract.block;
    return block[0] * block[1] * block[2];
}

static int64_t group_size(const tk_kernel *kernel, const tk_kop *op) {
    switch (tk_kop_attr(op, TK_KA_group)) {
    case THREAD:
        return 1;
    case WARP:
        return 32;
    case WARPGROUP:
        return 128;
    case BLOCK:
        return block_threads(kernel);
    default:
        return 32 * tk_kop_attr(op, TK_KA_count);
    }
}

/* The thread's number in the block. */
static val thread_number(tk_kput *p) {
    const int64_t *block = p->kernel->contract.block;
    val number = NULL;
    for (int axis = 2; axis >= 0; axis--) {
        tk_kput_attr attr = {TK_KA_axis, axis};
        if (block[axis] == 1 && axis) continue;
        val own = tk_kput_op(p, TK_KOP_thread_index, 0, NULL, 1, &attr, (tk_ktype){0});
        if (number)
            number = tk_kput_2(p, TK_KOP_mul, number, tk_kput_integer(p, TK_K_I32, block[axis]));
        number = number ? tk_kput_2(p, TK_KOP_add, number, own) : own;
    }
    return number;
}

/* The thread's number in the group. */
static val member(tk_kput *p, const tk_kop *op) {
    int64_t group = tk_kop_attr(op, TK_KA_group), size = group_size(p->kernel, op);
    if (group == THREAD) return tk_kput_integer(p, TK_K_I32, 0);
    val number = thread_number(p);
    if (group == BLOCK) return number;
    if (group == WARPS)
        return tk_kput_2(p, TK_KOP_sub, number,
                         tk_kput_integer(p, TK_K_I32, 32 * tk_kop_attr(op, TK_KA_first)));
    return tk_kput_2(p, TK_KOP_and, number, tk_kput_integer(p, TK_K_I32, size - 1));
}

/* ---- tiles ---- */

static const tk_layout *layout_of(const tk_kernel *kernel, val tile) {
    return &tk_ktype_layout(kernel, tile->type)->outer;
}

static int64_t size_of(const tk_kernel *kernel, val tile) {
    tk_term size;
    tk_status status = tk_layout_size(layout_of(kernel, tile), &size);
    return status == TK_OK && size.kind == TK_TERM_STATIC ? size.value : -1;
}

static bool is_registers(val tile) { return tile->type.kind == TK_KT_REGISTERS; }

/* A fragment is spread over threads by its thread-value layout. */
static bool is_fragment(val tile) { return is_registers(tile) && tile->type.tv; }

static val whole_extent(tk_kput *p, val tile) {
    val product = NULL;
    for (int i = 0; i < tk_layout_rank(layout_of(p->kernel, tile)); i++) {
        tk_kput_attr mode = {TK_KA_mode_index, i};
        val extent = tk_kput_op(p, TK_KOP_extent, 1, &tile, 1, &mode, tk_ktype_scalar(TK_K_I32));
        product = product ? tk_kput_2(p, TK_KOP_mul, product, extent) : extent;
    }
    return product;
}

/* ---- elements ---- */

static tk_ktype lanes_of(val tile, int64_t lanes) {
    tk_kscalar element = (tk_kscalar)tile->type.scalar;
    return lanes == 1 ? tk_ktype_scalar(element) : tk_ktype_vector(element, (int)lanes);
}

static int64_t coord_text(tk_kput *p) {
    uint32_t number = 0;
    if (*p->status == TK_OK) *p->status = tk_kernel_string(p->kernel, "?", 1, &number);
    return number;
}

static val locate(tk_kput *p, val tile, val at) {
    tk_kput_attr coord = {TK_KA_coord, coord_text(p)};
    return tk_kput_op(p, TK_KOP_locate, 2, (val[]){tile, at}, 1, &coord,
                      tk_ktype_pointer((tk_kscalar)tile->type.scalar, (tk_kspace)tile->type.space));
}

/* Elements of a tile from number `at` on; of a register tensor it is a constant. */
static val read(tk_kput *p, val tile, val at, int64_t lanes, val condition) {
    int64_t number;
    if (is_registers(tile)) {
        tk_kvalue_integer(at, &number);
        tk_kput_attr index = {TK_KA_index, tk_layout_at(layout_of(p->kernel, tile), number)};
        return tk_kput_op(p, TK_KOP_get, 1, &tile, 1, &index, lanes_of(tile, lanes));
    }
    val operands[] = {locate(p, tile, at), condition, NULL, NULL};
    return tk_kput_op(p, TK_KOP_load, 4, operands, 0, NULL, lanes_of(tile, lanes));
}

static void write(tk_kput *p, val tile, val at, val value, val condition) {
    int64_t number;
    if (is_registers(tile)) {
        tk_kvalue_integer(at, &number);
        tk_kput_attr index = {TK_KA_index, tk_layout_at(layout_of(p->kernel, tile), number)};
        tk_kput_op(p, TK_KOP_set, 2, (val[]){tile, value}, 1, &index, (tk_ktype){0});
        return;
    }
    val operands[] = {locate(p, tile, at), value, condition, NULL};
    tk_kput_op(p, TK_KOP_store, 4, operands, 0, NULL, (tk_ktype){0});
}

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

/* Bytes that are known to divide the address of a view's first element. */
static uint64_t alignment_of(const lowerer *w, val tile) {
    const tk_kop *op = tile->kind == TK_KV_RESULT ? tile->op : NULL;
    if (!op) return 1;
    if (op->code == TK_KOP_compose) return alignment_of(w, op->operands[0]);
    if (op->code == TK_KOP_view_of) return (uint64_t)tk_kop_attr(op->operands[0]->op, TK_KA_align);
    if (op->code == TK_KOP_view && op->operands[0]->id < w->count)
        return w->facts[op->operands[0]->id].divisor;
    return 1;
}

/* Whether vectors of `lanes` at multiples of `lanes` lie together, in one piece and aligned. */
static bool is_together(const lowerer *w, val tile, int64_t lanes) {
    const tk_composed *c = tk_ktype_layout(w->kernel, tile->type);
    int64_t size = size_of(w->kernel, tile),
            bytes = tk_kscalar_bytes((tk_kscalar)tile->type.scalar);
    if (lanes == 1) return true;
    if (size < 0 || size % lanes || !tk_layout_is_static(&c->outer)) return false;
    if (c->inner != TK_INNER_NONE &&
        (c->inner != TK_INNER_SWIZZLE || (int64_t)1 << c->swizzle.base < lanes))
        return false;
    for (int64_t v = 0; v < size; v += lanes) {
        int64_t first = tk_layout_at(&c->outer, v);
        if (!is_registers(tile) && first % lanes) return false;
        for (int64_t i = 1; i < lanes; i++)
            if (tk_layout_at(&c->outer, v + i) != first + i) return false;
    }
    return is_registers(tile) || alignment_of(w, tile) % (uint64_t)(lanes * bytes) == 0;
}

static int64_t width_of(const lowerer *w, const tk_kop *op, val a, val b) {
    int64_t bytes = tk_kscalar_bytes((tk_kscalar)a->type.scalar), lanes = 16;
    int64_t most = op->code == TK_KOP_copy && tk_kop_attr(op, TK_KA_vector)
                       ? tk_kop_attr(op, TK_KA_vector)
                       : 16;
    if (b && tk_kscalar_bytes((tk_kscalar)b->type.scalar) > bytes)
        bytes = tk_kscalar_bytes((tk_kscalar)b->type.scalar);
    while (lanes > 1 && lanes * bytes > most) lanes /= 2;
    while (lanes > 1 && !(is_together(w, a, lanes) && (!b || is_together(w, b, lanes)))) lanes /= 2;
    return lanes;
}

/* ---- the work, divided ---- */

/* Does the work for elements from `at` on, where the condition holds. */
typedef void (*piece)(tk_kput *p, const tk_kop *op, val at, int64_t lanes, val condition);

static val both(tk_kput *p, val a, val b) {
    return a && b ? tk_kput_2(p, TK_KOP_and, a, b) : a ? a : b;
}

static tk_status write_out(tk_kput *p, const tk_kop *op, int64_t size, int64_t lanes, piece work,
                           val condition) {
    int64_t group = group_size(p->kernel, op), vectors = size / lanes,
            rounds = (vectors + group - 1) / group;
    val own = member(p, op), each = tk_kput_integer(p, TK_K_I32, lanes);
    if (rounds > MOST_WRITTEN_OUT)
        return tk_fail(TK_UNSUPPORTED, "%s: %lld pieces a thread, at most %d are written out",
                       tk_kop_row_of(op->code)->name, (long long)rounds, MOST_WRITTEN_OUT);
    for (int64_t i = 0; i < rounds && *p->status == TK_OK; i++) {
        bool all = (i + 1) * group <= vectors;
        int64_t number;
        if (tk_kvalue_integer(own, &number)) {
            work(p, op, tk_kput_integer(p, TK_K_I32, i * lanes), lanes, condition);
            continue;
        }
        val at = i ? tk_kput_2(p, TK_KOP_add, own, tk_kput_integer(p, TK_K_I32, i * group)) : own;
        val inside =
            all ? NULL
                : tk_kput_compare(p, TK_KOP_icmp, "slt", at, tk_kput_integer(p, TK_K_I32, vectors));
        if (lanes > 1) at = tk_kput_2(p, TK_KOP_mul, at, each);
        work(p, op, at, lanes, both(p, condition, inside));
    }
    return *p->status;
}

/* for at = member to size step group */
static tk_status loop_over(tk_kput *p, const tk_kop *op, val tile, piece work, val condition) {
    tk_kop *loop;
    tk_kblock *body;
    int64_t unroll = 0;
    tk_ktype index = tk_ktype_scalar(TK_K_I32);
    val first = member(p, op), extent = whole_extent(p, tile);
    val bounds[] = {first, extent, tk_kput_integer(p, TK_K_I32, group_size(p->kernel, op))};
    TK_TRY(*p->status);
    tk_kop_spec spec = {
        .code = TK_KOP_for, .n_operands = 3, .operands = bounds, .attrs = &unroll, .loc = p->loc};
    TK_TRY(tk_kop_make(p->kernel, &spec, &loop));
    tk_kop_insert_before(p->before, loop);
    TK_TRY(tk_kop_add_region(p->kernel, loop, 1, &index, &body));
    TK_TRY(tk_kop_add_results(p->kernel, loop, 0, NULL));
    tk_kput inner = tk_kput_into(p, loop, 0);
    work(&inner, op, body->args[0], 1, condition);
    tk_kput_yield(&inner, 0, NULL);
    return *p->status;
}

static tk_status divide(const lowerer *w, tk_kput *p, const tk_kop *op, val a, val b, piece work,
                        val condition) {
    int64_t size = size_of(w->kernel, a);
    if (size >= 0) return write_out(p, op, size, width_of(w, op, a, b), work, condition);
    if (is_registers(a) || (b && is_registers(b)))
        return tk_fail(TK_UNSUPPORTED, "%s: between registers and a tile of unknown size",
                       tk_kop_row_of(op->code)->name);
    return loop_over(p, op, a, work, condition);
}

/* ---- copy, fill, combine ---- */

static void copy_piece(tk_kput *p, const tk_kop *op, val at, int64_t lanes, val condition) {
    val source = op->operands[0], target = op->operands[1];
    write(p, target, at, convert(p, read(p, source, at, lanes, condition), target), condition);
}

static void fill_piece(tk_kput *p, const tk_kop *op, val at, int64_t lanes, val condition) {
    val value = op->operands[1];
    if (lanes > 1)
        value = tk_kput_op(p, TK_KOP_splat, 1, &value, 0, NULL, lanes_of(op->operands[0], lanes));
    write(p, op->operands[0], at, value, condition);
}

/* A fragment against a tile: value v of thread t is element tv(t, v) of the tile. */
static tk_status copy_fragment(tk_kput *p, const tk_kop *op, val condition) {
    val source = op->operands[0], target = op->operands[1];
    bool out = is_fragment(source);
    val fragment = out ? source : target, tile = out ? target : source;
    const tk_layout *tv = &p->kernel->layouts.items[fragment->type.tv - 1]->outer;
    tk_layout threads, values;
    tk_term size;
    TK_TRY(tk_layout_mode(tv, 0, &threads));
    TK_TRY(tk_layout_mode(tv, 1, &values));
    TK_TRY(tk_layout_size(&values, &size));
    val own = member(p, op), first = NULL;
    for (int i = 0; i < threads.leaf_count; i++) {
        val extent = tk_kput_integer(p, TK_K_I32, threads.leaf[i].shape.value);
        bool last = i == threads.leaf_count - 1;
        val part = last ? own : tk_kput_2(p, TK_KOP_urem, own, extent);
        if (!last) own = tk_kput_2(p, TK_KOP_udiv, own, extent);
        part = tk_kput_2(p, TK_KOP_mul, part,
                         tk_kput_integer(p, TK_K_I32, threads.leaf[i].stride.value));
        first = first ? tk_kput_2(p, TK_KOP_add, first, part) : part;
    }
    for (int64_t v = 0; v < size.value && *p->status == TK_OK; v++) {
        val at =
            tk_kput_2(p, TK_KOP_add, first, tk_kput_integer(p, TK_K_I32, tk_layout_at(&values, v)));
        val number = tk_kput_integer(p, TK_K_I32, v);
        val value = read(p, source, out ? number : at, 1, out ? NULL : condition);
        write(p, target, out ? at : number, convert(p, value, target), out ? condition : NULL);
    }
    (void)tile;
    return *p->status;
}

static tk_status lower_copy(const lowerer *w, tk_kput *p, const tk_kop *op) {
    val source = op->operands[0], target = op->operands[1], condition = op->operands[2];
    int64_t how = tk_kop_attr(op, TK_KA_copy), group = tk_kop_attr(op, TK_KA_group);
    if (how)
        return tk_fail(TK_UNSUPPORTED, "copy: asynchronous copies are written in the view form");
    if (is_fragment(source) != is_fragment(target)) return copy_fragment(p, op, condition);
    if (group != THREAD && (is_registers(source) || is_registers(target)) &&
        !(is_registers(source) && is_registers(target)))
        return tk_fail(TK_UNSUPPORTED,
                       "copy: registers without a thread-value layout against a tile of a group");
    return divide(w, p, op, source, target, copy_piece, condition);
}

/* target op= source, in the order of the source's elements. */
static tk_status lower_combine(const lowerer *w, tk_kput *p, const tk_kop *op) {
    static const tk_kopcode integers[] = {TK_KOP_add,  TK_KOP_smin, TK_KOP_smax, TK_KOP_umin,
                                          TK_KOP_umax, TK_KOP_min,  TK_KOP_max,  TK_KOP_and,
                                          TK_KOP_or,   TK_KOP_xor};
    val source = op->operands[0], target = op->operands[1];
    int64_t size = size_of(w->kernel, source);
    if (tk_kop_attr(op, TK_KA_group) != THREAD || size < 0 || size > MOST_WRITTEN_OUT)
        return tk_fail(TK_UNSUPPORTED, "combine: only a thread combines tiles of known size");
    for (int64_t i = 0; i < size && *p->status == TK_OK; i++) {
        val at = tk_kput_integer(p, TK_K_I32, i);
        val old = read(p, target, at, 1, NULL), more = read(p, source, at, 1, NULL);
        val sum = tk_kput_2(p, integers[tk_kop_attr(op, TK_KA_reduce)], old, more);
        write(p, target, at, sum, NULL);
    }
    return *p->status;
}

/* ---- gemm ---- */

/* Fragments (values, m or n, k): the place of an mma's part. */
static int64_t part_of(const tk_layout *layout, int64_t first, int64_t second) {
    int64_t shape[2] = {1, 1}, values = layout->leaf[0].shape.value;
    tk_layout mode;
    tk_term size;
    if (tk_layout_mode(layout, 0, &mode) == TK_OK && tk_layout_size(&mode, &size) == TK_OK)
        values = size.value;
    if (tk_layout_mode(layout, 1, &mode) == TK_OK && tk_layout_size(&mode, &size) == TK_OK)
        shape[0] = size.value;
    return tk_layout_at(layout, values * (first + shape[0] * second));
}

static int64_t mode_size(const tk_layout *layout, int index) {
    tk_layout mode;
    tk_term size;
    if (tk_layout_rank(layout) <= index || tk_layout_mode(layout, index, &mode) != TK_OK ||
        tk_layout_size(&mode, &size) != TK_OK)
        return 1;
    return size.value;
}

static void put_mma(tk_kput *p, const tk_kop *op, const int64_t *places) {
    val d = op->operands[0];
    tk_kput_attr attrs[] = {
        {TK_KA_m, tk_kop_attr(op, TK_KA_m)}, {TK_KA_n, tk_kop_attr(op, TK_KA_n)},
        {TK_KA_k, tk_kop_attr(op, TK_KA_k)}, {TK_KA_d_index, places[0]},
        {TK_KA_a_index, places[1]},          {TK_KA_b_index, places[2]},
        {TK_KA_c_index, places[0]}};
    tk_kput_op(p, TK_KOP_mma, 4, (val[]){d, op->operands[1], op->operands[2], d}, 7, attrs,
               (tk_ktype){0});
}

static tk_status lower_gemm(tk_kput *p, const tk_kop *op) {
    const tk_layout *d = layout_of(p->kernel, op->operands[0]),
                    *a = layout_of(p->kernel, op->operands[1]),
                    *b = layout_of(p->kernel, op->operands[2]);
    if (tk_kop_attr(op, TK_KA_group) != WARP || !is_registers(op->operands[1]) ||
        !is_registers(op->operands[2]))
        return tk_fail(TK_UNSUPPORTED,
                       "gemm: only of a warp with a and b in registers, as (values, m or n, k)");
    int64_t m = mode_size(d, 1), n = mode_size(d, 2), k = mode_size(a, 2);
    if (mode_size(a, 1) != m || mode_size(b, 1) != n || mode_size(b, 2) != k)
        return tk_fail(TK_SHAPE_ERROR, "gemm: d, a and b do not go together");
    for (int64_t z = 0; z < k; z++)
        for (int64_t y = 0; y < n; y++)
            for (int64_t x = 0; x < m && *p->status == TK_OK; x++)
                put_mma(p, op, (int64_t[]){part_of(d, x, y), part_of(a, x, z), part_of(b, y, z)});
    return *p->status;
}

/* ---- the pass ---- */

static tk_status lower_work(const lowerer *w, tk_kput *p, tk_kop *op) {
    switch (op->code) {
    case TK_KOP_copy:
        return lower_copy(w, p, op);
    case TK_KOP_fill:
        return divide(w, p, op, op->operands[0], NULL, fill_piece, NULL);
    case TK_KOP_combine:
        return lower_combine(w, p, op);
    default:
        return lower_gemm(p, op);
    }
}

/* Some warps: the others pass by. */
static tk_status among_warps(const lowerer *w, tk_kput *p, tk_kop *op) {
    int64_t first = 32 * tk_kop_attr(op, TK_KA_first), count = 32 * tk_kop_attr(op, TK_KA_count);
    val number = thread_number(p);
    val own = tk_kput_2(p, TK_KOP_sub, number, tk_kput_integer(p, TK_K_I32, first));
    tk_kop *branch = tk_kput_if(
        p, tk_kput_compare(p, TK_KOP_icmp, "ult", own, tk_kput_integer(p, TK_K_I32, count)));
    tk_kput yes = tk_kput_into(p, branch, 0), no = tk_kput_into(p, branch, 1);
    tk_kput_yield(&yes, 0, NULL);
    tk_kput_yield(&no, 0, NULL);
    tk_kput_results(p, branch);
    TK_TRY(*p->status);
    tk_kput inner = tk_kput_before(p->kernel, branch->regions[0]->last, p->status);
    inner.loc = p->loc;
    return lower_work(w, &inner, op);
}

static tk_status lower_op(const lowerer *w, tk_kop *op) {
    tk_status status = TK_OK;
    tk_kput put = tk_kput_before(w->kernel, op, &status);
    bool some = tk_kop_attr(op, TK_KA_group) == WARPS;
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
    TK_TRY(tk_kanalyse_ranges(kernel, &w.facts));
    kernel->form = TK_KFORM_VIEW;
    tk_status status = tk_kblock_walk(&kernel->body, visit, &w);
    tk_free(w.facts);
    return status;
}
