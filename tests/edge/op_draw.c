/* See op_draw.h. */
#include "edge/op_draw.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "graph/node.h"

#define MOST_ELEMENTS 4096

/* ---- numbers ---- */

static uint64_t next(draw *d) {
    uint64_t z = d->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

int64_t draw_below(draw *d, int64_t n) { return n > 0 ? (int64_t)(next(d) % (uint64_t)n) : 0; }
bool draw_chance(draw *d, int percent) { return draw_below(d, 100) < percent; }

int64_t draw_nonsense(draw *d) {
    static const int64_t numbers[] = {-1,
                                      -2,
                                      17,
                                      -17,
                                      100,
                                      INT64_MAX,
                                      INT64_MIN,
                                      INT32_MAX,
                                      INT64_C(1) << 31,
                                      -1000,
                                      INT64_C(1) << 40,
                                      INT64_C(1) << 62};
    return numbers[draw_below(d, sizeof numbers / sizeof numbers[0])];
}

tk_dtype draw_dtype(draw *d) {
    if (draw_chance(d, 25)) return TK_FLOAT32;
    return (tk_dtype)draw_below(d, TK_DTYPE_COUNT);
}

/* ---- shapes ---- */

static int64_t size_of(tk_shape shape) {
    int64_t size = 1;
    for (int64_t i = 0; i < shape.count; i++) size *= shape.items[i];
    return size;
}

static int64_t draw_length(draw *d) {
    static const int64_t lengths[] = {1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5, 5, 7, 8, 9};
    if (draw_chance(d, 4)) return 0;
    if (draw_chance(d, 2)) return 17 + draw_below(d, 60);
    return lengths[draw_below(d, sizeof lengths / sizeof lengths[0])];
}

tk_shape draw_shape(draw *d, int most_axes) {
    tk_shape shape = {.count = draw_below(d, most_axes + 1)};
    for (int64_t i = 0; i < shape.count; i++) shape.items[i] = draw_length(d);
    while (size_of(shape) > MOST_ELEMENTS / 4) shape.items[draw_below(d, shape.count)] = 1;
    if (draw_chance(d, 1) && most_axes > 0) shape = TK_SHAPE(1 + draw_below(d, 3), 4099);
    return shape;
}

tk_shape draw_narrowed(draw *d, tk_shape shape) {
    tk_shape narrow = {.count = 0};
    int64_t dropped = draw_chance(d, 30) ? draw_below(d, shape.count + 1) : 0;
    for (int64_t i = dropped; i < shape.count; i++)
        narrow.items[narrow.count++] = draw_chance(d, 20) ? 1 : shape.items[i];
    return narrow;
}

int64_t draw_axis(draw *d, int rank) {
    if (draw_chance(d, 3)) return draw_nonsense(d);
    if (draw_chance(d, 3)) return rank;
    return rank ? draw_below(d, 2 * rank) - rank : 0;
}

tk_axes draw_axes(draw *d, int rank) {
    tk_axes axes = {.count = 0};
    if (draw_chance(d, 25)) return TK_ALL_AXES;
    if (draw_chance(d, 2)) return tk_axes_from(17, NULL);
    for (int i = 0; i < rank; i++)
        if (draw_chance(d, 40)) axes.items[axes.count++] = draw_chance(d, 50) ? i : i - rank;
    for (int64_t i = axes.count - 1; i > 0; i--) {
        int64_t other = draw_below(d, i + 1), kept = axes.items[i];
        axes.items[i] = axes.items[other];
        axes.items[other] = kept;
    }
    if (axes.count && draw_chance(d, 3)) axes.items[draw_below(d, axes.count)] = draw_axis(d, rank);
    return axes;
}

/* ---- values ---- */

/* What kind of numbers an array holds. */
typedef enum flavour { SMALL, UNIT, WIDE, SPECIAL, FLAVOURS } flavour;

static double draw_real(draw *d, flavour flavour) {
    static const double special[] = {
        INFINITY, -INFINITY, NAN,    -0.0,         0.0, 1,    -1,  0x1p-149, -0x1p-24, 65504.0,
        3e38,     -3e38,     1e-300, 2147483648.0, 0.5, -1.5, 2.5, -128.0,   1e10,     -1e20};
    double u = (double)(next(d) >> 11) * 0x1p-53;
    switch (flavour) {
    case SMALL:
        return (double)(draw_below(d, 65) - 32) / 8;
    case UNIT:
        return 2 * u - 1;
    case WIDE:
        return (2 * u - 1) * exp2((double)draw_below(d, 24) - 12);
    default:
        return draw_chance(d, 50) ? special[draw_below(d, sizeof special / sizeof special[0])]
                                  : (double)(draw_below(d, 65) - 32) / 8;
    }
}

static int64_t draw_integer(draw *d, flavour flavour) {
    static const int64_t special[] = {INT64_MIN, INT64_MAX, INT32_MIN, INT32_MAX,
                                      INT16_MIN, INT16_MAX, INT8_MIN,  INT8_MAX,
                                      -1,        0,         UINT8_MAX, UINT16_MAX};
    if (flavour == WIDE) return (int64_t)next(d);
    if (flavour == SPECIAL && draw_chance(d, 50))
        return special[draw_below(d, sizeof special / sizeof special[0])];
    return draw_below(d, 15) - 5;
}

static flavour draw_flavour(draw *d) {
    if (draw_chance(d, 12)) return SPECIAL;
    return (flavour)draw_below(d, SPECIAL);
}

/* Dense values. By way of float64 for floats, int64 for the rest: a cast is one of the ops under
 * test, but casts of exact numbers have tables of their own. */
static tk_array draw_dense(draw *d, tk_dtype dtype, tk_shape shape) {
    static union {
        double reals[MOST_ELEMENTS * 4];
        float pairs[MOST_ELEMENTS * 8];
        int64_t integers[MOST_ELEMENTS * 4];
    } memory;
    int64_t size = size_of(shape);
    flavour flavour = draw_flavour(d);
    assert(size <= MOST_ELEMENTS * 4);
    if (dtype == TK_COMPLEX64) {
        for (int64_t i = 0; i < 2 * size; i++) memory.pairs[i] = (float)draw_real(d, flavour);
        return tk_from_data(d->context, &memory, shape, TK_COMPLEX64);
    }
    if (!tk_dtype_is_float(dtype)) {
        for (int64_t i = 0; i < size; i++) memory.integers[i] = draw_integer(d, flavour);
        if (dtype == TK_BOOL)
            for (int64_t i = 0; i < size; i++) memory.integers[i] &= 1;
        return tk_astype(tk_from_data(d->context, &memory, shape, TK_INT64), dtype);
    }
    for (int64_t i = 0; i < size; i++) memory.reals[i] = draw_real(d, flavour);
    return tk_astype(tk_from_data(d->context, &memory, shape, TK_FLOAT64), dtype);
}

static tk_array draw_transposed(draw *d, tk_dtype dtype, tk_shape shape) {
    tk_axes order = {.count = shape.count}, inverse = order;
    tk_shape turned = {.count = shape.count};
    for (int64_t i = 0; i < shape.count; i++) {
        int64_t other = draw_below(d, i + 1);
        order.items[i] = i;
        if (other < i) order.items[i] = order.items[other], order.items[other] = i;
    }
    for (int64_t i = 0; i < shape.count; i++) {
        turned.items[i] = shape.items[order.items[i]];
        inverse.items[order.items[i]] = i;
    }
    return tk_transpose(draw_dense(d, dtype, turned), inverse);
}

static tk_array draw_strided(draw *d, tk_dtype dtype, tk_shape shape) {
    tk_shape wide = shape;
    tk_axes start = shape, step = shape, stop = shape;
    for (int64_t i = 0; i < shape.count; i++) {
        int64_t by = 1 + draw_below(d, 2), from = draw_below(d, 2);
        wide.items[i] =
            from + (shape.items[i] ? (shape.items[i] - 1) * by + 1 : 0) + draw_below(d, 2);
        start.items[i] = from;
        stop.items[i] = from + (shape.items[i] ? (shape.items[i] - 1) * by + 1 : 0);
        step.items[i] = by;
    }
    if (size_of(wide) > MOST_ELEMENTS * 4) return draw_dense(d, dtype, shape);
    return tk_slice(draw_dense(d, dtype, wide), start, stop, step);
}

static tk_array draw_reversed(draw *d, tk_dtype dtype, tk_shape shape) {
    tk_axes axes = {.count = 0};
    for (int64_t i = 0; i < shape.count; i++)
        if (draw_chance(d, 60)) axes.items[axes.count++] = i;
    return tk_flip(draw_dense(d, dtype, shape), axes);
}

static tk_array draw_repeated(draw *d, tk_dtype dtype, tk_shape shape) {
    tk_shape narrow = draw_narrowed(d, shape); /* without the 0 of an empty shape it may be large */
    if (size_of(narrow) > MOST_ELEMENTS * 4) narrow = shape;
    return tk_broadcast_to(draw_dense(d, dtype, narrow), shape);
}

tk_array draw_array(draw *d, tk_dtype dtype, tk_shape shape) {
    tk_array array;
    if (size_of(shape) > MOST_ELEMENTS * 4) return draw_dense(d, dtype, TK_SHAPE(1));
    switch (draw_below(d, 10)) {
    case 0:
        array = draw_transposed(d, dtype, shape);
        break;
    case 1:
        array = draw_reversed(d, dtype, shape);
        break;
    case 2:
        array = draw_strided(d, dtype, shape);
        break;
    case 3:
        array = draw_repeated(d, dtype, shape);
        break;
    default:
        array = draw_dense(d, dtype, shape);
        break;
    }
    if (draw_chance(d, 80)) (void)tk_eval(array); /* else one graph with the op */
    return array;
}

tk_array draw_indices(draw *d, tk_shape shape, int64_t low, int64_t high) {
    static const tk_dtype dtypes[] = {TK_INT32, TK_INT32, TK_INT64,  TK_UINT32, TK_INT8,
                                      TK_UINT8, TK_INT16, TK_UINT16, TK_UINT64};
    int64_t values[MOST_ELEMENTS], size = size_of(shape);
    tk_dtype dtype = dtypes[draw_below(d, sizeof dtypes / sizeof dtypes[0])];
    if (size > MOST_ELEMENTS) return draw_dense(d, dtype, TK_SHAPE(1));
    if (tk_dtype_kind(dtype) == TK_KIND_UNSIGNED && low < 0) low = 0;
    for (int64_t i = 0; i < size; i++) values[i] = low + draw_below(d, high > low ? high - low : 1);
    if (size && draw_chance(d, 4)) values[draw_below(d, size)] = draw_nonsense(d);
    return tk_astype(tk_from_data(d->context, values, shape, TK_INT64), dtype);
}

/* ---- arguments ---- */

int draw_find(const draw *d, const char *name) {
    for (int i = 0; i < d->row->n_params; i++)
        if (!strcmp(d->row->params[i].name, name)) return i;
    return -1;
}

/* Asked of the node: nothing public tells, and nothing needs to. */
bool draw_is_weak(tk_array array) { return (array.node->flags & TK_NODE_WEAK) != 0; }

static tk_array draw_weak(draw *d) {
    switch (draw_below(d, 4)) {
    case 0:
        return tk_scalar_int(d->context, draw_integer(d, draw_chance(d, 90) ? SMALL : SPECIAL));
    case 1:
        return tk_scalar_bool(d->context, draw_chance(d, 50));
    default:
        return tk_scalar(d->context, draw_real(d, SMALL));
    }
}

/* The first operand is free; the others mostly broadcast with it. */
static tk_array draw_operand(draw *d, int index, tk_array first) {
    if (index == 0) {
        tk_dtype dtype = draw_dtype(d);
        return draw_array(d, dtype, draw_shape(d, 5));
    }
    if (draw_chance(d, 8)) return draw_weak(d);
    tk_dtype dtype = draw_chance(d, 60) ? tk_array_dtype(first) : draw_dtype(d);
    if (draw_chance(d, 6)) return draw_array(d, dtype, draw_shape(d, 4));
    tk_shape shape = tk_array_shape(first);
    return draw_array(d, dtype, draw_chance(d, 50) ? shape : draw_narrowed(d, shape));
}

static double draw_parameter(draw *d) {
    static const double numbers[] = {0, 1, -1, 0.5, 2, 1e-5, 3, -2.5, 10, 0, 1, 1e-3};
    if (draw_chance(d, 4)) return draw_real(d, SPECIAL);
    return numbers[draw_below(d, sizeof numbers / sizeof numbers[0])];
}

static void draw_value(draw *d, int index, tk_array first) {
    const char *type = d->row->params[index].type;
    op_value *value = &d->values[index];
    int rank = tk_array_rank(first);
    if (!strcmp(type, ""))
        value->array = draw_operand(d, index, first);
    else if (!strcmp(type, "array?"))
        value->array = draw_chance(d, 60) ? draw_operand(d, index, first) : TK_NO_ARRAY;
    else if (!strcmp(type, "key?"))
        value->array =
            draw_chance(d, 80) ? tk_random_key(d->context, draw_below(d, 9)) : TK_NO_ARRAY;
    else if (!strcmp(type, "axes"))
        value->axes = draw_axes(d, rank);
    else if (!strcmp(type, "shape"))
        value->axes = draw_shape(d, 4);
    else if (!strcmp(type, "int"))
        value->integer = draw_axis(d, rank);
    else if (!strcmp(type, "float"))
        value->real = draw_parameter(d);
    else if (!strcmp(type, "bool"))
        value->flag = draw_chance(d, 50);
    else if (!strcmp(type, "dtype"))
        value->dtype = draw_chance(d, 2) ? (tk_dtype)TK_DTYPE_COUNT : draw_dtype(d);
    else if (!strcmp(type, "mode"))
        value->mode = draw_chance(d, 2) ? (tk_mode)draw_below(d, 99) : (tk_mode)draw_below(d, 5);
    else if (!strcmp(type, "str"))
        value->text = "ij,jk";
    if (!strcmp(type, "shape") && draw_chance(d, 3) && value->axes.count)
        value->axes.items[0] = draw_nonsense(d);
}

void draw_call(draw *d, const op_row *row) {
    d->row = row;
    tk_array first = TK_NO_ARRAY;
    for (int i = 0; i < row->n_params; i++) {
        d->values[i] = (op_value){0};
        if (!strcmp(row->params[i].type, "arrays")) {
            d->values[i].arrays = d->list;
            d->values[i].count = 1 + (size_t)draw_below(d, DRAW_LIST);
            for (size_t k = 0; k < d->values[i].count; k++)
                d->list[k] = draw_operand(d, (int)k, d->list[0]);
            if (!first.node) first = d->list[0];
            continue;
        }
        draw_value(d, i, first);
        if (!first.node) first = d->values[i].array;
    }
    if (!draw_chance(d, 4)) draw_fit(d);
}
