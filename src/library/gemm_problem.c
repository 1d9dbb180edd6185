/* Shapes and strides of a product. */
#include "library/gemm.h"

static bool is_sixteen(tk_kscalar element) { return element == TK_K_F16 || element == TK_K_BF16; }

static tk_status check_types(const tk_library_call *call) {
    const tk_library_tensor *t = call->tensors;
    if (!is_sixteen(t[0].element) || t[0].element != t[1].element)
        return tk_library_fail(call, TK_DTYPE_ERROR,
                               "a has elements %s and b %s, expected f16 or bf16 in both",
                               tk_kscalar_text(t[0].element), tk_kscalar_text(t[1].element));
    return tk_library_need_float(call, 2, "d");
}

static int64_t extent(const tk_library_tensor *t, int from_end) {
    return t->shape[t->rank - from_end];
}
static int64_t stride(const tk_library_tensor *t, int from_end) {
    return t->stride[t->rank - from_end];
}

static tk_status check_shapes(const tk_library_call *call) {
    static const char *const roles[] = {"a", "b", "d"};
    const tk_library_tensor *t = call->tensors;
    for (int i = 0; i < 3; i++)
        if (t[i].rank < 2 || t[i].rank != t[0].rank)
            return tk_library_fail(call, TK_SHAPE_ERROR,
                                   "%s has %d axes and a %d, expected as many, 2 or more", roles[i],
                                   t[i].rank, t[0].rank);
    for (int axis = 0; axis < t[0].rank - 2; axis++)
        if (t[0].shape[axis] != t[2].shape[axis] || t[1].shape[axis] != t[2].shape[axis])
            return tk_library_fail(call, TK_SHAPE_ERROR,
                                   "axis %d has lengths %lld in a, %lld in b and %lld in d", axis,
                                   (long long)t[0].shape[axis], (long long)t[1].shape[axis],
                                   (long long)t[2].shape[axis]);
    if (extent(&t[0], 1) == extent(&t[1], 2) && extent(&t[0], 2) == extent(&t[2], 2) &&
        extent(&t[1], 1) == extent(&t[2], 1))
        return TK_OK;
    return tk_library_fail(
        call, TK_SHAPE_ERROR,
        "a is %lld x %lld, b %lld x %lld and d %lld x %lld, expected m x k, k x n and m x n",
        (long long)extent(&t[0], 2), (long long)extent(&t[0], 1), (long long)extent(&t[1], 2),
        (long long)extent(&t[1], 1), (long long)extent(&t[2], 2), (long long)extent(&t[2], 1));
}

/* The step from one matrix of the batch to the next. */
static tk_status read_batch(const tk_library_call *call, size_t index, tk_gemm_matrix *matrix) {
    const tk_library_tensor *t = &call->tensors[index];
    int64_t expected = 0;
    bool found = false;
    for (int axis = t->rank - 3; axis >= 0; axis--) {
        if (t->shape[axis] == 1) continue;
        if (found && t->stride[axis] != expected && tk_library_size(t) > 0)
            return tk_library_fail(call, TK_SHAPE_ERROR,
                                   "the matrices of %s are not evenly spaced: copy it first",
                                   matrix->name);
        if (!found) matrix->step = t->stride[axis];
        found = true;
        expected = t->shape[axis] * t->stride[axis];
    }
    return TK_OK;
}

/* Lines run along the last axis where its stride is 1 (or it has one element), else along the one
 * before. */
static tk_status read_lines(const tk_library_call *call, size_t index, bool k_last,
                            tk_gemm_matrix *matrix) {
    const tk_library_tensor *t = &call->tensors[index];
    bool last = stride(t, 1) == 1 || (extent(t, 1) <= 1 && stride(t, 2) != 1),
         before = stride(t, 2) == 1 || extent(t, 2) <= 1;
    if (!last && (!before || index == 2))
        return tk_library_fail(call, TK_SHAPE_ERROR,
                               "%s has strides %lld and %lld along its last axes, expected a 1%s",
                               matrix->name, (long long)stride(t, 2), (long long)stride(t, 1),
                               index == 2 ? " in the last" : "");
    matrix->pitch = last ? stride(t, 2) : stride(t, 1);
    matrix->k_lines = last == k_last;
    return read_batch(call, index, matrix);
}

tk_status tk_gemm_read(const tk_library_call *call, tk_gemm_problem *out) {
    const int64_t most = (int64_t)1 << 30;
    const tk_library_tensor *a = &call->tensors[0], *d = &call->tensors[2];
    TK_TRY(check_types(call));
    TK_TRY(check_shapes(call));
    *out = (tk_gemm_problem){.batch = 1,
                             .m = extent(d, 2),
                             .n = extent(d, 1),
                             .k = extent(a, 1),
                             .a = {.name = "a"},
                             .b = {.name = "b"},
                             .d = {.name = "d"}};
    for (int axis = 0; axis < d->rank - 2; axis++) out->batch *= d->shape[axis];
    if (out->m > most || out->n > most || out->k > most)
        return tk_library_fail(call, TK_UNSUPPORTED, "matrices of more than 2^30 rows or columns");
    TK_TRY(read_lines(call, 0, true, &out->a));
    TK_TRY(read_lines(call, 1, false, &out->b));
    return read_lines(call, 2, true, &out->d);
}

void tk_gemm_store(tk_b *b, tk_val pointer, tk_val low, tk_val high, bool pair, tk_val if_low,
                   tk_val if_high) {
    tk_val both[] = {low, high};
    if (pair) {
        tk_k_store_f32_if(b, pointer, 2, both, if_high);
        return;
    }
    tk_k_store_f32_if(b, pointer, 1, &low, if_low);
    tk_k_store_f32_if(b, tk_k_offset(b, pointer, tk_k_i32(b, 1)), 1, &high, if_high);
}
