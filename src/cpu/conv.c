/* See conv.h. */
#include "cpu/conv.h"

#include <string.h>

static int64_t gcd(int64_t a, int64_t b) {
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

void tk_conv_init(tk_conv *conv, const tk_attrs_conv *attrs, const tk_strided *input,
                  const tk_strided *weight, const tk_strided *output) {
    int last = input->rank - 1, missing = TK_CONV_SPATIAL - (input->rank - 2);
    *conv = (tk_conv){.batch = input->shape[0],
                      .groups = attrs->groups,
                      .in_each = weight->shape[last],
                      .out_each = weight->shape[0] / attrs->groups,
                      .flip = attrs->flip != 0};
    for (int i = 0; i < TK_CONV_SPATIAL; i++) {
        int from = i - missing;
        bool is_there = from >= 0;
        tk_conv_axis *axis = &conv->axes[i];
        axis->in = is_there ? input->shape[1 + from] : 1;
        axis->kernel = is_there ? weight->shape[1 + from] : 1;
        axis->out = is_there ? output->shape[1 + from] : 1;
        conv->stride[i] = is_there ? attrs->stride.items[from] : 1;
        conv->low[i] = is_there ? attrs->low.items[from] : 0;
        conv->kernel_dilation[i] = is_there ? attrs->kernel_dilation.items[from] : 1;
        conv->input_dilation[i] = is_there ? attrs->input_dilation.items[from] : 1;
        int64_t period = conv->input_dilation[i] / gcd(conv->stride[i], conv->input_dilation[i]);
        conv->classes[i] = period < axis->out ? period : axis->out;
        axis->out_step = period;
    }
}

int64_t tk_conv_classes(const tk_conv *conv) {
    return conv->classes[0] * conv->classes[1] * conv->classes[2];
}

/* The first tap that meets an element from output `first_out` on; the kernel's length if none. */
static int64_t first_tap(const tk_conv *conv, int i, int64_t first_out, int64_t period) {
    int64_t dilation = conv->input_dilation[i], kernel = conv->axes[i].kernel;
    for (int64_t tap = 0; tap < period && tap < kernel; tap++)
        if ((first_out * conv->stride[i] + tap * conv->kernel_dilation[i] - conv->low[i]) %
                dilation ==
            0)
            return tap;
    return kernel;
}

static void choose_axis(tk_conv *conv, int i, int64_t first_out) {
    tk_conv_axis *axis = &conv->axes[i];
    int64_t dilation = conv->input_dilation[i], spread = conv->kernel_dilation[i];
    axis->first_out = first_out;
    axis->rows = (axis->out - first_out + axis->out_step - 1) / axis->out_step;
    axis->tap_step = dilation / gcd(spread, dilation);
    axis->first_tap = first_tap(conv, i, first_out, axis->tap_step);
    axis->taps = (axis->kernel - axis->first_tap + axis->tap_step - 1) / axis->tap_step;
    axis->per_output = axis->out_step * conv->stride[i] / dilation;
    axis->per_tap = axis->tap_step * spread / dilation;
    axis->base =
        axis->taps
            ? (first_out * conv->stride[i] + axis->first_tap * spread - conv->low[i]) / dilation
            : 0;
}

void tk_conv_choose(tk_conv *conv, int64_t index) {
    for (int i = TK_CONV_SPATIAL - 1; i >= 0; i--) {
        choose_axis(conv, i, index % conv->classes[i]);
        index /= conv->classes[i];
    }
}

int64_t tk_conv_rows(const tk_conv *conv) {
    return conv->batch * conv->axes[0].rows * conv->axes[1].rows * conv->axes[2].rows;
}

int64_t tk_conv_taps(const tk_conv *conv) {
    return conv->axes[0].taps * conv->axes[1].taps * conv->axes[2].taps;
}

bool tk_conv_has_all_rows(const tk_conv *conv) { return tk_conv_classes(conv) == 1; }

bool tk_conv_has_all_taps(const tk_conv *conv) {
    for (int i = 0; i < TK_CONV_SPATIAL; i++)
        if (conv->axes[i].taps != conv->axes[i].kernel) return false;
    return !conv->flip || tk_conv_taps(conv) == 1;
}

/* ---- rows ---- */

typedef struct place {
    int64_t image, at[TK_CONV_SPATIAL]; /* numbers within the class */
} place;

static place place_of(const tk_conv *conv, int64_t row) {
    place p;
    for (int i = TK_CONV_SPATIAL - 1; i >= 0; i--) {
        p.at[i] = row % conv->axes[i].rows;
        row /= conv->axes[i].rows;
    }
    p.image = row;
    return p;
}

int64_t tk_conv_output_of(const tk_conv *conv, int64_t row) {
    if (tk_conv_has_all_rows(conv)) return row;
    place p = place_of(conv, row);
    int64_t pixel = p.image;
    for (int i = 0; i < TK_CONV_SPATIAL; i++)
        pixel =
            pixel * conv->axes[i].out + conv->axes[i].first_out + p.at[i] * conv->axes[i].out_step;
    return pixel;
}

/* ---- gathering ---- */

static void copy_taps(char *out, const char *from, int64_t stride, size_t bytes, int64_t count) {
    for (int64_t i = 0; i < count; i++) memcpy(out + i * (int64_t)bytes, from + i * stride, bytes);
}

/* Sizes known to the compiler are moves; a call of memcpy costs more than they do. */
static void copy_each(char *out, const char *from, int64_t stride, size_t bytes, int64_t count) {
    switch (bytes) {
    case 4:
        copy_taps(out, from, stride, 4, count);
        break;
    case 8:
        copy_taps(out, from, stride, 8, count);
        break;
    case 16:
        copy_taps(out, from, stride, 16, count);
        break;
    default:
        copy_taps(out, from, stride, bytes, count);
        break;
    }
}

/* Taps [first, first + count) of the last axis at an output whose tap 0 meets element `base`; the
 * line of the input begins at `line`. */
static char *gather_line(const tk_conv *conv, const char *line, size_t bytes, int64_t base,
                         int64_t first, int64_t count, char *out) {
    const tk_conv_axis *axis = &conv->axes[2];
    size_t each = (size_t)conv->in_each * bytes;
    int64_t pixel = conv->groups * (int64_t)each, step = axis->per_tap;
    int64_t at = base + first * step;
    int64_t before = at < 0 ? (-at + step - 1) / step : 0;
    int64_t inside = at < axis->in ? (axis->in - at + step - 1) / step : 0;
    if (before > count) before = count;
    if (inside > count) inside = count;
    if (inside < before) inside = before;
    memset(out, 0, (size_t)before * each);
    const char *from = line + (at + before * step) * pixel;
    if (inside > before && step == 1 && conv->groups == 1)
        memcpy(out + (size_t)before * each, from, (size_t)(inside - before) * each);
    else
        copy_each(out + (size_t)before * each, from, step * pixel, each, inside - before);
    memset(out + (size_t)inside * each, 0, (size_t)(count - inside) * each);
    return out + (size_t)count * each;
}

void tk_conv_gather(const tk_conv *conv, const char *input, size_t bytes, int64_t group,
                    int64_t row, const tk_conv_part *part, char *out) {
    const tk_conv_axis *axes = conv->axes;
    place p = place_of(conv, row);
    int64_t base[TK_CONV_SPATIAL];
    for (int i = 0; i < TK_CONV_SPATIAL; i++) base[i] = axes[i].base + p.at[i] * axes[i].per_output;
    int64_t channels = conv->groups * conv->in_each;
    size_t line_bytes = (size_t)(part->taps * conv->in_each) * bytes;
    for (int64_t t = part->first_line; t < part->first_line + part->lines; t++) {
        int64_t top = base[0] + t / axes[1].taps * axes[0].per_tap;
        int64_t side = base[1] + t % axes[1].taps * axes[1].per_tap;
        if (top < 0 || top >= axes[0].in || side < 0 || side >= axes[1].in) {
            memset(out, 0, line_bytes);
            out += line_bytes;
            continue;
        }
        int64_t pixel = ((p.image * axes[0].in + top) * axes[1].in + side) * axes[2].in;
        const char *line = input + (pixel * channels + group * conv->in_each) * (int64_t)bytes;
        out = gather_line(conv, line, bytes, base[2], part->first_tap, part->taps, out);
    }
}

/* ---- weights ---- */

static int64_t kernel_index(const tk_conv *conv, int i, int64_t tap) {
    const tk_conv_axis *axis = &conv->axes[i];
    int64_t index = axis->first_tap + tap * axis->tap_step;
    return conv->flip ? axis->kernel - 1 - index : index;
}

void tk_conv_pack(const tk_conv *conv, const char *weight, size_t bytes, char *out) {
    const tk_conv_axis *axes = conv->axes;
    size_t each = (size_t)conv->in_each * bytes;
    int64_t outputs = conv->groups * conv->out_each;
    for (int64_t o = 0; o < outputs; o++)
        for (int64_t i = 0; i < axes[0].taps; i++)
            for (int64_t j = 0; j < axes[1].taps; j++)
                for (int64_t k = 0; k < axes[2].taps; k++) {
                    int64_t at = (o * axes[0].kernel + kernel_index(conv, 0, i)) * axes[1].kernel +
                                 kernel_index(conv, 1, j);
                    at = at * axes[2].kernel + kernel_index(conv, 2, k);
                    memcpy(out, weight + (size_t)at * each, each);
                    out += each;
                }
}
