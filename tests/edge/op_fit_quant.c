/* Arguments of quantised ops and of products of picked pairs that belong together. See op_draw.h.
 */
#include <string.h>

#include "edge/op_draw.h"

typedef struct format {
    const char *mode;
    int64_t group_size, bits;
    bool is_affine;
} format;

static void set(draw *d, const char *name, tk_array array) {
    int at = draw_find(d, name);
    if (at >= 0) d->values[at].array = array;
}

static void set_integer(draw *d, const char *name, int64_t value) {
    int at = draw_find(d, name);
    if (at >= 0) d->values[at].integer = value;
}

static tk_dtype draw_float(draw *d) {
    static const tk_dtype dtypes[] = {TK_FLOAT32, TK_FLOAT32, TK_FLOAT16, TK_BFLOAT16, TK_FLOAT64};
    return dtypes[draw_below(d, 5)];
}

/* Small whole numbers as floats: scaled twice, they stay in every dtype's range. */
static tk_array draw_small(draw *d, tk_dtype dtype, tk_shape shape) {
    return tk_astype(draw_indices(d, shape, -8, 9), dtype);
}

/* Finite values, now and then others. */
static tk_array draw_plain(draw *d, tk_dtype dtype, tk_shape shape) {
    if (draw_chance(d, 2)) return draw_array(d, dtype, shape);
    tk_array low = tk_scalar(d->context, -8), high = tk_scalar(d->context, 8);
    return tk_divide(tk_clip(draw_small(d, dtype, shape), low, high), tk_scalar(d->context, 7));
}

/* One of the formats, by name and numbers or by the mode's defaults. */
static format draw_format(draw *d, bool affine_too) {
    static const format modes[] = {
        {"mxfp4", 32, 4, false}, {"mxfp8", 32, 8, false}, {"nvfp4", 16, 4, false}};
    format f = modes[draw_below(d, 3)];
    int mode = draw_find(d, "mode");
    if (affine_too && draw_chance(d, 60))
        f = (format){"affine", 32 << draw_below(d, 2), 1 + draw_below(d, 6), true};
    bool given = f.is_affine || draw_chance(d, 50);
    d->values[mode].text = f.mode;
    set_integer(d, "group_size", given ? f.group_size : 0);
    set_integer(d, "bits", given ? f.bits : 0);
    set(d, "global_scale", TK_NO_ARRAY);
    return f;
}

static tk_shape with(tk_shape shape, int64_t length) {
    shape.items[shape.count++] = length;
    return shape;
}

/* w of rows x columns behind `lead`, scales and biases, as the row's arguments. */
static void set_codes(draw *d, format f, tk_shape lead, int64_t rows, int64_t groups,
                      tk_dtype dtype) {
    tk_shape outer = with(lead, rows), scales = with(outer, groups);
    int64_t words = groups * f.group_size * f.bits / 32;
    set(d, "w", draw_array(d, TK_UINT32, with(outer, words)));
    if (f.is_affine) {
        set(d, "scales", draw_plain(d, dtype, scales));
        set(d, "biases", draw_plain(d, dtype, scales));
    } else {
        set(d, "scales", tk_astype(draw_indices(d, scales, 60, 127), TK_UINT8));
        set(d, "biases", TK_NO_ARRAY);
    }
}

static void fit_quantize(draw *d) {
    format f = draw_format(d, true);
    tk_shape shape = with(with(TK_SHAPE(2), draw_below(d, 3)), f.group_size * draw_below(d, 3));
    set(d, "w", draw_plain(d, draw_float(d), shape));
    if (!f.is_affine && f.group_size == 16 && draw_chance(d, 50))
        set(d, "global_scale", tk_scalar(d->context, 100 + (double)draw_below(d, 900)));
}

static void fit_dequantize(draw *d) {
    format f = draw_format(d, true);
    int dtype = draw_find(d, "dtype");
    d->values[dtype].dtype = draw_chance(d, 50) ? draw_float(d) : TK_DTYPE_COUNT;
    set_codes(d, f, TK_SHAPE(2), draw_below(d, 3), draw_below(d, 3), draw_float(d));
}

static void fit_to_fp8(draw *d) {
    set(d, "a", draw_array(d, draw_float(d), TK_SHAPE(draw_below(d, 4), 5)));
}

static void fit_from_fp8(draw *d) {
    set(d, "a", draw_array(d, TK_UINT8, TK_SHAPE(draw_below(d, 4), 5)));
    d->values[draw_find(d, "dtype")].dtype = draw_float(d);
}

/* Rows that a product contracts with columns of w, or with its rows. */
static void fit_quantized_matmul(draw *d) {
    format f = draw_format(d, true);
    int transpose = draw_find(d, "transpose");
    bool turned = transpose < 0 || d->values[transpose].flag;
    int64_t groups = 1 + draw_below(d, 2), rows = 1 + draw_below(d, 4), m = 1 + draw_below(d, 6);
    bool pairs = draw_find(d, "lhs_indices") >= 0;
    tk_shape none = {.count = 0};
    tk_shape lead = pairs || draw_chance(d, 30) ? TK_SHAPE(2) : none;
    tk_dtype dtype = draw_float(d);
    set_codes(d, f, lead, rows, groups, dtype);
    int64_t inner = turned ? groups * f.group_size : rows;
    set(d, "x", draw_plain(d, dtype, with(with(lead, m), inner)));
    if (!pairs) return;
    set(d, "lhs_indices", draw_chance(d, 50) ? draw_indices(d, TK_SHAPE(3), 0, 2) : TK_NO_ARRAY);
    set(d, "rhs_indices", draw_chance(d, 50) ? draw_indices(d, TK_SHAPE(2, 1), 0, 2) : TK_NO_ARRAY);
}

/* x and w as numbers: w is quantised by the op. */
static void fit_qqmm(draw *d) {
    format f = draw_format(d, false);
    tk_dtype dtype = draw_float(d);
    int64_t columns = f.group_size * (1 + draw_below(d, 2));
    set(d, "x", draw_plain(d, dtype, TK_SHAPE(2, 1 + draw_below(d, 5), columns)));
    set(d, "w", draw_plain(d, dtype, TK_SHAPE(2, 1 + draw_below(d, 5), columns)));
    set(d, "scales", TK_NO_ARRAY);
    set(d, "global_scale_x", TK_NO_ARRAY);
    set(d, "global_scale_w", TK_NO_ARRAY);
    set(d, "lhs_indices", TK_NO_ARRAY);
    set(d, "rhs_indices", TK_NO_ARRAY);
}

static void fit_gather_mm(draw *d) {
    tk_dtype dtype = draw_dtype(d);
    int64_t k = draw_below(d, 5);
    set(d, "a", draw_array(d, dtype, TK_SHAPE(3, draw_below(d, 4), k)));
    set(d, "b", draw_array(d, dtype, TK_SHAPE(2, k, draw_below(d, 4))));
    set(d, "lhs_indices", draw_indices(d, TK_SHAPE(4), 0, 3));
    set(d, "rhs_indices", draw_indices(d, draw_chance(d, 50) ? TK_SHAPE(4) : TK_SHAPE(2, 1), 0, 2));
}

static void fit_segmented_mm(draw *d) {
    tk_dtype dtype = draw_dtype(d);
    int64_t k = draw_below(d, 9);
    set(d, "a", draw_array(d, dtype, TK_SHAPE(draw_below(d, 4), k)));
    set(d, "b", draw_array(d, dtype, TK_SHAPE(k, draw_below(d, 4))));
    set(d, "segments", draw_indices(d, TK_SHAPE(3, 2), 0, k + 1));
}

static tk_array draw_mask(draw *d, int64_t rows, int64_t columns, int64_t size) {
    if (draw_chance(d, 30)) return TK_NO_ARRAY;
    tk_shape shape = TK_SHAPE((rows + size - 1) / size, (columns + size - 1) / size);
    return draw_small(d, draw_chance(d, 50) ? TK_BOOL : TK_FLOAT32, shape);
}

static void fit_block_masked_mm(draw *d) {
    int64_t size = 1 + draw_below(d, 4), m = 1 + draw_below(d, 7), k = 1 + draw_below(d, 7),
            n = 1 + draw_below(d, 7);
    tk_dtype dtype = draw_float(d);
    set(d, "a", draw_small(d, dtype, TK_SHAPE(m, k)));
    set(d, "b", draw_small(d, dtype, TK_SHAPE(k, n)));
    set_integer(d, "block_size", size);
    set(d, "mask_out", draw_mask(d, m, n, size));
    set(d, "mask_lhs", draw_mask(d, m, k, size));
    set(d, "mask_rhs", draw_mask(d, k, n, size));
}

void draw_fit_quant(draw *d) {
    static const struct {
        const char *name;
        void (*fit)(draw *d);
    } fits[] = {
        {"quantize", fit_quantize},
        {"dequantize", fit_dequantize},
        {"to_fp8", fit_to_fp8},
        {"from_fp8", fit_from_fp8},
        {"quantized_matmul", fit_quantized_matmul},
        {"gather_qmm", fit_quantized_matmul},
        {"qqmm", fit_qqmm},
        {"gather_qqmm", fit_qqmm},
        {"gather_mm", fit_gather_mm},
        {"segmented_mm", fit_segmented_mm},
        {"block_masked_mm", fit_block_masked_mm},
    };
    for (size_t i = 0; i < sizeof fits / sizeof fits[0]; i++)
        if (!strcmp(fits[i].name, d->row->name)) fits[i].fit(d);
}
