"""`cute`: decorators, layouts, tensors, loops. The names are CuTe DSL's; docs/kernel-authoring.md lists them."""

from __future__ import annotations

import functools
from typing import Any

from tiki import layout as tl
from tiki.kernels.cute.lib import _contract as contract
from tiki.kernels.cute.lib import _numeric as numeric
from tiki.kernels.cute.lib import _math as math
from tiki.kernels.cute.lib import arch
from tiki.kernels.cute.lib._async import TensorMap
from tiki.kernels.cute.lib._flow import const_expr, range_constexpr
from tiki.kernels.cute.lib._flow import device_range as range
from tiki.kernels.cute.lib._host import HostTensor, compile, empty, empty_like
from tiki.kernels.cute.lib._kernel import jit, kernel
from tiki.kernels.cute.lib._specs import Constexpr, TensorSpec, dynamic
from tiki.kernels.cute.lib._memory import (
    DynamicLayout,
    Pointer,
    RegisterTensor,
    flat,
    layout_parts,
    make_rmem_tensor,
    make_smem_tensor,
    offset_of,
    size_of,
)
from tiki.kernels.cute.lib._memory import RawTensor as Tensor
from tiki.kernels.cute.lib._numeric import as_dtype, select, vector
from tiki.kernels.cute.lib._tape import KernelError, fail

where = select
make_fragment = make_rmem_tensor

# ---- layouts ----


def make_layout(shape: Any, *, stride: Any = None) -> Any:
    """A layout; without strides the first mode is fastest. Leaves may be values of the device."""
    leaves = [*flat(shape), *flat(stride if stride is not None else 1)]
    if all(isinstance(leaf, int) for leaf in leaves):
        return tl.make_layout(shape) if stride is None else tl.Layout(shape, stride)
    if stride is None:
        raise fail("a layout with leaves of the device needs its strides")
    return DynamicLayout(shape, stride)


def make_ordered_layout(shape: Any, order: Any) -> Any:
    """A compact layout whose modes are contiguous in an order, 0 the fastest."""
    return tl.make_ordered_layout(shape, order)


def make_swizzle(bits: int, base: int, shift: int) -> Any:
    """S<bits, base, shift>: which bits of an offset are added to which."""
    return tl.Swizzle(bits, base, shift)


def make_composed_layout(inner: Any, offset: Any, outer: Any) -> Any:
    """inner(offset + outer(coordinate))."""
    return tl.make_composed_layout(inner, offset, outer)


def make_identity_layout(shape: Any) -> Any:
    """The layout whose offsets are coordinates."""
    return tl.make_identity_layout(shape)


def tile_to_shape(atom: Any, shape: Any, order: Any) -> Any:
    """A layout repeated until it covers a shape, modes in an order."""
    return tl.tile_to_shape(atom, shape, order)


def _of_tensors(function: Any) -> Any:
    """An operation on layouts that takes tensors too, whose extents are all known: the same memory, laid otherwise."""

    @functools.wraps(function)
    def operation(value: Any, *args: Any) -> Any:
        if not isinstance(value, (Tensor, HostTensor)):
            return function(value, *args)
        layout = value.layout
        if isinstance(layout, DynamicLayout):
            raise fail(f"{function.__name__} of a tensor whose extents are known at launch only")
        if isinstance(layout, tl.ComposedLayout):
            raise fail(f"{function.__name__} of a tensor with a swizzle; make the tensor of its layout")
        return value.relaid(function(layout, *args))

    return operation


def make_layout_tv(thr_layout: Any, val_layout: Any) -> tuple[Any, Any]:
    """A tile whose threads lie as one layout says and have values as another says: the tile's shape, and its layout
    of (thread, value)."""
    both = tl.raked_product(thr_layout, val_layout)
    counts = tl.make_layout((tl.size(thr_layout), tl.size(val_layout)))
    tiler = tuple(size_of(mode) for mode in both.shape)
    return tiler, tl.composition(tl.right_inverse(both), counts)


composition = _of_tensors(tl.composition)
coalesce = _of_tensors(tl.coalesce)
flat_divide = _of_tensors(tl.flat_divide)
logical_divide = _of_tensors(tl.logical_divide)
tiled_divide = _of_tensors(tl.tiled_divide)
zipped_divide = _of_tensors(tl.zipped_divide)
complement = tl.complement
cosize = tl.cosize
logical_product = tl.logical_product
blocked_product = tl.blocked_product
raked_product = tl.raked_product
right_inverse = tl.right_inverse
left_inverse = tl.left_inverse
recast_layout = tl.recast_layout


def size(value: Any, mode: Any = None) -> Any:
    """How many elements a shape, layout or tensor has, or one of its modes (a number, or a path [1, 0])."""
    shape: Any = (
        value if isinstance(value, (int, tuple)) or isinstance(value, (numeric.Numeric, contract.Dim)) else value.shape
    )
    for one in mode if isinstance(mode, (list, tuple)) else [] if mode is None else [mode]:
        shape = shape[one]
    return size_of(shape)


def rank(value: Any) -> int:
    """How many modes a shape, layout or tensor has."""
    shape = value if isinstance(value, (int, tuple)) else value.shape
    return len(shape) if isinstance(shape, tuple) else 1


def ceil_div(a: Any, b: Any) -> Any:
    """a / b rounded up, of numbers from 0 by numbers from 1."""
    if isinstance(a, contract.Dim) or isinstance(b, contract.Dim):
        return contract.combine("ceildiv", a, b)
    return (a + (b - 1)) // b


def crd2idx(coord: Any, layout: Any) -> Any:
    """The offset of a coordinate."""
    shape, stride, offset, _ = layout_parts(layout)
    return offset + offset_of(coord, shape, stride)


# ---- tensors ----


def make_tensor(iterator: Any, layout: Any) -> Any:
    """A pointer seen through a layout; in a host function, an array seen through one."""
    if isinstance(iterator, HostTensor):
        return iterator.relaid(layout)
    return Tensor(iterator, *layout_parts(layout))


def recast_ptr(pointer: Pointer, dtype: Any) -> Pointer:
    """The same address with other elements."""
    from tiki.kernels.cute.lib._tape import current

    dtype = as_dtype(dtype)
    type_ = ("pointer", dtype.scalar, pointer.space)
    return Pointer(current().emit("pointer_cast", (pointer.ir,), {}, type_), dtype, pointer.space, pointer.root)


def local_tile(tensor: Any, tile: Any, coord: Any) -> Any:
    """The tile of a tensor at a coordinate of tiles, for modes of one leaf."""
    tile = tile if isinstance(tile, tuple) else (tile,)
    coord = coord if isinstance(coord, tuple) else (coord,)
    if len(tile) != tensor.rank or len(coord) != tensor.rank:
        raise fail(f"a tile of {len(tile)} modes at {len(coord)} coordinates of a tensor of {tensor.rank} modes")
    stride = tensor.stride if isinstance(tensor.shape, tuple) else (tensor.stride,)
    for step in stride:
        if isinstance(step, tuple):
            raise fail(f"a tile of {tensor!r}, whose modes have several leaves")
    moved: Any = 0
    for length, place, step in zip(tile, coord, stride):
        moved = moved + place * length * step
    return tensor.rebased(tile, stride, moved)


__all__ = [
    "Constexpr", "DynamicLayout", "KernelError", "Pointer", "RegisterTensor", "Tensor", "TensorMap", "TensorSpec", "arch",
    "ceil_div", "compile", "const_expr", "crd2idx", "dynamic", "empty", "empty_like", "jit", "kernel", "local_tile",
    "make_fragment", "make_layout", "make_layout_tv",
    "make_ordered_layout", "make_rmem_tensor", "make_smem_tensor", "make_swizzle", "make_tensor", "math", "range",
    "range_constexpr", "rank", "recast_ptr", "size", "tile_to_shape", "vector", "where",
]  # fmt: skip
