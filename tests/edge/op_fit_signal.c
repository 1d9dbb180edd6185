/* Arguments that belong together: inputs and kernels of convolutions. See op_draw.h. */
#include <string.h>

#include "edge/op_draw.h"

/* One entry an axis, one for all, or none. */
static tk_axes draw_each(draw *d, int axes, int64_t low, int64_t high) {
    tk_axes list = {.count = draw_chance(d, 70) ? axes : 1};
    if (draw_chance(d, 20)) return TK_ALL_AXES;
    for (int64_t i = 0; i < list.count; i++) list.items[i] = low + draw_below(d, high - low);
    return list;
}

static void draw_setting(draw *d, int index, int axes) {
    const char *name = d->row->params[index].name;
    int64_t low = strstr(name, "padding") || !strcmp(name, "low") || !strcmp(name, "high") ? 0 : 1;
    if (!strcmp(name, "low") && draw_chance(d, 15)) low = -1;
    if (!strcmp(d->row->params[index].type, "axes"))
        d->values[index].axes = draw_each(d, axes, low, low + 3);
    if (!strcmp(d->row->params[index].type, "int"))
        d->values[index].integer = low + draw_below(d, 3);
}

void draw_fit_conv(draw *d) {
    const char *digit = strpbrk(d->row->name, "123");
    int axes = digit ? *digit - '0' : 1 + (int)draw_below(d, 3);
    int64_t groups = draw_chance(d, 60) ? 1 : 2 + draw_below(d, 2), each = 1 + draw_below(d, 3);
    tk_shape input = {.count = axes + 2}, weight = input;
    tk_dtype dtype = draw_dtype(d);
    for (int i = 1; i <= axes; i++) {
        input.items[i] = 2 + draw_below(d, 5);
        weight.items[i] = 1 + draw_below(d, 3);
    }
    input.items[0] = draw_chance(d, 3) ? 0 : 1 + draw_below(d, 2);
    input.items[axes + 1] = groups * each;
    weight.items[0] = groups * (1 + draw_below(d, 3));
    weight.items[axes + 1] = each;
    d->values[0].array = draw_array(d, dtype, input);
    d->values[1].array = draw_array(d, draw_chance(d, 80) ? dtype : draw_dtype(d), weight);
    for (int i = 2; i < d->row->n_params; i++) draw_setting(d, i, axes);
    d->values[draw_find(d, "groups")].integer = groups;
}

void draw_fit_convolve(draw *d) {
    static const char *const modes[] = {"full", "same", "valid", "none"};
    tk_dtype dtype = draw_dtype(d);
    d->values[0].array = draw_array(d, dtype, TK_SHAPE(1 + draw_below(d, 20)));
    d->values[1].array =
        draw_array(d, draw_chance(d, 80) ? dtype : draw_dtype(d), TK_SHAPE(1 + draw_below(d, 9)));
    d->values[2].text = modes[draw_below(d, draw_chance(d, 5) ? 4 : 3)];
}

/* ---- Fourier transforms ---- */

static const char *draw_norm(draw *d) {
    static const char *const norms[] = {"backward", "ortho", "forward", "none"};
    return norms[draw_below(d, draw_chance(d, 3) ? 4 : 3)];
}

/* Lengths for the axes that were drawn, or none. */
static void draw_lengths(draw *d, int s, int axes) {
    tk_axes *lengths = &d->values[s].axes;
    *lengths = TK_ALL_AXES;
    if (d->values[axes].axes.count < 0 || draw_chance(d, 50)) return;
    lengths->count = d->values[axes].axes.count;
    for (int64_t i = 0; i < lengths->count && i < TK_AXES_MAX; i++)
        lengths->items[i] = draw_chance(d, 3) ? 0 : 1 + draw_below(d, 9);
}

void draw_fit_fft(draw *d) {
    int norm = draw_find(d, "norm"), n = draw_find(d, "n"), s = draw_find(d, "s");
    if (norm >= 0) d->values[norm].text = draw_norm(d);
    if (n >= 0) d->values[n].integer = draw_below(d, 14) - 2;
    if (s >= 0) draw_lengths(d, s, draw_find(d, "axes"));
}

void draw_fit_stft(draw *d) {
    int n = draw_find(d, "n_fft"), window = draw_find(d, "window"), mode = draw_find(d, "pad_mode");
    int length = draw_find(d, "length");
    static const char *const modes[] = {"reflect", "constant", "edge", "none"};
    int64_t points = 1 + draw_below(d, 12);
    tk_dtype dtype = draw_dtype(d);
    tk_shape shape = mode >= 0 ? TK_SHAPE(2, 1 + draw_below(d, 30))
                               : TK_SHAPE(2, points / 2 + 1, 1 + draw_below(d, 5));
    d->values[0].array = draw_array(d, dtype, shape);
    d->values[n].integer = draw_chance(d, 90) ? points : -1;
    d->values[draw_find(d, "hop")].integer = draw_chance(d, 90) ? 1 + draw_below(d, 6) : -1;
    d->values[draw_find(d, "norm")].text = draw_norm(d);
    if (mode >= 0) d->values[mode].text = modes[draw_below(d, draw_chance(d, 4) ? 4 : 3)];
    if (length >= 0) d->values[length].integer = draw_below(d, 40) - 10;
    if (d->values[window].array.node)
        d->values[window].array = draw_array(d, TK_FLOAT32, TK_SHAPE(1 + draw_below(d, points)));
}
