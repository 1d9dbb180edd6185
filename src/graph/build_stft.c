/* Short-time Fourier transforms: frames of a signal that overlap, each times a window, transformed;
 * and back, where the frames are added up and divided by the sum of the squared windows. */
#include <string.h>

#include "graph/build_pieces.h"

/* Below it the squared windows leave nothing to divide by. */
#define LEAST_ENVELOPE 1e-10

static tk_node *integer(tk_builder *b, int64_t value) { return tkb_const_int(b, TK_INT64, value); }

static tk_status check_sizes(const char *what, int64_t n_fft, int64_t hop, const tk_node *window) {
    if (n_fft < 1 || n_fft > INT32_MAX || hop < 1 || hop > INT32_MAX)
        return tk_fail(TK_INVALID_ARGUMENT, "%s: n_fft is %lld and hop %lld, expected 1 or more",
                       what, (long long)n_fft, (long long)hop);
    if (window && (window->rank != 1 || window->size > n_fft))
        return tk_fail(TK_SHAPE_ERROR,
                       "%s: window is %s, expected a vector of at most n_fft = %lld elements", what,
                       tk_text_node(window), (long long)n_fft);
    return TK_OK;
}

/* The window in the middle of n_fft zeros; ones where it is absent. */
static tk_node *whole_window(tk_builder *b, tk_node *window, int64_t n_fft) {
    if (!window) return tkb_ones(b, TK_SHAPE(n_fft), TK_FLOAT32);
    int64_t missing = n_fft - window->size;
    return tkb_pad(b, tkb_astype(b, window, TK_FLOAT32), TK_AXES(missing / 2),
                   TK_AXES(missing - missing / 2), NULL);
}

/* Element t of frame f: f * hop + t - margin. */
static tk_node *positions(tk_builder *b, int64_t frames, int64_t n_fft, int64_t hop,
                          int64_t margin) {
    tk_node *starts = tkb_iota_int(b, TK_INT64, TK_SHAPE(frames, 1), 0, -margin, hop);
    return tkb_add(b, starts, tkb_iota_int(b, TK_INT64, TK_SHAPE(1, n_fft), 1, 0, 1));
}

/* Positions outside of 0 ... length - 1 mirrored at the ends as often as needed. */
static tk_node *reflected(tk_builder *b, tk_node *at, int64_t length) {
    if (length == 1) return tkb_multiply(b, at, integer(b, 0));
    tk_node *cycle = tkb_remainder(b, at, integer(b, 2 * (length - 1)));
    tk_node *over = tkb_abs(b, tkb_subtract(b, cycle, integer(b, length - 1)));
    return tkb_subtract(b, integer(b, length - 1), over);
}

static tk_node *frames_of(tk_builder *b, tk_node *a, tk_node *at, const char *mode) {
    int64_t length = a->shape[a->rank - 1];
    if (!strcmp(mode, "reflect")) return tkb_take(b, a, reflected(b, at, length), -1);
    tk_node *edge = tkb_clip(b, at, integer(b, 0), integer(b, length - 1));
    tk_node *frames = tkb_take(b, a, edge, -1);
    if (!strcmp(mode, "edge")) return frames;
    return tkb_where(b, tkb_equal(b, edge, at), frames, tkb_zero(b, (tk_dtype)a->dtype));
}

static tk_status check_signal(const tk_node *a, int64_t padded, int64_t n_fft, const char *mode) {
    if (strcmp(mode, "reflect") != 0 && strcmp(mode, "constant") != 0 && strcmp(mode, "edge") != 0)
        return tk_fail(TK_INVALID_ARGUMENT,
                       "stft: pad_mode is '%s', expected 'reflect', 'constant' or 'edge'", mode);
    if (a->rank > 0 && a->shape[a->rank - 1] > 0 && padded >= n_fft) return TK_OK;
    return tk_fail(TK_SHAPE_ERROR, "stft: %s is too short for n_fft = %lld", tk_text_node(a),
                   (long long)n_fft);
}

tk_node *tkb_stft(tk_builder *b, tk_node *a, int64_t n_fft, int64_t hop, tk_node *window,
                  bool center, const char *pad_mode, const char *norm, bool onesided) {
    if (tk_node_is_error(a)) return a;
    if (window && tk_node_is_error(window)) return window;
    TKB_TRY(b, check_sizes("stft", n_fft, hop, window));
    int64_t margin = center ? n_fft / 2 : 0, length = a->rank ? a->shape[a->rank - 1] : 0;
    int64_t padded = length < INT64_MAX / 2 ? length + 2 * margin : length;
    TKB_TRY(b, check_signal(a, padded, n_fft, pad_mode));
    a = tkb_astype(
        b, a, tk_dtype_is_complex((tk_dtype)a->dtype) && !onesided ? TK_COMPLEX64 : TK_FLOAT32);
    tk_node *at = positions(b, 1 + (padded - n_fft) / hop, n_fft, hop, margin);
    tk_node *frames =
        tkb_multiply(b, frames_of(b, a, at, pad_mode), whole_window(b, window, n_fft));
    tk_node *spectrum =
        onesided ? tkb_rfft(b, frames, -1, -1, norm) : tkb_fft(b, frames, -1, -1, norm);
    return tkb_swapaxes(b, spectrum, -1, -2);
}

/* ---- back ---- */

/* frames [B, F, T] added up where they came from: [B, length]. */
static tk_node *overlapped(tk_builder *b, tk_node *frames, tk_node *at, int64_t length) {
    if (tk_node_is_error(frames)) return frames;
    tk_node *updates = tkb_transpose(b, frames, TK_AXES(1, 2, 0));
    updates = tkb_expand_dims(b, updates, TK_AXES(-1));
    tk_node *zeros = tkb_zeros(b, TK_SHAPE(frames->shape[0], length), (tk_dtype)frames->dtype);
    return tkb_scatter_nd(b, zeros, updates, &at, 1, TK_AXES(1), TK_ADD);
}

/* Elements first ... first + length - 1 of the last axis, zeros beyond its end. */
static tk_node *trimmed(tk_builder *b, tk_node *a, int64_t first, int64_t length) {
    if (tk_node_is_error(a)) return a;
    int64_t own = a->shape[1], stop = first + length < own ? first + length : own;
    if (first > own) first = own;
    if (stop < first) stop = first;
    a = tkb_range(b, a, 1, first, stop);
    if (stop - first == length) return a;
    return tkb_pad(b, a, TK_AXES(0, 0), TK_AXES(0, length - (stop - first)), NULL);
}

static tk_node *back(tk_builder *b, tk_node *frames, tk_node *window, int64_t hop, bool center,
                     int64_t length) {
    if (tk_node_is_error(frames)) return frames;
    int64_t count = frames->shape[1], n_fft = frames->shape[2];
    int64_t whole = (count - 1) * hop + n_fft, margin = center ? n_fft / 2 : 0;
    tk_node *at = positions(b, count, n_fft, hop, 0);
    tk_node *squares = tkb_broadcast_to(b, tkb_square(b, window), TK_SHAPE(1, count, n_fft));
    tk_node *envelope = overlapped(b, squares, at, whole);
    tk_node *nothing = tkb_less(b, envelope, tkb_const(b, TK_FLOAT32, LEAST_ENVELOPE));
    envelope = tkb_where(b, nothing, tkb_const(b, TK_FLOAT32, 1), envelope);
    tk_node *signal = overlapped(b, tkb_multiply(b, frames, window), at, whole);
    if (length < 0) length = whole - 2 * margin > 0 ? whole - 2 * margin : 0;
    return trimmed(b, tkb_divide(b, signal, envelope), margin, length);
}

static tk_status check_spectrum(const tk_node *a, int64_t n_fft, bool onesided, int64_t length) {
    if (a->rank < 2 || a->shape[a->rank - 1] < 1 || a->shape[a->rank - 2] < 1)
        return tk_fail(TK_SHAPE_ERROR, "istft: operand is %s, expected [..., frequencies, frames]",
                       tk_text_node(a));
    if (length > INT32_MAX || a->shape[a->rank - 1] > INT32_MAX)
        return tk_fail(TK_OVERFLOW, "istft: %lld elements or frames", (long long)length);
    if (n_fft < 1)
        return tk_fail(TK_INVALID_ARGUMENT, "istft: n_fft is %lld, expected 1 or more%s",
                       (long long)n_fft, onesided ? "; it is 2 (frequencies - 1) when absent" : "");
    return TK_OK;
}

tk_node *tkb_istft(tk_builder *b, tk_node *a, int64_t n_fft, int64_t hop, tk_node *window,
                   bool center, const char *norm, bool onesided, int64_t length) {
    if (tk_node_is_error(a)) return a;
    if (window && tk_node_is_error(window)) return window;
    if (n_fft < 0 && a->rank > 1)
        n_fft = onesided ? 2 * (a->shape[a->rank - 2] - 1) : a->shape[a->rank - 2];
    TKB_TRY(b, check_spectrum(a, n_fft, onesided, length));
    TKB_TRY(b, check_sizes("istft", n_fft, hop < 0 && n_fft >= 4 ? n_fft / 4 : hop, window));
    if (hop < 0) hop = n_fft / 4;
    tk_node *turned = tkb_swapaxes(b, a, -1, -2);
    tk_node *frames = onesided ? tkb_irfft(b, turned, n_fft, -1, norm)
                               : tkb_real(b, tkb_ifft(b, turned, n_fft, -1, norm));
    if (tk_node_is_error(frames)) return frames;
    tk_shape shape = {.count = a->rank - 1}, flat = {3, {1, a->shape[a->rank - 1], n_fft}};
    for (int i = 0; i < a->rank - 2; i++) shape.items[i] = a->shape[i];
    TKB_TRY(b, tk_length_product("istft", a->rank - 2, a->shape, &flat.items[0]));
    tk_node *signal =
        back(b, tkb_reshape(b, frames, flat), whole_window(b, window, n_fft), hop, center, length);
    if (tk_node_is_error(signal)) return signal;
    shape.items[shape.count - 1] = signal->shape[1];
    return tkb_reshape(b, signal, shape);
}
