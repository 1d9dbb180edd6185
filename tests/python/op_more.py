"""References of diagonals, differences and order. See compare_ops.py."""
import numpy as np

from op_values import HUGE, OPS, Refuse, Value, cast, count_of, inexact, kind, norm_axes, norm_axis, op, promote, wide


def two_axes(a, axis1, axis2):
    first, second = norm_axis(axis1, a.rank), norm_axis(axis2, a.rank)
    if first == second:
        raise Refuse("axes")
    return first, second


@op("diagonal")
def diagonal(a, offset, axis1, axis2):
    first, second = two_axes(a, axis1, axis2)
    offset = max(min(offset, HUGE), -HUGE)
    return Value(a.dtype, np.diagonal(a.data, offset, first, second))


@op("diag")
def diag(a, k):
    if a.rank == 2:
        return diagonal(a, k, 0, 1)
    if a.rank != 1:
        raise Refuse("rank")
    if abs(k) > 300:
        return None
    return Value(a.dtype, np.diag(a.data, k))


@op("trace")
def trace(a, offset, axis1, axis2):
    return OPS["sum"](diagonal(a, offset, axis1, axis2), [-1], False)


@op("kron")
def kron(a, b):
    rank = max(a.rank, b.rank)
    if 2 * rank > 16:
        raise Refuse("rank")
    first, second = (v.data.reshape((1,) * (rank - v.rank) + v.shape) for v in (a, b))
    shape = [x * y for x, y in zip(first.shape, second.shape)]
    left = first.reshape([n for x in first.shape for n in (x, 1)])
    right = second.reshape([n for x in second.shape for n in (1, x)])
    product = OPS["multiply"](Value(a.dtype, left, a.weak), Value(b.dtype, right, b.weak))
    if product is None:
        return None
    return Value(product.dtype, product.data.reshape(shape), magnitude=product.magnitude)


@op("diff")
def diff(a, n, axis):
    axis = norm_axis(axis, a.rank)
    if n < 0:
        raise Refuse("n")
    n, size = min(n, a.shape[axis]), np.abs(a.data)
    with np.errstate(all="ignore"):
        for _ in range(n):
            length = a.shape[axis]
            later, earlier = range(1, length), range(length - 1)
            size = np.take(size, later, axis) + np.take(size, earlier, axis)
            a = OPS["not_equal" if a.dtype == "bool" else "subtract"](
                Value(a.dtype, np.take(a.data, later, axis)), Value(a.dtype, np.take(a.data, earlier, axis)))
        if kind(a.dtype) < 3 or n < 2:
            return Value(a.dtype, a.data, magnitude=a.magnitude)
        return Value(a.dtype, a.data, magnitude=("absolute", size, n))  # each step rounds


@op("median")
def median(a, axes, keepdims):
    axes = norm_axes(axes, a.rank)
    if a.dtype == "complex64":
        raise Refuse("dtype")
    a = inexact(a)
    if not axes:
        return a
    if count_of(a.shape, axes) == 0:
        raise Refuse("empty")
    kept = [n for i, n in enumerate(a.shape) if i not in axes]
    data = np.moveaxis(a.data, axes, range(-len(axes), 0)).reshape(kept + [count_of(a.shape, axes)])
    data = np.sort(data, axis=-1)
    length = data.shape[-1]
    middle = data[..., (length - 1) // 2 : length // 2 + 1]
    with np.errstate(all="ignore"):
        result = np.where(np.isnan(data[..., -1]), np.nan, middle.mean(axis=-1))
        size = np.abs(middle).mean(axis=-1)
    if keepdims:
        shape = [1 if i in axes else n for i, n in enumerate(a.shape)]
        result, size = result.reshape(shape), size.reshape(shape)
    return Value(a.dtype, result, magnitude=("sum", size, 2))


@op("searchsorted")
def searchsorted(a, values, right):
    if a.rank != 1:
        raise Refuse("rank")
    shape = values.shape
    a, values = promote([a, values])
    if not np.array_equal(a.data, np.sort(a.data), equal_nan=kind(a.dtype) >= 3):
        return None  # in no order
    found = np.searchsorted(a.data, values.data.ravel(), "right" if right else "left")
    return Value("uint32", found.reshape(shape).astype(wide("uint32")))


@op("unique")
def unique(a, size, fill):
    if size < 0 or (fill is not None and fill.data.size != 1) or (a.data.size == 0 and size and fill is None):
        raise Refuse("size or fill")
    if fill is not None and fill.weak == "int" and kind(a.dtype) in (1, 2):
        number = int(fill.data.item())
        if number != int(cast(fill, a.dtype).data.item()) and not (a.dtype == "uint64" and number < 0):
            raise Refuse("fill")
    flat, count = a.data.ravel(), a.data.size
    order = np.argsort(flat, kind="stable")
    ordered = flat[order]
    number = np.cumsum(np.concatenate([[0], ordered[1:] != ordered[:-1]])[:count]).astype(np.int64)
    begin = np.searchsorted(number, np.arange(size + 1))
    inside = begin[:size] < count
    at = np.where(inside, begin[:size], 0)
    values = ordered[at] if count else np.zeros(size, flat.dtype)
    index = order[at] if count else np.zeros(size)
    if fill is not None:
        values = np.where(inside, values, cast(fill, a.dtype).data.ravel())
    inverse = np.zeros(count, np.uint32)
    inverse[order] = np.minimum(number, max(size - 1, 0))
    return [Value(a.dtype, values), Value("uint32", index.astype(wide("uint32"))),
            Value("uint32", inverse.reshape(a.shape).astype(wide("uint32"))),
            Value("int32", np.diff(begin).astype(wide("int32")))]


@op("depends")
def depends(a, dependencies):
    return Value(a.dtype, a.data)
