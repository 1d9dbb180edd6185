"""What a launch of a kernel takes: parameters, sizes as expressions over them, grid and preconditions."""

from __future__ import annotations

from typing import Any

from tiki.kernels.cute.lib import _numeric as numeric
from tiki.kernels.cute.lib._tape import Var, current, fail

READ, WRITE = 1, 2


class Parameter:
    """A parameter of the kernel: pointer or number. Access and alignment grow as the body is traced."""

    def __init__(self, name: str, dtype: Any, *, pointer: bool, align: int = 0, nonneg: bool = False) -> None:
        region = current().prologue
        self.name = name
        self.dtype = dtype
        self.pointer = pointer
        self.align = align or dtype.bytes
        self.access = 0
        self.nonneg = nonneg
        self.size: Any = None  # Dim or int: elements behind a pointer
        self.extents: Any = None  # shape and strides of a tensor, Dims or ints
        self.var = Var(("pointer", dtype.scalar, "global") if pointer else numeric.number_type(dtype), region)
        self.var.name = name


class Dim:
    """An integer that is known at launch: a parameter, a number, or both combined with + - * // % ceil_div min max.

    Division is of numbers from 0 by numbers from 1."""

    __slots__ = ("kind", "left", "right")

    def __init__(self, kind: str, left: Any, right: Any = None) -> None:
        self.kind = kind
        self.left = left
        self.right = right

    def __add__(self, other: Any) -> Any:
        return combine("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return combine("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return combine("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return combine("sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return combine("mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return combine("mul", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return combine("div", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return combine("div", other, self)

    def __mod__(self, other: Any) -> Any:
        return combine("mod", self, other)

    def __bool__(self) -> bool:
        raise fail("a size that is known at launch only, as a Python condition")

    def __repr__(self) -> str:
        if self.kind == "param":
            return str(self.left.name)
        return f"{self.kind}({self.left!r}, {self.right!r})"

    def on_device(self) -> Any:
        """The value inside the kernel."""
        if self.kind == "param":
            return numeric.wrap(self.left.dtype, self.left.var, self.left.nonneg)
        left, right = numeric.as_numeric(self.left), numeric.as_numeric(self.right)
        if self.kind in ("min", "max"):
            return numeric.extreme(self.kind, left, right)
        if self.kind == "ceildiv":
            return (left + (right - 1)) // right
        return numeric.binary({"add": "+", "sub": "-", "mul": "*", "div": "//", "mod": "%"}[self.kind], left, right)


def combine(kind: str, left: Any, right: Any) -> Any:
    """An operation on sizes; of plain integers at once."""
    if isinstance(left, numeric.Numeric) or isinstance(right, numeric.Numeric):
        return NotImplemented
    if not isinstance(left, (int, Dim)) or not isinstance(right, (int, Dim)):
        raise fail(f"{kind} of {left!r} and {right!r}: sizes of a launch are integers")
    if isinstance(left, int) and isinstance(right, int):
        plain = {
            "add": left + right,
            "sub": left - right,
            "mul": left * right,
            "min": min(left, right),
            "max": max(left, right),
        }
        if kind in plain:
            return plain[kind]
        return {"div": left // right, "mod": left % right, "ceildiv": -(-left // right)}[kind]
    if kind == "mul" and 1 in (left, right):
        return right if left == 1 else left
    if kind in ("div", "ceildiv") and right == 1:
        return left
    if kind == "add" and 0 in (left, right):
        return right if left == 0 else left
    return Dim(kind, left, right)


def expression(lowering: Any, dim: Any) -> int:
    """The number of an expression in the builder's contract."""
    if isinstance(dim, int):
        return int(lowering.builder.expr_const(dim))
    if not isinstance(dim, Dim):
        raise fail(f"{dim!r} in a grid, expected an integer or a size of a parameter")
    if dim.kind == "param":
        return int(lowering.builder.expr_param(lowering.numbers[id(dim.left.var)]))
    return int(lowering.builder.expr(dim.kind, expression(lowering, dim.left), expression(lowering, dim.right)))


def declare(lowering: Any, trace: Any, grid: Any, block: Any, cluster: Any, config: Any) -> None:
    """Parameters, preconditions and launch, before the body."""
    builder = lowering.builder
    for param in trace.params:
        size = -1 if param.size is None else expression(lowering, param.size)
        access = (param.access or READ) if param.pointer else READ
        number = builder.param(param.name, param.var.type, access, param.align if param.pointer else 0, size)
        lowering.numbers[id(param.var)] = number
    for map_ in trace.maps:
        map_.declare(lowering)
    for left, relation, right in trace.requires:
        builder.require(expression(lowering, left), relation, expression(lowering, right))
    builder.grid(*(expression(lowering, extent) for extent in grid))
    builder.block(*block)
    if cluster is not None:
        builder.cluster(*(expression(lowering, extent) for extent in cluster))
    if config.smem:
        builder.dynamic_shared(expression(lowering, config.smem))
    if config.cooperative:
        builder.cooperative()
    if config.min_blocks:
        builder.min_blocks(config.min_blocks)
