"""The CuTe layout algebra: how Tiki says where every byte goes.

Values are immutable and print in CuTe's notation:

    >>> from tiki import layout as tl
    >>> a = tl.Layout("(6,2):(8,2)")
    >>> tl.composition(a, tl.Layout((4, 3), (3, 1)))
    Layout('((2,2),3):((24,2),8)')
    >>> a(5), a[0], len(a)
    (40, Layout('6:8'), 2)

Every operation of `tiki layout` is a function here under its names; arguments are layouts, integers, nested
tuples of integers (None or "_" for a free mode of a coordinate) or notation as text. A wrong one is a ValueError
that names the failed condition. In a notebook a layout shows itself as a picture; see docs/layout.md.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tiki import _core
from tiki import array as _array

_calls = _core._layout

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """The operations, which are made from their table below."""


_PLAIN = re.compile(r"[-0-9(), ]+\Z")


def _notation(value: Any) -> str:
    """The notation of an argument."""
    if isinstance(value, _Value):
        return value._text
    if value is None:
        return "_"
    if isinstance(value, bool):
        raise TypeError("a layout argument is a bool, expected an integer, tuple, layout or notation")
    if isinstance(value, int):
        return str(value)
    if isinstance(value, (tuple, list)):
        return "(" + ",".join(_notation(item) for item in value) + ")"
    if isinstance(value, str):
        return value
    raise TypeError(f"a layout argument is {type(value).__name__}, expected an integer, tuple, layout or notation")


def _object(kind: str, text: str) -> Any:
    """A result: plain numbers as Python's own, everything else as a value."""
    if kind == "bool":
        return text == "true"
    if kind == "tuple":
        return _numbers(text) if _PLAIN.match(text) else Tuple(text)
    if kind == "pair":
        tile, inner = text.split("\t")
        return _object("tuple", tile), Layout(inner)
    return _KINDS[kind](text)


def _numbers(text: str) -> Any:
    """Integers and nested tuples; CuTe writes a tuple of one element without a comma."""
    stack: list[list[Any]] = [[]]
    for token in re.findall(r"-?\d+|[()]", text):
        if token == "(":
            stack.append([])
        elif token == ")":
            done = tuple(stack.pop())
            stack[-1].append(done)
        else:
            stack[-1].append(int(token))
    return stack[0][0]


class _Value:
    """A value in its canonical notation."""

    __slots__ = ("_text",)
    _text: str
    _kind = ""

    def __init__(self, notation: Any) -> None:
        kind, text = _calls["parse"](_notation(notation))
        if kind != self._kind:
            raise TypeError(f"{text} is a {kind}, expected a {self._kind}")
        object.__setattr__(self, "_text", text)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Value) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._text,)


class Tuple(_Value):
    """A tuple with leaves that are no plain numbers: dynamic ones (`?`), basis vectors (`2@1`)."""

    __slots__ = ()
    _kind = "tuple"


class Tiler(_Value):
    """A list of tilers, one for each mode: `[16:1;8:1]`."""

    __slots__ = ()
    _kind = "tiler"


class Swizzle(_Value):
    """`S<bits,base,shift>`: made from its three numbers or from notation."""

    __slots__ = ()
    _kind = "swizzle"

    def __init__(self, bits: Any, base: int | None = None, shift: int | None = None) -> None:
        super().__init__(bits if base is None else f"S<{bits},{base},{shift}>")


class _Picture(_Value):
    __slots__ = ()

    def draw(self, *, tv: Any = None, banks: int = 0, compare: Any = None) -> str:
        """An SVG picture: a grid of offsets; with `tv=TILE` the tile of a thread-value layout; with `banks=WIDTH`
        an access pattern of that many bytes a lane on the banks; with `compare=OTHER` both, differences framed."""
        other = None if compare is None else _notation(compare)
        return _calls["draw"](self._text, other, None if tv is None else _notation(tv), banks)

    def banks(self, width: int) -> dict[str, int]:
        """Accesses, passes, least passes and conflicts of a warp that moves `width` bytes a lane."""
        return _calls["banks"](self._text, width)

    def _repr_svg_(self) -> str | None:
        try:
            return self.draw()
        except (ValueError, RuntimeError):
            return None

    def __call__(self, *coord: Any) -> Any:
        """The offset of a coordinate, an integer or a nested tuple; with a free mode (None) the slice."""
        where = coord[0] if len(coord) == 1 else coord
        return _call("slice" if _has_free(where) else "eval", self, where)


def _has_free(coord: Any) -> bool:
    if isinstance(coord, (tuple, list)):
        return any(_has_free(item) for item in coord)
    return coord is None or coord == "_"


class Layout(_Picture):
    """A layout from notation, or from a shape and strides (compact, first mode fastest, without strides)."""

    __slots__ = ()
    _kind = "layout"

    def __init__(self, shape: Any, stride: Any = None) -> None:
        if stride is None and not isinstance(shape, (str, Layout)):
            shape = _calls["call"]("make_layout", (_notation(shape),))[1]
        elif stride is not None:
            shape = f"{_notation(shape)}:{_notation(stride)}"
        super().__init__(shape)

    @property
    def shape(self) -> Any:
        return _call("get_shape", self)

    @property
    def stride(self) -> Any:
        return _call("get_stride", self)

    def __len__(self) -> int:
        return _call("rank", self)

    def __getitem__(self, index: int) -> Layout:
        """Top-level mode number `index`."""
        rank = len(self)
        if not -rank <= index < rank:
            raise IndexError(f"mode {index} of a layout of rank {rank}")
        return _call("get", self, index % rank)

    def __iter__(self) -> Any:
        return (self[index] for index in range(len(self)))


class ComposedLayout(_Picture):
    """`S<3,4,3> o 0 o (8,64):(64,1)`."""

    __slots__ = ()
    _kind = "composed"

    @property
    def shape(self) -> Any:
        return _call("get_shape", self)


_KINDS = {"layout": Layout, "tiler": Tiler, "swizzle": Swizzle, "composed": ComposedLayout}


def _call(name: str, *args: Any) -> Any:
    return _object(*_calls["call"](name, tuple(_notation(arg) for arg in args)))


def parse(notation: str) -> Any:
    """The value of a notation, of whatever kind it has."""
    return _object(*_calls["parse"](notation))


def _define(names: str, usage: str, summary: str, least: int, most: int) -> None:
    first = names.split("|")[0]

    def operation(*args: Any) -> Any:
        if not least <= len(args) <= most:
            wanted = str(least) if least == most else f"{least} to {most}"
            raise TypeError(f"{first}({usage}) takes {wanted} arguments, {len(args)} given")
        return _call(first, *args)

    operation.__doc__ = f"{first}({', '.join(usage.split())}): {summary}."
    for name in names.split("|"):
        operation.__name__ = operation.__qualname__ = name
        globals()[name] = operation
        __all__.append(name)


__all__ = ["Layout", "ComposedLayout", "Swizzle", "Tiler", "Tuple", "parse", "layout_of", "as_layout"]

for _row in _calls["operations"]():
    _define(*_row)


def layout_of(a: _array) -> Layout:
    """The layout of an array's memory, in elements; evaluates it. Row-major (2, 3) is `(2,3):(3,1)`."""
    shape, strides = _calls["of_array"](a)
    return Layout(shape or 1, strides or 0)


def as_layout(a: _array, layout: Any) -> _array:
    """The elements of `a`, row-major, through a layout: one axis a top-level mode, element (i, j) being element
    layout(i, j) of the flattened array. Differentiable. IndexError when the layout leaves the array."""
    value = layout if isinstance(layout, _Picture) else parse(_notation(layout))
    modes = [_call("size", mode) for mode in _shape_modes(value)]
    count = 1
    for length in modes:
        count *= length
    offsets = [value(index) for index in range(count)]
    for offset in offsets:
        if not 0 <= offset < a.size:
            raise IndexError(f"as_layout: {value} reaches element {offset} of an array of {a.size}")
    picked = _core.take(a.reshape(-1), _array(offsets, dtype=_core.int64))
    return picked.reshape(*reversed(modes)).transpose(*reversed(range(len(modes))))


def _shape_modes(value: Any) -> tuple[Any, ...]:
    shape = value.shape
    return shape if isinstance(shape, tuple) else (shape,)
