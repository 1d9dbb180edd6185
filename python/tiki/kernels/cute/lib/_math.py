"""Functions of numbers with the names of CuTe DSL's `cute.math`: correctly rounded where IEEE asks for it, else
as the pass that expands them says; `fastmath` takes the hardware's approximation."""

from __future__ import annotations

from typing import Any

from tiki.kernels.cute.lib import _numeric as numeric
from tiki.kernels.cute.lib import arch


def exp(value: Any, fastmath: bool = False) -> Any:
    """e to the value."""
    return arch.exp(value) if fastmath else numeric.unary("exp", value, "f32")


def exp2(value: Any, fastmath: bool = False) -> Any:
    """2 to the value."""
    return arch.exp2(value) if fastmath else numeric.unary("exp2", value, "f32")


def log(value: Any, fastmath: bool = False) -> Any:
    """The natural logarithm."""
    return arch.log(value) if fastmath else numeric.unary("log", value, "f32")


def log2(value: Any, fastmath: bool = False) -> Any:
    """The logarithm to base 2."""
    return arch.log2(value) if fastmath else numeric.unary("log2", value, "f32")


def sin(value: Any, fastmath: bool = False) -> Any:
    """The sine."""
    return arch.sin_approx(value) if fastmath else numeric.unary("sin", value, "f32")


def cos(value: Any, fastmath: bool = False) -> Any:
    """The cosine."""
    return arch.cos_approx(value) if fastmath else numeric.unary("cos", value, "f32")


def tanh(value: Any, fastmath: bool = False) -> Any:
    """The hyperbolic tangent."""
    return arch.tanh_approx(value) if fastmath else numeric.unary("tanh", value, "f32")


def erf(value: Any) -> Any:
    """The error function."""
    return numeric.unary("erf", value, "f32")


def sqrt(value: Any, fastmath: bool = False) -> Any:
    """The square root."""
    return arch.sqrt_approx(value) if fastmath else numeric.unary("sqrt", value)


def rsqrt(value: Any, fastmath: bool = False) -> Any:
    """1 / square root."""
    return arch.rsqrt(value) if fastmath else 1.0 / sqrt(value)


def floor(value: Any) -> Any:
    """Down to an integer."""
    return numeric.unary("floor", value)


def ceil(value: Any) -> Any:
    """Up to an integer."""
    return numeric.unary("ceil", value)


def trunc(value: Any) -> Any:
    """Towards zero to an integer."""
    return numeric.unary("trunc", value)


def round_even(value: Any) -> Any:
    """To the nearest integer, ties to even."""
    return numeric.unary("rint", value)
