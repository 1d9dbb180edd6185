"""References of convolutions. See compare_ops.py."""
import itertools

import numpy as np

from op_values import OPS, Refuse, Value, cast, kind, op, result_dtype, wrap


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
        if not np.all(np.isfinite(x)) or not np.all(np.isfinite(w)):
            return None
        size = taps(np.abs(x), np.abs(w), *where)
        return Value(dtype, taps(x, w, *where), magnitude=("sum", size, 2 * w.size + 8))


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
    if not np.all(np.isfinite(x)) or not np.all(np.isfinite(y)):
        return None
    return Value(dtype, np.convolve(x, y, mode), magnitude=("sum", np.convolve(np.abs(x), np.abs(y), mode), 2 * y.size + 8))
