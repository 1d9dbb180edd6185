"""The CuTe layout algebra: how Tiki says where every byte goes.

Values are immutable, hashable, and print in CuTe's notation:

    >>> from tiki import layout as tl
    >>> a = tl.Layout("(6,2):(8,2)")
    >>> b = tl.Layout((4, 3), (3, 1))
    >>> a @ b
    Layout('((2,2),3):((24,2),8)')
    >>> a(5), a(5, 0), a[0], len(a), a.shape, a.stride
    (40, 40, Layout('6:8'), 2, (6, 2), (8, 2))
    >>> a.right_inverse() == tl.right_inverse(a)
    True

Every operation of `tiki layout` is a function here under its names, and those that act on a layout are its
methods. `a @ b` is the composition, `a / b` the logical divide, `a * b` the logical product. Arguments are layouts,
integers, nested tuples of integers (None or "_" for a free mode of a coordinate) or notation as text. A wrong one is a
ValueError that names the failed condition. In a notebook a layout shows itself as a picture; see docs/layout.md.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tiki import _core
from tiki import array as _array

_calls = _core._layout

_PLAIN = re.compile(r"[-0-9(), ]+\Z")


def _notation(value: Any) -> str:
    """The notation of an argument."""
    if isinstance(value, _Value):
        return value._text
    if value is None:
        return "_"
    if isinstance(value, bool):
        raise TypeError("a layout argument is a bool, expected an integer, tuple, layout or notation")
    if isinstance(value, (tuple, list)):
        return "(" + ",".join(_notation(item) for item in value) + ")"
    if isinstance(value, str):
        return value
    if hasattr(value, "__index__"):
        return str(value.__index__())
    raise TypeError(f"a layout argument is {type(value).__name__}, expected an integer, tuple, layout or notation")


def _object(kind: str, text: str) -> Any:
    """A result: plain numbers as Python's own, everything else as a value."""
    if kind == "bool":
        return text == "true"
    if kind == "tuple":
        return _numbers(text) if _PLAIN.match(text) else _made(Tuple, text)
    if kind == "pair":
        tile, inner = text.split("\t")
        return _object("tuple", tile), _made(Layout, inner)
    return _made(_KINDS[kind], text)


def _made(kind: type[_Value], text: str) -> Any:
    """A value of notation that is canonical already."""
    value = object.__new__(kind)
    object.__setattr__(value, "_text", text)
    return value


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


def _split(text: str, separator: str) -> list[str]:
    """The parts between separators that stand in no bracket."""
    parts, depth, start = [], 0, 0
    for at, byte in enumerate(text):
        depth += (byte in "([{") - (byte in ")]}")
        if byte == separator and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]] if text else []


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
        return self._text == other._text if isinstance(other, _Value) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, (type(self), self._text)


class _Listed(_Value):
    """A value of parts, which are counted, indexed and walked through."""

    __slots__ = ()
    _separator = ","

    def _parts(self) -> list[str]:
        text = self._text
        return _split(text[1:-1], self._separator) if text[0] in "([" else [text]

    def __len__(self) -> int:
        return len(self._parts())

    def __getitem__(self, index: int) -> Any:
        return _parse(self._parts()[index])

    def __iter__(self) -> Any:
        return (_parse(part) for part in self._parts())


class Tuple(_Listed):
    """A tuple with leaves that are no plain numbers: dynamic ones (`?`), basis vectors (`2@1`)."""

    __slots__ = ()
    _kind = "tuple"


class Tiler(_Listed):
    """A list of tilers, one for each mode: `[16:1;8:1]`."""

    __slots__ = ()
    _kind = "tiler"
    _separator = ";"


class Swizzle(_Value):
    """`S<bits,base,shift>`: made from its three numbers or from notation; a function of offsets."""

    __slots__ = ()
    _kind = "swizzle"

    def __init__(self, bits: Any, base: int | None = None, shift: int | None = None) -> None:
        super().__init__(bits if base is None else f"S<{bits},{base},{shift}>")

    def _fields(self) -> list[int]:
        return [int(field) for field in self._text[2:-1].split(",")]

    @property
    def bits(self) -> int:
        return self._fields()[0]

    @property
    def base(self) -> int:
        return self._fields()[1]

    @property
    def shift(self) -> int:
        return self._fields()[2]

    def __call__(self, offset: int) -> int:
        return _call("eval", self, offset)

    def __matmul__(self, other: Any) -> ComposedLayout:
        """The swizzle after a layout."""
        return _call("composition", self, other)


class Picture(str):
    """An SVG picture as text, which a notebook shows."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)

    def save(self, path: Any) -> None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(self)


class _Function(_Value):
    """What layouts and composed layouts share: they map coordinates, have modes, and can be drawn."""

    __slots__ = ()

    if TYPE_CHECKING:  # the operations of the table

        def __getattr__(self, name: str) -> Any: ...

    def __call__(self, *coord: Any) -> Any:
        """The offset of a coordinate, an integer or a nested tuple; with a free mode (None) the slice."""
        where = coord[0] if len(coord) == 1 else coord
        return _call("slice" if _has_free(where) else "eval", self, where)

    @property
    def shape(self) -> Any:
        return _call("get_shape", self)

    @property
    def stride(self) -> Any:
        return _call("get_stride", self)

    def __len__(self) -> int:
        """The rank."""
        return _call("rank", self)

    def __getitem__(self, index: int) -> Any:
        """Top-level mode number `index`."""
        rank = len(self)
        if not -rank <= index < rank:
            raise IndexError(f"mode {index} of a layout of rank {rank}")
        return _call("get", self, index % rank)

    def __iter__(self) -> Any:
        return (self[index] for index in range(len(self)))

    def __matmul__(self, other: Any) -> Any:
        """The composition: (a @ b)(i) == a(b(i))."""
        return _call("composition", self, other)

    def __truediv__(self, other: Any) -> Any:
        """The logical divide."""
        return _call("logical_divide", self, other)

    def __mul__(self, other: Any) -> Any:
        """The logical product."""
        return _call("logical_product", self, other)

    def draw(self, *, tv: Any = None, banks: int = 0, compare: Any = None) -> Picture:
        """An SVG picture: a grid of offsets; with `tv=TILE` the tile of a thread-value layout; with `banks=WIDTH`
        an access pattern of that many bytes a lane on the banks; with `compare=OTHER` both, differences framed."""
        other = None if compare is None else _notation(compare)
        return Picture(_calls["draw"](self._text, other, None if tv is None else _notation(tv), banks))

    def banks(self, width: int) -> dict[str, int]:
        """Accesses, passes, least passes and conflicts of a warp that moves `width` bytes a lane."""
        return _calls["banks"](self._text, width)

    def _repr_svg_(self) -> str | None:
        try:
            return str(self.draw())
        except (ValueError, RuntimeError):
            return None


def _has_free(coord: Any) -> bool:
    if isinstance(coord, (tuple, list)):
        return any(_has_free(item) for item in coord)
    return coord is None or (isinstance(coord, str) and "_" in coord)


class Layout(_Function):
    """A layout from notation, or from a shape and strides (compact, first mode fastest, without strides)."""

    __slots__ = ()
    _kind = "layout"

    def __init__(self, shape: Any, stride: Any = None) -> None:
        if stride is None and not isinstance(shape, (str, Layout)):
            shape = _calls["call"]("make_layout", (_notation(shape),))[1]
        elif stride is not None:
            shape = f"{_notation(shape)}:{_notation(stride)}"
        super().__init__(shape)


class ComposedLayout(_Function):
    """`inner o offset o outer`: `S<3,4,3> o 0 o (8,64):(64,1)`. Operations act on the outer part."""

    __slots__ = ()
    _kind = "composed"

    @property
    def inner(self) -> Any:
        """A swizzle or a layout."""
        return _parse(self._text.split(" o ")[0])

    @property
    def offset(self) -> Any:
        return _parse(self._text.split(" o ")[1])

    @property
    def outer(self) -> Layout:
        return _made(Layout, self._text.split(" o ")[2])


_KINDS = {"layout": Layout, "tiler": Tiler, "swizzle": Swizzle, "composed": ComposedLayout}


def _parse(notation: str) -> Any:
    """The value of a notation, of whatever kind it has."""
    return _object(*_calls["parse"](notation))


def _call(name: str, *args: Any) -> Any:
    return _object(*_calls["call"](name, tuple(_notation(arg) for arg in args)))


def _call_given(name: str, *args: Any) -> Any:
    """The last arguments may be missing, which is None."""
    while args and args[-1] is None:
        args = args[:-1]
    return _call(name, *args)


def draw(layout: Any, *, tv: Any = None, banks: int = 0, compare: Any = None) -> Picture:
    """The picture of a layout or of its notation: see Layout.draw."""
    value = layout if isinstance(layout, _Function) else _parse(layout)
    return value.draw(tv=tv, banks=banks, compare=compare)


# ---- the operations of the table, as functions and methods with parameters of their own ----

__all__ = ["Layout", "ComposedLayout", "Swizzle", "Tiler", "Tuple", "Picture", "draw", "layout_of", "as_layout"]

_NO_METHODS = {"shape_div", "ceil_div", "tuple_add", "tuple_sub", "tuple_product", "tuple_product_each",
               "elem_less", "get_shape", "get_stride", "print"}


def _source(name: str, operation: str, usage: str, own: str | None) -> str:
    """The text of the function of an operation; its argument `own` is self in a method."""
    words = [("layout" if word == "L" else word.strip("[]").lower(), word[0] == "[") for word in usage.split()]
    takes = [f"{word}=None" if optional else word for word, optional in words if word != own]
    passes = ", ".join("self" if word == own else word for word, _ in words)
    call = "_call_given" if any(optional for _, optional in words) else "_call"
    return f"def {name}({', '.join(['self'] * bool(own) + takes)}):\n    return {call}({operation!r}, {passes})\n"


def _define_all() -> None:
    functions, methods, summaries = [], [], {}
    for names, usage, summary, _, _ in _calls["operations"]():
        operation, *aliases = names.split("|")
        own = {"L": "layout", "A": "a"}.get(next((word for word in usage.split() if word in ("L", "A")), ""))
        for name in (operation, *aliases):
            summaries[name] = f"{operation}({', '.join(usage.split())}): {summary}."
            functions.append(_source(name, operation, usage, None))
            if own and operation not in _NO_METHODS and not hasattr(_Function, name):
                methods.append(_source(name, operation, usage, own))
    for texts, holder in ((functions, None), (methods, _Function)):
        made: dict[str, Any] = {"_call": _call, "_call_given": _call_given}
        exec("".join(texts), made)
        for name in summaries.keys() & made.keys():
            made[name].__module__ = __name__
            made[name].__doc__ = summaries[name]
            if holder:
                setattr(holder, name, made[name])
            else:
                globals()[name] = made[name]
    __all__.extend(summaries)


_define_all()

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


# ---- arrays ----


def layout_of(a: _array) -> Layout:
    """The layout of an array's memory, in elements; evaluates it. Row-major (2, 3) is `(2,3):(3,1)`."""
    shape, strides = _calls["of_array"](a)
    return Layout(shape or 1, strides or 0)


def as_layout(a: _array, layout: Any) -> _array:
    """The elements of `a`, row-major, through a layout: one axis a top-level mode, element (i, j) being element
    layout(i, j) of the flattened array. Differentiable. IndexError when the layout leaves the array."""
    value = layout if isinstance(layout, _Function) else _parse(layout) if isinstance(layout, str) else Layout(layout)
    offsets, least, most = _calls["offsets"](_notation(value))
    reached = least if least < 0 else most
    if not 0 <= reached < a.size:
        raise IndexError(f"as_layout: {value} reaches element {reached} of an array of {a.size}")
    modes = [_call("size", mode) for mode in _shape_modes(value)]
    picked = _core.take(a.reshape(-1), _array(memoryview(offsets).cast("q")))
    return picked.reshape(*reversed(modes)).transpose(*reversed(range(len(modes))))


def _shape_modes(value: Any) -> tuple[Any, ...]:
    shape = value.shape
    return shape if isinstance(shape, tuple) else (shape,)
