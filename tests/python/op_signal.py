"""References of convolutions and Fourier transforms. See compare_ops.py."""
import itertools

import numpy as np

from op_values import OPS, Refuse, Value, cast, kind, norm_axes, norm_axis, op, result_dtype, wrap


def entries(given, rank, fallback):
    if given is None:
        return [fallback] * rank
    if given == "too many" or len(given) not in (1, rank):
        raise Refuse("list")
    return given * rank if len(given) == 1 else given


def taps(x, w, groups, stride, low, spread_kernel, spread_input, out, flip):
    """Sum over the kernel's elements of input elements times weights, in wide arithmetic."""
    rank = x.ndim - 2
    total = np.zeros((x.shape[0], *out, w.shape[0]), np.result_type(x, w))
    each, outputs = w.shape[-1], w.shape[0] // groups
    for tap in itertools.product(*map(range, w.shape[1:-1])):
        to, source = [], []
        for i in range(rank):
            at = np.arange(out[i]) * stride[i] + tap[i] * spread_kernel[i] - low[i]
            inside = (at >= 0) & (at % spread_input[i] == 0) & (at // spread_input[i] < x.shape[1 + i])
            to.append(np.flatnonzero(inside))
            source.append(at[inside] // spread_input[i])
        place = tuple(n - 1 - t for n, t in zip(w.shape[1:-1], tap)) if flip else tap
        part = x[np.ix_(range(x.shape[0]), *source, range(x.shape[-1]))]
        weight = w[(slice(None), *place)]
        for g in range(groups):
            columns = slice(g * outputs, (g + 1) * outputs)
            product = part[..., g * each:(g + 1) * each] @ weight[columns].T
            total[np.ix_(range(x.shape[0]), *to, range(columns.start, columns.stop))] += product
    return total


def convolve_nd(input, weight, stride, low, high, kernel_dilation, input_dilation, groups, flip, ranks=(1, 2, 3)):
    rank = input.rank - 2
    if rank not in ranks or weight.rank != input.rank:
        raise Refuse("rank")
    dtype = result_dtype([input, weight])
    lists = [entries(given, rank, fallback) for given, fallback in
             [(stride, 1), (low, 0), (high, 0), (kernel_dilation, 1), (input_dilation, 1)]]
    stride, low, high, kernel_dilation, input_dilation = lists
    if dtype == "bool" or any(n < 1 or n >= 2**31 for part in (stride, kernel_dilation, input_dilation) for n in part) \
            or any(abs(n) >= 2**31 for n in low + high):
        raise Refuse("dtype or list")
    if groups < 1 or weight.shape[0] % groups or input.shape[-1] != groups * weight.shape[-1]:
        raise Refuse("groups")
    out = []
    for i in range(rank):
        span = (input.shape[1 + i] - 1) * input_dilation[i] + 1 if input.shape[1 + i] else 0
        room = span + low[i] + high[i] - (weight.shape[1 + i] - 1) * kernel_dilation[i] - 1
        if weight.shape[1 + i] == 0 or room < 0:
            raise Refuse("length")
        out.append(room // stride[i] + 1)
    if np.prod(out) * input.shape[0] * weight.shape[0] > 10**6:
        return None
    x, w = cast(input, dtype).data, cast(weight, dtype).data
    where = (groups, stride, low, kernel_dilation, input_dilation, out, flip)
    if kind(dtype) < 3:
        return Value(dtype, wrap(taps(x.astype(object), w.astype(object), *where), dtype))
    with np.errstate(all="ignore"):
        # What is not finite makes its outputs so; padding times an infinite weight is not fixed.
        bad, bad_weights = ~np.isfinite(x), np.any(~np.isfinite(w), axis=tuple(range(1, w.ndim)))
        unsure = (taps(bad.astype(float), np.ones(w.shape), *where) > 0) | bad_weights
        x, w = np.where(bad, 0, x), np.where(np.isfinite(w), w, 0)
        size = taps(np.abs(x), np.abs(w), *where)
        return Value(dtype, taps(x, w, *where), magnitude=("sum", size, 2 * w.size + 8), unsure=unsure)


@op("conv_general")
def conv_general(input, weight, stride, low, high, kernel_dilation, input_dilation, groups, flip):
    return convolve_nd(input, weight, stride, low, high, kernel_dilation, input_dilation, groups, flip)


def plain(rank):
    def reference(input, weight, stride, padding, dilation, groups):
        lists = [[v] if isinstance(v, int) else v for v in (stride, padding, dilation)]
        return convolve_nd(input, weight, lists[0], lists[1], lists[1], lists[2], None, groups, False, (rank,))
    return reference


def transposed(rank):
    def reference(input, weight, stride, padding, dilation, output_padding, groups):
        lists = [[v] if isinstance(v, int) else v for v in (stride, padding, dilation, output_padding)]
        if input.rank != rank + 2 or weight.rank != rank + 2:
            raise Refuse("rank")
        stride, padding, dilation, more = [entries(v, rank, f) for v, f in zip(lists, (1, 0, 1, 0))]
        if min(more) < 0:
            raise Refuse("output_padding")
        low = [(k - 1) * d - p if k else -1 - p for k, d, p in zip(weight.shape[1:-1], dilation, padding)]
        high = [n + m for n, m in zip(low, more)]
        return convolve_nd(input, weight, [1], low, high, dilation, stride, groups, True, (rank,))
    return reference


for n in (1, 2, 3):
    OPS[f"conv{n}d"], OPS[f"conv_transpose{n}d"] = plain(n), transposed(n)


@op("convolve")
def convolve(a, v, mode):
    if a.rank != 1 or v.rank != 1 or a.data.size == 0 or v.data.size == 0 or mode not in ("full", "same", "valid"):
        raise Refuse("convolve")
    dtype = result_dtype([a, v])
    if dtype == "bool":
        raise Refuse("bool")
    x, y = cast(a, dtype).data, cast(v, dtype).data
    if kind(dtype) < 3:
        return Value(dtype, wrap(np.convolve(x.astype(object), y.astype(object), mode), dtype))
    bad = np.convolve((~np.isfinite(x)).astype(float), np.ones(y.size), mode) > 0.5
    unsure = bad | (not np.all(np.isfinite(y if y.size <= x.size else np.append(x, y))))  # the shorter slides
    x, y = (np.where(np.isfinite(v), v, 0) for v in (x, y))
    size = np.convolve(np.abs(x), np.abs(y), mode)
    return Value(dtype, np.convolve(x, y, mode), magnitude=("sum", size, 2 * y.size + 8), unsure=unsure)


# ---- Fourier transforms ----


def transform(name, a, axes, lengths, norm):
    """NumPy's function of that name on the values as complex64 (float32 for real signals) holds them."""
    if norm not in ("backward", "ortho", "forward"):
        raise Refuse("norm")
    real = name.startswith("rfft")
    data = cast(a, "float32" if real else "complex64").data
    if lengths is not None and (min(lengths, default=1) < 1 or max(lengths, default=1) > 10**5):
        raise Refuse("length")
    unsure = np.any(~np.isfinite(data), axis=tuple(axes), keepdims=True) if axes else False
    data = np.where(np.isfinite(data), data, 0) if axes else data
    dtype = "float32" if name.startswith("irfft") else "complex64"
    if not axes and not real and name not in ("irfftn",):
        return Value("complex64", data)
    with np.errstate(all="ignore"):
        value = getattr(np.fft, name)(data, lengths, axes, norm)
        count = np.prod([float(data.shape[i] if lengths is None else n) for i, n in zip(axes, lengths or axes)])
        total = np.sqrt(np.sum(np.abs(data)**2) * 2 * max(count, 1))
        total *= {"backward": 1, "forward": 1 / count, "ortho": count**-0.5}[norm] if name[0] == "f" or real else \
            {"backward": 1 / count, "forward": 1, "ortho": count**-0.5}[norm]
    if not np.isfinite(total) or total > 1e37:
        return None
    return Value(dtype, value, magnitude=("absolute", np.full(value.shape, total), 16), unsure=unsure)


def one_axis(name):
    def reference(a, n, axis, norm):
        axes = (norm_axis(axis, a.rank),)
        return transform(name + "n", a, axes, None if n < 0 else (n,), norm)
    return reference


def several_axes(name):
    def reference(a, s, axes, norm):
        if s is not None and axes is None or s == "too many":
            raise Refuse("axes")
        axes = norm_axes(axes, a.rank, ordered=True)
        if s is not None and len(s) != len(axes):
            raise Refuse("s")
        return transform(name, a, axes, None if s is None else tuple(s), norm)
    return reference


for n in ("fft", "ifft", "rfft", "irfft"):
    OPS[n], OPS[n + "n"] = one_axis(n), several_axes(n + "n")


def shift(function):
    def reference(a, axes):
        axes = norm_axes(axes, a.rank, ordered=True)
        return Value(a.dtype, function(a.data, axes) if axes else a.data)
    return reference


OPS["fftshift"], OPS["ifftshift"] = shift(np.fft.fftshift), shift(np.fft.ifftshift)


def frequencies(function):
    def reference(n, d):
        if n < 1 or d == 0 or np.isnan(d):
            raise Refuse("n or d")
        if n > 10**5:
            return None
        return Value("float32", function(n, d), magnitude=4)
    return reference


OPS["fftfreq"], OPS["rfftfreq"] = frequencies(np.fft.fftfreq), frequencies(np.fft.rfftfreq)


def window_of(window, n_fft):
    if window is None:
        return np.ones(n_fft)
    if window.rank != 1 or window.shape[0] > n_fft:
        raise Refuse("window")
    missing = n_fft - window.shape[0]
    return np.pad(cast(window, "float32").data, (missing // 2, missing - missing // 2))


@op("stft")
def stft(a, n_fft, hop, window, center, pad_mode, norm, onesided):
    if n_fft < 1 or hop < 1 or a.rank < 1 or a.shape[-1] < 1 or pad_mode not in ("reflect", "constant", "edge"):
        raise Refuse("stft")
    window = window_of(window, n_fft)
    margin = n_fft // 2 if center else 0
    data = cast(a, "float32" if onesided or a.dtype != "complex64" else "complex64").data
    if n_fft > 10**5 or hop > 10**5:
        return None
    if data.shape[-1] + 2 * margin < n_fft:
        raise Refuse("short")
    if not np.all(np.isfinite(data)) or not np.all(np.isfinite(window)) or max(np.max(np.abs(data), initial=0), np.max(np.abs(window), initial=0)) > 1e15:
        return None
    data = np.pad(data, [(0, 0)] * (a.rank - 1) + [(margin, margin)], mode=pad_mode)
    starts = range(0, data.shape[-1] - n_fft + 1, hop)
    frames = np.stack([data[..., i:i + n_fft] for i in starts], axis=-2) * window
    return transform("rfftn" if onesided else "fftn", Value("complex64", frames), (frames.ndim - 1,), None, norm) and Value(
        "complex64", np.swapaxes((np.fft.rfft if onesided else np.fft.fft)(frames, norm=norm), -1, -2),
        magnitude=("absolute", 1 + np.full((), np.sqrt(np.sum(np.abs(frames)**2) * 2 * n_fft)), 16))


@op("istft")
def istft(a, n_fft, hop, window, center, norm, onesided, length):
    if a.rank < 2 or a.shape[-1] < 1:
        raise Refuse("rank")
    if n_fft < 0:
        n_fft = 2 * (a.shape[-2] - 1) if onesided else a.shape[-2]
    hop = n_fft // 4 if hop < 0 else hop
    if n_fft < 1 or hop < 1 or norm not in ("backward", "ortho", "forward") or length > 2**31 - 1:
        raise Refuse("istft")
    if n_fft > 10**5 or hop > 10**5 or length > 10**5:
        return None
    window = window_of(window, n_fft)
    data = cast(a, "complex64").data
    if not np.all(np.isfinite(data)) or not np.all(np.isfinite(window)) or max(np.max(np.abs(data), initial=0), np.max(np.abs(window), initial=0)) > 1e15:
        return None
    turned = np.swapaxes(data, -1, -2)
    frames = np.fft.irfft(turned, n_fft, norm=norm) if onesided else np.fft.ifft(turned, n_fft, norm=norm).real
    whole = (frames.shape[-2] - 1) * hop + n_fft
    signal, envelope = np.zeros((*frames.shape[:-2], whole)), np.zeros(whole)
    for i in range(frames.shape[-2]):
        signal[..., i * hop:i * hop + n_fft] += frames[..., i, :] * window
        envelope[i * hop:i * hop + n_fft] += window**2
    if np.any((envelope > 0) & (envelope < 1e-2)):
        return None
    first = n_fft // 2 if center else 0
    length = max(whole - 2 * first, 0) if length < 0 else length
    signal = np.pad((signal / np.where(envelope > 0, envelope, 1))[..., first:first + length],
                    [(0, 0)] * (a.rank - 2) + [(0, max(0, length - max(whole - first, 0)))])
    size = 1 + 1e3 * np.sqrt(np.sum(np.abs(data)**2) * n_fft) * (1 if norm != "forward" else n_fft)
    return Value("float32", signal, magnitude=("absolute", np.full(signal.shape, size), 16))
