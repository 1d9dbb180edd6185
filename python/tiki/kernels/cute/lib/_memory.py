"""Memory of a kernel: pointers, tensors (a pointer with shape and stride), register tensors, shared buffers.

A tensor's leaves are Python integers or values of the device. Its address is pointer + swizzle(offset + sum of
coordinate times stride), so slices and tiles of swizzled buffers need no second form. Kernels are made in thread
form: what the layout says is computed here, with everything static folded.
"""

from __future__ import annotations

from typing import Any

from tiki import layout as tl
from tiki.kernels.cute.lib import _contract as contract
from tiki.kernels.cute.lib import _numeric as numeric
from tiki.kernels.cute.lib._flow import Address
from tiki.kernels.cute.lib._numeric import Int32, Numeric, Vector, as_dtype
from tiki.kernels.cute.lib._tape import Ir, Var, current, fail

Shape = Any  # nested tuples of integers and device values
Swizzle = tuple[int, int, int]


# ---- shapes ----


def size_of(shape: Shape) -> Any:
    """How many coordinates a shape has."""
    if not isinstance(shape, tuple):
        return shape
    total: Any = 1
    for mode in shape:
        total = total * size_of(mode)
    return total


def offset_of(coord: Any, shape: Shape, stride: Shape) -> Any:
    """Where a coordinate lies: integers count through nested modes, first mode fastest."""
    if not isinstance(shape, tuple):
        return coord * stride
    if isinstance(coord, tuple):
        if len(coord) != len(shape):
            raise fail(f"{len(coord)} coordinates for {len(shape)} modes")
        return total([offset_of(*parts) for parts in zip(coord, shape, stride)])
    parts = []
    for mode, step in list(zip(shape, stride))[:-1]:
        length = size_of(mode)
        parts.append(offset_of(coord % length, mode, step))
        coord = coord // length
    parts.append(offset_of(coord, shape[-1], stride[-1]) if shape else 0)
    return total(parts)


def _sliced(coord: Any, shape: Shape, stride: Shape, kept: list[tuple[Any, Any]]) -> Any:
    """The offset of what a coordinate fixes; what it leaves is appended."""
    if coord is None:
        kept.append((shape, stride))
        return 0
    if isinstance(coord, tuple) and isinstance(shape, tuple):
        if len(coord) != len(shape):
            raise fail(f"{len(coord)} coordinates for {len(shape)} modes")
        return total([_sliced(*parts, kept) for parts in zip(coord, shape, stride)])
    return offset_of(coord, shape, stride)


def total(parts: list[Any]) -> Any:
    result: Any = 0
    for part in parts:
        result = part if isinstance(result, int) and result == 0 else result + part
    return result


def flat(tree: Any) -> list[Any]:
    return [leaf for item in tree for leaf in flat(item)] if isinstance(tree, tuple) else [tree]


def coalesced(shape: Shape, stride: Shape) -> tuple[Shape, Shape]:
    """One mode with leaves that follow on each other joined."""
    lengths: list[Any] = []
    steps: list[Any] = []
    for length, step in zip(flat(shape), flat(stride)):
        if isinstance(length, int) and length == 1:
            continue
        known = lengths and isinstance(lengths[-1], int) and isinstance(steps[-1], int) and isinstance(step, int)
        if known and steps[-1] * lengths[-1] == step:
            lengths[-1] = lengths[-1] * length
        else:
            lengths.append(length)
            steps.append(step)
    if not lengths:
        return 1, 0
    return (lengths[0], steps[0]) if len(lengths) == 1 else (tuple(lengths), tuple(steps))


def swizzled(offset: Any, swizzle: Swizzle | None) -> Any:
    """S<bits, base, shift> of an offset: `bits` bits at base + shift are added (xor) to those at base."""
    if swizzle is None:
        return offset
    bits, base, shift = swizzle
    mask = ((1 << bits) - 1) << (base + shift)
    return offset ^ ((offset & mask) >> shift)


def layout_parts(layout: Any) -> tuple[Shape, Shape, int, Swizzle | None]:
    """Shape, stride, offset and swizzle of a layout of tiki.layout, of text, or of a DynamicLayout."""
    if isinstance(layout, DynamicLayout):
        return layout.shape, layout.stride, 0, None
    value = tl.parse(layout) if isinstance(layout, str) else layout
    if isinstance(value, tl.Layout):
        return value.shape, value.stride, 0, None
    if isinstance(value, tl.ComposedLayout):
        inner, offset, outer = (part.strip() for part in str(value).split(" o "))
        if not inner.startswith("S<"):
            raise fail(f"a tensor of the layout {value}: only swizzles are composed with layouts here")
        plain = tl.Layout(outer)
        bits, base, shift = (int(word) for word in inner[2:-1].split(","))
        return plain.shape, plain.stride, int(offset), (bits, base, shift) if bits else None
    raise fail(f"{layout!r} is no layout")


class DynamicLayout:
    """A layout with leaves that only the device knows."""

    __slots__ = ("shape", "stride")

    def __init__(self, shape: Shape, stride: Shape) -> None:
        self.shape = shape
        self.stride = stride

    def __repr__(self) -> str:
        return f"{self.shape}:{self.stride}"

    def __call__(self, *coord: Any) -> Any:
        return offset_of(coord[0] if len(coord) == 1 else tuple(coord), self.shape, self.stride)


# ---- pointers ----


class Pointer:
    """An address of elements in a space. `root` is the parameter or buffer that it came from."""

    __slots__ = ("ir", "dtype", "space", "root")

    def __init__(self, ir: Ir, dtype: Any, space: str, root: Any) -> None:
        self.ir = ir
        self.dtype = dtype
        self.space = space
        self.root = root

    def _flatten(self) -> tuple[Any, list[Any]]:
        return (self.dtype, self.space, self.root), [Address(self.ir)]

    @classmethod
    def _unflatten(cls, key: Any, parts: list[Any]) -> Pointer:
        return cls(parts[0].ir, *key)

    def __add__(self, elements: Any) -> Pointer:
        if isinstance(elements, int) and elements == 0:
            return self
        index = numeric.as_numeric(elements)
        if type(index).width < 32:
            index = index.to(Int32)
        return Pointer(
            current().emit("offset", (self.ir, index.ir), {}, self.ir.type), self.dtype, self.space, self.root
        )

    def __repr__(self) -> str:
        return f"<pointer to {self.dtype.__name__} in {self.space} memory>"

    def touch(self, access: int, bytes: int) -> None:
        """Notes what the kernel does behind a parameter, and the alignment that it needs."""
        if isinstance(self.root, contract.Parameter):
            self.root.access |= access
            self.root.align = max(self.root.align, bytes)
        elif isinstance(self.root, Buffer):
            self.root.touched = True

    def load(self, lanes: int = 1, *, mask: Any = None, other: Any = None, **attrs: Any) -> Any:
        """One element, or a vector of `lanes`; without the condition `mask`: `other`, else zero."""
        self.touch(contract.READ, self.dtype.bytes * lanes)
        operands = [self.ir, _truth(mask), _other(other, self.dtype, lanes, mask), None]
        ir = current().emit("load", tuple(operands), attrs, numeric.number_type(self.dtype, lanes))
        return numeric.wrap(self.dtype, ir) if lanes == 1 else Vector(ir, self.dtype, lanes)

    def store(self, value: Any, *, mask: Any = None, **attrs: Any) -> None:
        """Stores an element or a vector, converted to the elements' type."""
        value = (
            value.to(self.dtype)
            if isinstance(value, Vector)
            else numeric.convert(numeric.as_numeric(value), self.dtype)
        )
        self.touch(contract.WRITE, self.dtype.bytes * value.lanes)
        current().emit("store", (self.ir, value.ir, _truth(mask), None), attrs)


def _truth(mask: Any) -> Ir | None:
    if mask is None or mask is True:
        return None
    return numeric.convert(numeric.as_numeric(mask), numeric.Boolean).ir


def _other(other: Any, dtype: Any, lanes: int, mask: Any) -> Ir | None:
    if other is None:
        return None
    if mask is None:
        raise fail("a load with `other` and no `mask`")
    if lanes > 1:
        return (other if isinstance(other, Vector) else numeric.splat(other, dtype, lanes)).ir
    return numeric.convert(numeric.as_numeric(other), dtype).ir


# ---- tensors in memory ----


class RawTensor:
    """A pointer with a layout: `x[i, j]` loads, `x[i, j] = v` stores, `x[i, None]` is a slice."""

    __slots__ = ("iterator", "shape", "stride", "offset", "swizzle")

    def __init__(
        self, iterator: Pointer, shape: Shape, stride: Shape, offset: Any = 0, swizzle: Swizzle | None = None
    ) -> None:
        self.iterator = iterator
        self.shape = shape
        self.stride = stride
        self.offset = offset
        self.swizzle = swizzle

    def _flatten(self) -> tuple[Any, list[Any]]:
        return self.swizzle, [self.iterator, self.shape, self.stride, self.offset]

    @classmethod
    def _unflatten(cls, key: Any, parts: list[Any]) -> RawTensor:
        iterator, shape, stride, offset = parts
        return cls(iterator, shape, stride, offset, key)

    @property
    def element_type(self) -> Any:
        return self.iterator.dtype

    @property
    def memspace(self) -> str:
        return self.iterator.space

    @property
    def rank(self) -> int:
        return len(self.shape) if isinstance(self.shape, tuple) else 1

    @property
    def layout(self) -> Any:
        """A layout of tiki.layout where everything is static."""
        if any(not isinstance(leaf, int) for leaf in [*flat(self.shape), *flat(self.stride), self.offset]):
            return DynamicLayout(self.shape, self.stride)
        plain = tl.Layout(self.shape, self.stride)
        if self.swizzle is None:
            return plain
        return tl.parse("S<{},{},{}> o {} o {}".format(*self.swizzle, self.offset, plain))

    def __repr__(self) -> str:
        return f"<tensor of {self.element_type.__name__} {self.shape}:{self.stride} in {self.memspace} memory>"

    @property
    def T(self) -> RawTensor:
        """The modes in reverse order."""
        if self.rank < 2:
            return self
        return RawTensor(self.iterator, self.shape[::-1], self.stride[::-1], self.offset, self.swizzle)

    def modes(self, coord: Any) -> tuple[Any, ...]:
        coord = coord if isinstance(coord, tuple) else (coord,)
        if isinstance(self.shape, tuple) and len(coord) == 1 and len(self.shape) > 1 and coord[0] is not None:
            return (coord[0],)
        if len(coord) != self.rank:
            raise fail(f"{len(coord)} coordinates for a tensor of {self.rank} modes")
        return coord

    def place(self, coord: Any) -> Any:
        """The offset of a coordinate in elements, before the swizzle."""
        coord = self.modes(coord)
        for one in coord:
            if not isinstance(one, (int, tuple)) and not (isinstance(one, Numeric) and not type(one).is_float):
                raise fail(f"a {type(one).__name__} as coordinate, expected an integer")
        if isinstance(self.shape, tuple) and len(coord) > 1:
            parts = [
                offset_of(c, *coalesced(s, d)) if not isinstance(c, tuple) else offset_of(c, s, d)
                for c, s, d in zip(coord, self.shape, self.stride)
            ]
            return total([self.offset, *parts])
        if isinstance(self.shape, tuple) and len(self.shape) == 1:
            return total([self.offset, offset_of(coord[0], self.shape[0], self.stride[0])])
        return total([self.offset, offset_of(coord[0], self.shape, self.stride)])

    def pointer(self, *coord: Any) -> Pointer:
        """The address of an element."""
        return self.iterator + swizzled(self.place(tuple(coord)), self.swizzle)

    def __getitem__(self, coord: Any) -> Any:
        every = coord if isinstance(coord, tuple) else (coord,)
        return self.slice(every) if any(one is None for one in flat(every)) else self.pointer(*every).load()

    def __setitem__(self, coord: Any, value: Any) -> None:
        self.pointer(*(coord if isinstance(coord, tuple) else (coord,))).store(value)

    def slice(self, coord: tuple[Any, ...]) -> RawTensor:
        """The modes and leaves whose coordinate is None; the others are fixed."""
        coord = self.modes(coord)
        shape = self.shape if isinstance(self.shape, tuple) else (self.shape,)
        stride = self.stride if isinstance(self.shape, tuple) else (self.stride,)
        kept: list[tuple[Any, Any]] = []
        moved = total([_sliced(*parts, kept) for parts in zip(coord, shape, stride)])
        return self.rebased(tuple(length for length, _ in kept), tuple(step for _, step in kept), moved)

    def relaid(self, layout: Any) -> RawTensor:
        """The same memory seen through another layout."""
        shape, stride, _, _ = layout_parts(layout)
        return RawTensor(self.iterator, shape, stride, self.offset, self.swizzle)

    def rebased(self, shape: Shape, stride: Shape, moved: Any) -> RawTensor:
        """Another window on the same memory, `moved` elements on. Without a swizzle the pointer moves."""
        if self.swizzle is None and not isinstance(moved, int):
            return RawTensor(self.iterator + total([self.offset, moved]), shape, stride)
        return RawTensor(self.iterator, shape, stride, total([self.offset, moved]), self.swizzle)

    def load(self, *coord: Any, lanes: int = 1, mask: Any = None, other: Any = None) -> Any:
        """An element or `lanes` elements from a coordinate on; see Pointer.load."""
        return self.pointer(*coord).load(lanes, mask=mask, other=other)

    def store(self, value: Any, *coord: Any, mask: Any = None) -> None:
        """Stores an element or a vector from a coordinate on."""
        self.pointer(*coord).store(value, mask=mask)


# ---- storage ----


class Buffer:
    """A buffer of the block's shared memory."""

    __slots__ = ("ir", "op", "touched", "looped")

    def __init__(self, dtype: Any, layout: str, align: int) -> None:
        trace = current()
        self.ir = trace.emit("shared", (), {"align": align}, ("shared", dtype.scalar, layout), first=True)
        self.op: Any = trace.prologue.ops[-1]
        self.touched = False
        region = trace.region
        self.looped = False
        while region.parent is not None:
            self.looped = self.looped or region.kind != "kernel"
            region = region.parent

    def aligned(self, align: int) -> None:
        """Asks for more alignment, of an instruction that is met later."""
        attrs = dict(self.op.attrs)
        attrs["align"] = max(attrs["align"], align)
        self.op.attrs = tuple(attrs.items())


def make_smem_tensor(dtype: Any, layout: Any, align: int = 16, stages: int = 1) -> RawTensor:
    """A tensor in a shared buffer of its own; the layout is static. Buffers live as long as the kernel. With more
    `stages` there is room for as many, one after the other."""
    dtype = as_dtype(dtype)
    if isinstance(layout, (int, tuple)):
        layout = (
            tl.make_ordered_layout(layout, tuple(range(len(layout)))[::-1])
            if isinstance(layout, tuple)
            else tl.Layout(layout, 1)
        )
    shape, stride, offset, swizzle = layout_parts(layout)
    if any(not isinstance(leaf, int) for leaf in [*flat(shape), *flat(stride)]):
        raise fail("a shared tensor of a size that only the device knows")
    text = str(layout) if stages == 1 else f"{stages * int(tl.cosize(layout))}:1"
    buffer = Buffer(dtype, text, max(align, 128 if swizzle else align))
    ir = current().emit("address", (buffer.ir,), {}, ("pointer", dtype.scalar, "shared"), first=True)
    return RawTensor(Pointer(ir, dtype, "shared", buffer), shape, stride, offset, swizzle)


class RegisterTensor:
    """Elements in registers of each thread: mutable, with indices that are known while the kernel is built."""

    __slots__ = ("ir", "element_type", "shape", "stride", "size")

    def __init__(self, dtype: Any, layout: Any, tv: str | None = None) -> None:
        self.element_type = as_dtype(dtype)
        self.shape, self.stride, _, _ = layout_parts(layout)
        self.size = int(tl.cosize(layout)) if not isinstance(layout, str) else int(tl.cosize(tl.Layout(layout)))
        self.ir: Var = current().emit("registers", (), {}, ("registers", self.element_type.scalar, str(layout), tv))

    memspace = "registers"

    def index(self, coord: Any) -> int:
        place = offset_of(
            coord if not isinstance(coord, tuple) or len(coord) > 1 else coord[0], self.shape, self.stride
        )
        if isinstance(place, Numeric):
            raise fail(
                "a register tensor is indexed with values of the device; registers have no addresses, unroll with "
                "range_constexpr"
            )
        if not 0 <= place < self.size:
            raise fail(f"element {coord} of a register tensor of {self.size}")
        return int(place)

    def get(self, index: int, lanes: int = 1) -> Any:
        attrs = {"index": index} if index else {}
        ir = current().emit("get", (self.ir,), attrs, numeric.number_type(self.element_type, lanes))
        return numeric.wrap(self.element_type, ir) if lanes == 1 else Vector(ir, self.element_type, lanes)

    def set(self, index: int, value: Any) -> None:
        value = (
            value.to(self.element_type)
            if isinstance(value, Vector)
            else numeric.convert(numeric.as_numeric(value), self.element_type)
        )
        current().emit("set", (self.ir, value.ir), {"index": index} if index else {})

    def __getitem__(self, coord: Any) -> Any:
        return self.get(self.index(coord))

    def __setitem__(self, coord: Any, value: Any) -> None:
        self.set(self.index(coord), value)

    def fill(self, value: Any) -> None:
        for index in range(self.size):
            self.set(index, value)

    def __repr__(self) -> str:
        return f"<register tensor of {self.size} {self.element_type.__name__}>"


def make_rmem_tensor(shape: Any, dtype: Any) -> RegisterTensor:
    """A register tensor of a shape, first mode fastest."""
    return RegisterTensor(dtype, tl.make_layout(shape) if isinstance(shape, (int, tuple)) else shape)
