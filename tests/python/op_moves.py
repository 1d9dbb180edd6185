"""References of products, shapes, indexing and sorting. See compare_ops.py."""
import numpy as np

from op_values import (HUGE, LARGEST, NP, OPS, Refuse, Value, big, bits, cast, count_of, faulty, from_memory,
                       indices_of, kind, listed, norm_axes, norm_axis, op, promote, refuse, result_dtype,
                       to_memory, wrap)

# ---- products ----


def product(function, values, count):
    values = promote(values)
    refuse(values, (0,))
    data = [v.data for v in values]
    if kind(values[0].dtype) < 3:
        return Value(values[0].dtype, wrap(function(*[big(x) for x in data]), values[0].dtype))
    return Value(values[0].dtype, function(*data),
                 magnitude=("sum", function(*[np.abs(x) for x in data]), count))


def matmul_data(a, b):
    if 0 in (a.ndim, b.ndim):
        raise Refuse("scalar")
    return np.matmul(a, b) if a.dtype != object else object_matmul(a, b)


def object_matmul(a, b):
    shape = np.matmul(np.zeros(a.shape), np.zeros(b.shape)).shape
    x = a if a.ndim > 1 else a[None, :]
    y = b if b.ndim > 1 else b[:, None]
    return np.sum(x[..., :, :, None] * y[..., None, :, :], axis=-2, initial=0).reshape(shape)


@op("matmul")
def matmul(a, b):
    return product(matmul_data, [a, b], 2 * (a.shape[-1] if a.rank else 1) + 8)


@op("addmm")
def addmm(c, a, b, alpha, beta):
    dtype = result_dtype([c, a, b])
    c, a, b = (cast(v, dtype) for v in (c, a, b))
    result = product(matmul_data, [a, b], 1)
    np.broadcast_to(c.data, result.shape)
    if kind(dtype) < 3 and alpha == 1 and beta == 1:
        return Value(dtype, wrap(result.data.astype(object) + big(c.data), dtype))
    if kind(dtype) < 3:  # a factor is a weak float
        left, right = cast(Value(dtype, result.data), "float32"), cast(c, "float32")
        with np.errstate(all="ignore"):
            left, right = alpha * left.data, beta * right.data
            return Value("float32", left + right, magnitude=("absolute", np.abs(left) + np.abs(right), 4))
    with np.errstate(all="ignore"):
        size = max(1, abs(alpha)) * result.magnitude[1] + max(1, abs(beta)) * np.abs(c.data)
        return Value(dtype, alpha * result.data + beta * c.data,
                     magnitude=("sum", size, 2 * a.shape[-1] + 16))


@op("inner")
def inner(a, b):
    return product(np.inner, [a, b], 2 * (a.shape[-1] if a.rank else 1) + 8)


@op("outer")
def outer(a, b):
    a, b = promote([a, b])
    return Value(a.dtype, np.multiply.outer(a.data.ravel(), b.data.ravel()), magnitude="complex")


@op("tensordot")
def tensordot(a, b, axes_a, axes_b):
    left, right = norm_axes(listed(axes_a), a.rank, True), norm_axes(listed(axes_b), b.rank, True)
    if len(left) != len(right):
        raise Refuse("axes")
    return product(lambda x, y: np.tensordot(x, y, axes=(left, right)), [a, b],
                   2 * count_of(a.shape, left) + 8)


def contracts(subscripts):
    """Whether a letter of two operands is summed over."""
    given, _, kept = subscripts.replace(" ", "").partition("->")
    letters = [c for c in given if c.isalpha()]
    if "->" not in subscripts:
        kept = [c for c in letters if letters.count(c) == 1]
    return any(sum(c in part for part in given.split(",")) > 1 and c not in kept for c in letters)


def sums_one(subscripts):
    """Whether the only operand loses a letter: it is added up over it, with the dtype of a sum."""
    given, arrow, kept = subscripts.replace(" ", "").partition("->")
    letters = [c for c in given if c.isalpha()]
    return any(c not in kept if arrow else letters.count(c) > 1 for c in letters)


@op("einsum")
def einsum(subscripts, operands):
    dtype = result_dtype(operands)
    if kind(dtype) == 0 and contracts(subscripts):
        raise Refuse("dtype")
    operands = [cast(v, dtype) for v in operands]
    data = [v.data for v in operands]
    if kind(dtype) < 3 and len(data) == 1 and sums_one(subscripts):
        summed = {"bool": "int32", "int8": "int32", "int16": "int32", "uint8": "uint32", "uint16": "uint32"}.get(dtype, dtype)
        return Value(summed, np.einsum(subscripts, data[0].astype(NP[summed])))
    value = np.einsum(subscripts, *data)
    if kind(dtype) < 3:
        return Value(dtype, value)
    with np.errstate(all="ignore"):  # a pair of the factors may leave the range where all of them do not
        largest = np.einsum(subscripts, *[np.maximum(np.abs(x), 1) for x in data])
    return Value(dtype, value, magnitude=("sum", np.einsum(subscripts, *[np.abs(x) for x in data]), 64),
                 unsure=~(largest < LARGEST[dtype] / 4) if len(data) > 2 else False)


# ---- shape ----


def moved(function):
    def reference(a, *rest, **named):
        return Value(a.dtype, function(a.data, *rest, **named))
    return reference


def lengths(shape):
    if any(n < -1 for n in listed(shape)):
        raise Refuse("shape")
    return tuple(shape)


OPS["reshape"] = moved(lambda x, shape: x.reshape(lengths(shape)))


@op("flatten")
def flatten(a, start_axis, end_axis):
    if a.rank == 0:
        return Value(a.dtype, a.data.reshape(1))
    first, last = norm_axis(start_axis, a.rank), norm_axis(end_axis, a.rank)
    if first > last:
        raise Refuse("axes")
    merged = int(np.prod(a.shape[first:last + 1], dtype=np.int64))
    return Value(a.dtype, a.data.reshape(a.shape[:first] + (merged,) + a.shape[last + 1:]))


@op("unflatten")
def unflatten(a, axis, shape):
    axis, shape = norm_axis(axis, a.rank), lengths(shape)
    if not shape:
        raise Refuse("shape")
    part = np.empty(a.shape[axis]).reshape(shape).shape
    return Value(a.dtype, a.data.reshape(a.shape[:axis] + part + a.shape[axis + 1:]))


@op("transpose")
def transpose(a, axes):
    if axes is None:
        return Value(a.dtype, a.data.T)
    if axes == "too many" or len(axes) != a.rank:
        raise Refuse("axes")
    return Value(a.dtype, np.transpose(a.data, norm_axes(axes, a.rank, True)))


@op("swapaxes")
def swapaxes(a, axis1, axis2):
    return Value(a.dtype, np.swapaxes(a.data, norm_axis(axis1, a.rank), norm_axis(axis2, a.rank)))


@op("moveaxis")
def moveaxis(a, source, destination):
    return Value(a.dtype, np.moveaxis(a.data, norm_axis(source, a.rank), norm_axis(destination, a.rank)))


@op("expand_dims")
def expand_dims(a, axes):
    axes = norm_axes(listed(axes), a.rank + len(listed(axes)))
    return Value(a.dtype, np.expand_dims(a.data, axes))


@op("squeeze")
def squeeze(a, axes):
    return Value(a.dtype, np.squeeze(a.data) if axes is None else np.squeeze(a.data, norm_axes(axes, a.rank)))


@op("broadcast_to")
def broadcast_to(a, shape):
    if any(n < 0 for n in listed(shape)):
        raise Refuse("shape")
    return Value(a.dtype, np.broadcast_to(a.data, shape))


def slices(a, start, stop, step):
    for part in (start, stop, step):
        if part == "too many" or (part is not None and len(part) != a.rank):
            raise Refuse("slice")
    result = []
    for i in range(a.rank):
        by = 1 if step is None else step[i]
        if by == 0:
            raise Refuse("step")
        length = a.shape[i]

        def bound(value, given):
            if value is None:
                return given
            value = value[i]
            value += length if value < 0 else 0
            low, high = (-1, length - 1) if by < 0 else (0, length)
            return min(max(value, low), high)
        first, last = bound(start, length - 1 if by < 0 else 0), bound(stop, -1 if by < 0 else length)
        result.append(np.arange(first, last, max(min(by, HUGE), -HUGE), dtype=np.int64))
    return result


@op("slice")
def slice_(a, start, stop, step):
    indices = slices(a, start, stop, step)
    return Value(a.dtype, a.data[np.ix_(*indices)] if a.rank else a.data)


@op("flip")
def flip(a, axes):
    return Value(a.dtype, np.flip(a.data, norm_axes(axes, a.rank)))


@op("concatenate")
def concatenate(arrays, axis):
    axis, arrays = norm_axis(axis, arrays[0].rank), promote(arrays)
    return Value(arrays[0].dtype, np.concatenate([v.data for v in arrays], axis=axis))


@op("stack")
def stack(arrays, axis):
    axis, arrays = norm_axis(axis, arrays[0].rank + 1), promote(arrays)
    return Value(arrays[0].dtype, np.stack([v.data for v in arrays], axis=axis))


@op("split")
def split(a, indices, axis):
    axis = norm_axis(axis, a.rank)
    return [Value(a.dtype, x) for x in np.split(a.data, listed(indices), axis=axis)]


@op("split_equal")
def split_equal(a, sections, axis):
    axis = norm_axis(axis, a.rank)
    if sections <= 0 or a.shape[axis] % sections:
        raise Refuse("sections")
    return [Value(a.dtype, x) for x in np.split(a.data, sections, axis=axis)]


@op("pad")
def pad(a, low, high, value):
    if len(listed(low)) != a.rank or len(listed(high)) != a.rank or min(low + high, default=0) < 0:
        raise Refuse("widths")
    fill = cast(value, a.dtype).data if value is not None else np.zeros((), a.data.dtype)
    if fill.size != 1:
        raise Refuse("value")
    data = np.full([n + x + y for n, x, y in zip(a.shape, low, high)], fill.reshape(()), a.data.dtype)
    data[tuple(slice(x, x + n) for n, x in zip(a.shape, low))] = a.data
    return Value(a.dtype, data)


@op("tile")
def tile(a, reps):
    if any(n < 0 for n in listed(reps)):
        raise Refuse("reps")
    return Value(a.dtype, np.tile(a.data, reps))


@op("repeat")
def repeat(a, repeats, axis):
    axis = norm_axis(axis, a.rank)
    if repeats < 0:
        raise Refuse("repeats")
    return Value(a.dtype, np.repeat(a.data, repeats, axis=axis))


@op("roll")
def roll(a, shifts, axes):
    if axes is None:
        flat = a.data.reshape(-1)
        if len(listed(shifts)) == 0:
            raise Refuse("shifts")
        total = sum(shifts)
        return Value(a.dtype, np.roll(flat, total % flat.size if flat.size else 0).reshape(a.shape))
    shifts, axes = listed(shifts), [norm_axis(i, a.rank) for i in listed(axes)]
    count = max(len(shifts), len(axes))
    if len(shifts) not in (1, count) or len(axes) not in (1, count):
        raise Refuse("shifts")
    if count == 0:
        return Value(a.dtype, a.data)
    data = a.data
    for i in range(count):
        axis = axes[i if len(axes) > 1 else 0]
        shift = shifts[i if len(shifts) > 1 else 0]
        data = np.roll(data, shift % data.shape[axis] if data.shape[axis] else 0, axis=axis)
    return Value(a.dtype, data)


@op("view")
def view(a, dtype):
    if dtype == "?":
        raise Refuse("dtype")
    raw = to_memory(a)
    if dtype == a.dtype:
        return Value(a.dtype, a.data)
    if bits(dtype) != bits(a.dtype):
        if a.rank == 0 or (a.shape[-1] * bits(a.dtype)) % bits(dtype):
            raise Refuse("length")
        shape = a.shape[:-1] + (a.shape[-1] * bits(a.dtype) // bits(dtype),)
    else:
        shape = a.shape
    data = np.frombuffer(np.ascontiguousarray(raw).tobytes(), dtype=NP[dtype] if dtype != "bool" else np.uint8)
    return Value(dtype, from_memory(data.reshape(shape), dtype))


# ---- indexing ----


@op("take")
def take(a, indices, axis):
    axis = norm_axis(axis, a.rank)
    index, bad = indices_of(indices, a.shape[axis])
    if a.shape[axis] == 0:
        if index.size:
            raise Refuse("empty")
        return Value(a.dtype, np.zeros(a.shape[:axis] + index.shape + a.shape[axis + 1:], a.data.dtype))
    data = np.take(a.data, index, axis=axis).copy()
    mask = bad.reshape((1,) * axis + bad.shape + (1,) * (a.rank - axis - 1))
    return faulty(Value(a.dtype, np.where(mask, np.zeros((), data.dtype), data)), bad if data.size else False)


def along(a, indices, axis):
    axis = norm_axis(axis, a.rank)
    index, bad = indices_of(indices, a.shape[axis])
    if index.ndim != a.rank:
        raise Refuse("rank")
    shape = [np.broadcast_shapes((index.shape[i],), (a.shape[i],))[0] if i != axis else index.shape[i]
             for i in range(a.rank)]
    return axis, np.broadcast_to(index, shape), np.broadcast_to(bad, shape), shape


@op("take_along_axis")
def take_along_axis(a, indices, axis):
    axis, index, bad, shape = along(a, indices, axis)
    source = np.broadcast_to(a.data, [a.shape[axis] if i == axis else n for i, n in enumerate(shape)])
    if source.shape[axis] == 0:
        return faulty(Value(a.dtype, np.zeros(shape, a.data.dtype)), np.ones(shape, bool))
    data = np.take_along_axis(source, index, axis=axis)
    return faulty(Value(a.dtype, np.where(bad, np.zeros((), data.dtype), data)), bad)


def write_along(a, indices, values, axis, adds):
    axis, index, bad, shape = along(a, indices, axis)
    for i in range(a.rank):
        if i != axis and shape[i] != a.shape[i]:
            raise Refuse("shape")
    update = np.broadcast_to(cast(values, a.dtype).data, shape)
    data, size = a.data.copy(), np.abs(a.data)
    for at in np.ndindex(*shape):
        if bad[at]:
            continue
        to = tuple(index[at] if i == axis else at[i] for i in range(a.rank))
        with np.errstate(all="ignore"):
            data[to] = data[to] + update[at] if adds else update[at]
            size[to] = size[to] + np.abs(update[at])
    magnitude = ("sum", size, 64) if adds and kind(a.dtype) >= 3 else None
    return faulty(Value(a.dtype, data, magnitude=magnitude), bad)


@op("put_along_axis")
def put_along_axis(a, indices, values, axis):
    return write_along(a, indices, values, axis, False)


@op("scatter_add_along_axis")
def scatter_add_along_axis(a, indices, values, axis):
    return write_along(a, indices, values, axis, True)


MODES = [lambda old, new: new, lambda old, new: old + new, np.maximum, np.minimum, lambda old, new: old * new]


@op("slice_update")
def slice_update(a, update, start, stop, step, mode):
    indices = slices(a, start, stop, step)
    if not 0 <= mode < 5:
        raise Refuse("mode")
    box = tuple(len(i) for i in indices)
    new = cast(update, a.dtype).data
    while new.ndim > a.rank and new.shape[0] == 1:
        new = new[0]
    new = np.broadcast_to(new, box)
    data = a.data.copy()
    at = np.ix_(*indices) if a.rank else ()
    with np.errstate(all="ignore"):
        data[at] = MODES[mode](data[at], new)
    return Value(a.dtype, data, magnitude=8 if mode in (1, 4) else None)


def index_tuples(a, indices, axes):
    axes = norm_axes(axes, a.rank, True)
    if not indices or len(axes) != len(indices):
        raise Refuse("indices")
    pairs = [indices_of(v, a.shape[axis]) for v, axis in zip(indices, axes)]
    shape = np.broadcast_shapes(*[i.shape for i, _ in pairs])
    return axes, shape


def raw_indices(indices, lengths_, shape):
    result = []
    for value, length in zip(indices, lengths_):
        index = np.array([int(i) for i in value.data.ravel()], dtype=object).reshape(value.shape)
        result.append(np.broadcast_to(np.where(index < 0, index + length, index), shape))
    return result


@op("gather")
def gather(a, indices, axes, slice_sizes):
    axes, shape = index_tuples(a, indices, axes)
    sizes = listed(slice_sizes)
    if len(sizes) != a.rank or any(not 0 <= s <= n for s, n in zip(sizes, a.shape)):
        raise Refuse("sizes")
    at = raw_indices(indices, [a.shape[i] for i in axes], shape)
    data, bad = np.zeros(shape + tuple(sizes), a.data.dtype), False
    for where_ in np.ndindex(*shape):
        first = [0] * a.rank
        fits = True
        for index, axis in zip(at, axes):
            first[axis] = index[where_]
            fits &= 0 <= index[where_] <= a.shape[axis] - sizes[axis]
        bad |= not fits
        if fits:
            data[where_] = a.data[tuple(slice(f, f + s) for f, s in zip(first, sizes))]
    return faulty(Value(a.dtype, data), bad and data.size > 0)


@op("scatter_nd")
def scatter_nd(a, updates, indices, axes, mode):
    axes, shape = index_tuples(a, indices, axes)
    if not 0 <= mode < 5:
        raise Refuse("mode")
    new = cast(updates, a.dtype).data
    sizes = new.shape[len(shape):]
    if new.shape[:len(shape)] != shape or len(sizes) != a.rank or any(
            not 0 <= s <= n for s, n in zip(sizes, a.shape)):
        raise Refuse("updates")
    at = raw_indices(indices, [a.shape[i] for i in axes], shape)
    data, bad, size = a.data.copy(), False, np.abs(a.data)
    grown = np.maximum(size, 1)  # infinity times a later zero: the order of overflow decides
    for where_ in np.ndindex(*shape):
        first = [0] * a.rank
        fits = True
        for index, axis in zip(at, axes):
            first[axis] = index[where_]
            fits &= 0 <= index[where_] <= a.shape[axis] - sizes[axis]
        bad |= not fits
        if fits:
            box = tuple(slice(f, f + s) for f, s in zip(first, sizes))
            with np.errstate(all="ignore"):
                data[box] = MODES[mode](data[box], new[where_])
                size[box] = size[box] + np.abs(new[where_])
                grown[box] = grown[box] * np.maximum(np.abs(new[where_]), 1)
    if kind(a.dtype) >= 3 and mode == 4 and not np.all(grown < LARGEST[a.dtype] / 4):
        return None
    loose = kind(a.dtype) >= 3 and mode in (1, 4)
    magnitude = (("sum", size, 64) if mode == 1 else ("prod", 64)) if loose else None
    return faulty(Value(a.dtype, data, magnitude=magnitude), bad and new.size > 0)


# ---- sorting ----


@op("sort")
def sort(a, axis):
    return Value(a.dtype, np.sort(a.data, axis=norm_axis(axis, a.rank), kind="stable"))


@op("argsort")
def argsort(a, axis):
    return Value("uint32", np.argsort(a.data, axis=norm_axis(axis, a.rank), kind="stable").astype(np.uint32))


def check_kth(a, kth, axis):
    axis = norm_axis(axis, a.rank)
    length = a.shape[axis]
    if not -length <= kth < length:
        raise Refuse("kth")
    return axis, kth % length if length else 0


@op("partition")
def partition(a, kth, axis):
    axis, kth = check_kth(a, kth, axis)
    return Value(a.dtype, a.data, magnitude=("partition", axis, kth))


@op("argpartition")
def argpartition(a, kth, axis):
    axis, kth = check_kth(a, kth, axis)
    return Value("uint32", a.data, magnitude=("argpartition", axis, kth))


@op("topk")
def topk(a, k, axis):
    axis = norm_axis(axis, a.rank)
    if not 0 <= k <= a.shape[axis]:
        raise Refuse("k")
    ordered = np.sort(a.data, axis=axis, kind="stable")
    return Value(a.dtype, np.take(ordered, range(a.shape[axis] - k, a.shape[axis]), axis=axis),
                 magnitude=("unordered", axis))
