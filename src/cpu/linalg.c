/* See linalg.h. */
#include "cpu/linalg.h"

#include <math.h>
#include <string.h>

#include "cpu/body_copy.h"

static char *matrix_at(const tk_strided *view, int64_t index) {
    int64_t offset = 0;
    for (int i = view->rank - 3; i >= 0; i--) {
        offset += index % view->shape[i] * view->strides[i];
        index /= view->shape[i];
    }
    return (char *)view->data + offset * (int64_t)tk_dtype_size(view->dtype);
}

void tk_linalg_load(const tk_strided *view, int64_t index, void *to) {
    int64_t bytes = (int64_t)tk_dtype_size(view->dtype);
    int row = view->rank - 2, column = view->rank - 1;
    int64_t rows = view->shape[row];
    const char *from = matrix_at(view, index);
    for (int64_t j = 0; j < view->shape[column]; j++)
        tk_copy_run((size_t)bytes, (char *)to + j * rows * bytes, bytes,
                    from + j * view->strides[column] * bytes, view->strides[row] * bytes, rows);
}

void tk_linalg_store(const tk_strided *view, int64_t index, const void *from, int64_t lead) {
    int64_t bytes = (int64_t)tk_dtype_size(view->dtype);
    int row = view->rank - 2, column = view->rank - 1;
    char *to = matrix_at(view, index);
    for (int64_t i = 0; i < view->shape[row]; i++)
        tk_copy_run((size_t)bytes, to + i * view->strides[row] * bytes, bytes,
                    (const char *)from + i * bytes, lead * bytes, view->shape[column]);
}

void *tk_linalg_place(const tk_strided *view, int axes, int64_t index) {
    int64_t items = 1;
    for (int i = view->rank - axes; i < view->rank; i++) items *= view->shape[i];
    return (char *)view->data + index * items * (int64_t)tk_dtype_size(view->dtype);
}

static int64_t parts_of(tk_dtype dtype, int64_t count) {
    return dtype == TK_COMPLEX64 ? 2 * count : count;
}

bool tk_linalg_is_finite(tk_dtype dtype, const void *data, int64_t count) {
    const float *single = data;
    const double *wide = data;
    bool finite = true;
    count = parts_of(dtype, count);
    for (int64_t i = 0; i < count; i++)
        finite &= isfinite(dtype == TK_FLOAT64 ? wide[i] : (double)single[i]) != 0;
    return finite;
}

void tk_linalg_fill_nan(tk_dtype dtype, void *data, int64_t count) {
    float *single = data;
    double *wide = data;
    count = parts_of(dtype, count);
    for (int64_t i = 0; i < count; i++) {
        if (dtype == TK_FLOAT64)
            wide[i] = NAN;
        else
            single[i] = NAN;
    }
}

int tk_linalg_wanted(tk_dtype dtype, const void *work) {
    double size = dtype == TK_FLOAT64 ? *(const double *)work : (double)*(const float *)work;
    return size < 1 ? 1 : size > INT32_MAX - 64 ? INT32_MAX - 64 : (int)size + 1;
}
