"""The kernels of the library as differentiable ops, for arrays on the emulator or a GPU.

Each takes `schedule`, a dictionary of fields that differ from the default; `schedule(name, *operands)` gives the default,
to be read and changed. A schedule that cannot be is an error of the call, before anything is built. `target` is who builds
the kernel for a GPU, "ptx" or "cute"; one that is named never falls back to the other, and its gradients are built by it too.
`plan` gives the kernels of a call themselves, for arrays of any strides.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any

from tiki import _core
from tiki._kernel_op import _by

_Schedule = Mapping[str, int] | None


class Plan:
    """A call of a kernel of the library: `launches`, each a kernel and what its parameters are bound to, and the bytes
    of scratch memory between them."""

    def __init__(self, name: str, launches: list[tuple[_core.Kernel, Any]], scratch: list[int]) -> None:
        self.name = name
        self.launches = launches
        self.scratch = scratch

    @property
    def kernels(self) -> list[_core.Kernel]:
        """The kernels, in the order of the launches."""
        return [kernel for kernel, _ in self.launches]

    def __repr__(self) -> str:
        return f"<plan of {self.name}: {len(self.launches)} launches>"

    def emulate(self, *arrays: Any, seed: int = 0, resident: int = 0) -> list[Any]:
        """Runs the launches on the CPU, on the memory of NumPy arrays laid as those of the plan, and gives what the
        emulator says of each; None for a tensor that is missing."""
        scratch = [bytearray(count) for count in self.scratch]
        memory = [None if array is None else _memory(array) for array in arrays]
        reports = []
        for kernel, arguments in self.launches:
            values: dict[str, list[Any]] = {"tensor": memory, "scratch": list(scratch)}
            given = tuple(values[kind][value] if kind in values else value for kind, value in arguments)
            reports.append(types.SimpleNamespace(**kernel.emulate(given, seed, resident)))
        return reports


def _memory(array: Any) -> Any:
    """The bytes from an array's lowest element to its highest, and where its first element lies among them."""
    import numpy

    if array.size == 0:
        return bytearray(0)
    array = array.reshape(1) if array.ndim == 0 else array
    extents = [(length - 1) * stride for length, stride in zip(array.shape, array.strides)]
    low, high = sum(min(one, 0) for one in extents), sum(max(one, 0) for one in extents)
    first = array[tuple(slice(-1, None) if stride < 0 else slice(0, 1) for stride in array.strides)].reshape(-1)[:1]
    whole = numpy.lib.stride_tricks.as_strided(first, ((high - low) // array.itemsize + 1,), (array.itemsize,))
    return whole.view("u1"), -low


def plan(name: str, *arrays: Any, numbers: tuple[float, ...] = (), schedule: _Schedule = None, align: int = 0) -> Plan:
    """The kernels of a call on arrays of NumPy (any strides; None for a tensor that is missing), with a schedule's
    fields that differ from the default. `align`: bytes that the arrays are aligned to, 0 for those of an element."""
    from tiki.kernels.cute.lib._numeric import as_dtype
    from tiki.kernels.cute.lib._specs import row_major

    tensors: list[Any] = []
    for array in arrays:
        if array is None:
            tensors.append(None)
            continue
        shape = tuple(array.shape)
        stride = tuple(stride // array.itemsize for stride in array.strides) if array.size else row_major(shape)
        tensors.append((as_dtype(array.dtype).scalar, shape, stride, align or array.itemsize))
    text = None if schedule is None else ", ".join(f"{key} = {value}" for key, value in schedule.items())
    numbers = tuple(float(number) for number in numbers)
    return Plan(name, *_core._library["plan"](name, tuple(tensors), numbers, text))


def schedule(name: str, *operands: _core.array | None) -> dict[str, int]:
    """The default schedule of a kernel for operands, as fields."""
    text: str = _core._device["schedule"](name, operands)
    fields = (field.split("=") for field in text.split(",") if field.strip())
    return {key.strip(): int(value) for key, value in fields}


def _call(
    name: str, operands: tuple[_core.array | None, ...], number: float, fields: _Schedule, target: str | None
) -> _core.array:
    text = None if fields is None else ", ".join(f"{key} = {value}" for key, value in fields.items())
    with _by(target):
        result: _core.array = _core._device["library"](name, operands, number, text)
        return result


def rms_norm(
    x: _core.array,
    weight: _core.array | None = None,
    eps: float = 1e-5,
    schedule: _Schedule = None,
    target: str | None = None,
) -> _core.array:
    """x / sqrt(mean(x^2) + eps) * weight over the last axis."""
    return _call("rms_norm", (x, weight), eps, schedule, target)


def softmax(x: _core.array, schedule: _Schedule = None, target: str | None = None) -> _core.array:
    """exp(x - max) / sum over the last axis."""
    return _call("softmax", (x,), 0.0, schedule, target)


def transpose(x: _core.array, schedule: _Schedule = None, target: str | None = None) -> _core.array:
    """The last two axes exchanged, in memory."""
    return _call("transpose", (x,), 0.0, schedule, target)


def column_sum(x: _core.array, schedule: _Schedule = None, target: str | None = None) -> _core.array:
    """The sum over all axes but the last, added in float32; the dtype of x."""
    return _call("column_sum", (x,), 0.0, schedule, target)


def matmul(a: _core.array, b: _core.array, schedule: _Schedule = None, target: str | None = None) -> _core.array:
    """a @ b of one half dtype with sums in float32, by mma.sync."""
    return _call("gemm", (a, b), 0.0, schedule, target)


def hopper_matmul(a: _core.array, b: _core.array, schedule: _Schedule = None, target: str | None = None) -> _core.array:
    """The same by TMA and wgmma; rows in memory are multiples of 16 bytes."""
    return _call("hopper_gemm", (a, b), 0.0, schedule, target)
