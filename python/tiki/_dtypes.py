"""Categories of dtypes, their limits, and questions about them."""

import enum
from typing import Any

from tiki import _core

_kinds = {
    "bool": ("generic",),
    "unsigned": ("unsignedinteger", "integer", "number", "generic"),
    "signed": ("signedinteger", "integer", "number", "generic"),
    "float": ("floating", "inexact", "number", "generic"),
    "complex": ("complexfloating", "inexact", "number", "generic"),
}


class DtypeCategory(enum.Enum):
    """Sets of dtypes; each contains those below it."""

    complexfloating = 0
    floating = 1
    inexact = 2
    signedinteger = 3
    unsignedinteger = 4
    integer = 5
    number = 6
    generic = 7


complexfloating = DtypeCategory.complexfloating
floating = DtypeCategory.floating
inexact = DtypeCategory.inexact
signedinteger = DtypeCategory.signedinteger
unsignedinteger = DtypeCategory.unsignedinteger
integer = DtypeCategory.integer
number = DtypeCategory.number
generic = DtypeCategory.generic

_parents = {
    complexfloating: (inexact, number, generic),
    floating: (inexact, number, generic),
    inexact: (number, generic),
    signedinteger: (integer, number, generic),
    unsignedinteger: (integer, number, generic),
    integer: (number, generic),
    number: (generic,),
    generic: (),
}


def issubdtype(arg1: _core.Dtype | DtypeCategory, arg2: _core.Dtype | DtypeCategory) -> bool:
    """Whether a dtype or category is one of, or inside of, another."""
    for arg in (arg1, arg2):
        if not isinstance(arg, (_core.Dtype, DtypeCategory)):
            raise TypeError(f"issubdtype: {arg!r} is neither a dtype nor a category of dtypes")
    if arg1 is arg2 or arg1 == arg2:
        return True
    if not isinstance(arg2, DtypeCategory):
        return False
    if isinstance(arg1, DtypeCategory):
        return arg2 in _parents[arg1]
    return arg2.name in _kinds[arg1.kind]


def _dtype_of(value: _core.array | _core.Dtype) -> _core.Dtype:
    if isinstance(value, _core.array):
        return value.dtype
    if not isinstance(value, _core.Dtype):
        raise TypeError(f"{value!r} is neither an array nor a dtype")
    return value


def result_type(*arrays_and_dtypes: _core.array | _core.Dtype) -> _core.Dtype:
    """The dtype of an operation on all of them."""
    if not arrays_and_dtypes:
        raise ValueError("result_type: no arrays or dtypes were given")
    result = _dtype_of(arrays_and_dtypes[0])
    for other in arrays_and_dtypes[1:]:
        result = result._promote(_dtype_of(other))
    return result


def can_cast(from_: _core.array | _core.Dtype, to: _core.Dtype) -> bool:
    """Whether promotion with `to` gives `to`."""
    return _dtype_of(from_)._promote(to) == to


_array_api_kinds = {
    "bool": ("bool",),
    "signed integer": ("signed",),
    "unsigned integer": ("unsigned",),
    "integral": ("signed", "unsigned"),
    "real floating": ("float",),
    "complex floating": ("complex",),
    "numeric": ("signed", "unsigned", "float", "complex"),
}


def isdtype(dtype: _core.Dtype, kind: Any) -> bool:
    """Whether a dtype is of a kind, by the array API standard's names."""
    if not isinstance(dtype, _core.Dtype):
        raise TypeError(f"isdtype: {dtype!r} is no dtype")
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    if isinstance(kind, str):
        if kind not in _array_api_kinds:
            raise ValueError(f"isdtype: unknown kind '{kind}', expected one of {', '.join(_array_api_kinds)}")
        return dtype.kind in _array_api_kinds[kind]
    return dtype == kind


_float_limits = {
    # bits, eps, max, smallest normal
    "float16": (16, 2.0**-10, 65504.0, 2.0**-14),
    "bfloat16": (16, 2.0**-7, (2 - 2.0**-7) * 2.0**127, 2.0**-126),
    "float32": (32, 2.0**-23, (2 - 2.0**-23) * 2.0**127, 2.0**-126),
    "float64": (64, 2.0**-52, (2 - 2.0**-52) * 2.0**1023, 2.0**-1022),
    "complex64": (32, 2.0**-23, (2 - 2.0**-23) * 2.0**127, 2.0**-126),
}


class finfo:
    """Limits of a floating dtype."""

    def __init__(self, arg: _core.Dtype) -> None:
        if arg.name not in _float_limits:
            raise ValueError(f"finfo: {arg!r} is no floating dtype")
        self.dtype = _core.float32 if arg.name == "complex64" else arg
        self.bits, self.eps, self.max, self.smallest_normal = _float_limits[arg.name]
        self.min = -self.max

    def __repr__(self) -> str:
        return f"finfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype.name})"


class iinfo:
    """Limits of an integer dtype."""

    def __init__(self, arg: _core.Dtype) -> None:
        if arg.kind not in ("signed", "unsigned"):
            raise ValueError(f"iinfo: {arg!r} is no integer dtype")
        self.dtype = arg
        self.bits = 8 * arg.size
        self.min = -(2 ** (self.bits - 1)) if arg.kind == "signed" else 0
        self.max = 2 ** (self.bits - (arg.kind == "signed")) - 1

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype.name})"
