"""References of elementwise ops, reductions and scans. See compare_ops.py."""
import math

import numpy as np

from op_values import (EPS, LARGEST, NP, OPS, Refuse, Value, bits, cast, count_of, inexact, kind, logsumexp_data,
                       norm_axes, norm_axis, op, promote, refuse, wrap)

# ---- elementwise ----


def unary(name, function, accept=(), floats=True, tolerance=4):
    def reference(a):
        refuse([a], accept)
        a = inexact(a) if floats else cast(a, a.dtype)
        return Value(a.dtype, function(a.data), magnitude=tolerance)
    OPS[name] = reference


erf = np.vectorize(math.erf, otypes=[np.float64])


def erfinv_one(y):
    """Newton's method on erfc of the tail, where erf has lost its digits."""
    if not -1 <= y <= 1:
        return math.nan
    if abs(y) == 1 or y == 0:
        return y * math.inf if y else y
    tail, x = 1 - abs(y), 0.0
    for _ in range(100):
        error = math.erf(x) - abs(y) if abs(y) < 0.9 else tail - math.erfc(x)
        step = error * math.sqrt(math.pi) / 2 * math.exp(x * x)
        x -= step / (1 + x * step)
        if abs(step) <= 1e-16 * x:
            break
    return math.copysign(x, y)


def sigmoid(x):
    if not np.iscomplexobj(x):
        small = np.exp(-np.abs(x))
        return np.where(x >= 0, 1 / (1 + small), small / (1 + small))
    grown = np.exp(np.where(x.real < 0, x, -x))
    return np.where(x.real < 0, grown / (1 + grown), 1 / (1 + grown))


for _name in "exp expm1 log log1p log2 log10 sin cos tan arcsin arccos arctan sinh cosh tanh " \
             "arcsinh arccosh arctanh".split():
    unary(_name, getattr(np, _name))
unary("sqrt", np.sqrt)
unary("rsqrt", lambda x: 1 / np.sqrt(x))
unary("sigmoid", sigmoid)
unary("erf", erf, accept=(4,))
unary("erfinv", np.vectorize(erfinv_one, otypes=[np.float64]), accept=(4,), tolerance=16)


def exact_unary(name, function, accept=()):
    def reference(a):
        refuse([a], accept)
        return Value(a.dtype, function(a.data) if kind(a.dtype) >= 3 else a.data)
    OPS[name] = reference


exact_unary("ceil", np.ceil, (4,))
exact_unary("floor", np.floor, (4,))
exact_unary("trunc", np.trunc, (4,))
exact_unary("rint", lambda x: np.rint(x.real) + 1j * np.rint(x.imag) if np.iscomplexobj(x) else np.rint(x))
exact_unary("conjugate", np.conj)
OPS["contiguous"] = OPS["stop_gradient"] = lambda a: Value(a.dtype, a.data)


@op("negative")
def negative(a):
    refuse([a], (0,))
    return Value(a.dtype, -a.data)


@op("abs")
def absolute(a):
    if a.dtype == "complex64":
        return Value("float32", np.abs(a.data), magnitude=2)
    return Value(a.dtype, np.abs(a.data))


@op("sign")
def sign(a):
    if a.dtype == "complex64":
        size = np.abs(a.data)
        return Value(a.dtype, np.where(size == 0, 0, a.data / np.where(size == 0, 1, size)), magnitude=4)
    return Value(a.dtype, a.data if a.dtype == "bool" else np.sign(a.data))


@op("real")
def real(a):
    return Value("float32", a.data.real) if a.dtype == "complex64" else Value(a.dtype, a.data)


@op("imag")
def imag(a):
    if a.dtype == "complex64":
        return Value("float32", a.data.imag)
    return Value(a.dtype, np.zeros_like(a.data))


@op("logical_not")
def logical_not(a):
    return Value("bool", np.logical_not(a.data))


@op("bitwise_invert")
def bitwise_invert(a):
    refuse([a], (3, 4))
    return Value(a.dtype, np.invert(a.data))


@op("astype")
def astype(a, dtype):
    if dtype == "?":
        raise Refuse("dtype")
    return cast(a, dtype)


def binary(name, function, accept=(), dtype=None, tolerance=None, floats=False):
    def reference(a, b):
        a, b = promote([a, b])
        refuse([a], accept)
        if floats:
            a, b = inexact(a), inexact(b)
        return Value(dtype or a.dtype, function(a.data, b.data), magnitude=tolerance)
    OPS[name] = reference


binary("add", np.add)
binary("subtract", lambda a, b: a - b, (0,))
binary("multiply", np.multiply, tolerance="complex")
binary("divide", np.divide, floats=True, tolerance="complex")
binary("maximum", np.maximum)
binary("minimum", np.minimum)
binary("arctan2", np.arctan2, (4,), floats=True, tolerance=4)


@op("logaddexp")
def logaddexp(a, b):
    a, b = (inexact(v) for v in promote([a, b]))
    if a.dtype != "complex64":
        return Value(a.dtype, np.logaddexp(a.data, b.data), magnitude=8)
    x, y = np.broadcast_arrays(a.data, b.data)
    high, low = np.where(x.real >= y.real, x, y), np.where(x.real >= y.real, y, x)
    with np.errstate(all="ignore"):
        value = np.log(np.exp(high - high.real) + np.exp(low - high.real)) + high.real
    return Value(a.dtype, np.where(np.isneginf(high.real), high, value), magnitude="loose")


def compare(name, function):
    binary(name, function, dtype="bool")


def lexicographic(function):
    """Complex numbers: the imaginary parts decide where the real parts are equal."""
    def apply(a, b):
        if not np.iscomplexobj(a):
            return function(a, b)
        return np.where(a.real == b.real, function(a.imag, b.imag), function(a.real, b.real))
    return apply


for _name in "equal not_equal".split():
    compare(_name, getattr(np, _name))
for _name in "less less_equal greater greater_equal".split():
    compare(_name, lexicographic(getattr(np, _name)))
for _name in "logical_and logical_or logical_xor".split():
    OPS[_name] = (lambda f: lambda a, b: Value("bool", f(a.data != 0, b.data != 0)))(getattr(np, _name))
for _name in "bitwise_and bitwise_or bitwise_xor".split():
    binary(_name, getattr(np, _name), (3, 4))


def integer_op(function):
    def apply(a, b, dtype):
        a, b = np.broadcast_arrays(a, b)
        flat = [function(int(x), int(y)) for x, y in zip(a.ravel(), b.ravel())]
        if dtype == "bool":
            return np.array([v & 1 for v in flat], dtype=bool).reshape(a.shape)
        return wrap(np.array(flat, dtype=object).reshape(a.shape), dtype)
    return apply


def whole_power(x, y):
    if y < 0:
        return 1 if x == 1 else (1 if y % 2 == 0 else -1) if x == -1 else 0
    return pow(x, y, 2**64)


def shift(direction):
    def reference(a, b):
        a, b = promote([a, b])
        refuse([a], (3, 4))
        width = 1 if a.dtype == "bool" else bits(a.dtype)

        def one(x, y):
            inside = 0 <= y < width
            if direction == "left":
                return x << y if inside else 0
            return x >> y if inside else -1 if x < 0 else 0
        return Value(a.dtype, integer_op(one)(a.data, b.data, a.dtype))
    return reference


OPS["left_shift"], OPS["right_shift"] = shift("left"), shift("right")


@op("floor_divide")
def floor_divide(a, b):
    a, b = promote([a, b])
    refuse([a], (4,))
    if kind(a.dtype) < 3:
        return Value(a.dtype, integer_op(lambda x, y: x // y if y else 0)(a.data, b.data, a.dtype))
    value = np.floor_divide(a.data, b.data)
    ratio = a.data / b.data
    return Value(a.dtype, np.where(np.isinf(a.data) & np.isfinite(b.data), ratio, value), magnitude="floor")


@op("remainder")
def remainder(a, b):
    a, b = promote([a, b])
    refuse([a], (4,))
    if kind(a.dtype) < 3:
        return Value(a.dtype, integer_op(lambda x, y: x % y if y else 0)(a.data, b.data, a.dtype))
    return Value(a.dtype, np.mod(a.data, b.data), magnitude=2)


@op("power")
def power(a, b):
    a, b = promote([a, b])
    if kind(a.dtype) < 3:
        return Value(a.dtype, integer_op(whole_power)(a.data, b.data, a.dtype))
    if kind(a.dtype) == 4 and not (np.all(np.isfinite(a.data)) and np.all(np.isfinite(b.data))):
        return None
    return Value(a.dtype, np.power(a.data, b.data), magnitude="loose" if kind(a.dtype) == 4 else 8)


@op("where")
def where(condition, x, y):
    x, y = promote([x, y])
    return Value(x.dtype, np.where(condition.data != 0, x.data, y.data))


# ---- compositions ----


@op("square")
def square(a):
    return Value(a.dtype, np.multiply(a.data, a.data), magnitude="complex")


@op("reciprocal")
def reciprocal(a):
    a = inexact(a)
    return Value(a.dtype, 1 / a.data, magnitude="complex")


@op("round")
def round_(a, decimals):
    if kind(a.dtype) >= 3:
        unit = 10.0**-max(min(decimals, 300), -300)
        return Value(a.dtype, a.data, magnitude=("round", unit))
    if decimals >= 0 or a.dtype == "bool":
        return Value(a.dtype, a.data)
    unit = 10**min(-decimals, 30)

    def one(x):
        if unit > np.iinfo(NP[a.dtype]).max:
            return 0
        low = x // unit
        rest = x - low * unit
        up = rest * 2 > unit or (rest * 2 == unit and low % 2)
        return (low + up) * unit
    return Value(a.dtype, wrap(np.array([one(int(x)) for x in a.data.ravel()], dtype=object)
                               .reshape(a.shape), a.dtype))


@op("clip")
def clip(a, a_min, a_max):
    value = Value(a.dtype, a.data, a.weak)
    if a_min is not None:
        value = OPS["maximum"](value, a_min)
    if a_max is not None:
        value = OPS["minimum"](value, a_max)
    return Value(value.dtype, value.data)


OPS["isnan"] = lambda a: Value("bool", np.isnan(a.data))
OPS["isinf"] = lambda a: Value("bool", np.isinf(a.data))
OPS["isfinite"] = lambda a: Value("bool", np.isfinite(a.data))
OPS["isposinf"] = lambda a: Value("bool", a.data == np.inf if kind(a.dtype) >= 3 else np.zeros(a.shape, bool))
OPS["isneginf"] = lambda a: Value("bool", a.data == -np.inf if kind(a.dtype) >= 3 else np.zeros(a.shape, bool))


@op("nan_to_num")
def nan_to_num(a, nan, posinf, neginf):
    if kind(a.dtype) < 3:
        return Value(a.dtype, a.data)
    top = {"float16": 65504.0, "bfloat16": float.fromhex("0x1.fep127"),
           "float64": np.finfo(np.float64).max}.get(a.dtype, float(np.finfo(np.float32).max))
    high, low = top if math.isnan(posinf) else posinf, -top if math.isnan(neginf) else neginf

    def part(x):
        return np.where(np.isnan(x), nan, np.where(x == np.inf, high, np.where(x == -np.inf, low, x)))
    if a.dtype != "complex64":
        return Value(a.dtype, part(a.data))
    return Value(a.dtype, part(a.data.real) + 1j * part(a.data.imag), magnitude="loose")


unary("degrees", lambda x: x * (180 / math.pi), tolerance=4)
unary("radians", lambda x: x * (math.pi / 180), tolerance=4)


@op("relu")
def relu(a):
    return OPS["maximum"](a, Value("int32", np.int32(0), "int"))


def near_pole(name, x):
    """Where the factor of an activation of complex numbers is large, so that errors are too."""
    if name == "softplus":
        return np.abs(1 + np.exp(x)) < 0.1
    if name == "silu":
        return np.abs(1 + np.exp(-x)) < 0.1
    return np.abs(np.cosh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) < 0.5


def activation(name, function):
    def reference(a):
        a = inexact(a)
        if kind(a.dtype) == 4:
            if name == "gelu":
                raise Refuse("erf")
            with np.errstate(all="ignore"):
                size = np.abs(a.data)
                return Value(a.dtype, function(a.data), magnitude=("absolute", size + 1, 64),
                             unsure=~(size < 10) | near_pole(name, a.data))
        return Value(a.dtype, function(a.data), magnitude=("absolute", np.abs(a.data), 12))
    OPS[name] = reference


activation("silu", lambda x: x * sigmoid(x))
activation("gelu", lambda x: x * (1 + erf(x / math.sqrt(2))) / 2)
activation("gelu_approx", lambda x: x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2)
activation("softplus", lambda x: np.log1p(np.exp(x)) if np.iscomplexobj(x) else np.logaddexp(x, 0))


@op("isclose")
def isclose(a, b, rtol, atol, equal_nan):
    a, b = promote([a, b])
    x, y = np.broadcast_arrays(a.data, b.data)
    if kind(a.dtype) < 3:
        x, y = x.astype(np.longdouble), y.astype(np.longdouble)
    with np.errstate(all="ignore"):
        distance, bound = np.abs(x - y), atol + rtol * np.abs(y)
        near = (distance <= bound) & np.isfinite(x) & np.isfinite(y)
        sure = ~(np.abs(distance - bound) <= 1e-6 * np.abs(bound) + 1e-12) & ~(np.abs(bound) > 1e37)
    value = near | ((x == y) & np.isinf(x)) | ((np.isnan(x) & np.isnan(y)) if equal_nan else False)
    return Value("bool", value, magnitude=("where", sure | (x == y) | ~np.isfinite(x) | ~np.isfinite(y)))


@op("allclose")
def allclose(a, b, rtol, atol, equal_nan):
    each = isclose(a, b, rtol, atol, equal_nan)
    if not np.all(each.magnitude[1]) and np.all(each.data | ~each.magnitude[1]):
        return None  # an element at the bound decides
    return Value("bool", np.all(each.data))


@op("array_equal")
def array_equal(a, b, equal_nan):
    if a.shape != b.shape:
        return Value("bool", False)
    a, b = promote([a, b])
    same = a.data == b.data
    if equal_nan:
        same = same | (np.isnan(a.data) & np.isnan(b.data))
    return Value("bool", np.all(same))


# ---- reductions ----


def narrow_to_word(a):
    dtype = {"bool": "int32", "int8": "int32", "int16": "int32", "uint8": "uint32",
             "uint16": "uint32"}.get(a.dtype, a.dtype)
    return cast(a, dtype)


@op("sum")
def sum_(a, axes, keepdims):
    a, axes = narrow_to_word(a), norm_axes(axes, a.rank)
    data = np.sum(a.data, axis=axes, keepdims=keepdims, dtype=a.data.dtype)
    return Value(a.dtype, data, magnitude=("sum", np.sum(np.abs(a.data), axis=axes, keepdims=keepdims),
                                           count_of(a.shape, axes)))


@op("prod")
def prod(a, axes, keepdims):
    a, axes = narrow_to_word(a), norm_axes(axes, a.rank)
    if kind(a.dtype) < 3:
        return Value(a.dtype, np.prod(a.data, axis=axes, keepdims=keepdims, dtype=a.data.dtype))
    with np.errstate(all="ignore"):
        largest = np.prod(np.maximum(np.abs(a.data), 1), axis=axes, keepdims=keepdims)
        smallest = np.prod(np.minimum(np.abs(a.data), 1), axis=axes, keepdims=keepdims)
        # which partial product leaves the range depends on the order
        unsure = ~(largest < LARGEST[a.dtype] / 4) | (smallest > 0) & (smallest < 4 / LARGEST[a.dtype])
        return Value(a.dtype, np.prod(a.data, axis=axes, keepdims=keepdims),
                     magnitude=("prod", count_of(a.shape, axes) + 4), unsure=unsure)


def extreme(name, function):
    def reference(a, axes, keepdims):
        axes = norm_axes(axes, a.rank)
        if any(a.shape[i] == 0 for i in axes):
            raise Refuse("empty")
        return Value(a.dtype, function(a.data, axis=axes, keepdims=keepdims))
    OPS[name] = reference


extreme("max", np.max)
extreme("min", np.min)


@op("any")
def any_(a, axes, keepdims):
    return Value("bool", np.any(a.data != 0, axis=norm_axes(axes, a.rank), keepdims=keepdims))


@op("all")
def all_(a, axes, keepdims):
    return Value("bool", np.all(a.data != 0, axis=norm_axes(axes, a.rank), keepdims=keepdims))


@op("mean")
def mean(a, axes, keepdims):
    a = inexact(a)
    axes = norm_axes(axes, a.rank)
    count = count_of(a.shape, axes)
    with np.errstate(all="ignore"):
        data = np.divide(np.sum(a.data, axis=axes, keepdims=keepdims), count)
        total = np.sum(np.abs(a.data), axis=axes, keepdims=keepdims)
        range_ = LARGEST["float32" if a.dtype in ("float16", "bfloat16") else a.dtype]
        return Value(a.dtype, data, magnitude=("sum", np.divide(total, count), count),
                     unsure=~np.isnan(data) & ~(total < range_ / 4) & np.isfinite(total))


def variance(a, axes, keepdims, ddof):
    a = inexact(a)
    axes = norm_axes(axes, a.rank)
    count = count_of(a.shape, axes)
    dtype = "float32" if a.dtype == "complex64" else a.dtype
    with np.errstate(all="ignore"):
        center = np.divide(np.sum(a.data, axis=axes, keepdims=True), count)
        total = np.sum(np.abs(a.data - center)**2, axis=axes, keepdims=keepdims)
        size = np.sum(np.abs(a.data)**2, axis=axes, keepdims=keepdims)
        left = max(count - ddof, 0)
        # by 0: of 0, of what is left of a rounded mean, of a square too small for the dtype
        unsure = (left == 0) & ((total <= 1e-6 * size) | (total < 1e-36))
        size = np.where(size > 1e37, np.inf, np.divide(size, max(left, 1)))
        return dtype, np.divide(total, left), size, count, unsure


@op("var")
def var(a, axes, keepdims, ddof):
    dtype, data, size, count, unsure = variance(a, axes, keepdims, ddof)
    return Value(dtype, data, magnitude=("sum", size, count + 8), unsure=unsure)


@op("std")
def std(a, axes, keepdims, ddof):
    dtype, data, size, count, unsure = variance(a, axes, keepdims, ddof)
    return Value(dtype, np.sqrt(data), magnitude=("root", data, size, count + 8), unsure=unsure)


def position(name, function):
    def reference(a, axes, keepdims):
        if axes is None:
            if a.data.size == 0:
                raise Refuse("empty")
            flat = function(a.data.ravel())
            return Value("uint32", np.full((1,) * a.rank if keepdims else (), flat, dtype=np.uint32))
        if axes == "too many" or len(axes) != 1:
            raise Refuse("axes")
        axis = norm_axis(axes[0], a.rank)
        if a.shape[axis] == 0:
            raise Refuse("empty")
        return Value("uint32", function(a.data, axis=axis, keepdims=keepdims).astype(np.uint32))
    OPS[name] = reference


position("argmax", np.argmax)
position("argmin", np.argmin)


@op("logsumexp")
def logsumexp(a, axes, keepdims):
    a = inexact(a)
    axes = norm_axes(axes, a.rank)
    with np.errstate(all="ignore"):
        data = logsumexp_data(a.data, axes, keepdims)
    return Value(a.dtype, data, magnitude="loose" if kind(a.dtype) == 4 else
                 ("absolute", np.abs(data) + 1, count_of(a.shape, axes) + 8))


def cancels(data, axes):
    """Where a sum of complex exponentials is small beside its terms, or something is not finite."""
    if data.size == 0:
        return False
    with np.errstate(all="ignore"):
        terms = np.exp(data - np.max(data.real, axis=axes, keepdims=True)) if axes else np.ones_like(data)
        total = np.abs(np.sum(terms, axis=axes, keepdims=True))
        return ~(total > 0.1 * np.sum(np.abs(terms), axis=axes, keepdims=True)) \
            | ~np.isfinite(np.sum(np.abs(data), axis=axes, keepdims=True))


@op("softmax")
def softmax(a, axes):
    a = inexact(a)
    axes = norm_axes(axes, a.rank)
    with np.errstate(all="ignore"):
        if a.data.size == 0:
            return Value(a.dtype, a.data)
        high = np.max(a.data.real, axis=axes, keepdims=True) if axes else a.data.real
        apart = a.data - high
        data = np.exp(apart) / np.sum(np.exp(apart), axis=axes, keepdims=True)
        spread = np.where(np.isfinite(apart), np.abs(apart), 0)
    if kind(a.dtype) == 4:
        return Value(a.dtype, data, magnitude="loose", unsure=cancels(a.data, axes))
    small = 2.0**-126 / EPS["float32"] if a.dtype != "float64" else 0  # exponentials below that are 0
    return Value(a.dtype, data, magnitude=("times", data * (1 + spread) + small, count_of(a.shape, axes) + 8))


@op("log_softmax")
def log_softmax(a, axes):
    a = inexact(a)
    axes = norm_axes(axes, a.rank)
    with np.errstate(all="ignore"):
        total = logsumexp_data(a.data, axes)
        data = a.data - total
    if kind(a.dtype) == 4:
        return Value(a.dtype, data, magnitude="loose", unsure=cancels(a.data, axes))
    return Value(a.dtype, data, magnitude=("absolute", np.abs(a.data) + np.abs(total) + 1,
                                           count_of(a.shape, axes) + 8))


# ---- scans ----


def shifted(data, axis, first):
    """The scan of what lies before each element."""
    filler = np.full_like(np.take(data, [0], axis=axis), first) if data.shape[axis] else data
    return np.concatenate([filler, np.take(data, range(data.shape[axis] - 1), axis=axis)], axis=axis) \
        if data.shape[axis] else data


def scan(name, function, first, widen, magnitude):
    def reference(a, axis, reverse, inclusive):
        a = inexact(a) if name == "logcumsumexp" else cast(a, "int32") if widen and a.dtype == "bool" else a
        axis = norm_axis(axis, a.rank)
        if name == "logcumsumexp" and kind(a.dtype) == 4:
            return None
        data = np.flip(a.data, axis) if reverse else a.data
        with np.errstate(all="ignore"):
            result = function(data, axis)
            size = magnitude(data, axis) if magnitude and kind(a.dtype) >= 3 else None
        if not inclusive:
            result = shifted(result, axis, first(a.dtype))
            size = shifted(size, axis, first(a.dtype)) if size is not None else None
        if reverse:
            result = np.flip(result, axis)
            size = np.flip(size, axis) if size is not None else None
        if size is None:
            return Value(a.dtype, result)
        return Value(a.dtype, result, magnitude=("sum", np.where(np.isfinite(size), np.abs(size), 0),
                                                 4 * a.shape[axis] + 8))
    OPS[name] = reference


def least(dtype):
    return -np.inf if kind(dtype) >= 3 else 0 if dtype == "bool" else np.iinfo(NP[dtype]).min


def most(dtype):
    return np.inf if kind(dtype) >= 3 else 1 if dtype == "bool" else np.iinfo(NP[dtype]).max


scan("cumsum", lambda x, axis: np.cumsum(x, axis=axis, dtype=x.dtype), lambda d: 0, True,
     lambda x, axis: np.cumsum(np.abs(x), axis=axis))
scan("cumprod", lambda x, axis: np.cumprod(x, axis=axis, dtype=x.dtype), lambda d: 1, True,
     lambda x, axis: np.abs(np.cumprod(x, axis=axis)))
scan("cummax", lambda x, axis: np.maximum.accumulate(x, axis=axis), least, False, None)
scan("cummin", lambda x, axis: np.minimum.accumulate(x, axis=axis), most, False, None)
scan("logcumsumexp", lambda x, axis: np.logaddexp.accumulate(x, axis=axis), lambda d: -np.inf, False,
     lambda x, axis: np.abs(np.logaddexp.accumulate(x, axis=axis)) + 1)
