"""Upsample: images and the like made larger or smaller along their positions.

Each axis is resampled on its own: an output position is a weighted sum of a few input positions, taken
by index, which is the same as weighting all their combinations.
"""

import math
from typing import Any, Callable, Literal

import tiki as tk
from tiki.nn.module import Module


def _positions(length: int, scale: float, align_corners: bool) -> tk.array:
    """Where the outputs lie on the input's axis."""
    count = int(scale * length)
    outputs = tk.arange(count, dtype=tk.float32)
    if align_corners:
        return outputs * ((length - 1) / max(count - 1, 1))
    step = 1 / scale
    return outputs * step - ((count - 1) * step - length + 1) / 2


def _nearest(length: int, scale: float) -> list[Any]:
    count = int(scale * length)
    outputs = tk.arange(count, dtype=tk.float32)
    if count > length:
        return [(tk.round((outputs + 0.5) * (length / count) - 0.5), None)]
    return [(outputs * (length / count), None)]


def _linear(length: int, scale: float, align_corners: bool) -> list[Any]:
    at = tk.clip(_positions(length, scale, align_corners), 0, length - 1)
    below = tk.floor(at)
    return [(below, 1 - (at - below)), (tk.ceil(at), at - below)]


def _near_cubic(x: tk.array, a: float) -> tk.array:
    """Keys' kernel for distances up to 1."""
    return ((a + 2.0) * x - (a + 3.0)) * x * x + 1


def _far_cubic(x: tk.array, a: float) -> tk.array:
    """Keys' kernel for distances from 1 to 2."""
    return (((x - 5) * x + 8) * x - 4) * a


def _cubic(length: int, scale: float, align_corners: bool) -> list[Any]:
    at = _positions(length, scale, align_corners)
    below = tk.floor(at)
    taps = []
    for offset, kernel in ((0, _near_cubic), (1, _near_cubic), (-1, _far_cubic), (2, _far_cubic)):
        place = below + offset
        taps.append((place, kernel(tk.abs(at - place), -0.75)))
    return taps


def _triangle(x: tk.array) -> tk.array:
    return tk.maximum(1.0 - x, 0.0)


def _smooth_cubic(x: tk.array) -> tk.array:
    far = tk.where(x <= 2.0, _far_cubic(x, -0.5), 0.0)
    return tk.where(x <= 1.0, _near_cubic(x, -0.5), far)


def _antialiased(length: int, scale: float, kernel: Callable[..., Any], radius: float) -> list[Any]:
    """Taps of a kernel that is as wide as the outputs are apart; weights of places inside add up to 1."""
    at = _positions(length, scale, False)
    width = max(1.0, 1.0 / scale)
    reach = math.ceil(radius * width) + 1
    taps = []
    for offset in range(-reach + 1, reach):
        place = tk.floor(at) + offset
        inside = tk.logical_and(place >= 0, place < length)
        taps.append((place, tk.where(inside, kernel(tk.abs(at - place) / width), 0.0)))
    total = sum(weight for _, weight in taps)
    return [(place, weight / total) for place, weight in taps]


def _resampled(x: tk.array, axis: int, taps: list[Any]) -> tk.array:
    """The weighted sum of `x` taken at places along an axis; places outside are the nearest inside."""
    shape = [1] * x.ndim
    shape[axis] = -1
    parts = []
    for place, weight in taps:
        part = tk.take(x, tk.clip(place, 0, x.shape[axis] - 1).astype(tk.uint32), axis=axis)
        parts.append(part if weight is None else part * weight.reshape(shape))
    return sum(parts[1:], parts[0])


class Upsample(Module):
    """Resamples [batch, ..., channels] by a factor, or by one for each axis of positions."""

    def __init__(
        self,
        scale_factor: float | tuple[Any, ...],
        mode: Literal["nearest", "linear", "cubic"] = "nearest",
        align_corners: bool = False,
        antialias: bool = False,
    ) -> None:
        super().__init__()
        if mode not in ("nearest", "linear", "cubic"):
            raise ValueError(f"mode is '{mode}', expected 'nearest', 'linear' or 'cubic'")
        if antialias and (mode == "nearest" or align_corners):
            raise ValueError("antialias is for 'linear' and 'cubic' without align_corners")
        scales = tuple(map(float, scale_factor)) if isinstance(scale_factor, (list, tuple)) else float(scale_factor)
        object.__setattr__(self, "scale_factor", scales)
        self.mode = mode
        self.align_corners = align_corners
        self.antialias = antialias

    def _extra_repr(self) -> str:
        text = f"scale_factor={self.scale_factor}, mode={self.mode!r}, align_corners={self.align_corners}"
        return text + ", antialias=True" if self.antialias else text

    def _taps(self, length: int, scale: float) -> list[Any]:
        if self.mode == "nearest":
            return _nearest(length, scale)
        if self.antialias:
            return _antialiased(length, scale, *((_triangle, 1.0) if self.mode == "linear" else (_smooth_cubic, 2.0)))
        return (_linear if self.mode == "linear" else _cubic)(length, scale, self.align_corners)

    def __call__(self, x: tk.array) -> tk.array:
        rank = x.ndim - 2
        scales: Any = self.scale_factor
        scales = scales if isinstance(scales, tuple) else (scales,) * rank
        if rank < 1 or len(scales) != rank:
            raise ValueError(f"the input has {x.ndim} axes, expected batch, {len(scales) or 1} of positions, channels")
        for axis, scale in enumerate(scales, 1):
            x = _resampled(x, axis, self._taps(x.shape[axis], scale))
        return x
