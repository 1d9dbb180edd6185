/* Rows as floats for the fused row kernels: where they are, or converted into a task's scratch. */
#ifndef CPU_NORM_ROW_H
#define CPU_NORM_ROW_H

#include "cpu/norm.h"
#include "cpu/vec_table.h"

static inline const void *tk_row_at(tk_dtype dtype, const void *x, int64_t index) {
    return (const char *)x + index * (int64_t)tk_dtype_size(dtype);
}
static inline void *tk_row_out(tk_dtype dtype, void *x, int64_t index) {
    return (char *)x + index * (int64_t)tk_dtype_size(dtype);
}

/* f32: the row itself; halves: converted into `scratch`. NULL stays NULL. */
static inline const float *tk_row_floats(tk_dtype dtype, const void *row, int64_t count,
                                         float *scratch) {
    if (!row || dtype == TK_FLOAT32) return row;
    tk_vec_convert(dtype, TK_FLOAT32, row, scratch, count);
    return scratch;
}

/* Rows of `columns` elements that are worth a task. */
static inline int64_t tk_row_grain(int64_t columns) { return 16384 / (columns + 1) + 1; }

/* f64 bodies of norm.h, by plain loops. */
void tk_norm_f64(bool centered, const double *x, const double *weight, const double *bias,
                 double eps, double *out, int64_t rows, int64_t columns);
void tk_norm_backward_f64(bool centered, const double *x, const double *weight, double eps,
                          const double *dy, double *dx, double *dweight, double *dbias,
                          int64_t rows, int64_t columns);

#endif
