/* See body_pairs.h. */
#include "cpu/body_pairs.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "cpu/body_copy.h"

char *tk_matrix_at(const tk_strided *view, int64_t number) {
    int64_t offset = 0;
    for (int axis = view->rank - 3; axis >= 0; axis--) {
        offset += number % view->shape[axis] * view->strides[axis];
        number /= view->shape[axis];
    }
    return (char *)view->data + offset * (int64_t)tk_dtype_size(view->dtype);
}

static int compare(const void *first, const void *second) {
    const tk_pair *a = first, *b = second;
    if (a->right != b->right) return a->right < b->right ? -1 : 1;
    return a->out < b->out ? -1 : a->out > b->out;
}

static bool is_sorted(const tk_pairs *pairs) {
    for (int64_t i = 1; i < pairs->count; i++)
        if (compare(&pairs->items[i - 1], &pairs->items[i]) > 0) return false;
    return true;
}

/* Orders what has been filled in and finds the groups. */
static void finish(tk_pairs *pairs) {
    pairs->in_order = is_sorted(pairs);
    if (!pairs->in_order) qsort(pairs->items, (size_t)pairs->count, sizeof *pairs->items, compare);
    pairs->n_groups = 0;
    for (int64_t i = 0; i < pairs->count; i++)
        if (i == 0 || pairs->items[i].right != pairs->items[i - 1].right)
            pairs->starts[pairs->n_groups++] = i;
    pairs->starts[pairs->n_groups] = pairs->count;
}

static tk_status allocate(int64_t count, tk_pairs *out) {
    *out = (tk_pairs){.count = count};
    void *items, *starts;
    TK_TRY(tk_scratch_new(count + 1, sizeof *out->items, &items));
    out->items = items;
    TK_TRY(tk_scratch_new(count + 1, sizeof *out->starts, &starts));
    out->starts = starts;
    return TK_OK;
}

void tk_pairs_free(tk_pairs *pairs) {
    tk_free(pairs->items);
    tk_free(pairs->starts);
}

static bool in_range(tk_fault *fault, int64_t position, int64_t index, int64_t length) {
    if (index >= 0 && index < length) return true;
    tk_fault_note(fault, position, index, length);
    return false;
}

/* Pairs with a bad index come first, with right -1. */
static void fill_by_index(tk_pairs *pairs, const int64_t *left, const int64_t *right,
                          int64_t n_left, int64_t n_right, tk_fault *fault) {
    for (int64_t i = 0; i < pairs->count; i++) {
        bool good = in_range(fault, i, left[i], n_left);
        good = in_range(fault, i, right[i], n_right) && good;
        pairs->items[i] = (tk_pair){good ? left[i] : -1, good ? right[i] : -1, i};
    }
    finish(pairs);
}

tk_status tk_pairs_by_index(const tk_strided *lhs, const tk_strided *rhs, int64_t n_left,
                            int64_t n_right, tk_fault *fault, tk_pairs *out) {
    tk_dense left = {NULL, NULL}, right = {NULL, NULL};
    tk_status status = allocate(lhs->size, out);
    if (status == TK_OK) status = tk_dense_take(lhs, TK_INT64, &left);
    if (status == TK_OK) status = tk_dense_take(rhs, TK_INT64, &right);
    if (status == TK_OK) fill_by_index(out, left.data, right.data, n_left, n_right, fault);
    tk_dense_free(&left);
    tk_dense_free(&right);
    return status;
}

/* The number of the right matrix at a position: coordinates along shared axes count as 0. */
static int64_t shared_number(int lead, const int64_t *shape, const bool *is_shared,
                             int64_t position) {
    int64_t number = 0, step = 1;
    for (int axis = lead - 1; axis >= 0; axis--) {
        int64_t at = position % shape[axis];
        position /= shape[axis];
        if (!is_shared[axis]) number += at * step;
        step *= shape[axis];
    }
    return number;
}

tk_status tk_pairs_by_position(int rank, const int64_t *shape, const tk_strided *rights,
                               int n_rights, tk_pairs *out) {
    bool is_shared[TK_AXES_MAX];
    int64_t count = 1;
    for (int axis = 0; axis < rank - 2; axis++) {
        count *= shape[axis];
        is_shared[axis] = true;
        for (int i = 0; i < n_rights; i++) is_shared[axis] &= rights[i].strides[axis] == 0;
    }
    TK_TRY(allocate(count, out));
    for (int64_t i = 0; i < count; i++)
        out->items[i] = (tk_pair){i, shared_number(rank - 2, shape, is_shared, i), i};
    finish(out);
    return TK_OK;
}
