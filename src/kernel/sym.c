/* Layouts with values; sym.h says how. */
#include "kernel/sym.h"

#include <string.h>

#include "base/error.h"

typedef tk_kvalue *val;

void tk_ksym_bind(const tk_layout *layout, tk_kvalue *const *leaves, tk_ksym *out) {
    memset(out, 0, sizeof *out);
    tk_layout_copy(layout, &out->layout);
    for (int i = 0; i < layout->leaf_count; i++)
        if (layout->leaf[i].shape.kind != TK_TERM_STATIC) out->shape[i] = *leaves++;
    for (int i = 0; i < layout->leaf_count; i++)
        if (layout->leaf[i].stride.kind != TK_TERM_STATIC) out->stride[i] = *leaves++;
}

/* ---- arithmetic on values ---- */

static bool compute(tk_kopcode code, int64_t a, int64_t b, int64_t *out) {
    switch (code) {
    case TK_KOP_add:
        return !__builtin_add_overflow(a, b, out);
    case TK_KOP_mul:
        return !__builtin_mul_overflow(a, b, out);
    case TK_KOP_udiv:
        return b > 0 && (*out = a / b, true);
    default:
        return b > 0 && (*out = a % b, true);
    }
}

val tk_ksym_arith(tk_kput *put, tk_kopcode code, val a, val b) {
    int64_t left, right, found;
    bool constant = tk_kvalue_integer(b, &right);
    if (constant && tk_kvalue_integer(a, &left) && compute(code, left, right, &found))
        return tk_kput_index(put, (tk_kscalar)b->type.scalar, found);
    if (constant && right == 0 && code == TK_KOP_add) return a;
    if (constant && right == 1 && code != TK_KOP_add)
        return code == TK_KOP_urem ? tk_kput_index(put, (tk_kscalar)b->type.scalar, 0) : a;
    return tk_kput_2(put, code, a, b);
}

val tk_ksym_as(tk_kput *put, tk_kscalar index, val value) {
    int64_t constant;
    if (!value || value->type.scalar == index) return value;
    if (tk_kvalue_integer(value, &constant)) return tk_kput_index(put, index, constant);
    return tk_kput_as(put, index == TK_K_I64 ? TK_KOP_extend_signed : TK_KOP_truncate, value,
                      index);
}

val tk_ksym_plus(tk_kput *put, val a, val b) {
    return a && b ? tk_ksym_arith(put, TK_KOP_add, a, b) : a ? a : b;
}

/* A term as a value: a number, or what stands for the leaf. */
static val term_value(tk_kput *put, tk_kscalar index, tk_term term, val of_leaf) {
    if (term.kind == TK_TERM_STATIC) return tk_kput_index(put, index, term.value);
    return tk_ksym_as(put, index, of_leaf);
}

static bool is_one(tk_term term) { return term.kind == TK_TERM_STATIC && term.value == 1; }
static bool is_zero(tk_term term) { return term.kind == TK_TERM_STATIC && term.value == 0; }

/* ---- offsets ---- */

typedef struct walker {
    tk_kput *put;
    tk_kscalar index;
    const tk_ksym *sym;
    const tk_tuple *coord;
    val const *values;
    int node, leaf;             /* of the layout */
    int coord_node, coord_leaf; /* of the coordinate */
    val sum;
} walker;

/* Leaves below the node at w->node, which is passed. */
static int pass_tree(const uint8_t *nodes, int *node) {
    uint8_t kind = nodes[(*node)++];
    int leaves = 0;
    if (kind == TK_NODE_LEAF) return 1;
    for (int i = 0; i < kind; i++) leaves += pass_tree(nodes, node);
    return leaves;
}

/* One number over several leaves: the first turns fastest. */
static void add_number(walker *w, val number, int leaves) {
    for (int i = 0; i < leaves; i++, w->leaf++) {
        tk_leaf leaf = w->sym->layout.leaf[w->leaf];
        bool last = i == leaves - 1;
        if (is_one(leaf.shape)) continue;
        val shape = term_value(w->put, w->index, leaf.shape, w->sym->shape[w->leaf]);
        val part = last ? number : tk_ksym_arith(w->put, TK_KOP_urem, number, shape);
        if (!last) number = tk_ksym_arith(w->put, TK_KOP_udiv, number, shape);
        if (is_zero(leaf.stride)) continue;
        val stride = term_value(w->put, w->index, leaf.stride, w->sym->stride[w->leaf]);
        if (!is_one(leaf.stride)) part = tk_ksym_arith(w->put, TK_KOP_mul, part, stride);
        w->sum = tk_ksym_plus(w->put, w->sum, part);
    }
}

static void add_leaf(walker *w) {
    tk_term term = w->coord->leaf[w->coord_leaf++];
    int leaves = pass_tree(w->sym->layout.node, &w->node);
    bool dynamic = term.kind == TK_TERM_I32 || term.kind == TK_TERM_I64;
    val number = dynamic ? tk_ksym_as(w->put, w->index, *w->values++) : NULL;
    if (term.kind == TK_TERM_STATIC && term.value)
        number = tk_kput_index(w->put, w->index, term.value);
    if (number)
        add_number(w, number, leaves);
    else
        w->leaf += leaves;
}

static void add_tree(walker *w) {
    uint8_t kind = w->coord->node[w->coord_node++];
    if (kind == TK_NODE_LEAF) {
        add_leaf(w);
        return;
    }
    w->node++;
    for (int i = 0; i < kind; i++) add_tree(w);
}

val tk_ksym_offset(tk_kput *put, tk_kscalar index, const tk_ksym *sym, const tk_tuple *coord,
                   val const *values) {
    walker w = {.put = put, .index = index, .sym = sym, .coord = coord, .values = values};
    add_tree(&w);
    return w.sum;
}

/* ---- extents ---- */

val tk_ksym_extent(tk_kput *put, tk_kscalar index, const tk_ksym *sym, int mode) {
    int node = 1, leaf = 0, count = sym->layout.leaf_count;
    for (int i = 0; i < mode; i++) leaf += pass_tree(sym->layout.node, &node);
    if (mode >= 0 && sym->layout.node[0] != TK_NODE_LEAF)
        count = pass_tree(sym->layout.node, &node);
    val product = NULL;
    for (int i = leaf; i < leaf + count; i++) {
        if (is_one(sym->layout.leaf[i].shape)) continue;
        val shape = term_value(put, index, sym->layout.leaf[i].shape, sym->shape[i]);
        product = product ? tk_ksym_arith(put, TK_KOP_mul, product, shape) : shape;
    }
    return product ? product : tk_kput_index(put, index, 1);
}

/* ---- operations ---- */

#define MOST_DYNAMIC 16

typedef struct probe {
    int64_t number[MOST_DYNAMIC];
    val leaf[MOST_DYNAMIC];
    int count;
} probe;

/* Primes whose products with small powers of two stay apart. */
static const int64_t primes[MOST_DYNAMIC] = {1009, 1013, 1019, 1021, 1031, 1033, 1039, 1049,
                                             1051, 1061, 1063, 1069, 1087, 1091, 1093, 1097};

static bool replace_term(probe *p, tk_term *term, val leaf) {
    if (term->kind == TK_TERM_STATIC) return true;
    if (p->count == MOST_DYNAMIC) return false;
    int at = p->count++;
    p->number[at] = primes[at] * 4096 * term->value;
    p->leaf[at] = leaf;
    *term = tk_term_int(p->number[at]);
    return true;
}

static tk_status fill_in(const tk_ksym *sym, probe *p, tk_layout *out) {
    bool fits = true;
    tk_layout_copy(&sym->layout, out);
    for (int i = 0; i < out->leaf_count; i++) {
        fits = fits && replace_term(p, &out->leaf[i].shape, sym->shape[i]);
        fits = fits && replace_term(p, &out->leaf[i].stride, sym->stride[i]);
    }
    return fits ? TK_OK : tk_fail(TK_UNSUPPORTED, "more than 16 dynamic leaves of a layout");
}

static tk_status unknown_leaf(void) {
    return tk_fail(TK_UNSUPPORTED, "a dynamic leaf of the result is no multiple or part of one "
                                   "leaf of the operand");
}

/* stride = leaf * factor */
static tk_status find_stride(tk_kput *put, tk_kscalar index, const probe *p, int64_t number,
                             val *out) {
    for (int i = 0; i < p->count; i++) {
        if (number % primes[i]) continue;
        if (number % p->number[i]) return unknown_leaf();
        val leaf = tk_ksym_as(put, index, p->leaf[i]);
        int64_t factor = number / p->number[i];
        *out = factor == 1
                   ? leaf
                   : tk_ksym_arith(put, TK_KOP_mul, leaf, tk_kput_index(put, index, factor));
        return TK_OK;
    }
    return unknown_leaf();
}

/* shape = ceil(leaf / divisor) */
static tk_status find_shape(tk_kput *put, tk_kscalar index, const probe *p, int64_t number,
                            val *out) {
    for (int i = 0; i < p->count; i++) {
        if (number % primes[i]) continue;
        if (p->number[i] % number) return unknown_leaf();
        val leaf = tk_ksym_as(put, index, p->leaf[i]);
        int64_t divisor = p->number[i] / number;
        *out = leaf;
        if (divisor == 1) return TK_OK;
        val more = tk_ksym_arith(put, TK_KOP_add, leaf, tk_kput_index(put, index, divisor - 1));
        *out = tk_ksym_arith(put, TK_KOP_udiv, more, tk_kput_index(put, index, divisor));
        return TK_OK;
    }
    return unknown_leaf();
}

tk_status tk_ksym_apply(tk_kput *put, tk_kscalar index, const tk_ksym *sym, tk_ksym_op op,
                        const void *arg, tk_ksym *out) {
    tk_layout numbers, found;
    probe p = {.count = 0};
    memset(out, 0, sizeof *out);
    TK_TRY(op(arg, &sym->layout, &out->layout));
    if (tk_layout_is_static(&out->layout)) return TK_OK;
    TK_TRY(fill_in(sym, &p, &numbers));
    TK_TRY(op(arg, &numbers, &found));
    if (found.node_count != out->layout.node_count ||
        memcmp(found.node, out->layout.node, found.node_count))
        return tk_fail(TK_UNSUPPORTED, "the result's layout depends on dynamic leaves");
    for (int i = 0; i < found.leaf_count; i++) {
        const tk_leaf *leaf = &out->layout.leaf[i];
        if (leaf->shape.kind != TK_TERM_STATIC)
            TK_TRY(find_shape(put, index, &p, found.leaf[i].shape.value, &out->shape[i]));
        if (leaf->stride.kind != TK_TERM_STATIC)
            TK_TRY(find_stride(put, index, &p, found.leaf[i].stride.value, &out->stride[i]));
    }
    return *put->status;
}
