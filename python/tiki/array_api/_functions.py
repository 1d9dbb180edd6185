"""Functions that MLX does not have, or has with other parameters."""

from collections.abc import Sequence
from typing import Any

import tiki as tk
from tiki import Dtype, array

Shape = int | tuple[int, ...]
Number = bool | int | float | complex


def placed(x: array, device: Any) -> array:
    """The array on a device; None leaves it where it is."""
    return x if device is None else x.to_device(device)


# ---- creation ----


def arange(
    start: int | float,
    /,
    stop: int | float | None = None,
    step: int | float = 1,
    *,
    dtype: Dtype | None = None,
    device: Any = None,
) -> array:
    """Numbers from start up to, without, stop."""
    return placed(tk.arange(start, stop, step, dtype) if stop is not None else tk.arange(0, start, step, dtype), device)


def asarray(obj: Any, /, *, dtype: Dtype | None = None, device: Any = None, copy: bool | None = None) -> array:
    """An array from anything that can become one."""
    return placed(tk.asarray(obj, dtype, copy=copy), device)


def empty(shape: Shape, *, dtype: Dtype | None = None, device: Any = None) -> array:
    """An array to be filled; zeros."""
    return zeros(shape, dtype=dtype, device=device)


def empty_like(x: array, /, *, dtype: Dtype | None = None, device: Any = None) -> array:
    """An array to be filled, in the shape of x; zeros."""
    return zeros_like(x, dtype=dtype, device=device)


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Dtype | None = None, device: Any = None
) -> array:
    """Ones on diagonal k."""
    return placed(tk.eye(n_rows, n_cols, k, dtype), device)


def full(shape: Shape, fill_value: Number, *, dtype: Dtype | None = None, device: Any = None) -> array:
    """One value everywhere."""
    return placed(tk.full(shape, fill_value, dtype), device)


def full_like(x: array, /, fill_value: Number, *, dtype: Dtype | None = None, device: Any = None) -> array:
    """One value everywhere, in the shape of x."""
    return placed(tk.full_like(x, fill_value, dtype), device)


def linspace(
    start: float,
    stop: float,
    /,
    num: int,
    *,
    dtype: Dtype | None = None,
    device: Any = None,
    endpoint: bool = True,
) -> array:
    """Numbers at equal distances."""
    return placed(tk.linspace(start, stop, num, endpoint, dtype), device)


def ones(shape: Shape, *, dtype: Dtype | None = None, device: Any = None) -> array:
    """Ones."""
    return placed(tk.ones(shape, dtype), device)


def ones_like(x: array, /, *, dtype: Dtype | None = None, device: Any = None) -> array:
    """Ones in the shape of x."""
    return placed(tk.ones_like(x, dtype), device)


def zeros(shape: Shape, *, dtype: Dtype | None = None, device: Any = None) -> array:
    """Zeros."""
    return placed(tk.zeros(shape, dtype), device)


def zeros_like(x: array, /, *, dtype: Dtype | None = None, device: Any = None) -> array:
    """Zeros in the shape of x."""
    return placed(tk.zeros_like(x, dtype), device)


def astype(x: array, dtype: Dtype, /, *, copy: bool = True, device: Any = None) -> array:
    """x in another dtype. Arrays are values, so none needs a copy of its own."""
    return placed(x if x.dtype == dtype else x.astype(dtype), device)


def reshape(x: array, /, shape: tuple[int, ...], *, copy: bool | None = None) -> array:
    """The same elements under another shape."""
    return tk.reshape(x, shape)


def roll(
    x: array, /, shift: int | tuple[int, ...], *, axis: int | tuple[int, ...] | None = None
) -> array:
    """Elements moved along axes, around the end."""
    return tk.roll(x, shift, axis)


# ---- elementwise ----


def clip(x: array, /, min: array | float | None = None, max: array | float | None = None) -> array:
    """x cut to [min, max]."""
    return positive(x) if min is None and max is None else tk.clip(x, min, max).astype(x.dtype)


def positive(x: array) -> array:
    """x itself."""
    return tk.positive(x)


def _bits(x: array) -> array:
    """Floats as the integers of their bits."""
    return tk.view(x, {2: tk.int16, 4: tk.int32, 8: tk.int64}[x.dtype.size])


def signbit(x: array, /) -> array:
    """Whether the sign is negative, of -0.0 and NaN too."""
    return _bits(x) < 0


def copysign(x1: array | float, x2: array | float, /) -> array:
    """x1 with the sign of x2."""
    first, second = _floats(x1, x2)
    return tk.where(tk.not_equal(signbit(first), signbit(second)), -first, first)


def _floats(x1: array | float, x2: array | float) -> list[array]:
    """Both as arrays of one dtype and shape; a number takes the dtype of the other."""
    first = x1 if isinstance(x1, array) else tk.full_like(tk.asarray(x2), x1)
    second = x2 if isinstance(x2, array) else tk.full_like(first, x2)
    dtype = tk.result_type(first, second)
    return list(tk.broadcast_arrays(first.astype(dtype), second.astype(dtype)))


def hypot(x1: array | float, x2: array | float, /) -> array:
    """The square root of x1^2 + x2^2, without overflow on the way."""
    first, second = (tk.abs(x) for x in _floats(x1, x2))
    large, small = tk.maximum(first, second), tk.minimum(first, second)
    ratio = tk.where(large > 0, small / tk.where(large > 0, large, 1), 0)
    infinite = tk.logical_or(tk.isinf(first), tk.isinf(second))
    return tk.where(infinite, tk.inf, large * tk.sqrt(1 + ratio * ratio)).astype(first.dtype)


def nextafter(x1: array | float, x2: array | float, /) -> array:
    """The next number of the dtype from x1 towards x2."""
    first, second = _floats(x1, x2)
    bits = _bits(first)
    away = tk.equal(first > 0, second > first)
    stepped = tk.view(tk.where(away, bits + 1, bits - 1).astype(bits.dtype), first.dtype)
    least = tk.view(tk.ones_like(bits), first.dtype)
    result = tk.where(first == 0, tk.where(second > 0, least, -least), stepped)
    result = tk.where(first == second, second, result)
    return tk.where(tk.logical_or(tk.isnan(first), tk.isnan(second)), tk.nan, result).astype(first.dtype)


# ---- sums ----


def sum(
    x: array, /, *, axis: int | tuple[int, ...] | None = None, dtype: Dtype | None = None, keepdims: bool = False
) -> array:
    """The sum over axes."""
    return tk.sum(x if dtype is None else x.astype(dtype), axis, keepdims)


def prod(
    x: array, /, *, axis: int | tuple[int, ...] | None = None, dtype: Dtype | None = None, keepdims: bool = False
) -> array:
    """The product over axes."""
    return tk.prod(x if dtype is None else x.astype(dtype), axis, keepdims)


def _cumulative(op: Any, neutral: int, x: array, axis: int | None, dtype: Dtype | None, initial: bool) -> array:
    if axis is None and x.ndim != 1:
        raise ValueError(f"the array has {x.ndim} axes: which to go along must be given")
    axis = 0 if axis is None else axis
    result: array = op(x, axis, dtype=dtype)
    if not initial:
        return result
    start = list(result.shape)
    start[axis] = 1
    return tk.concatenate([tk.full(start, neutral, result.dtype), result], axis=axis)


def cumulative_sum(
    x: array, /, *, axis: int | None = None, dtype: Dtype | None = None, include_initial: bool = False
) -> array:
    """Sums of the elements so far."""
    return _cumulative(tk.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(
    x: array, /, *, axis: int | None = None, dtype: Dtype | None = None, include_initial: bool = False
) -> array:
    """Products of the elements so far."""
    return _cumulative(tk.cumprod, 1, x, axis, dtype, include_initial)


def count_nonzero(x: array, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> array:
    """How many elements are not zero."""
    return tk.count_nonzero(x, axis=axis, keepdims=keepdims).astype(tk.int64)


def diff(
    x: array, /, *, axis: int = -1, n: int = 1, prepend: array | None = None, append: array | None = None
) -> array:
    """Differences of neighbours, n times."""
    parts = [part for part in (prepend, x, append) if part is not None]
    return tk.diff(tk.concatenate(parts, axis=axis) if len(parts) > 1 else x, n, axis)


# ---- order ----


def argmax(x: array, /, *, axis: int | None = None, keepdims: bool = False) -> array:
    """Where the largest element is."""
    return tk.argmax(x, axis, keepdims).astype(tk.int64)


def argmin(x: array, /, *, axis: int | None = None, keepdims: bool = False) -> array:
    """Where the least element is."""
    return tk.argmin(x, axis, keepdims).astype(tk.int64)


def argsort(x: array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> array:
    """The order of the elements; equal ones stay in theirs."""
    if not descending:
        return tk.argsort(x, axis).astype(tk.int64)
    backwards = tk.argsort(tk.flip(x, axis), axis).astype(tk.int64)
    return tk.flip(x.shape[axis] - 1 - backwards, axis)


def sort(x: array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> array:
    """The elements in order."""
    return tk.flip(tk.sort(x, axis), axis) if descending else tk.sort(x, axis)


def searchsorted(x1: array, x2: array, /, *, side: str = "left", sorter: array | None = None) -> array:
    """Where elements of x2 belong in x1, which is in order, or by `sorter`."""
    ordered = x1 if sorter is None else tk.take(x1, sorter, axis=0)
    return tk.searchsorted(ordered, x2, side=side).astype(tk.int64)


def isin(x1: array | Number, x2: array | Number, /, *, invert: bool = False) -> array:
    """Whether each element of x1 is in x2."""
    first, second = tk.asarray(x1), tk.asarray(x2).reshape(-1)
    found = tk.any(first[..., None] == second, axis=-1)
    return tk.logical_not(found) if invert else found


def nonzero(x: array, /) -> tuple[array, ...]:
    """Where elements are not zero: an array of indices for each axis."""
    if x.ndim == 0:
        raise ValueError("nonzero: an array without axes has no indices")
    flat: array = tk.arange(x.size, dtype=tk.int64)[(x != 0).reshape(-1)]
    return unravel(flat, x.shape)


def unravel(flat: array, shape: Sequence[int]) -> tuple[array, ...]:
    """Row-major positions as indices, one array for each axis."""
    indices = []
    for length in reversed(shape):
        indices.append(flat % length)
        flat = flat // length
    return tuple(reversed(indices))
