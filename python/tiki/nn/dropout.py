"""Dropout: random elements, or random channels, are zeroed in training and the rest scaled."""

from typing import Any

import tiki as tk
from tiki import _core
from tiki.nn.module import Module

_dropout = _core._nn.dropout


class Dropout(Module):
    """Zeroes each element with probability p."""

    _ranks: tuple[Any, ...] | None = None  # how many axes an input may have
    _shared = 0  # axes before the channels that share one draw

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"the dropout probability is {p}, expected one in [0, 1)")
        self._p = p

    def _extra_repr(self) -> str:
        return f"p={self._p}"

    def __call__(self, x: tk.array) -> tk.array:
        if self._ranks is not None and x.ndim not in self._ranks:
            raise ValueError(f"the input has {x.ndim} axes, expected {' or '.join(map(str, self._ranks))}")
        if self._p == 0 or not self.training:
            return x
        return _dropout(x, self._p, self._shared)


class Dropout2d(Dropout):
    """Zeroes each channel of images [..., height, width, channels] with probability p."""

    _ranks = (3, 4)
    _shared = 2


class Dropout3d(Dropout):
    """Zeroes each channel of volumes [..., depth, height, width, channels] with probability p."""

    _ranks = (4, 5)
    _shared = 3
