/* combine: target op= source over the modes in which the target has stride 0.
 *
 * A thread with tiles in registers or memory of known size goes over the source's elements in their
 * order. A group shares the target's elements: each has one thread, which reads what belongs to it
 * in the order of the source, so the result is the same for every group. Rejected for a group:
 * trees, which would make the order of a sum depend on who works. */
#include <string.h>

#include "base/error.h"
#include "kernel/lower.h"

typedef tk_kvalue *val;

static tk_kopcode code_of(const tk_kop *op) {
    static const tk_kopcode codes[] = {TK_KOP_add,  TK_KOP_smin, TK_KOP_smax, TK_KOP_umin,
                                       TK_KOP_umax, TK_KOP_min,  TK_KOP_max,  TK_KOP_and,
                                       TK_KOP_or,   TK_KOP_xor};
    return codes[tk_kop_attr(op, TK_KA_reduce)];
}

static tk_status by_thread(tk_kput *p, const tk_kop *op, int64_t size) {
    val source = op->operands[0], target = op->operands[1];
    if (size > TK_KMOST_WRITTEN_OUT)
        return tk_fail(TK_UNSUPPORTED, "combine: %lld elements of a thread, at most %d",
                       (long long)size, TK_KMOST_WRITTEN_OUT);
    for (int64_t i = 0; i < size && *p->status == TK_OK; i++) {
        val at = tk_kput_index(p, TK_K_I32, i);
        val old = tk_ktile_read(p, target, at, 1, NULL);
        val more = tk_ktile_read(p, source, at, 1, NULL);
        tk_ktile_write(p, target, at, tk_kput_2(p, code_of(op), old, more), NULL);
    }
    return *p->status;
}

/* ---- a group ---- */

/* Numbers of the source's elements, as sums of one that the target keeps and one that it does not.
 */
typedef struct split {
    tk_layout kept, rest;
    int64_t n_kept, n_rest;
} split;

static void add_leaf(tk_layout *layout, int64_t shape, int64_t stride) {
    layout->leaf[layout->leaf_count].shape = tk_term_int(shape);
    layout->leaf[layout->leaf_count++].stride = tk_term_int(stride);
}

static tk_status split_modes(const tk_kernel *kernel, const tk_kop *op, split *out) {
    const tk_layout *source = tk_ktile_layout(kernel, op->operands[0]),
                    *target = tk_ktile_layout(kernel, op->operands[1]);
    int64_t each = 1;
    *out = (split){.n_kept = 1, .n_rest = 1};
    if (source->leaf_count != target->leaf_count)
        return tk_fail(TK_UNSUPPORTED, "combine: the modes of source and target differ");
    for (int i = 0; i < target->leaf_count; i++) {
        tk_leaf leaf = target->leaf[i];
        if (leaf.shape.value != source->leaf[i].shape.value)
            return tk_fail(TK_UNSUPPORTED, "combine: the modes of source and target differ");
        bool kept = leaf.stride.kind != TK_TERM_STATIC || leaf.stride.value != 0;
        add_leaf(kept ? &out->kept : &out->rest, leaf.shape.value, each);
        *(kept ? &out->n_kept : &out->n_rest) *= leaf.shape.value;
        each *= leaf.shape.value;
    }
    return TK_OK;
}

static val element(tk_kput *p, const tk_kop *op, val kept, val rest, val sum) {
    val at = tk_kput_2(p, TK_KOP_add, kept, rest);
    return tk_kput_2(p, code_of(op), sum, tk_ktile_read(p, op->operands[0], at, 1, NULL));
}

/* for number = 0 to n_rest carry sum */
static tk_status add_up(tk_kput *p, const tk_kop *op, const split *s, val kept, val *sum) {
    tk_kop *loop;
    tk_kblock *body;
    int64_t unroll = 0;
    tk_ktype types[] = {tk_ktype_scalar(TK_K_I32), (*sum)->type};
    val list[] = {tk_kput_index(p, TK_K_I32, 0), tk_kput_index(p, TK_K_I32, s->n_rest),
                  tk_kput_index(p, TK_K_I32, 1), *sum};
    TK_TRY(*p->status);
    tk_kop_spec spec = {
        .code = TK_KOP_for, .n_operands = 4, .operands = list, .attrs = &unroll, .loc = p->loc};
    TK_TRY(tk_kop_make(p->kernel, &spec, &loop));
    tk_kop_insert_before(p->before, loop);
    TK_TRY(tk_kop_add_region(p->kernel, loop, 2, types, &body));
    TK_TRY(tk_kop_add_results(p->kernel, loop, 1, types + 1));
    tk_kput inner = tk_kput_into(p, loop, 0);
    val zero = tk_kput_index(p, TK_K_I32, 0);
    val rest = s->rest.leaf_count ? tk_klower_place(&inner, &s->rest, body->args[0]) : zero;
    val next = element(&inner, op, kept, rest, body->args[1]);
    tk_kput_yield(&inner, 1, &next);
    *sum = loop->results[0];
    return *p->status;
}

static tk_status one_target(tk_kput *p, const tk_kop *op, const split *s, val number) {
    val zero = tk_kput_index(p, TK_K_I32, 0);
    val kept = s->kept.leaf_count ? tk_klower_place(p, &s->kept, number) : zero;
    val sum = tk_ktile_read(p, op->operands[1], kept, 1, NULL);
    TK_TRY(*p->status);
    TK_TRY(add_up(p, op, s, kept, &sum));
    tk_ktile_write(p, op->operands[1], kept, sum, NULL);
    return *p->status;
}

static tk_status by_group(tk_kput *p, const tk_kop *op) {
    split s;
    tk_kput inner;
    val number;
    TK_TRY(split_modes(p->kernel, op, &s));
    val end = tk_kput_index(p, TK_K_I32, s.n_kept);
    TK_TRY(*p->status);
    TK_TRY(tk_klower_loop(p, op, end, &inner, &number));
    return one_target(&inner, op, &s, number);
}

tk_status tk_klower_combine(const tk_klowerer *w, tk_kput *p, const tk_kop *op) {
    val source = op->operands[0], target = op->operands[1];
    int64_t size = tk_ktile_size(w->kernel, source);
    if (size < 0 || tk_ktile_size(w->kernel, target) != size)
        return tk_fail(TK_UNSUPPORTED, "combine: only of tiles of one known size");
    if (size > INT32_MAX)
        return tk_fail(TK_UNSUPPORTED, "combine: a tile of %lld elements, at most 2147483647",
                       (long long)size);
    if (tk_kop_attr(op, TK_KA_group) == TK_KG_THREAD) return by_thread(p, op, size);
    if (tk_ktile_is_registers(source) || tk_ktile_is_registers(target))
        return tk_fail(TK_UNSUPPORTED, "combine: a group combines tiles in memory");
    return by_group(p, op);
}
