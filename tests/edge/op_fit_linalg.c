/* Arguments of linear algebra: matrices that are far from singular, or sometimes anything. See
 * op_draw.h. */
#include <math.h>
#include <string.h>

#include "edge/op_draw.h"

static tk_dtype draw_matrix_dtype(draw *d) {
    if (draw_chance(d, 4)) return draw_dtype(d);
    return draw_chance(d, 60) ? TK_FLOAT32 : TK_FLOAT64;
}

/* Small elements beside a diagonal of 2, 3.5, 5, ...: of one sign and size, all apart. */
static tk_array draw_matrix(draw *d, tk_dtype dtype, tk_shape lead, int64_t rows, int64_t columns) {
    lead.items[lead.count++] = rows;
    lead.items[lead.count++] = columns;
    tk_dtype wide = tk_dtype_is_float(dtype) ? dtype : TK_FLOAT32;
    tk_array any = tk_nan_to_num(draw_array(d, wide, lead), 0, 1, -1);
    tk_array small = tk_multiply(tk_tanh(any), tk_scalar(d->context, 0.25));
    tk_array place = tk_add(
        tk_multiply(tk_arange(d->context, 0, (double)rows, 1, wide), tk_scalar(d->context, 1.5)),
        tk_scalar(d->context, 2));
    tk_array eye = tk_eye(d->context, rows, columns, 0, wide);
    tk_array diagonal = tk_multiply(eye, tk_expand_dims(place, TK_AXES(1)));
    tk_array matrix = tk_add(small, diagonal);
    if (draw_chance(d, 30)) matrix = tk_contiguous(matrix);
    return tk_astype(matrix, dtype);
}

static tk_shape draw_lead(draw *d) {
    tk_shape lead = {.count = draw_below(d, 3)};
    for (int64_t i = 0; i < lead.count; i++)
        lead.items[i] = draw_chance(d, 4) ? 0 : 1 + draw_below(d, 3);
    return lead;
}

void draw_fit_matrix(draw *d) {
    static const char *const any_shape[] = {"qr", "svd", "pinv", "lu", "lu_factor"};
    int64_t rows = draw_chance(d, 3) ? 0 : 1 + draw_below(d, 5), columns = rows;
    for (size_t i = 0; i < sizeof any_shape / sizeof *any_shape; i++)
        if (!strcmp(any_shape[i], d->row->name)) columns = 1 + draw_below(d, 5);
    if (draw_chance(d, 4)) columns = 1 + draw_below(d, 5);
    tk_dtype dtype = draw_matrix_dtype(d);
    tk_shape lead = draw_lead(d);
    d->values[0].array = draw_matrix(d, dtype, lead, rows, columns);
    if (d->row->n_params < 2 || strcmp(d->row->params[1].name, "b")) return;
    tk_shape other = draw_chance(d, 30) ? TK_SHAPE(rows) : draw_narrowed(d, lead);
    if (other.count != 1 || other.items[0] != rows || draw_chance(d, 50)) {
        other.items[other.count++] = rows;
        other.items[other.count++] = 1 + draw_below(d, 3);
    }
    d->values[1].array = draw_array(d, draw_chance(d, 80) ? dtype : draw_matrix_dtype(d), other);
}

void draw_fit_cross(draw *d) {
    tk_shape shape = draw_lead(d), other;
    tk_dtype dtype = draw_dtype(d);
    shape.items[shape.count++] = 2 + draw_below(d, 2);
    other = shape;
    if (draw_chance(d, 30)) other.items[other.count - 1] = 2 + draw_below(d, 2);
    d->values[0].array = draw_array(d, dtype, shape);
    d->values[1].array = draw_array(d, draw_chance(d, 80) ? dtype : draw_dtype(d), other);
    d->values[2].integer = draw_chance(d, 80) ? -1 : draw_below(d, shape.count);
}

void draw_fit_norm(draw *d) {
    static const double orders[] = {2, -2, 1, -1, 0, 3, 0.5, 4};
    int axes = draw_find(d, "axes"), ord = draw_find(d, "ord");
    int64_t rank = 1 + draw_below(d, 3), count = 1 + draw_below(d, 2);
    tk_shape shape = {.count = rank};
    for (int64_t i = 0; i < rank; i++) shape.items[i] = 1 + draw_below(d, 4);
    d->values[0].array = draw_array(d, draw_dtype(d), shape);
    if (count > rank) count = rank;
    if (ord < 0 && draw_chance(d, 90)) count = 2;
    if (draw_chance(d, 90)) d->values[axes].axes = count == 1 ? TK_AXES(-1) : TK_AXES(rank - 2, -1);
    if (ord >= 0) {
        double infinite = draw_chance(d, 50) ? (double)INFINITY : -(double)INFINITY;
        d->values[ord].real = draw_chance(d, 25)   ? (double)NAN
                              : draw_chance(d, 20) ? infinite
                                                   : orders[draw_below(d, count == 1 ? 8 : 4)];
    }
}

void draw_fit_hadamard(draw *d) {
    static const int64_t lengths[] = {1, 2, 4, 8, 16, 12, 20, 28, 24, 40, 3, 6};
    tk_shape shape = draw_lead(d);
    shape.items[shape.count++] = lengths[draw_below(d, draw_chance(d, 90) ? 10 : 12)];
    d->values[0].array = draw_array(d, draw_dtype(d), shape);
    d->values[1].real = draw_chance(d, 50) ? 0.5 : (double)NAN;
}

void draw_fit_multivariate(draw *d) {
    int64_t n = 1 + draw_below(d, 3);
    d->values[0].array = draw_array(d, TK_FLOAT32, TK_SHAPE(n));
    d->values[1].array = draw_matrix(d, TK_FLOAT32, draw_lead(d), n, n);
    d->values[2].axes = draw_chance(d, 60) ? TK_SCALAR : tk_array_shape(d->values[1].array);
    if (d->values[2].axes.count > 1) d->values[2].axes.count -= 2;
    d->values[3].dtype = draw_chance(d, 90) ? TK_FLOAT32 : draw_dtype(d);
    if (draw_chance(d, 90)) d->values[4].array = tk_random_key(d->context, draw_below(d, 1000));
}
