/* Norms in f64 by plain loops, row after row on the calling thread: for gradient checks. */
#include <math.h>

#include "cpu/norm_row.h"

typedef struct stat_f64 {
    double mean, inverse;
} stat_f64;

static stat_f64 row_stat(bool centered, const double *x, double eps, int64_t n) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n && centered; i++) sum += x[i];
    double mean = centered ? sum / (double)n : 0;
    for (int64_t i = 0; i < n; i++) squares += (x[i] - mean) * (x[i] - mean);
    return (stat_f64){mean, 1 / sqrt(squares / (double)n + eps)};
}

void tk_norm_f64(bool centered, const double *x, const double *weight, const double *bias,
                 double eps, double *out, int64_t rows, int64_t columns) {
    for (int64_t row = 0; row < rows; row++, x += columns, out += columns) {
        stat_f64 stat = row_stat(centered, x, eps, columns);
        for (int64_t i = 0; i < columns; i++) {
            double y = (x[i] - stat.mean) * stat.inverse;
            out[i] = y * (weight ? weight[i] : 1) + (bias ? bias[i] : 0);
        }
    }
}

static void backward_row(bool centered, const double *x, const double *weight, double eps,
                         const double *dy, double *dx, double *dweight, double *dbias, int64_t n) {
    stat_f64 stat = row_stat(centered, x, eps, n);
    double shift = 0, slope = 0;
    for (int64_t i = 0; i < n; i++) {
        double xhat = (x[i] - stat.mean) * stat.inverse;
        double gradient = dy[i] * (weight ? weight[i] : 1);
        shift += centered ? gradient / (double)n : 0;
        slope += gradient * xhat / (double)n;
        if (dweight) dweight[i] += dy[i] * xhat;
        if (dbias) dbias[i] += dy[i];
    }
    for (int64_t i = 0; i < n && dx; i++) {
        double xhat = (x[i] - stat.mean) * stat.inverse;
        double gradient = dy[i] * (weight ? weight[i] : 1);
        dx[i] = stat.inverse * (gradient - shift - xhat * slope);
    }
}

void tk_norm_backward_f64(bool centered, const double *x, const double *weight, double eps,
                          const double *dy, double *dx, double *dweight, double *dbias,
                          int64_t rows, int64_t columns) {
    for (int64_t i = 0; i < columns && dweight; i++) dweight[i] = 0;
    for (int64_t i = 0; i < columns && dbias; i++) dbias[i] = 0;
    for (int64_t row = 0; row < rows; row++)
        backward_row(centered, x + row * columns, weight, eps, dy + row * columns,
                     dx ? dx + row * columns : NULL, dweight, dbias, columns);
}
