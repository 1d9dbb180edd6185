"""The kernels of the library as differentiable ops, for arrays on the emulator or a GPU.

Each takes `schedule`, a dictionary of fields that differ from the default; `schedule(name, *operands)` gives the default,
to be read and changed. A schedule that cannot be is an error of the call, before anything is built.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tiki import _core

_Schedule = Mapping[str, int] | None


def schedule(name: str, *operands: Any) -> dict[str, int]:
    """The default schedule of a kernel for operands, as fields."""
    text: str = _core._device["schedule"](name, operands)
    fields = (field.split("=") for field in text.split(",") if field.strip())
    return {key.strip(): int(value) for key, value in fields}


def _call(name: str, operands: tuple[Any, ...], number: float, fields: _Schedule) -> Any:
    text = None if fields is None else ", ".join(f"{key} = {value}" for key, value in fields.items())
    return _core._device["library"](name, operands, number, text)


def rms_norm(x: Any, weight: Any = None, eps: float = 1e-5, schedule: _Schedule = None) -> Any:
    """x / sqrt(mean(x^2) + eps) * weight over the last axis."""
    return _call("rms_norm", (x, weight), eps, schedule)


def softmax(x: Any, schedule: _Schedule = None) -> Any:
    """exp(x - max) / sum over the last axis."""
    return _call("softmax", (x,), 0.0, schedule)


def transpose(x: Any, schedule: _Schedule = None) -> Any:
    """The last two axes exchanged, in memory."""
    return _call("transpose", (x,), 0.0, schedule)


def column_sum(x: Any, schedule: _Schedule = None) -> Any:
    """The sum over all axes but the last, in float32."""
    return _call("column_sum", (x,), 0.0, schedule)


def matmul(a: Any, b: Any, schedule: _Schedule = None) -> Any:
    """a @ b of one half dtype with sums in float32, by mma.sync."""
    return _call("gemm", (a, b), 0.0, schedule)


def hopper_matmul(a: Any, b: Any, schedule: _Schedule = None) -> Any:
    """The same by TMA and wgmma; rows in memory are multiples of 16 bytes."""
    return _call("hopper_gemm", (a, b), 0.0, schedule)
