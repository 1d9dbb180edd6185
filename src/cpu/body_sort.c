/* sort, argsort, partition and argpartition along an axis: rows as items, ordered, and read back.
 */
#include "cpu/body_sort.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "cpu/body.h"
#include "cpu/body_rows.h"

typedef struct sorting {
    tk_dtype dtype;
    bool arguments; /* the result is the indices */
    int64_t kth;    /* -1: sort all */
} sorting;

static void take_element(const sorting *s, const void *row, int64_t index, void *out, int64_t at) {
    switch (tk_dtype_size(s->dtype)) {
    case 1:
        ((uint8_t *)out)[at] = ((const uint8_t *)row)[index];
        break;
    case 2:
        ((uint16_t *)out)[at] = ((const uint16_t *)row)[index];
        break;
    case 4:
        ((uint32_t *)out)[at] = ((const uint32_t *)row)[index];
        break;
    default:
        ((uint64_t *)out)[at] = ((const uint64_t *)row)[index];
    }
}

static void put(const sorting *s, const void *row, uint64_t index, void *out, int64_t at) {
    if (s->arguments)
        ((uint32_t *)out)[at] = (uint32_t)index;
    else
        take_element(s, row, (int64_t)index, out, at);
}

static void narrow_row(const sorting *s, const void *row, void *out, int64_t length,
                       tk_narrow_item *items) {
    tk_narrow_items(s->dtype, row, length, items);
    if (s->kth < 0)
        tk_narrow_sort(items, items + length, length);
    else
        tk_narrow_select(items, length, s->kth);
    for (int64_t i = 0; i < length; i++) put(s, row, (uint32_t)items[i], out, i);
}

static void wide_row(const sorting *s, const void *row, void *out, int64_t length,
                     tk_wide_item *items) {
    tk_wide_items(s->dtype, row, length, items);
    if (s->kth < 0)
        tk_wide_sort(items, items + length, length);
    else
        tk_wide_select(items, length, s->kth);
    for (int64_t i = 0; i < length; i++) put(s, row, items[i].index, out, i);
}

static void sort_rows(void *arg, const tk_rows_part *part) {
    const sorting *s = arg;
    int64_t in_bytes = part->in_stride * (int64_t)tk_dtype_size(s->dtype);
    int64_t out_bytes =
        part->out_stride * (int64_t)tk_dtype_size(s->arguments ? TK_UINT32 : s->dtype);
    for (int64_t r = 0; r < part->rows; r++) {
        const char *row = (const char *)part->in + r * in_bytes;
        char *out = (char *)part->out + r * out_bytes;
        if (tk_sort_is_narrow(s->dtype))
            narrow_row(s, row, out, part->length, part->scratch);
        else
            wide_row(s, row, out, part->length, part->scratch);
    }
}

static tk_status scratch_bytes(const sorting *s, int64_t length, size_t *out_bytes) {
    size_t item = tk_sort_is_narrow(s->dtype) ? sizeof(tk_narrow_item) : sizeof(tk_wide_item);
    if (length > UINT32_MAX)
        return tk_fail(TK_OVERFLOW, "sort: an axis of length %lld, at most 2^32 - 1 is supported",
                       (long long)length);
    *out_bytes = (size_t)length * item * (s->kth < 0 ? 2 : 1);
    return TK_OK;
}

tk_status tk_body_sort(const tk_body_call *call) {
    const tk_strided *in = &call->inputs[0];
    bool partial = call->op == TK_OP_partition_axis || call->op == TK_OP_argpartition_axis;
    const tk_attrs_axis *attrs = call->attrs; /* the axis comes first in both records */
    sorting s = {.dtype = in->dtype,
                 .arguments = call->op == TK_OP_argsort_axis || call->op == TK_OP_argpartition_axis,
                 .kth = partial ? ((const tk_attrs_partition *)call->attrs)->kth : -1};
    tk_rows rows = {.in = in,
                    .out = &call->outputs[0],
                    .axes = tk_rows_axis(attrs->axis),
                    .in_type = in->dtype,
                    .out_type = call->outputs[0].dtype,
                    .run = sort_rows,
                    .arg = &s};
    TK_TRY(scratch_bytes(&s, in->shape[attrs->axis], &rows.scratch_bytes));
    return tk_rows_run(&rows);
}
