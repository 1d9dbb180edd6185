/* See load.h. */
#include "io/load.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/error.h"

tk_status tk_placement_bytes(const char *what, const tk_placement *placement, size_t *out_bytes) {
    int64_t count = 1, bytes;
    bool empty = false, overflow = false;
    if (placement->shape.count > TK_AXES_MAX)
        return tk_fail(TK_SHAPE_ERROR, "%.400s has %lld axes, at most %d are supported", what,
                       (long long)placement->shape.count, TK_AXES_MAX);
    for (int64_t i = 0; i < placement->shape.count; i++) {
        int64_t length = placement->shape.items[i];
        if (length < 0)
            return tk_fail(TK_FORMAT_ERROR, "%.400s: axis %lld has length %lld, 0 or more expected",
                           what, (long long)i, (long long)length);
        empty |= length == 0;
        if (length > 0) overflow |= tk_mul_overflow_i64(count, length, &count);
    }
    overflow |= tk_mul_overflow_i64(count, (int64_t)tk_dtype_size(placement->dtype), &bytes);
    if (overflow) return tk_fail(TK_FORMAT_ERROR, "%.400s: its bytes do not fit 63 bits", what);
    *out_bytes = empty ? 0 : (size_t)bytes;
    return TK_OK;
}

static void column_strides(tk_shape shape, int64_t *strides) {
    int64_t stride = 1;
    for (int64_t i = 0; i < shape.count; i++) {
        strides[i] = stride;
        stride *= shape.items[i];
    }
}

static tk_status check_truth(const char *what, const unsigned char *data, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        if (data[i] > 1)
            return tk_fail(TK_FORMAT_ERROR, "%.400s: truth value %zu is %u, 0 or 1 expected", what,
                           i, data[i]);
    return TK_OK;
}

tk_status tk_place_array(tk_context *context, const char *what, tk_mapping *mapping,
                         const tk_placement *placement, tk_array *out_array) {
    size_t bytes;
    int64_t strides[TK_AXES_MAX];
    *out_array = TK_NO_ARRAY;
    TK_TRY(tk_placement_bytes(what, placement, &bytes));
    if (bytes == 0) {
        *out_array = tk_from_data(context, NULL, placement->shape, placement->dtype);
        return tk_array_status(*out_array);
    }
    const unsigned char *data = mapping->data + placement->offset;
    if (placement->dtype == TK_BOOL) TK_TRY(check_truth(what, data, bytes));
    if ((uintptr_t)data % tk_dtype_size(placement->dtype)) {
        TK_TRY(tk_mapping_copy(what, data, bytes, &mapping));
        data = mapping->data;
    } else {
        tk_mapping_retain(mapping);
    }
    if (placement->fortran) column_strides(placement->shape, strides);
    *out_array = tk_from_memory(context, (void *)(uintptr_t)data, bytes, placement->shape,
                                placement->fortran ? strides : NULL, placement->dtype,
                                tk_mapping_release, mapping);
    return tk_array_status(*out_array);
}

tk_status tk_place_in_tree(tk_context *context, const char *file, const char *name,
                           tk_mapping *mapping, const tk_placement *placement, tk_tree *tree) {
    char what[512];
    snprintf(what, sizeof what, "%.300s: \"%.160s\"", file, name);
    tk_scope scope = tk_scope_open(context);
    tk_array array;
    tk_status status = tk_place_array(context, what, mapping, placement, &array);
    if (status == TK_OK) status = tk_tree_set(tree, name, array);
    tk_scope_close(scope);
    return status;
}

tk_status tk_tree_merge(tk_tree *to, const tk_tree *from) {
    for (size_t i = 0; i < tk_tree_count(from); i++)
        TK_TRY(tk_tree_set(to, tk_tree_name(from, i), tk_tree_at(from, i)));
    return TK_OK;
}

static bool is_row_major(const tk_strided *view) {
    int64_t stride = 1;
    for (int axis = view->rank - 1; axis >= 0; axis--) {
        if (view->shape[axis] != 1 && view->strides[axis] != stride) return false;
        stride *= view->shape[axis];
    }
    return true;
}

tk_status tk_array_bytes(tk_array array, const void **out_data, size_t *out_bytes,
                         void **out_copy) {
    tk_strided view;
    *out_copy = NULL;
    TK_TRY(tk_array_view(array, &view));
    *out_bytes = (size_t)view.size * tk_dtype_size(view.dtype);
    *out_data = view.data;
    if (view.size == 0 || is_row_major(&view)) return TK_OK;
    *out_copy = tk_malloc(*out_bytes);
    if (!*out_copy)
        return tk_fail(TK_OUT_OF_MEMORY, "no memory for a row-major copy of %zu bytes", *out_bytes);
    *out_data = *out_copy;
    tk_status status = tk_copy_out(array, *out_copy, *out_bytes);
    if (status != TK_OK) {
        tk_free(*out_copy);
        *out_copy = NULL;
    }
    return status;
}
