"""Numbers of a kernel: `Int32`, `Float16`, ..., their vectors and operators.

The classes are element types and the types of values at once, as in CuTe DSL: `Float32(x)` converts, and
`tensor.element_type` is one of them. Promotion is CuTe DSL's: the wider type wins, a float wins over an integer,
f16 with bf16 is f32; a Python number counts as Int32 (Int64 where it does not fit) or Float32. Integer division
and remainder are Python's (towards minus infinity).
"""

from __future__ import annotations

import struct
from typing import Any

from tiki.kernels.cute.lib._tape import Const, Ir, Var, current, fail


class NumericMeta(type):
    """Element types print as their names and compare by identity."""

    scalar: str
    width: int
    is_float: bool
    signed: bool

    def __repr__(cls) -> str:
        return cls.__name__

    @property
    def is_integer(cls) -> bool:
        return not cls.is_float and cls.width > 1

    @property
    def bytes(cls) -> int:
        return max(cls.width // 8, 1)


def number_type(dtype: Any, lanes: int = 1) -> tuple[Any, ...]:
    return ("number", dtype.scalar, lanes)


def _round(dtype: Any, value: Any) -> Any:
    """A Python number as the type holds it."""
    if dtype.width == 1:
        return int(bool(value))
    if not dtype.is_float:
        wrapped = int(value) & ((1 << dtype.width) - 1)
        return wrapped - (1 << dtype.width) if wrapped >> (dtype.width - 1) else wrapped
    value = float(value)
    if dtype.scalar == "f32":
        return _packed("f", value)
    return _packed("e", value) if dtype.scalar == "f16" else value


def _packed(code: str, value: float) -> float:
    try:
        return float(struct.unpack(code, struct.pack(code, value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


class Numeric(metaclass=NumericMeta):
    """A value of one element type. Made from a Python number or converted from another value."""

    __slots__ = ("ir", "nonneg")
    scalar = ""
    width = 0
    is_float = False
    signed = True
    lanes = 1

    def __init__(self, value: Any) -> None:
        self.nonneg = False
        if isinstance(value, Numeric):
            self.ir = convert(value, type(self)).ir
        elif isinstance(value, (bool, int, float)):
            self.ir = constant(type(self), value)
        else:
            raise fail(f"{type(self).__name__} of a {type(value).__name__}, expected a number")

    # ---- what it is ----

    @property
    def dtype(self) -> Any:
        return type(self)

    @property
    def is_constant(self) -> bool:
        return isinstance(self.ir, Const)

    def to(self, dtype: Any) -> Numeric:
        """The value as another element type."""
        return convert(self, as_dtype(dtype))

    def __repr__(self) -> str:
        if isinstance(self.ir, Const):
            return f"{type(self).__name__}({self.ir.value})"
        return f"<{type(self).__name__} {self.ir.name or 'value'}>"

    def __hash__(self) -> int:
        if isinstance(self.ir, Const):
            return hash(self.ir)
        raise fail(f"a {type(self).__name__} of the device as a key: its value is not known while the kernel is built")

    def __format__(self, spec: str) -> str:
        if isinstance(self.ir, Const):
            return format(self.ir.value, spec)
        raise fail(f"a {type(self).__name__} of the device in a text: its value is not known while the kernel is built")

    def __round__(self, digits: Any = None) -> Any:
        raise fail(f"round of a {type(self).__name__} of the device; use cute.math.rint, floor or ceil, and .to(Int32)")

    def __divmod__(self, other: Any) -> Any:
        raise fail("divmod of a value of the device; write // and %")

    def __matmul__(self, other: Any) -> Any:
        raise fail("@ of a value of the device; products of tiles are Gemm's")

    __rdivmod__, __rmatmul__ = __divmod__, __matmul__

    def __iter__(self) -> Any:
        raise fail(f"a {type(self).__name__} of the device where Python needs something to go over")

    def __len__(self) -> int:
        raise fail(f"len of a {type(self).__name__} of the device")

    def __getitem__(self, index: Any) -> Any:
        raise fail(f"an element of a {type(self).__name__}, which is a number")

    def __enter__(self) -> Any:
        raise fail(f"with of a {type(self).__name__} of the device; write if")

    def __exit__(self, *error: Any) -> None: ...

    # ---- what it cannot be while the kernel is built ----

    def __bool__(self) -> bool:
        raise fail(
            f"a {type(self).__name__} of the device as a Python condition: only functions with @cute.jit or "
            f"@cute.kernel "
            "are captured, and of them not comprehensions, `in` and `match`"
        )

    def __index__(self) -> int:
        if isinstance(self.ir, Const) and not type(self).is_float:
            return int(self.ir.value)
        raise fail(f"a {type(self).__name__} of the device where Python needs an integer at build time")

    def __int__(self) -> int:
        return self.__index__()

    def __float__(self) -> float:
        raise fail(f"a {type(self).__name__} of the device where Python needs a float at build time; use .to(Float32)")

    # ---- operators ----

    def __add__(self, other: Any) -> Any:
        return binary("+", self, other)

    def __radd__(self, other: Any) -> Any:
        return binary("+", other, self)

    def __sub__(self, other: Any) -> Any:
        return binary("-", self, other)

    def __rsub__(self, other: Any) -> Any:
        return binary("-", other, self)

    def __mul__(self, other: Any) -> Any:
        return binary("*", self, other)

    def __rmul__(self, other: Any) -> Any:
        return binary("*", other, self)

    def __truediv__(self, other: Any) -> Any:
        return binary("/", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return binary("/", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return binary("//", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return binary("//", other, self)

    def __mod__(self, other: Any) -> Any:
        return binary("%", self, other)

    def __rmod__(self, other: Any) -> Any:
        return binary("%", other, self)

    def __and__(self, other: Any) -> Any:
        return binary("&", self, other)

    def __rand__(self, other: Any) -> Any:
        return binary("&", other, self)

    def __or__(self, other: Any) -> Any:
        return binary("|", self, other)

    def __ror__(self, other: Any) -> Any:
        return binary("|", other, self)

    def __xor__(self, other: Any) -> Any:
        return binary("^", self, other)

    def __rxor__(self, other: Any) -> Any:
        return binary("^", other, self)

    def __lshift__(self, other: Any) -> Any:
        return shift("<<", self, other)

    def __rlshift__(self, other: Any) -> Any:
        return shift("<<", other, self)

    def __rshift__(self, other: Any) -> Any:
        return shift(">>", self, other)

    def __rrshift__(self, other: Any) -> Any:
        return shift(">>", other, self)

    def __pow__(self, other: Any) -> Any:
        return power(self, other)

    def __neg__(self) -> Any:
        return negate(self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return absolute(self)

    def __invert__(self) -> Any:
        return invert(self)

    def __eq__(self, other: Any) -> Any:
        return compare("==", self, other)

    def __ne__(self, other: Any) -> Any:
        return compare("!=", self, other)

    def __lt__(self, other: Any) -> Any:
        return compare("<", self, other)

    def __le__(self, other: Any) -> Any:
        return compare("<=", self, other)

    def __gt__(self, other: Any) -> Any:
        return compare(">", self, other)

    def __ge__(self, other: Any) -> Any:
        return compare(">=", self, other)


class Boolean(Numeric):
    """A truth value."""

    __slots__ = ()
    scalar, width = "i1", 1
    signed = False


class Int8(Numeric):
    __slots__ = ()
    scalar, width = "i8", 8


class Int16(Numeric):
    __slots__ = ()
    scalar, width = "i16", 16


class Int32(Numeric):
    __slots__ = ()
    scalar, width = "i32", 32


class Int64(Numeric):
    __slots__ = ()
    scalar, width = "i64", 64


class Uint8(Numeric):
    __slots__ = ()
    scalar, width, signed = "i8", 8, False


class Uint16(Numeric):
    __slots__ = ()
    scalar, width, signed = "i16", 16, False


class Uint32(Numeric):
    __slots__ = ()
    scalar, width, signed = "i32", 32, False


class Uint64(Numeric):
    __slots__ = ()
    scalar, width, signed = "i64", 64, False


class Float8E4M3FN(Numeric):
    __slots__ = ()
    scalar, width, is_float = "e4m3", 8, True


class Float8E5M2(Numeric):
    __slots__ = ()
    scalar, width, is_float = "e5m2", 8, True


class Float16(Numeric):
    __slots__ = ()
    scalar, width, is_float = "f16", 16, True


class BFloat16(Numeric):
    __slots__ = ()
    scalar, width, is_float = "bf16", 16, True


class TFloat32(Numeric):
    __slots__ = ()
    scalar, width, is_float = "tf32", 32, True


class Float32(Numeric):
    __slots__ = ()
    scalar, width, is_float = "f32", 32, True


class Float64(Numeric):
    __slots__ = ()
    scalar, width, is_float = "f64", 64, True


DTYPES: tuple[Any, ...] = (
    Boolean, Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64, Float8E4M3FN, Float8E5M2, Float16, BFloat16,
    TFloat32, Float32, Float64,
)  # fmt: skip

_BY_NAME = {
    "bool": Boolean, "bool_": Boolean, "int8": Int8, "int16": Int16, "int32": Int32, "int64": Int64, "uint8": Uint8,
    "uint16": Uint16, "uint32": Uint32, "uint64": Uint64, "float16": Float16, "bfloat16": BFloat16,
    "float32": Float32, "float64": Float64, "float8_e4m3fn": Float8E4M3FN, "float8_e5m2": Float8E5M2,
}  # fmt: skip


def as_dtype(dtype: Any) -> Any:
    """An element type from one, from Tiki's or NumPy's dtype, or from its name."""
    if isinstance(dtype, NumericMeta):
        return dtype
    name = dtype if isinstance(dtype, str) else getattr(dtype, "name", None) or getattr(dtype, "__name__", None)
    if name in _BY_NAME:
        return _BY_NAME[name]
    by_scalar = [one for one in DTYPES if one.scalar == name]
    if by_scalar:
        return by_scalar[0]
    raise fail(f"{dtype!r} is no element type of kernels")


# ---- vectors ----


class Vector:
    """2 to 16 bytes of equal elements, as one load or store moves them; operators work element by element."""

    __slots__ = ("ir", "dtype", "lanes")

    def __init__(self, ir: Ir, dtype: Any, lanes: int) -> None:
        self.ir = ir
        self.dtype = dtype
        self.lanes = lanes

    def __len__(self) -> int:
        return self.lanes

    def __getitem__(self, index: int) -> Any:
        if not isinstance(index, int) or not -self.lanes <= index < self.lanes:
            raise fail(f"element {index!r} of a vector of {self.lanes}: the index is an integer at build time")
        attrs = {"index": index % self.lanes} if index % self.lanes else {}
        return wrap(self.dtype, current().emit("extract", (self.ir,), attrs, number_type(self.dtype)))

    def __iter__(self) -> Any:
        return (self[i] for i in range(self.lanes))

    def __repr__(self) -> str:
        return f"<{self.dtype.__name__} x {self.lanes}>"

    def to(self, dtype: Any) -> Vector:
        """The vector with its elements converted."""
        dtype = as_dtype(dtype)
        if dtype is self.dtype:
            return self
        if not (dtype.is_float and self.dtype.is_float):
            return vector([element.to(dtype) for element in self])
        type = number_type(dtype, self.lanes)
        return Vector(current().emit("convert", (self.ir,), {}, type), dtype, self.lanes)

    def _with(self, symbol: str, other: Any, swapped: bool = False) -> Vector:
        if not isinstance(other, Vector):
            other = splat(other, self.dtype, self.lanes)
        if other.lanes != self.lanes or other.dtype is not self.dtype:
            raise fail(f"{self!r} {symbol} {other!r}: the vectors have different types")
        a, b = (other, self) if swapped else (self, other)
        return Vector(arithmetic(symbol, a.dtype, a.ir, b.ir, self.lanes), self.dtype, self.lanes)

    def __add__(self, other: Any) -> Vector:
        return self._with("+", other)

    def __radd__(self, other: Any) -> Vector:
        return self._with("+", other, True)

    def __sub__(self, other: Any) -> Vector:
        return self._with("-", other)

    def __rsub__(self, other: Any) -> Vector:
        return self._with("-", other, True)

    def __mul__(self, other: Any) -> Vector:
        return self._with("*", other)

    def __rmul__(self, other: Any) -> Vector:
        return self._with("*", other, True)

    def __bool__(self) -> bool:
        raise fail("a vector of the device as a Python condition")


def splat(value: Any, dtype: Any, lanes: int) -> Vector:
    element = value if isinstance(value, Numeric) else dtype(value)
    if type(element) is not dtype:
        element = convert(element, dtype)
    return Vector(current().emit("splat", (element.ir,), {}, number_type(dtype, lanes)), dtype, lanes)


def vector(elements: Any) -> Vector:
    """A vector of values of one type."""
    values = list(elements)
    dtype = type(values[0])
    for value in values:
        if type(value) is not dtype:
            raise fail(f"a vector of {dtype.__name__} and {type(value).__name__}")
    ir = current().emit("vector", tuple(value.ir for value in values), {}, number_type(dtype, len(values)))
    return Vector(ir, dtype, len(values))


# ---- making values ----


def wrap(dtype: Any, ir: Ir, nonneg: bool = False) -> Any:
    """A value of the type around what the tape knows."""
    value = dtype.__new__(dtype)
    value.ir = ir
    value.nonneg = nonneg
    return value


def constant(dtype: Any, value: Any) -> Const:
    if isinstance(value, float) and not dtype.is_float and dtype.width > 1 and value != value:
        value = 0
    return Const(dtype.scalar, _round(dtype, value))


def is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float))


def numeric_type_of(value: Any) -> Any:
    """The type that a Python number has where nothing else decides."""
    if isinstance(value, bool):
        return Boolean
    if isinstance(value, int):
        return Int32 if -(1 << 31) <= value < 1 << 31 else Int64
    return Float32


def as_numeric(value: Any) -> Any:
    """A Python number as a value; values as they are."""
    if isinstance(value, Numeric):
        return value
    if is_number(value):
        return numeric_type_of(value)(value)
    from tiki.kernels.cute.lib._contract import Dim

    if isinstance(value, Dim):
        return value.on_device()
    raise fail(f"a {type(value).__name__} where a number is expected")


def is_device(value: Any) -> bool:
    return isinstance(value, (Numeric, Vector))


# ---- conversion ----


def convert(value: Any, dtype: Any) -> Any:
    """A value as another type; floats to integers towards zero, beyond the range the nearest, NaN as 0."""
    source = type(value)
    if source is dtype:
        return value
    if isinstance(value.ir, Const) and not (source.is_float and not dtype.is_float):
        return wrap(dtype, constant(dtype, _unsigned(source, dtype, value.ir.value)), value.nonneg)
    if dtype.width == 1:
        return compare("!=", value, source(0))
    if source.width == 1:
        return _from_boolean(value, dtype)
    if source.is_float:
        return _from_float(value, dtype)
    return _from_integer(value, dtype)


def _unsigned(source: Any, dtype: Any, value: Any) -> Any:
    """Constants are kept with sign; the value of an unsigned one that goes into something wider."""
    if (
        not source.is_float
        and not source.signed
        and source.width > 1
        and (dtype.is_float or dtype.width > source.width)
    ):
        return value & ((1 << source.width) - 1)
    return value


def _emit(name: str, value: Any, dtype: Any, nonneg: bool = False) -> Any:
    return wrap(dtype, current().emit(name, (value.ir,), {}, number_type(dtype)), nonneg)


def _from_boolean(value: Any, dtype: Any) -> Any:
    if dtype.is_float:
        return _from_integer(_emit("extend_unsigned", value, Int32, True), dtype)
    if dtype.width < 16:
        return _emit("truncate", _emit("extend_unsigned", value, Int32, True), dtype)
    return _emit("extend_unsigned", value, dtype, True)


def _from_float(value: Any, dtype: Any) -> Any:
    if dtype.is_float:
        return _emit("convert", value, dtype)
    if value.width < 16:
        value = _emit("convert", value, Float32)
    if dtype.width < 16:
        return _emit("truncate", _from_float(value, Int16 if dtype.signed else Uint16), dtype)
    return _emit("signed_from_float" if dtype.signed else "unsigned_from_float", value, dtype)


def _from_integer(value: Any, dtype: Any) -> Any:
    source = type(value)
    if dtype.is_float:
        if dtype.width < 16 or dtype is TFloat32:
            return _emit("convert", _from_integer(value, Float32), dtype)
        return _emit("float_from_signed" if source.signed else "float_from_unsigned", value, dtype)
    if dtype.width == source.width:
        return wrap(dtype, value.ir, value.nonneg and dtype.signed)
    if dtype.width < source.width:
        return _emit("truncate", value, dtype)
    return _emit(
        "extend_signed" if source.signed else "extend_unsigned", value, dtype, value.nonneg or not source.signed
    )


def promote(a: Any, b: Any) -> Any:
    """The type in which two operands meet."""
    if a is b:
        return a
    if a.is_float != b.is_float:
        return a if a.is_float else b
    if a.width != b.width:
        return a if a.width > b.width else b
    if a.is_float:
        return Float32
    return b if a.signed else a


def _arithmetic_type(dtype: Any) -> Any:
    """Bytes are only moved and converted: arithmetic on them is that of Int32, on 8-bit floats that of Float32."""
    if dtype.is_float:
        return dtype if dtype.width >= 16 and dtype is not TFloat32 else Float32
    return dtype if dtype.width >= 16 else Int32


# ---- operators ----

_NAMES = {"+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor"}


def arithmetic(symbol: str, dtype: Any, a: Ir, b: Ir, lanes: int = 1) -> Var:
    if symbol not in _NAMES:
        raise fail(f"{symbol} of {dtype.__name__} vectors")
    return current().emit(_NAMES[symbol], (a, b), {}, number_type(dtype, lanes))


def binary(symbol: str, a: Any, b: Any) -> Any:
    if (
        isinstance(a, Vector)
        or isinstance(b, Vector)
        or not (isinstance(a, Numeric) or is_number(a))
        or not (isinstance(b, Numeric) or is_number(b))
    ):
        return _foreign(symbol, a, b)
    a, b = as_numeric(a), as_numeric(b)
    logical = symbol in "&|^" and a.width == 1 and b.width == 1
    dtype = Boolean if logical else _arithmetic_type(promote(type(a), type(b)))
    if symbol == "/" and not dtype.is_float:
        dtype = Float32
    a, b = convert(a, dtype), convert(b, dtype)
    if symbol in "&|^" and dtype.is_float:
        raise fail(f"{symbol} of {dtype.__name__}: bitwise operators take integers")
    folded = _fold(symbol, dtype, a, b)
    if folded is not None:
        return folded
    if symbol == "/":
        return _divide(a, b)
    if symbol in ("//", "%"):
        return _floor(symbol, dtype, a, b)
    keeps = symbol == "&" and (a.nonneg or b.nonneg)
    return wrap(dtype, arithmetic(symbol, dtype, a.ir, b.ir), keeps)


def _foreign(symbol: str, a: Any, b: Any) -> Any:
    """An operand that is neither number nor value: vectors and sizes of the contract know what to do."""
    from tiki.kernels.cute.lib._contract import Dim

    if isinstance(a, Dim) or isinstance(b, Dim):
        return binary(symbol, as_numeric(a), as_numeric(b))
    return NotImplemented


def _fold(symbol: str, dtype: Any, a: Any, b: Any) -> Any:
    """Constants, and what changes nothing, of integers. Floats are left alone: -0.0 + 0.0 is not -0.0."""
    if dtype.is_float or dtype.width == 1:
        return None
    left = a.ir.value if isinstance(a.ir, Const) else None
    right = b.ir.value if isinstance(b.ir, Const) else None
    if left is not None and right is not None and not (symbol in ("//", "%") and (right == 0 or not dtype.signed)):
        results = {
            "+": left + right,
            "-": left - right,
            "*": left * right,
            "&": left & right,
            "|": left | right,
            "^": left ^ right,
        }
        if symbol in ("//", "%"):
            return dtype(left // right if symbol == "//" else left % right)
        return dtype(results[symbol]) if symbol in results else None
    if right == 0 and symbol in ("+", "-", "|", "^") or right == 1 and symbol in ("*", "//"):
        return a
    if left == 0 and symbol in ("+", "|", "^") or left == 1 and symbol == "*":
        return b
    if symbol in ("*", "&") and 0 in (left, right) or symbol == "%" and right == 1:
        return dtype(0)
    return None


def _divide(a: Any, b: Any) -> Any:
    """Only f32 and f64 have a division: narrower floats go through f32 and are rounded once more."""
    dtype = type(a)
    if dtype.width >= 32:
        return wrap(dtype, current().emit("div", (a.ir, b.ir), {}, number_type(dtype)))
    return convert(_divide(convert(a, Float32), convert(b, Float32)), dtype)


def _power_of_two(value: Any) -> bool:
    return isinstance(value.ir, Const) and value.ir.value > 0 and value.ir.value & (value.ir.value - 1) == 0


def _floor(symbol: str, dtype: Any, a: Any, b: Any) -> Any:
    if dtype.is_float:
        return _floor_float(symbol, a, b)
    if _power_of_two(b):
        if symbol == "%":
            return wrap(dtype, arithmetic("&", dtype, a.ir, constant(dtype, b.ir.value - 1)), True)
        return shift(">>", a, b.ir.value.bit_length() - 1)
    emit = current().emit
    kind = number_type(dtype)
    names = ("sdiv", "srem") if dtype.signed else ("udiv", "urem")
    positive = b.nonneg or (isinstance(b.ir, Const) and b.ir.value > 0)
    if not dtype.signed or (a.nonneg and positive):
        return wrap(dtype, emit(names[symbol == "%"], (a.ir, b.ir), {}, kind), a.nonneg)
    rest = wrap(dtype, emit("srem", (a.ir, b.ir), {}, kind))
    off = _differs(rest, b)
    if symbol == "%":
        return select(off, rest + b, rest)
    quotient = wrap(dtype, emit("sdiv", (a.ir, b.ir), {}, kind))
    return select(off, quotient - 1, quotient)


def _differs(rest: Any, b: Any) -> Any:
    """Whether a remainder towards zero is not the one towards minus infinity."""
    if isinstance(b.ir, Const) and b.ir.value > 0:
        return rest < 0
    return (rest != 0) & ((rest ^ b) < 0)


def _floor_float(symbol: str, a: Any, b: Any) -> Any:
    if type(a).width < 32:
        return convert(_floor_float(symbol, convert(a, Float32), convert(b, Float32)), type(a))
    quotient = _divide(a, b)
    down = wrap(type(a), current().emit("floor", (quotient.ir,), {}, number_type(type(a))))
    return down if symbol == "//" else a - down * b


def shift(symbol: str, a: Any, amount: Any) -> Any:
    if not (isinstance(a, Numeric) or is_number(a)) or not (isinstance(amount, Numeric) or is_number(amount)):
        return NotImplemented
    a, amount = as_numeric(a), as_numeric(amount)
    dtype = _arithmetic_type(type(a))
    if dtype.is_float or type(amount).is_float:
        raise fail(f"{type(a).__name__} {symbol} {type(amount).__name__}: shifts take integers")
    a, amount = convert(a, dtype), convert(amount, Int32)
    if isinstance(amount.ir, Const) and amount.ir.value == 0:
        return a
    name = "shl" if symbol == "<<" else "sshr" if dtype.signed else "ushr"
    return wrap(dtype, current().emit(name, (a.ir, amount.ir), {}, number_type(dtype)), a.nonneg and symbol == ">>")


def power(a: Any, exponent: Any) -> Any:
    if isinstance(exponent, int) and 1 <= exponent <= 16:
        result = a
        for bit in bin(exponent)[3:]:
            result = result * result
            if bit == "1":
                result = result * a
        return result
    if isinstance(exponent, float) and exponent == 0.5:
        return unary("sqrt", a)
    raise fail(f"x ** {exponent!r}: the exponent is an integer from 1 to 16 at build time, or 0.5")


def negate(a: Any) -> Any:
    dtype = _arithmetic_type(type(a))
    if isinstance(a.ir, Const) and not dtype.is_float:
        return dtype(-a.ir.value)
    return wrap(dtype, current().emit("neg", (convert(a, dtype).ir,), {}, number_type(dtype)))


def absolute(a: Any) -> Any:
    dtype = _arithmetic_type(type(a))
    if not dtype.is_float and not dtype.signed:
        return a
    return wrap(dtype, current().emit("abs", (convert(a, dtype).ir,), {}, number_type(dtype)))


def invert(a: Any) -> Any:
    if type(a).is_float:
        raise fail(f"~ of {type(a).__name__}: bitwise operators take integers")
    dtype = Boolean if type(a) is Boolean else _arithmetic_type(type(a))
    return wrap(dtype, current().emit("not", (convert(a, dtype).ir,), {}, number_type(dtype)))


_COMPARE = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}


def compare(symbol: str, a: Any, b: Any) -> Any:
    if not (isinstance(a, Numeric) or is_number(a)) or not (isinstance(b, Numeric) or is_number(b)):
        return NotImplemented
    a, b = as_numeric(a), as_numeric(b)
    dtype = promote(type(a), type(b))
    dtype = Int32 if dtype.width == 1 else _arithmetic_type(dtype)
    a, b = convert(a, dtype), convert(b, dtype)
    word = _COMPARE[symbol]
    if dtype.is_float:
        attrs = {"fcmp": "neu" if symbol == "!=" else word}
        return wrap(Boolean, current().emit("fcmp", (a.ir, b.ir), attrs, number_type(Boolean)))
    if symbol not in ("==", "!="):
        word = ("s" if dtype.signed else "u") + word
    return wrap(Boolean, current().emit("icmp", (a.ir, b.ir), {"icmp": word}, number_type(Boolean)))


def select(condition: Any, a: Any, b: Any) -> Any:
    """`a` where the condition holds, else `b`; both are computed."""
    if not isinstance(condition, Numeric):
        return a if condition else b
    a, b = as_numeric(a), as_numeric(b)
    dtype = promote(type(a), type(b))
    a, b = convert(a, dtype), convert(b, dtype)
    truth = convert(condition, Boolean)
    return wrap(dtype, current().emit("select", (truth.ir, a.ir, b.ir), {}, number_type(dtype)), a.nonneg and b.nonneg)


def unary(name: str, value: Any, only: str = "") -> Any:
    """An elementwise operation of floats; narrow ones (and integers) go through f32 where it has no narrower form."""
    value = as_numeric(value)
    dtype = type(value)
    if not dtype.is_float:
        value, dtype = convert(value, Float32), Float32
    if dtype is Float32 or (dtype is Float64 and only != "f32"):
        return wrap(dtype, current().emit(name, (value.ir,), {}, number_type(dtype)))
    if dtype is Float64:
        raise fail(f"{name} of Float64: it has f32 only")
    return convert(unary(name, convert(value, Float32), only), dtype)


def extreme(name: str, a: Any, b: Any) -> Any:
    """`min` or `max`: of floats a NaN wins."""
    if not isinstance(a, Numeric) and not isinstance(b, Numeric):
        return min(a, b) if name == "min" else max(a, b)
    a, b = as_numeric(a), as_numeric(b)
    dtype = _arithmetic_type(promote(type(a), type(b)))
    a, b = convert(a, dtype), convert(b, dtype)
    if dtype is Float64:
        keeps = (a < b) if name == "min" else (a > b)
        return select(keeps | (a != a), a, b)
    if not dtype.is_float:
        name = ("s" if dtype.signed else "u") + name
    return wrap(dtype, current().emit(name, (a.ir, b.ir), {}, number_type(dtype)), a.nonneg and b.nonneg)


def fma(a: Any, b: Any, c: Any) -> Any:
    """a * b + c, rounded once."""
    a, b, c = as_numeric(a), as_numeric(b), as_numeric(c)
    dtype = promote(promote(type(a), type(b)), type(c))
    if not dtype.is_float:
        raise fail(f"fma of {dtype.__name__}: it takes floats")
    dtype = _arithmetic_type(dtype)
    operands = tuple(convert(one, dtype).ir for one in (a, b, c))
    return wrap(dtype, current().emit("fma", operands, {}, number_type(dtype)))
