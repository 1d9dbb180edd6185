/* Builders of random arrays. All draw from one primitive, counter-based bits of a key, and follow
 * MLX's recipes step by step (width of the bits, dtype of each operation, order of scaling),
 * because the same key must give the same values there and here.
 *
 * Differences: randint refuses an empty range and bounds that its dtype does not hold, where MLX
 * wraps; float64 draws 53 bits, where MLX has none. */
#include <math.h>
#include <string.h>

#include "graph/build_pieces.h"

/* ---- keys ---- */

tk_node *tkb_random_key(tk_builder *b, int64_t seed) {
    int64_t high = (int64_t)((uint64_t)seed >> 32), low = (int64_t)((uint64_t)seed & UINT32_MAX);
    return tkb_iota_int(b, TK_UINT32, TK_SHAPE(2), 0, high, low - high);
}

tk_node *tkb_random_bits(tk_builder *b, tk_node *key, tk_shape shape, int64_t width) {
    TKB_TRY(b, tk_shape_check("random_bits", shape));
    tk_attrs_bits attrs = {.shape = tk_axes_list(&shape), .width = width};
    return tkb_node1(b, TK_OP_random_bits, key, &attrs);
}

static tk_status check_key(const char *what, const tk_node *key) {
    if (!key) return tk_fail(TK_INVALID_ARGUMENT, "%s: no key given", what);
    if (tk_node_is_error(key)) return TK_OK;
    if (key->dtype == TK_UINT32 && key->rank == 1 && key->shape[0] == 2) return TK_OK;
    return tk_fail(TK_SHAPE_ERROR, "%s: key is %s, expected u32(2,)", what, tk_text_node(key));
}

tk_node *tkb_random_split(tk_builder *b, tk_node *key, int64_t num) {
    TKB_TRY(b, check_key("random_split", key));
    if (num < 0)
        return tkb_fail(b,
                        tk_fail(TK_INVALID_ARGUMENT,
                                "random_split: num is %lld, expected 0 or more", (long long)num));
    return tkb_random_bits(b, key, TK_SHAPE(num, 2), 4);
}

/* ---- uniform ---- */

static tk_status check_draw(const char *what, const tk_node *key, tk_shape shape, tk_dtype dtype) {
    TK_TRY(check_key(what, key));
    TK_TRY(tk_shape_check(what, shape));
    if (tk_dtype_is_float(dtype)) return TK_OK;
    return tk_fail(TK_DTYPE_ERROR, "%s: dtype is %s, expected a float dtype", what,
                   tk_dtype_name(dtype));
}

/* The largest value of the dtype below 1. */
static double below_one(tk_dtype dtype) {
    switch (dtype) {
    case TK_FLOAT16:
        return 1 - 0x1p-11;
    case TK_BFLOAT16:
        return 1 - 0x1p-8;
    case TK_FLOAT64:
        return 1 - 0x1p-53;
    default:
        return 1 - 0x1p-24;
    }
}

/* 53 bits of two words an element. */
static tk_node *unit_double(tk_builder *b, tk_node *key, tk_shape shape) {
    int64_t size;
    TKB_TRY(b, tk_length_product("random", shape.count, shape.items, &size));
    if (size < 0 || size > INT64_MAX / 16)
        return tkb_fail(
            b, tk_fail(TK_OVERFLOW, "random: %lld elements do not fit 63 bits", (long long)size));
    tk_node *words = tkb_view(b, tkb_random_bits(b, key, TK_SHAPE(2 * size), 4), TK_UINT64);
    tk_node *high = tkb_right_shift(b, words, tkb_const_int(b, TK_UINT64, 11));
    tk_node *unit =
        tkb_multiply(b, tkb_astype(b, high, TK_FLOAT64), tkb_const(b, TK_FLOAT64, 0x1p-53));
    return tkb_reshape(b, unit, shape);
}

/* In [0, 1). 2^32 - 1 is 2^32 as a float; the cast to a half rounds up to 1, hence the minimum. */
static tk_node *unit(tk_builder *b, tk_node *key, tk_shape shape, tk_dtype dtype) {
    if (dtype == TK_FLOAT64) return unit_double(b, key, shape);
    tk_node *bits = tkb_random_bits(b, key, shape, 4);
    tk_node *ratio = tkb_divide(b, bits, tkb_const(b, TK_FLOAT32, 0x1p32));
    return tkb_minimum(b, tkb_astype(b, ratio, dtype), tkb_const(b, dtype, below_one(dtype)));
}

/* The value that a real constant of the dtype has. */
static double value_in(tk_builder *b, tk_dtype dtype, double value) {
    tk_node *node = tkb_const(b, dtype, value);
    if (tk_node_is_error(node)) return value;
    const tk_attrs_constant *attrs = tk_node_attrs(node);
    memcpy(&value, &attrs->real, sizeof value);
    return value;
}

/* low + (high - low) * unit, every step rounded to the dtype. */
static tk_node *uniform(tk_builder *b, tk_node *key, tk_shape shape, tk_dtype dtype, double low,
                        double high) {
    low = value_in(b, dtype, low);
    double range = value_in(b, dtype, value_in(b, dtype, high) - low);
    tk_node *drawn = unit(b, key, shape, dtype);
    if (range != 1) drawn = tkb_multiply(b, tkb_const(b, dtype, range), drawn);
    return low == 0 ? drawn : tkb_add(b, drawn, tkb_const(b, dtype, low));
}

tk_node *tkb_random_uniform(tk_builder *b, double low, double high, tk_shape shape, tk_dtype dtype,
                            tk_node *key) {
    TKB_TRY(b, check_draw("random_uniform", key, shape, dtype));
    return uniform(b, key, shape, dtype, low, high);
}

/* In (-1, 1), in the type that the normal and Laplace transforms are computed in. */
static tk_node *symmetric(tk_builder *b, tk_node *key, tk_shape shape, tk_dtype dtype) {
    tk_dtype wide = tk_dtype_wide(dtype);
    return uniform(b, key, shape, wide, -below_one(wide), 1);
}

static tk_node *place(tk_builder *b, tk_node *a, tk_dtype dtype, double factor, double loc) {
    if (factor != 1) a = tkb_multiply(b, a, tkb_const(b, dtype, factor));
    return loc == 0 ? a : tkb_add(b, a, tkb_const(b, dtype, loc));
}

tk_node *tkb_random_normal(tk_builder *b, tk_shape shape, tk_dtype dtype, double loc, double scale,
                           tk_node *key) {
    TKB_TRY(b, check_draw("random_normal", key, shape, dtype));
    tk_node *quantile = tkb_astype(b, tkb_erfinv(b, symmetric(b, key, shape, dtype)), dtype);
    double factor = value_in(b, dtype, sqrt(2)) * value_in(b, dtype, scale);
    return place(b, quantile, dtype, factor, loc);
}

tk_node *tkb_random_laplace(tk_builder *b, tk_shape shape, tk_dtype dtype, double loc, double scale,
                            tk_node *key) {
    TKB_TRY(b, check_draw("random_laplace", key, shape, dtype));
    tk_node *drawn = symmetric(b, key, shape, dtype);
    tk_node *tail = tkb_log1p(b, tkb_negative(b, tkb_abs(b, drawn)));
    return place(b, tkb_astype(b, tkb_multiply(b, tkb_sign(b, drawn), tail), dtype), dtype, scale,
                 loc);
}

tk_node *tkb_random_gumbel(tk_builder *b, tk_shape shape, tk_dtype dtype, tk_node *key) {
    TKB_TRY(b, check_draw("random_gumbel", key, shape, dtype));
    tk_node *inner = tkb_negative(b, tkb_log(b, uniform(b, key, shape, dtype, 0, 1)));
    return tkb_negative(b, tkb_log(b, inner));
}

tk_node *tkb_random_truncated_normal(tk_builder *b, double lower, double upper, tk_shape shape,
                                     tk_dtype dtype, tk_node *key) {
    TKB_TRY(b, check_draw("random_truncated_normal", key, shape, dtype));
    if (!(lower <= upper))
        return tkb_fail(
            b, tk_fail(TK_INVALID_ARGUMENT,
                       "random_truncated_normal: bounds %g and %g, expected lower <= upper", lower,
                       upper));
    tk_node *root = tkb_const(b, dtype, sqrt(2));
    tk_node *low = tkb_const(b, dtype, lower), *high = tkb_const(b, dtype, upper);
    tk_node *from = tkb_erf(b, tkb_divide(b, low, root)),
            *to = tkb_erf(b, tkb_divide(b, high, root));
    tk_node *drawn = unit(b, key, shape, dtype);
    drawn = tkb_add(b, tkb_multiply(b, tkb_subtract(b, to, from), drawn), from);
    return tkb_maximum(b, tkb_minimum(b, tkb_multiply(b, root, tkb_erfinv(b, drawn)), high), low);
}

/* ---- integers and choices ---- */

tk_node *tkb_random_bernoulli(tk_builder *b, tk_node *p, tk_shape shape, tk_node *key) {
    TKB_TRY(b, check_key("random_bernoulli", key));
    if (tk_node_is_error(p)) return p;
    if (!tk_dtype_is_float((tk_dtype)p->dtype))
        return tkb_fail(b,
                        tk_fail(TK_DTYPE_ERROR, "random_bernoulli: p is %s, expected a float dtype",
                                tk_text_node(p)));
    if (shape.count < 0) shape = tk_node_shape(p);
    TKB_TRY(b, tk_shape_check("random_bernoulli", shape));
    tk_node *threshold = tkb_multiply(b, tkb_strong(b, p), tkb_const(b, TK_FLOAT32, 0x1p32));
    return tkb_less(b, tkb_random_bits(b, key, shape, 4),
                    tkb_fit(b, "random_bernoulli", "p", threshold, shape));
}

static bool holds(tk_dtype dtype, int64_t value) {
    int bits = dtype == TK_BOOL ? 1 : 8 * (int)tk_dtype_size(dtype);
    if (tk_dtype_kind(dtype) != TK_KIND_SIGNED)
        return value >= 0 && (bits == 64 || value >> bits == 0);
    return bits == 64 || (value >= -((int64_t)1 << (bits - 1)) && value < (int64_t)1 << (bits - 1));
}

static tk_status check_integers(int64_t low, int64_t high, tk_dtype dtype) {
    if (dtype != TK_BOOL && !tk_dtype_is_integer(dtype))
        return tk_fail(TK_DTYPE_ERROR,
                       "random_randint: dtype is %s, expected an integer dtype or bool",
                       tk_dtype_name(dtype));
    if (low >= high)
        return tk_fail(TK_INVALID_ARGUMENT,
                       "random_randint: low is %lld and high %lld, expected low < high",
                       (long long)low, (long long)high);
    if (holds(dtype, low) && holds(dtype, high - 1)) return TK_OK;
    return tk_fail(TK_OVERFLOW, "random_randint: %lld to %lld does not fit %s", (long long)low,
                   (long long)high - 1, tk_dtype_name(dtype));
}

tk_node *tkb_random_randint(tk_builder *b, int64_t low, int64_t high, tk_shape shape,
                            tk_dtype dtype, tk_node *key) {
    TKB_TRY(b, check_key("random_randint", key));
    TKB_TRY(b, tk_shape_check("random_randint", shape));
    TKB_TRY(b, check_integers(low, high, dtype));
    tk_dtype wide = dtype == TK_BOOL ? TK_INT32 : dtype;
    tk_node *drawn = tkb_floor(b, uniform(b, key, shape, TK_FLOAT32, (double)low, (double)high));
    drawn = tkb_maximum(b, tkb_astype(b, drawn, wide), tkb_const_int(b, wide, low));
    return tkb_astype(b, tkb_minimum(b, drawn, tkb_const_int(b, wide, high - 1)), dtype);
}

/* a b + c in float32, rounded once: the float64 product of two float32 is exact. */
static tk_node *fused(tk_builder *b, tk_node *a, tk_node *by, double add) {
    tk_node *product = tkb_multiply(b, tkb_astype(b, a, TK_FLOAT64), by);
    return tkb_astype(b, tkb_add(b, product, tkb_const(b, TK_FLOAT64, add)), TK_FLOAT32);
}

/* e^x for x up to 0 with the bits of MLX's CPU: 2^n times Cephes' polynomial of what is left. The
 * exponential of the op table is nearer to the truth (this one is up to 14 units off for weights
 * that count), but sums of other weights are rounded elsewhere, and 12 draws of 100,000 among ten
 * thousand classes would be other classes than MLX's. */
static tk_node *weights_of(tk_builder *b, tk_node *x) {
    static const float terms[] = {1.339887440266574e-3f, 9.618437357674640e-3f,
                                  5.550332471162809e-2f, 2.402264791363012e-1f,
                                  6.931472028550421e-1f, 1};
    tk_node *power = tkb_multiply(b, x, tkb_const(b, TK_FLOAT32, (double)1.442695f));
    tk_node *whole = tkb_floor(b, tkb_add(b, power, tkb_const(b, TK_FLOAT32, 0.5)));
    tk_node *rest = tkb_astype(b, tkb_subtract(b, power, whole), TK_FLOAT64);
    tk_node *sum = tkb_const(b, TK_FLOAT32, (double)1.535336188319500e-4f);
    for (size_t i = 0; i < sizeof terms / sizeof *terms; i++)
        sum = fused(b, sum, rest, (double)terms[i]);
    tk_node *scale = tkb_power(b, tkb_const(b, TK_FLOAT32, 2), whole);
    tk_node *none = tkb_less_equal(b, whole, tkb_const(b, TK_FLOAT32, -127));
    return tkb_where(b, none, tkb_const(b, TK_FLOAT32, 0), tkb_multiply(b, scale, sum));
}

/* Sums one by one in the dtype: near the end of ten thousand classes they are far enough from the
 * exact ones that three draws in a thousand would be the neighbour of MLX's. */
static tk_node *running_sums(tk_builder *b, tk_node *weights) {
    tk_attrs_scan attrs = {.axis = 1, .inclusive = true};
    return tkb_node1(b, TK_OP_scan_steps, weights, &attrs);
}

/* Positions of one distribution, by where a uniform share of the whole falls among the running sums
 * of its weights: MLX draws them so when there is one row only, which takes a number a sample and
 * not one a class. A position of probability 0 is passed over, the last ones too. */
static tk_node *by_running_sums(tk_builder *b, tk_node *logits, tk_shape shape, tk_node *key) {
    tk_dtype dtype = logits->dtype == TK_FLOAT64 ? TK_FLOAT64 : TK_FLOAT32;
    tk_node *row = tkb_astype(b, tkb_reshape(b, logits, TK_SHAPE(1, -1)), dtype);
    tk_node *from_top = tkb_subtract(b, row, tkb_max(b, row, TK_AXES(-1), true));
    tk_node *weights = weights_of(b, tkb_astype(b, from_top, TK_FLOAT32));
    tk_node *sums = running_sums(b, tkb_astype(b, weights, dtype));
    tk_node *whole = tkb_max(b, sums, TK_AXES(-1), true);
    tk_shape column = TK_SHAPE(shape.items[shape.count - 1], 1);
    tk_node *drawn = uniform(b, key, column, TK_FLOAT32, 0, 1);
    tk_node *passed = tkb_greater_equal(b, tkb_multiply(b, drawn, whole), sums);
    tk_node *places = tkb_arange(b, 0, (double)logits->size, 1, TK_UINT32);
    tk_node *can_be = tkb_greater(b, row, tkb_const(b, dtype, -INFINITY));
    tk_node *last = tkb_max(b, tkb_multiply(b, places, can_be), TK_ALL_AXES, false);
    tk_node *count = tkb_astype(b, tkb_sum(b, passed, TK_AXES(-1), false), TK_UINT32);
    return tkb_reshape(b, tkb_minimum(b, count, last), shape);
}

tk_node *tkb_random_categorical(tk_builder *b, tk_node *logits, int64_t axis, int64_t num_samples,
                                tk_node *key) {
    TKB_TRY(b, check_key("random_categorical", key));
    if (tk_node_is_error(logits)) return logits;
    int at;
    TKB_TRY(b, tk_axis_normalize("random_categorical", axis, logits->rank, &at));
    logits = tkb_strong(b, logits);
    tk_shape shape = tk_node_shape(logits);
    if (logits->size > 0 && logits->size == shape.items[at] &&
        (num_samples >= 0 || logits->rank > 1)) {
        for (int i = 0; i < shape.count; i++) shape.items[i] = 1;
        if (num_samples < 0) shape.count--;
        if (num_samples >= 0) shape.items[shape.count - 1] = num_samples;
        return by_running_sums(b, logits, shape, key);
    }
    if (num_samples >= 0) {
        logits = tkb_expand_dims(b, logits, TK_AXES(-1));
        if (tk_node_is_error(logits)) return logits;
        shape.items[shape.count++] = num_samples;
    }
    tk_node *noise = tkb_random_gumbel(b, shape, TK_FLOAT32, key);
    return tkb_argmax(b, tkb_add(b, logits, noise), TK_AXES(at), false);
}

tk_node *tkb_random_permutation(tk_builder *b, tk_node *a, int64_t axis, tk_node *key) {
    TKB_TRY(b, check_key("random_permutation", key));
    if (tk_node_is_error(a)) return a;
    int at;
    TKB_TRY(b, tk_axis_normalize("random_permutation", axis, a->rank, &at));
    tk_node *order = tkb_argsort(b, tkb_random_bits(b, key, TK_SHAPE(a->shape[at]), 4), 0);
    return tkb_take(b, a, order, at);
}
