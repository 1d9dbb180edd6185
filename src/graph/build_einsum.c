/* einsum: sums of products in Einstein's notation.
 *
 * Each operand becomes a term: a node and one label an axis. Labels are small numbers, given to
 * letters and to the axes under an ellipsis (counted from the right) as they appear, so that sets
 * of labels are 64-bit masks. A term is cleaned first (diagonals taken, axes of length 1 that
 * broadcast dropped, labels of no one else summed); then pairs are contracted, always the one that
 * leaves the smallest result in comparison with what goes in, until one term is left.
 *
 * Rejected: an optimal order. It is exponential in the number of operands, and for the few that
 * occur the greedy order is the optimal one or near it. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "graph/build_pieces.h"

#define MAX_TERMS 32
#define MAX_LABELS 64
#define ELLIPSIS 128 /* name of the first axis under an ellipsis, from the right */

typedef struct term {
    tk_node *node;
    int labels[TK_MAX_RANK]; /* one an axis */
} term;

typedef struct einsum {
    tk_builder *b;
    int n_labels;
    int names[MAX_LABELS]; /* a letter, or ELLIPSIS + k */
    int uses[MAX_LABELS];  /* axes that have the label */
    int64_t lengths[MAX_LABELS];
    int n_ellipsis; /* most axes that an ellipsis stands for */
    int n_terms;
    term terms[MAX_TERMS];
    int n_output;
    int output[TK_MAX_RANK];
} einsum;

/* ---- parsing ---- */

/* Letters of one operand or of the output; 0 stands for the ellipsis. */
typedef struct subscripts {
    int count;
    bool has_ellipsis;
    char items[TK_MAX_RANK + 1];
} subscripts;

static void skip_spaces(const char **at) {
    while (isspace((unsigned char)**at)) ++*at;
}

static tk_status fail_character(char character) {
    if (!character) return tk_fail(TK_INVALID_ARGUMENT, "einsum: the subscripts end too early");
    char text[8];
    snprintf(text, sizeof text, isprint((unsigned char)character) ? "'%c'" : "0x%02x",
             (unsigned char)character);
    return tk_fail(TK_INVALID_ARGUMENT,
                   "einsum: unexpected character %s, expected letters, \",\", \"->\" or \"...\"",
                   text);
}

static tk_status read_ellipsis(const char **at, subscripts *out) {
    if (strncmp(*at, "...", 3) != 0) return fail_character('.');
    if (out->has_ellipsis)
        return tk_fail(TK_INVALID_ARGUMENT, "einsum: \"...\" is given twice in one term");
    out->has_ellipsis = true;
    *at += 3;
    return TK_OK;
}

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

static tk_status read_subscripts(const char **at, subscripts *out) {
    *out = (subscripts){0};
    for (skip_spaces(at); **at && **at != ',' && **at != '-'; skip_spaces(at)) {
        char item = 0;
        if (**at == '.')
            TK_TRY(read_ellipsis(at, out));
        else if (!is_letter(**at))
            return fail_character(**at);
        else
            item = *(*at)++;
        if (out->count - out->has_ellipsis + (item != 0) > TK_MAX_RANK)
            return tk_fail(TK_INVALID_ARGUMENT, "einsum: a term has more than %d letters",
                           TK_MAX_RANK);
        out->items[out->count++] = item;
    }
    return TK_OK;
}

static int find_label(const einsum *e, int name) {
    for (int i = 0; i < e->n_labels; i++)
        if (e->names[i] == name) return i;
    return -1;
}

/* "'i'", or "..." for an axis under an ellipsis. */
static const char *label_text(int name, char text[4]) {
    if (name >= ELLIPSIS) return "...";
    text[0] = text[2] = '\'';
    text[1] = (char)name;
    text[3] = 0;
    return text;
}

static tk_status fail_lengths(int name, int64_t one, int64_t other) {
    char text[4];
    return tk_fail(TK_SHAPE_ERROR, "einsum: %s has lengths %lld and %lld", label_text(name, text),
                   (long long)one, (long long)other);
}

/* Gives axis `axis` of a term the label of that name. */
static tk_status add_axis(einsum *e, term *t, int axis, int name) {
    int label = find_label(e, name);
    int64_t length = t->node->shape[axis];
    if (label < 0) {
        if (e->n_labels == MAX_LABELS)
            return tk_fail(TK_INVALID_ARGUMENT, "einsum: more than %d labels", MAX_LABELS);
        label = e->n_labels++;
        e->names[label] = name;
        e->lengths[label] = length;
        e->uses[label] = 0;
    }
    for (int i = 0; i < axis; i++)
        if (t->labels[i] == label && t->node->shape[i] != length)
            return fail_lengths(name, t->node->shape[i], length);
    if (e->lengths[label] != length && e->lengths[label] != 1 && length != 1)
        return fail_lengths(name, e->lengths[label], length);
    if (e->lengths[label] == 1) e->lengths[label] = length;
    e->uses[label]++;
    t->labels[axis] = label;
    return TK_OK;
}

static tk_status add_term(einsum *e, const subscripts *given, tk_node *node) {
    term *t = &e->terms[e->n_terms];
    int letters = given->count - given->has_ellipsis, covered = node->rank - letters;
    if (covered < 0 || (covered > 0 && !given->has_ellipsis))
        return tk_fail(TK_SHAPE_ERROR, "einsum: operand %d is %s, its subscripts have %d letters",
                       e->n_terms, tk_text_node(node), letters);
    if (covered > e->n_ellipsis) e->n_ellipsis = covered;
    t->node = node;
    int axis = 0;
    for (int i = 0; i < given->count; i++) {
        if (given->items[i]) {
            TK_TRY(add_axis(e, t, axis++, given->items[i]));
            continue;
        }
        for (int k = covered; k-- > 0;) TK_TRY(add_axis(e, t, axis++, ELLIPSIS + k));
    }
    e->n_terms++;
    return TK_OK;
}

static tk_status add_output(einsum *e, int name) {
    int label = find_label(e, name);
    char text[4];
    if (label < 0)
        return tk_fail(TK_INVALID_ARGUMENT, "einsum: output label %s is in no operand",
                       label_text(name, text));
    for (int i = 0; i < e->n_output; i++)
        if (e->output[i] == label)
            return tk_fail(TK_INVALID_ARGUMENT, "einsum: output label %s is given twice",
                           label_text(name, text));
    if (e->n_output == TK_MAX_RANK)
        return tk_fail(TK_SHAPE_ERROR, "einsum: the output has more than %d axes", TK_MAX_RANK);
    e->output[e->n_output++] = label;
    return TK_OK;
}

static tk_status add_output_ellipsis(einsum *e) {
    for (int k = e->n_ellipsis; k-- > 0;) TK_TRY(add_output(e, ELLIPSIS + k));
    return TK_OK;
}

static tk_status explicit_output(einsum *e, const subscripts *given) {
    if (e->n_ellipsis && !given->has_ellipsis)
        return tk_fail(TK_INVALID_ARGUMENT,
                       "einsum: the operands have axes under \"...\", the output has no \"...\"");
    for (int i = 0; i < given->count; i++)
        TK_TRY(given->items[i] ? add_output(e, given->items[i]) : add_output_ellipsis(e));
    return TK_OK;
}

/* Axes under ellipses, then the letters that occur once, in the order of the alphabet. */
static tk_status implicit_output(einsum *e) {
    TK_TRY(add_output_ellipsis(e));
    for (int name = 'A'; name <= 'z'; name++) {
        int label = find_label(e, name);
        if (label >= 0 && e->uses[label] == 1) TK_TRY(add_output(e, name));
    }
    return TK_OK;
}

static tk_status parse(einsum *e, const char *text, tk_node *const *operands, size_t n_operands) {
    const char *at = text;
    subscripts given;
    for (size_t i = 0; i < n_operands; i++) {
        TK_TRY(read_subscripts(&at, &given));
        TK_TRY(add_term(e, &given, operands[i]));
        if (i + 1 < n_operands && *at++ != ',')
            return tk_fail(TK_INVALID_ARGUMENT, "einsum: subscripts of %zu operands, %zu given",
                           i + 1, n_operands);
    }
    if (*at == ',')
        return tk_fail(TK_INVALID_ARGUMENT,
                       "einsum: subscripts of more operands than the %zu given", n_operands);
    if (!*at) return implicit_output(e);
    if (at[1] != '>') return fail_character(at[0]);
    at += 2;
    TK_TRY(read_subscripts(&at, &given));
    if (*at) return fail_character(*at);
    return explicit_output(e, &given);
}

/* ---- sets of labels ---- */

static uint64_t bit(int label) { return (uint64_t)1 << label; }

static uint64_t labels_of(const term *t) {
    uint64_t set = 0;
    for (int i = 0; i < t->node->rank; i++) set |= bit(t->labels[i]);
    return set;
}

static uint64_t output_labels(const einsum *e) {
    uint64_t set = 0;
    for (int i = 0; i < e->n_output; i++) set |= bit(e->output[i]);
    return set;
}

/* Labels that the output or terms other than these two have. */
static uint64_t needed_beside(const einsum *e, int one, int other) {
    uint64_t set = output_labels(e);
    for (int i = 0; i < e->n_terms; i++)
        if (i != one && i != other) set |= labels_of(&e->terms[i]);
    return set;
}

static int axis_of(const term *t, int label) {
    for (int i = 0; i < t->node->rank; i++)
        if (t->labels[i] == label) return i;
    return -1;
}

static double elements(const einsum *e, uint64_t set) {
    double count = 1;
    for (int label = 0; label < e->n_labels; label++)
        if (set & bit(label)) count *= (double)e->lengths[label];
    return count;
}

/* ---- cleaning a term ---- */

/* Takes the labels of axes out that the node no longer has. */
static void forget_axes(term *t, const tk_axes *axes, int rank) {
    int kept = 0;
    int64_t next = 0;
    for (int i = 0; i < rank; i++) {
        if (next < axes->count && axes->items[next] == i)
            next++;
        else
            t->labels[kept++] = t->labels[i];
    }
}

/* The diagonal of axes first < second: both go to the end, where it is every (n+1)th element. */
static void take_diagonal(tk_builder *b, term *t, int first, int second) {
    tk_axes order = {.count = 0}, gone = TK_AXES(first, second);
    int rank = t->node->rank, label = t->labels[first];
    int64_t length = t->node->shape[first];
    for (int i = 0; i < rank; i++)
        if (i != first && i != second) order.items[order.count++] = i;
    order.items[order.count++] = first;
    order.items[order.count++] = second;
    forget_axes(t, &gone, rank);
    t->labels[rank - 2] = label;
    tk_node *flat = tkb_flatten(b, tkb_permute(b, t->node, &order), -2, -1);
    t->node = flat;
    if (tk_node_is_error(flat)) return;
    tk_axes start = {.count = rank - 1}, step = {.count = rank - 1};
    tk_shape counts = tk_node_shape(flat);
    for (int i = 0; i < rank - 1; i++) step.items[i] = 1;
    step.items[rank - 2] = length + 1;
    counts.items[rank - 2] = length;
    t->node = tkb_box(b, flat, &start, &step, &counts);
}

static void take_diagonals(tk_builder *b, term *t) {
    for (int second = 1; !tk_node_is_error(t->node) && second < t->node->rank; second++)
        for (int first = 0; first < second; first++)
            if (t->labels[first] == t->labels[second]) {
                take_diagonal(b, t, first, second);
                second = 0;
                break;
            }
}

/* Drops axes of length 1 that other operands have longer. */
static void drop_broadcast(einsum *e, term *t) {
    tk_axes axes = {.count = 0};
    if (tk_node_is_error(t->node)) return;
    int rank = t->node->rank;
    for (int i = 0; i < rank; i++)
        if (t->node->shape[i] == 1 && e->lengths[t->labels[i]] != 1) axes.items[axes.count++] = i;
    t->node = tkb_drop_axes(e->b, t->node, &axes);
    forget_axes(t, &axes, rank);
}

/* The sum of one operand has the dtype that a sum has; in a product each keeps the common one. */
static void sum_single_labels(einsum *e, int index) {
    term *t = &e->terms[index];
    uint64_t needed = needed_beside(e, index, index);
    tk_axes axes = {.count = 0};
    int rank = t->node->rank;
    for (int i = 0; i < rank; i++)
        if (!(needed & bit(t->labels[i]))) axes.items[axes.count++] = i;
    if (e->n_terms == 1 && axes.count > 0)
        t->node = tkb_sum(e->b, t->node, axes, false);
    else
        t->node = tkb_reduce(e->b, TK_OP_reduce_sum, t->node, "einsum", axes, false);
    forget_axes(t, &axes, rank);
}

/* False when an operand became an error. */
static bool clean(einsum *e) {
    for (int i = 0; i < e->n_terms; i++) {
        take_diagonals(e->b, &e->terms[i]);
        drop_broadcast(e, &e->terms[i]);
        if (tk_node_is_error(e->terms[i].node)) return false;
    }
    for (int i = 0; i < e->n_terms; i++) {
        sum_single_labels(e, i);
        if (tk_node_is_error(e->terms[i].node)) return false;
    }
    return true;
}

/* ---- contraction ---- */

/* Labels of a set in ascending order: the order of axes inside a group. */
typedef struct group {
    int count;
    int labels[TK_MAX_RANK];
    int64_t size;
} group;

static group group_of(const einsum *e, uint64_t set) {
    group g = {.size = 1};
    for (int label = 0; label < e->n_labels && g.count < TK_MAX_RANK; label++) {
        if (!(set & bit(label))) continue;
        g.labels[g.count++] = label;
        g.size *= e->lengths[label]; /* at most the elements of the operand that has them */
    }
    return g;
}

/* The axes of a term, first those of one group, then of the next. */
static tk_node *arrange(einsum *e, const term *t, int n_groups, const group *const *groups) {
    tk_axes order = {.count = 0};
    for (int i = 0; i < n_groups; i++)
        for (int k = 0; k < groups[i]->count; k++)
            order.items[order.count++] = axis_of(t, groups[i]->labels[k]);
    return tkb_permute(e->b, t->node, &order);
}

static void put_lengths(const einsum *e, const group *g, bool as_ones, tk_shape *shape) {
    for (int i = 0; i < g->count; i++)
        shape->items[shape->count++] = as_ones ? 1 : e->lengths[g->labels[i]];
}

/* Nothing to sum: an elementwise product over batch, left, right. */
static tk_node *multiply_pair(einsum *e, const term *x, const term *y, const group *batch,
                              const group *left, const group *right) {
    tk_shape x_shape = {.count = 0}, y_shape = {.count = 0};
    put_lengths(e, batch, false, &x_shape);
    put_lengths(e, left, false, &x_shape);
    put_lengths(e, right, true, &x_shape);
    put_lengths(e, batch, false, &y_shape);
    put_lengths(e, left, true, &y_shape);
    put_lengths(e, right, false, &y_shape);
    tk_node *a = arrange(e, x, 2, (const group *const[]){batch, left});
    tk_node *c = arrange(e, y, 2, (const group *const[]){batch, right});
    return tkb_multiply(e->b, tkb_reshape(e->b, a, x_shape), tkb_reshape(e->b, c, y_shape));
}

static tk_node *product_of_pair(einsum *e, const term *x, const term *y, const group *batch,
                                const group *left, const group *right, const group *summed) {
    tk_shape shape = {.count = 0};
    put_lengths(e, batch, false, &shape);
    put_lengths(e, left, false, &shape);
    put_lengths(e, right, false, &shape);
    if (x->node->dtype == TK_BOOL)
        return tkb_fail(e->b, tk_fail(TK_DTYPE_ERROR,
                                      "einsum: a contraction of bool, expected a number dtype"));
    tk_node *a = arrange(e, x, 3, (const group *const[]){batch, left, summed});
    tk_node *c = arrange(e, y, 3, (const group *const[]){batch, summed, right});
    tk_shape a_shape = TK_SHAPE(batch->size, left->size, summed->size);
    tk_shape c_shape = TK_SHAPE(batch->size, summed->size, right->size);
    if (batch->count == 0) {
        a_shape = TK_SHAPE(left->size, summed->size);
        c_shape = TK_SHAPE(summed->size, right->size);
    }
    a = tkb_reshape(e->b, a, a_shape);
    return tkb_reshape(e->b, tkb_node2(e->b, TK_OP_product, a, tkb_reshape(e->b, c, c_shape), NULL),
                       shape);
}

static void set_labels(term *t, const group *batch, const group *left, const group *right) {
    const group *groups[] = {batch, left, right};
    int axis = 0;
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < groups[i]->count; k++) t->labels[axis++] = groups[i]->labels[k];
}

/* Replaces terms one < other by their contraction. */
static tk_status contract(einsum *e, int one, int other) {
    const term x = e->terms[one], y = e->terms[other];
    uint64_t needed = needed_beside(e, one, other), in_x = labels_of(&x), in_y = labels_of(&y);
    group batch = group_of(e, in_x & in_y & needed), summed = group_of(e, in_x & in_y & ~needed);
    group left = group_of(e, in_x & ~in_y), right = group_of(e, in_y & ~in_x);
    if (batch.count + left.count + right.count > TK_MAX_RANK)
        return tk_fail(TK_SHAPE_ERROR, "einsum: an intermediate result has more than %d axes",
                       TK_MAX_RANK);
    term *result = &e->terms[one];
    if (summed.count)
        result->node = product_of_pair(e, &x, &y, &batch, &left, &right, &summed);
    else
        result->node = multiply_pair(e, &x, &y, &batch, &left, &right);
    set_labels(result, &batch, &left, &right);
    for (int i = other; i + 1 < e->n_terms; i++) e->terms[i] = e->terms[i + 1];
    e->n_terms--;
    return TK_OK;
}

static void choose_pair(const einsum *e, int *out_one, int *out_other) {
    double best = 0;
    *out_one = 0;
    *out_other = 1;
    for (int one = 0; one < e->n_terms; one++) {
        for (int other = one + 1; other < e->n_terms; other++) {
            uint64_t x = labels_of(&e->terms[one]), y = labels_of(&e->terms[other]);
            double size = elements(e, (x | y) & needed_beside(e, one, other));
            double growth = size - elements(e, x) - elements(e, y);
            if ((one == 0 && other == 1) || growth < best) {
                best = growth;
                *out_one = one;
                *out_other = other;
            }
        }
    }
}

static tk_node *contract_all(einsum *e) {
    for (int i = 0; i < e->n_terms; i++)
        if (tk_node_is_error(e->terms[i].node)) return e->terms[i].node;
    while (e->n_terms > 1) {
        int one, other;
        choose_pair(e, &one, &other);
        TKB_TRY(e->b, contract(e, one, other));
        if (tk_node_is_error(e->terms[one].node)) return e->terms[one].node;
    }
    tk_axes order = {.count = e->n_output};
    for (int i = 0; i < e->n_output; i++) order.items[i] = axis_of(&e->terms[0], e->output[i]);
    return tkb_permute(e->b, e->terms[0].node, &order);
}

tk_node *tkb_einsum(tk_builder *b, const char *text, tk_node *const *operands, size_t n_operands) {
    einsum e = {.b = b};
    tk_node *nodes[MAX_TERMS];
    if (!text || n_operands == 0 || n_operands > MAX_TERMS)
        return tkb_fail(
            b, tk_fail(TK_INVALID_ARGUMENT,
                       "einsum: %zu operands given, expected subscripts and 1 to %d operands",
                       n_operands, MAX_TERMS));
    for (size_t i = 0; i < n_operands; i++) {
        if (tk_node_is_error(operands[i])) return operands[i];
        nodes[i] = operands[i];
    }
    tkb_promote(b, n_operands, nodes);
    TKB_TRY(b, parse(&e, text, nodes, n_operands));
    clean(&e);
    return contract_all(&e);
}
