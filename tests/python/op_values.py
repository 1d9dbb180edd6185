"""Arrays as the program op_calls wrote them, the dtype rules of the op table, and how close a result
must be to what NumPy gives. See compare_ops.py.
"""
import math

import numpy as np

NP = {"bool": np.bool_, "uint8": np.uint8, "uint16": np.uint16, "uint32": np.uint32,
      "uint64": np.uint64, "int8": np.int8, "int16": np.int16, "int32": np.int32, "int64": np.int64,
      "float16": np.float16, "bfloat16": np.uint16, "float32": np.float32, "float64": np.float64,
      "complex64": np.complex64}
EPS = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52,
       "complex64": 2.0**-23}
TINY = {"float16": 2.0**-24, "bfloat16": 2.0**-133, "float32": 2.0**-149, "float64": 5e-324,
        "complex64": 2.0**-149}
HUGE = 10**5  # a length beyond it is a mistake, not work
FLOATS = ("float16", "bfloat16", "float32", "float64")
SIGNED, UNSIGNED = ("int8", "int16", "int32", "int64"), ("uint8", "uint16", "uint32", "uint64")


class Refuse(Exception):
    """The contract has no value here."""


class Value:
    """An array: dtype, values in wide arithmetic, and the kind of a weakly typed scalar.

    As a reference also how far a result may be off (`magnitude`), and where NumPy's formula does not
    say what the result is (`unsure`, broadcast to the shape).
    """

    def __init__(self, dtype, data, weak=None, magnitude=None, unsure=False):
        self.dtype, self.data, self.weak = dtype, np.asarray(data), weak
        self.magnitude, self.unsure = magnitude, np.broadcast_to(np.asarray(unsure, dtype=bool), self.data.shape)

    @property
    def shape(self):
        return self.data.shape

    @property
    def rank(self):
        return self.data.ndim


# ---- dtypes ----


def kind(dtype):
    if dtype == "bool":
        return 0
    return 3 if dtype in FLOATS else 4 if dtype == "complex64" else 1 if dtype in UNSIGNED else 2


def bits(dtype):
    return 8 * np.dtype(NP[dtype]).itemsize


def promote_dtypes(a, b):
    if kind(a) > kind(b):
        a, b = b, a
    if a == b or (kind(b) >= 3 and kind(a) < 3) or kind(b) == 4 or kind(a) == 0:
        return b
    if kind(a) == kind(b) == 3:
        return "float32" if {a, b} == {"float16", "bfloat16"} else max(a, b, key=bits)
    if kind(a) == kind(b):
        return max(a, b, key=bits)
    if bits(a) < bits(b):
        return b
    return {8: "int16", 16: "int32", 32: "int64"}.get(bits(a), "float32")


def result_dtype(values):
    strong = [v for v in values if not v.weak]
    if not strong:
        dtype = values[0].dtype
        for v in values[1:]:
            dtype = promote_dtypes(dtype, v.dtype)
        return dtype
    dtype = strong[0].dtype
    for v in strong[1:]:
        dtype = promote_dtypes(dtype, v.dtype)
    for v in values:
        if v.weak and {"bool": 0, "int": 2, "float": 3, "complex": 4}[v.weak] > max(
                kind(dtype), 2 if kind(dtype) == 1 else 0):
            dtype = promote_dtypes(dtype, v.dtype)
    return dtype


def round_bfloat16(x):
    with np.errstate(all="ignore"):
        _, exponent = np.frexp(x)
        quantum = np.ldexp(1.0, np.maximum(exponent - 8, -133))
        rounded = np.rint(x / quantum) * quantum
        rounded = np.where(np.abs(rounded) >= 2.0**128, np.copysign(np.inf, x), rounded)
    return np.where(np.isfinite(x), rounded, x)


def wrap(x, dtype):
    """Integers modulo 2^n."""
    x = np.asarray(x)
    if x.dtype == object:
        flat = [int(v) & (2**bits(dtype) - 1) for v in x.ravel()]
        return np.array(flat, dtype=f"u{bits(dtype) // 8}").reshape(x.shape).view(NP[dtype])
    return x.astype(NP[dtype])


def saturate(x, dtype):
    info = np.iinfo(NP[dtype])
    flat = [0 if math.isnan(v) else info.max if v >= info.max else info.min if v <= info.min else int(v)
            for v in np.asarray(x, dtype=np.float64).ravel()]
    return np.array(flat, dtype=NP[dtype]).reshape(np.shape(x))


def cast_data(data, source, dtype):
    with np.errstate(all="ignore"):
        if dtype == "bool":
            return data != 0
        if kind(source) == 4 and dtype != "complex64":
            data = data.real
        if kind(dtype) in (1, 2):
            return saturate(data, dtype) if kind(source) >= 3 else wrap(data.astype(object), dtype)
        if dtype == "complex64":
            return (data.astype(np.complex64)).astype(np.complex128)
        if dtype == "bfloat16":
            return round_integers_bfloat16(data) if kind(source) < 3 else round_bfloat16(data)
        return data.astype(NP[dtype]).astype(np.float64)


def round_integers_bfloat16(data):
    return round_bfloat16(np.asarray(data, dtype=np.longdouble)).astype(np.float64)


def cast(value, dtype):
    if value.dtype == dtype:
        return Value(dtype, value.data, magnitude=value.magnitude)
    if value.weak == "int" and kind(dtype) in (1, 2):
        info = np.iinfo(NP[dtype])
        if not info.min <= int(value.data.item()) <= info.max:
            raise Refuse("a number that the dtype does not hold")
    return Value(dtype, cast_data(value.data, value.dtype, dtype))


def inexact(value):
    return value if kind(value.dtype) >= 3 else cast(value, "float32")


def promote(values):
    dtype = result_dtype(values)
    return [cast(v, dtype) for v in values]


def refuse(values, kinds):
    for v in values:
        if kind(v.dtype) in kinds:
            raise Refuse("dtype")


# ---- the table of references ----

OPS = {}


def op(*names):
    def register(function):
        for name in names:
            OPS[name] = function
        return function
    return register


# ---- axes and sizes ----


def norm_axis(axis, rank):
    if not -rank <= axis < rank:
        raise Refuse("axis")
    return axis % rank


def norm_axes(axes, rank, ordered=False):
    if axes is None:
        return tuple(range(rank))
    if axes == "too many":
        raise Refuse("axes")
    result = [norm_axis(a, rank) for a in axes]
    if len(set(result)) != len(result):
        raise Refuse("axes")
    return tuple(result) if ordered else tuple(sorted(result))


def listed(axes):
    if axes is None or axes == "too many":
        raise Refuse("list")
    return axes


def count_of(shape, axes):
    return int(np.prod([shape[i] for i in axes], dtype=np.int64))


def big(x):
    return np.asarray(x).astype(object)


def logsumexp_data(data, axes, keepdims=True):
    if data.size == 0 or not axes:
        if not axes:
            return data
        return np.log(np.sum(np.exp(data), axis=axes, keepdims=keepdims))
    high = np.max(data.real, axis=axes, keepdims=True)
    high = np.where(np.isfinite(high), high, 0)
    total = np.log(np.sum(np.exp(data - high), axis=axes, keepdims=True)) + high
    return total if keepdims else np.squeeze(total, axis=axes)


def indices_of(value, length):
    """Indices in range, and which were not."""
    if kind(value.dtype) not in (1, 2):
        raise Refuse("index dtype")
    index = np.array([int(i) for i in value.data.ravel()], dtype=object).reshape(value.shape)
    index = np.where(index < 0, index + length, index)
    bad = (index < 0) | (index >= length)
    return np.where(bad, 0, index).astype(np.int64), bad.astype(bool)


def faulty(value, bad):
    """Notes whether an index was out of range: the result is that of reading zeros, writing nothing."""
    value.fault = bool(np.any(bad))
    return value


# ---- memory ----


def wide(dtype):
    return np.complex128 if dtype == "complex64" else np.float64 if kind(dtype) == 3 else NP[dtype]



def from_memory(raw, dtype):
    with np.errstate(all="ignore"):
        if dtype == "bfloat16":
            return (raw.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
        if dtype == "bool":
            return raw != 0
        return raw.astype(wide(dtype))


def to_memory(value):
    if value.dtype == "bfloat16":
        return (value.data.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    if value.dtype == "bool":
        return value.data.astype(np.uint8)
    return value.data.astype(NP[value.dtype])


# ---- comparison ----


def same_number(got, expected):
    return (got == expected) | (np.isnan(got) & np.isnan(expected))


def close(got, expected, bound):
    with np.errstate(all="ignore"):
        return same_number(got, expected) | (np.abs(got - expected) <= bound)


LARGEST = {"float16": 65504.0, "bfloat16": 3.38e38, "float32": 3.402e38, "float64": 1.79e308,
           "complex64": 3.402e38}


def may_overflow(value):
    """Where an intermediate sum may leave the dtype's range: the order of the terms decides."""
    rule = value.magnitude
    if not isinstance(rule, tuple) or rule[0] not in ("sum", "root", "absolute", "times"):
        return False
    size = np.abs(rule[2] if rule[0] == "root" else rule[1])
    top = LARGEST["float32" if value.dtype in ("float16", "bfloat16") and rule[0] == "root" else value.dtype]
    return ~(size < top / 4)


def bound_of(value, dtype):
    """Absolute error allowed for each element; None: exactly equal."""
    eps, rule = EPS[dtype], value.magnitude
    size = np.abs(value.data)
    if rule is None or rule == "complex" and kind(dtype) != 4:
        return None
    with np.errstate(all="ignore"):
        if rule == "complex":
            return 8 * eps * size + TINY[dtype]
        if rule == "loose":
            return 64 * eps * (1 + size)
        if rule == "floor":
            return eps * size
        if isinstance(rule, (int, float)):
            return rule * eps * size + rule * TINY[dtype]
        if rule[0] in ("sum", "absolute"):
            return eps * ((rule[2] if rule[0] == "absolute" or True else 1) * np.abs(rule[1])
                          + size) + 4 * TINY[dtype]
        if rule[0] == "times":
            return eps * rule[2] * np.abs(rule[1]) + 4 * TINY[dtype]
        if rule[0] == "prod":
            return eps * rule[1] * size + rule[1] * TINY[dtype]
        if rule[0] == "root":
            error = eps * rule[3] * np.abs(rule[2])
            return np.sqrt(np.abs(rule[1]) + error) - np.sqrt(np.maximum(np.abs(rule[1]) - error, 0)) \
                + 4 * eps * size
    return None


def compare_special(got, value):
    """Rules that look at a whole axis; None: no such rule."""
    rule = value.magnitude if isinstance(value.magnitude, tuple) else (None,)
    if rule[0] == "round" and kind(value.dtype) == 4:
        return all(compare_special(part(got), Value("float32", part(value.data), magnitude=rule))
                   for part in (np.real, np.imag))
    if rule[0] == "round":  # a multiple of the unit, at most half of it away
        with np.errstate(all="ignore"):
            eps = EPS[value.dtype]
            near = np.abs(got - value.data) <= rule[1] * (0.5 + 4 * eps) + 4 * eps * np.abs(value.data)
            whole = np.abs(got / rule[1] - np.rint(got / rule[1])) <= 4 * eps * np.abs(got / rule[1])
        over = np.isinf(got) & (got * value.data > 0) & (np.abs(value.data) + rule[1] > LARGEST[value.dtype])
        return bool(np.all(same_number(got, value.data) | near & whole | over))
    if rule[0] == "holds":
        return rule[1](got)
    if rule[0] == "range":
        return bool(np.all((got >= rule[1]) & (got <= rule[2]) | np.isnan(got)))
    if rule[0] == "unordered":
        return bool(np.all(same_number(np.sort(got, axis=rule[1]), np.sort(value.data, axis=rule[1]))))
    if rule[0] == "rearranged":
        return bool(np.all(same_number(np.sort(got.ravel()), np.sort(value.data.ravel()))))
    if rule[0] in ("partition", "argpartition"):
        axis, kth = rule[1], rule[2]
        if rule[0] == "argpartition":
            if got.size and not np.array_equal(np.sort(got, axis=axis), np.sort(np.argsort(value.data, axis=axis), axis=axis)):
                return False
            got = np.take_along_axis(value.data, got.astype(np.int64), axis=axis)
        ordered = np.sort(value.data, axis=axis)
        if got.size == 0:
            return True
        below, above = np.split(np.sort(got, axis=axis), [kth], axis=axis)
        first = np.sort(np.take(got, range(kth), axis=axis), axis=axis)
        return bool(np.all(same_number(np.sort(got, axis=axis), ordered))
                    and np.all(same_number(first, np.take(ordered, range(kth), axis=axis)))
                    and np.all(same_number(np.take(got, [kth], axis=axis), np.take(ordered, [kth], axis=axis))))
    if rule[0] == "where":
        return bool(np.all((got == value.data) | ~rule[1]))
    return None


# The sign of a zero among equals is not fixed: which of -0.0 and 0.0 is the larger.
SIGNLESS = set("max min maximum minimum clip relu sort topk cummax cummin sign slice_update scatter_nd "
               "nan_to_num power remainder floor_divide outer sum linspace arange".split())


def agrees(got, value, name):
    """None, or how an array of the program differs from what the reference says."""
    if got.dtype != value.dtype:
        return f"dtype {got.dtype}, expected {value.dtype}"
    if got.shape != value.shape:
        return f"shape {got.shape}, expected {value.shape}"
    special = compare_special(got.data, value)
    if special is not None:
        return None if special else "values"
    with np.errstate(all="ignore"):
        expected = value.data
        if kind(value.dtype) < 3:
            fits = got.data == expected
        else:
            bound = bound_of(value, value.dtype)
            expected = cast_data(expected, "float64" if kind(value.dtype) == 3 else "complex64", value.dtype)
            if kind(value.dtype) == 4:
                fits = complex_close(got.data, expected, bound) | may_overflow(value)
            elif bound is None:
                fits = same_number(got.data, expected)
                if name not in SIGNLESS:
                    fits &= (expected != 0) | (np.signbit(got.data) == np.signbit(expected))
            else:
                fits = close(got.data, expected, np.broadcast_to(bound, expected.shape))
                fits |= overflows(got.data, value, bound) | may_overflow(value)
    fits |= value.unsure
    if np.all(fits):
        return None
    at = tuple(int(i) for i in np.argwhere(~np.atleast_1d(fits))[0])
    return f"element {at} is {np.atleast_1d(got.data)[at]!r}, expected {np.atleast_1d(expected)[at]!r}"


def overflows(got, value, bound):
    """A result at the edge of the dtype's range may round to infinity or stay below it."""
    largest = LARGEST[value.dtype]
    near = np.abs(value.data) * (1 + 64 * EPS[value.dtype]) >= largest
    return near & np.isfinite(value.data) & (np.isinf(got) | (np.abs(got) >= largest * 0.99))


def complex_close(got, expected, bound):
    """Parts within the bound of the modulus; where something is not finite, only that it is not."""
    finite = np.isfinite(expected) & np.isfinite(got)
    if bound is None:
        parts = same_number(got.real, expected.real) & same_number(got.imag, expected.imag)
    else:
        parts = np.abs(got - expected) <= np.broadcast_to(bound, expected.shape)
    return np.where(finite, parts, ~np.isfinite(expected) == ~np.isfinite(got))
