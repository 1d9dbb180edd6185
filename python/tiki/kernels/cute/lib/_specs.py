"""What is known of arguments before a launch: element types, extents, strides, constants that can be compared."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from tiki.kernels.cute.lib._memory import RawTensor, flat
from tiki.kernels.cute.lib._numeric import _BY_NAME, Numeric, NumericMeta, as_dtype
from tiki.kernels.cute.lib._tape import KernelError, fail

__all__ = ["Constexpr", "KernelError", "TensorSpec"]


if TYPE_CHECKING:
    _T = TypeVar("_T")
    Constexpr = Annotated[_T, "known while the kernel is built"]
else:

    class Constexpr:
        """The annotation of a parameter that is known while the kernel is built: Constexpr, or Constexpr[int]."""

        def __class_getitem__(cls, item: Any) -> Any:
            return cls


class TensorSpec:
    """What is known of a tensor before a launch: element type, shape, strides and alignment.

    An extent is an integer, a name ("n": known at launch, the same wherever the name is used) or None (known at
    launch). Without strides the last mode is contiguous. `align` is in bytes; the launch checks it. Modes of several
    leaves, and an offset of the first element, are for tensors whose extents are all integers."""

    __slots__ = ("dtype", "shape", "stride", "align", "offset", "array")

    def __init__(self, dtype: Any, shape: Any, stride: Any = None, align: int = 0, offset: int = 0) -> None:
        self.dtype = as_dtype(dtype)
        self.shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
        self.stride = None if stride is None else tuple(stride) if isinstance(stride, (tuple, list)) else (stride,)
        self.align = align or self.dtype.bytes
        self.offset = offset
        self.array: Any = None  # the argument itself, of `dynamic`
        for extent in [*flat(self.shape), *flat(self.stride or ())]:
            if not (extent is None or isinstance(extent, (int, str))):
                raise fail(f"an extent {extent!r} of a tensor, expected an integer, a name or None")
        if self.stride is not None and len(self.stride) != len(self.shape):
            raise fail(f"{len(self.stride)} strides for {len(self.shape)} modes")
        nested = any(isinstance(mode, tuple) for mode in self.shape)
        if (nested or offset) and not self.is_static:
            raise fail(
                f"a tensor {self.shape} with modes of several leaves or an offset: all extents are integers then"
            )
        if nested and self.stride is None:
            raise fail(f"a tensor {self.shape} with modes of several leaves needs its strides")

    @property
    def is_static(self) -> bool:
        return all(isinstance(extent, int) for extent in [*flat(self.shape), *flat(self.stride or ())])

    def key(self) -> Any:
        return ("tensor", self.dtype, self.shape, self.stride, self.align, self.offset)

    def alone(self) -> TensorSpec:
        """The same without the argument."""
        return (
            TensorSpec(self.dtype, self.shape, self.stride, self.align, self.offset) if self.array is not None else self
        )

    def __repr__(self) -> str:
        return f"TensorSpec({self.dtype.__name__}, {self.shape}, stride={self.stride}, align={self.align})"


def dynamic(array: Any, modes: Any = None, align: int = 0) -> TensorSpec:
    """An array some of whose extents (all, without `modes`) are left to the launch, so that one kernel serves them
    all: for `lower`, and as an argument of host functions."""
    if not is_array(array):
        raise fail(f"cute.dynamic of {array!r}, expected an array")
    shape = tuple(array.shape)
    rank = len(shape)
    if modes is not None and not isinstance(modes, Iterable):
        raise fail(f"cute.dynamic: modes {modes!r}, expected a sequence of integers")
    named = range(rank) if modes is None else tuple(modes)
    if any(not isinstance(mode, int) or not -rank <= mode < rank for mode in named):
        raise fail(
            f"cute.dynamic: modes {list(named)!r} of an array with {rank}, expected integers from {-rank} to {rank - 1}"
        )
    chosen = [mode % rank for mode in named]
    extents = tuple(None if i in chosen else extent for i, extent in enumerate(shape))
    strides = element_strides(array)
    steps = None if strides is None else tuple(None if i in chosen else step for i, step in enumerate(strides))
    if steps and strides and strides[-1] == 1:
        steps = (*steps[:-1], 1)
    spec = TensorSpec(array.dtype, extents, steps, align)
    spec.array = array
    return spec


def is_array(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, (Numeric, RawTensor))


def number_of(value: Any) -> Any:
    """A number of NumPy as one of Python; other values as they are."""
    return value.item() if type(value).__module__ == "numpy" and getattr(value, "shape", None) == () else value


def spec_of(array: Any) -> TensorSpec:
    """What is known of an array: everything."""
    return TensorSpec(array.dtype, tuple(array.shape), element_strides(array))


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of contiguous rows."""
    strides: list[int] = []
    step = 1
    for extent in reversed(shape):
        strides.insert(0, step)
        step *= extent
    return tuple(strides)


def element_strides(array: Any) -> tuple[int, ...] | None:
    """The strides of an array in elements, None for one whose last mode is contiguous."""
    strides = getattr(array, "strides", None)
    if strides is None or callable(strides):
        return None
    elements = tuple(stride // array.itemsize for stride in strides)
    same = all(a == b or n <= 1 for a, b, n in zip(elements, row_major(tuple(array.shape)), array.shape))
    return None if same or 0 in array.shape else elements


def name_of(dtype: Any) -> str:
    """The name that Tiki and NumPy have for an element type."""
    return next(name for name, one in _BY_NAME.items() if one is dtype)


# ---- values that are compared ----

_PLAIN = (bool, int, str, bytes, type(None), NumericMeta)


class _Identity:
    """A value that cannot be compared: equal to itself only."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def hashable(value: Any) -> Any:
    """A constant as a part of a key. Values that compare by what they are (layouts, say) count as they compare;
    other objects are equal to themselves only."""
    if isinstance(value, float):
        return ("float", repr(value))
    if isinstance(value, _PLAIN):
        return (type(value), value)
    if isinstance(value, (tuple, list)):
        return (type(value), tuple(hashable(item) for item in value))
    if isinstance(value, dict):
        return (dict, tuple((key, hashable(item)) for key, item in value.items()))
    if isinstance(value, Numeric) or is_array(value):
        return _Identity(value)
    kind: Any = type(value)
    by_value = kind.__eq__ is not object.__eq__ and kind.__hash__ not in (None, object.__hash__)
    return (kind, value) if by_value else _Identity(value)
