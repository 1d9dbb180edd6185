"""Pooling over windows of [batch, ..., channels].

Windows are strided slices on an axis of their own, one for each place in the window, that max or mean
reduces; so gradients are those of slices and reductions.
"""

from itertools import product
from typing import Any, Callable

import tiki as tk
from tiki.nn.module import Module


def _per_axis(value: Any, rank: int, name: str) -> tuple[Any, ...]:
    if isinstance(value, int):
        return (value,) * rank
    if isinstance(value, (tuple, list)) and len(value) == rank:
        return tuple(value)
    raise ValueError(f"{name} is {value!r}, expected an integer or {rank} of them")


def _windows(x: tk.array, size: tuple[Any, ...], stride: tuple[Any, ...]) -> tk.array:
    """[batch, ..., place in the window, channels]"""
    counts = [(length - s) // step + 1 for length, s, step in zip(x.shape[1:-1], size, stride)]
    if any(count < 1 for count in counts):
        raise ValueError(f"windows of {size} do not fit into an input of {x.shape[1:-1]}")
    parts = []
    for place in product(*map(range, size)):
        steps = [slice(p, p + (n - 1) * step + 1, step) for p, n, step in zip(place, counts, stride)]
        parts.append(x[(slice(None), *steps)])
    return tk.stack(parts, axis=-2)


class _Pool(Module):
    _rank = 0
    _reduce: Callable[..., Any]
    _outside: float  # what padding holds

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        size = _per_axis(kernel_size, self._rank, "kernel_size")
        step = size if stride is None else _per_axis(stride, self._rank, "stride")
        margin = _per_axis(padding, self._rank, "padding")
        if min(size) <= 0 or min(step) <= 0 or min(margin) < 0:
            raise ValueError(f"kernel_size {size} and stride {step} must be positive, padding {margin} not negative")
        object.__setattr__(self, "_settings", (size, step, margin))

    def _extra_repr(self) -> str:
        size, step, margin = self._settings
        return f"kernel_size={size}, stride={step}, padding={margin}"

    def __call__(self, x: tk.array) -> tk.array:
        size, step, margin = self._settings
        if x.ndim != self._rank + 2:
            raise ValueError(f"the input has {x.ndim} axes, expected {self._rank + 2}")
        if any(margin):
            x = tk.pad(x, [(0, 0), *((m, m) for m in margin), (0, 0)], constant_values=self._outside)
        return type(self)._reduce(_windows(x, size, step), axis=-2)


class _MaxPool(_Pool):
    _reduce = tk.max
    _outside = -float("inf")


class _AvgPool(_Pool):
    _reduce = tk.mean
    _outside = 0


class MaxPool1d(_MaxPool):
    """The largest value of each window of a sequence."""

    _rank = 1


class MaxPool2d(_MaxPool):
    """The largest value of each window of an image."""

    _rank = 2


class MaxPool3d(_MaxPool):
    """The largest value of each window of a volume."""

    _rank = 3


class AvgPool1d(_AvgPool):
    """The mean of each window of a sequence, padding counted."""

    _rank = 1


class AvgPool2d(_AvgPool):
    """The mean of each window of an image, padding counted."""

    _rank = 2


class AvgPool3d(_AvgPool):
    """The mean of each window of a volume, padding counted."""

    _rank = 3
