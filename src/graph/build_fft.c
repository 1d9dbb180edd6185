/* Builders of Fourier transforms: lengths are cut or filled with zeros, then one primitive an axis;
 * the factor of the normalisation goes with the last one. complex64 is the only complex dtype, so
 * every operand is computed with in it (or in float32). */
#include <math.h>
#include <string.h>

#include "graph/build_pieces.h"

/* ---- arguments ---- */

/* The factor of `count` elements. */
static tk_status factor_of(const char *what, const char *norm, bool inverse, double count,
                           double *out_factor) {
    bool backward = !strcmp(norm, "backward"), forward = !strcmp(norm, "forward");
    if (!backward && !forward && strcmp(norm, "ortho") != 0)
        return tk_fail(TK_INVALID_ARGUMENT,
                       "%s: norm is '%s', expected 'backward', 'ortho' or 'forward'", what, norm);
    *out_factor = !backward && !forward ? 1 / sqrt(count) : backward == inverse ? 1 / count : 1;
    return TK_OK;
}

/* An axis cut or filled with zeros to a length. */
static tk_node *resized(tk_builder *b, const char *what, tk_node *a, int axis, int64_t length) {
    if (tk_node_is_error(a) || a->shape[axis] == length) return a;
    if (length < 1)
        return tkb_fail(b, tk_fail(TK_SHAPE_ERROR,
                                   "%s: length %lld on axis %d of %s, expected 1 or more", what,
                                   (long long)length, axis, tk_text_node(a)));
    if (length < a->shape[axis]) return tkb_range(b, a, axis, 0, length);
    tk_axes low = {.count = a->rank}, high = low;
    high.items[axis] = length - a->shape[axis];
    return tkb_pad(b, a, low, high, NULL);
}

typedef struct plan {
    const char *what;
    tk_axes axes, lengths; /* of the signal; below 0: that of the operand */
    bool inverse, real;
    double factor;
} plan;

static int64_t length_of(const plan *p, const tk_node *a, int64_t i) {
    int64_t given = p->lengths.items[i], own = a->shape[p->axes.items[i]];
    if (given >= 0) return given;
    return p->inverse && p->real && i == p->axes.count - 1 ? 2 * (own - 1) : own;
}

static tk_status make_plan(plan *p, const tk_node *a, tk_axes s, tk_axes axes, const char *norm) {
    double count = 1;
    if (s.count >= 0 && axes.count < 0)
        return tk_fail(TK_INVALID_ARGUMENT, "%s: axes must be given where s is", p->what);
    TK_TRY(tk_axes_normalize_ordered(p->what, axes, a->rank, &p->axes));
    if (s.count >= 0 && s.count != p->axes.count)
        return tk_fail(TK_INVALID_ARGUMENT, "%s: %lld lengths are given for %lld axes", p->what,
                       (long long)s.count, (long long)p->axes.count);
    if (p->real && p->axes.count == 0)
        return tk_fail(TK_SHAPE_ERROR, "%s: no axis of %s is given", p->what, tk_text_node(a));
    p->lengths.count = p->axes.count;
    for (int64_t i = 0; i < p->axes.count; i++) {
        p->lengths.items[i] = s.count >= 0 ? s.items[i] : -1;
        if (s.count >= 0 && s.items[i] < 1)
            return tk_fail(TK_SHAPE_ERROR, "%s: length %lld, expected 1 or more", p->what,
                           (long long)s.items[i]);
        p->lengths.items[i] = length_of(p, a, i);
        count *= (double)p->lengths.items[i];
    }
    return factor_of(p->what, norm, p->inverse, count, &p->factor);
}

/* ---- transforms ---- */

static tk_node *complex_axis(tk_builder *b, const plan *p, tk_node *a, int64_t i, double factor) {
    int axis = (int)p->axes.items[i];
    tk_attrs_fft attrs = {.axis = axis, .inverse = p->inverse, .scale = factor};
    a = resized(b, p->what, tkb_astype(b, a, TK_COMPLEX64), axis, p->lengths.items[i]);
    return tkb_node1(b, TK_OP_fft_axis, a, &attrs);
}

static tk_node *from_real(tk_builder *b, const plan *p, tk_node *a) {
    int64_t last = p->axes.count - 1;
    int axis = (int)p->axes.items[last];
    tk_attrs_fft attrs = {.axis = axis, .inverse = false, .scale = p->factor};
    a = resized(b, p->what, tkb_astype(b, a, TK_FLOAT32), axis, p->lengths.items[last]);
    a = tkb_node1(b, TK_OP_rfft_axis, a, &attrs);
    for (int64_t i = last; i-- > 0;) a = complex_axis(b, p, a, i, 1);
    return a;
}

static tk_node *to_real(tk_builder *b, const plan *p, tk_node *a) {
    int64_t last = p->axes.count - 1, length = p->lengths.items[last];
    int axis = (int)p->axes.items[last];
    for (int64_t i = 0; i < last; i++) a = complex_axis(b, p, a, i, 1);
    if (length < 1)
        return tkb_fail(b, tk_fail(TK_SHAPE_ERROR, "%s: length %lld on axis %d, expected 1 or more",
                                   p->what, (long long)length, axis));
    tk_attrs_irfft attrs = {.axis = axis, .length = length, .scale = p->factor};
    a = resized(b, p->what, tkb_astype(b, a, TK_COMPLEX64), axis, length / 2 + 1);
    return tkb_node1(b, TK_OP_irfft_axis, a, &attrs);
}

static tk_node *transform(tk_builder *b, plan p, tk_node *a, tk_axes s, tk_axes axes,
                          const char *norm) {
    if (tk_node_is_error(a)) return a;
    TKB_TRY(b, tk_shape_check(p.what, (tk_shape){.count = s.count < 0 ? 0 : s.count}));
    TKB_TRY(b, make_plan(&p, a, s, axes, norm));
    a = tkb_strong(b, a);
    if (p.real) return p.inverse ? to_real(b, &p, a) : from_real(b, &p, a);
    a = tkb_astype(b, a, TK_COMPLEX64);
    for (int64_t i = 0; i < p.axes.count; i++)
        a = complex_axis(b, &p, a, i, i == p.axes.count - 1 ? p.factor : 1);
    return a;
}

static tk_node *along(tk_builder *b, plan p, tk_node *a, int64_t n, int64_t axis,
                      const char *norm) {
    tk_axes one = {1, {axis}}; /* any number: TK_AXES ends at one of them */
    return transform(b, p, a, n < 0 ? tk_all_axes() : TK_AXES(n), one, norm);
}

tk_node *tkb_fft(tk_builder *b, tk_node *a, int64_t n, int64_t axis, const char *norm) {
    return along(b, (plan){.what = "fft"}, a, n, axis, norm);
}

tk_node *tkb_ifft(tk_builder *b, tk_node *a, int64_t n, int64_t axis, const char *norm) {
    return along(b, (plan){.what = "ifft", .inverse = true}, a, n, axis, norm);
}

tk_node *tkb_rfft(tk_builder *b, tk_node *a, int64_t n, int64_t axis, const char *norm) {
    return along(b, (plan){.what = "rfft", .real = true}, a, n, axis, norm);
}

tk_node *tkb_irfft(tk_builder *b, tk_node *a, int64_t n, int64_t axis, const char *norm) {
    return along(b, (plan){.what = "irfft", .inverse = true, .real = true}, a, n, axis, norm);
}

tk_node *tkb_fftn(tk_builder *b, tk_node *a, tk_axes s, tk_axes axes, const char *norm) {
    return transform(b, (plan){.what = "fftn"}, a, s, axes, norm);
}

tk_node *tkb_ifftn(tk_builder *b, tk_node *a, tk_axes s, tk_axes axes, const char *norm) {
    return transform(b, (plan){.what = "ifftn", .inverse = true}, a, s, axes, norm);
}

tk_node *tkb_rfftn(tk_builder *b, tk_node *a, tk_axes s, tk_axes axes, const char *norm) {
    return transform(b, (plan){.what = "rfftn", .real = true}, a, s, axes, norm);
}

tk_node *tkb_irfftn(tk_builder *b, tk_node *a, tk_axes s, tk_axes axes, const char *norm) {
    return transform(b, (plan){.what = "irfftn", .inverse = true, .real = true}, a, s, axes, norm);
}

/* ---- the order of frequencies ---- */

static tk_node *shifted(tk_builder *b, const char *what, tk_node *a, tk_axes axes, bool inverse) {
    if (tk_node_is_error(a)) return a;
    tk_axes shifts, all;
    TKB_TRY(b, tk_axes_normalize_ordered(what, axes, a->rank, &all));
    shifts.count = all.count;
    for (int64_t i = 0; i < all.count; i++) {
        int64_t length = a->shape[all.items[i]];
        shifts.items[i] = inverse ? -(length / 2) : length / 2;
    }
    return all.count ? tkb_roll(b, a, shifts, all) : tkb_strong(b, a);
}

tk_node *tkb_fftshift(tk_builder *b, tk_node *a, tk_axes axes) {
    return shifted(b, "fftshift", a, axes, false);
}

tk_node *tkb_ifftshift(tk_builder *b, tk_node *a, tk_axes axes) {
    return shifted(b, "ifftshift", a, axes, true);
}

static tk_node *frequencies(tk_builder *b, const char *what, int64_t n, double d, bool real) {
    if (n < 1 || n > INT32_MAX || d == 0)
        return tkb_fail(b, tk_fail(TK_INVALID_ARGUMENT,
                                   "%s: n is %lld and d %g, expected n from 1 and d not 0", what,
                                   (long long)n, d));
    int64_t above = real ? n / 2 + 1 : (n + 1) / 2;
    tk_node *at = tkb_iota_int(b, TK_INT64, TK_SHAPE(above), 0, 0, 1);
    if (!real && n > 1)
        at = tkb_concatenate(
            b, (tk_node *[]){at, tkb_iota_int(b, TK_INT64, TK_SHAPE(n / 2), 0, -(n / 2), 1)}, 2, 0);
    tk_node *step = tkb_const(b, TK_FLOAT64, 1 / ((double)n * d));
    return tkb_astype(b, tkb_multiply(b, tkb_astype(b, at, TK_FLOAT64), step), TK_FLOAT32);
}

tk_node *tkb_fftfreq(tk_builder *b, int64_t n, double d) {
    return frequencies(b, "fftfreq", n, d, false);
}

tk_node *tkb_rfftfreq(tk_builder *b, int64_t n, double d) {
    return frequencies(b, "rfftfreq", n, d, true);
}
