"""Calls as text, for a table of calls and of what MLX says to them: make_wrong_calls.py draws it, test_wrong_calls.py
reads it. A call is a JSON list of arguments and an object of keywords, where an array is one string,

    "@float32[2,3] -4 4 7"     dtype, shape, lowest and highest element, where in this range the first one is
    "@float32[2]=1.5 2"        elements one by one

and a dtype "%float32", a key "#5", a complex number "~1+2j". Tuples are {"tuple": [...]}, and the arrays of a quantised
one {"part": 1, "of": "@...", "form": {...}}.
"""

import itertools
import math

import numpy as np

from draw_calls import Operand
from draw_ops import Codes, DtypeName, Key

# Elements are written out up to this many; a result is compared by value up to that many.
WRITTEN, COMPARED = 4, 6
WHOLE = ("bool", "int", "uint")
ERRORS = (ValueError, TypeError, IndexError, OverflowError, NotImplementedError, MemoryError, KeyError)


class Missing(Exception):
    """A call that the table cannot hold."""


def whole(dtype):
    return dtype.startswith(WHOLE)


def elements(dtype, shape, low, high, first):
    count = math.prod(shape)
    steps = int(high - low) + 1 if whole(dtype) else int(8 * (high - low)) + 1
    places = (np.arange(count, dtype=np.int64) * 37 + first) % steps
    values = low + (places if whole(dtype) else places / 8)
    kind = np.complex64 if dtype == "complex64" else dtype if whole(dtype) or dtype == "float64" else np.float32
    return values.astype(kind).reshape(shape)


def array_text(operand, exact=False):
    data, dtype = operand.data, operand.dtype
    head = f"@{dtype}[{','.join(map(str, data.shape))}]"
    if exact or data.size <= WRITTEN:
        return head + "=" + " ".join(str(x) for x in data.reshape(-1).tolist())
    real = data.real
    low, high = math.floor(float(real.min())), math.ceil(float(real.max()))
    return f"{head} {low} {high} {data.size % 7}"


def array_of(text):
    head, _, rest = text[1:].partition("]")
    dtype, _, sides = head.partition("[")
    shape = tuple(int(n) for n in sides.split(",") if n)
    if not rest.startswith("="):
        low, high, first = (int(x) for x in rest.split())
        return Operand(dtype, elements(dtype, shape, low, high, first))
    kind = np.complex64 if dtype == "complex64" else dtype if whole(dtype) or dtype == "float64" else np.float32
    words = rest[1:].split()
    values = [w == "True" for w in words] if dtype == "bool" else [int(w) for w in words] if whole(dtype) else [
        complex(w) if dtype == "complex64" else float(w) for w in words]  # fmt: skip
    return Operand(dtype, np.array(values, kind).reshape(shape))


def encoded(value, exact=False):
    if isinstance(value, Operand):
        return array_text(value, exact)
    if isinstance(value, DtypeName):
        return "%" + value.name
    if isinstance(value, Key):
        return f"#{value.number}"
    if isinstance(value, Codes):
        return {"part": value.part, "of": array_text(value.operand), "form": value.keywords}
    if isinstance(value, complex):
        return f"~{value}"
    if isinstance(value, tuple):
        return {"tuple": [encoded(v, exact) for v in value]}
    if isinstance(value, list):
        return [encoded(v, exact) for v in value]
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise Missing(type(value).__name__)


def decoded(value):
    if isinstance(value, str):
        readers = {"@": array_of, "%": lambda s: DtypeName(s[1:]), "#": lambda s: Key(int(s[1:])), "~": lambda s: complex(s[1:])}
        return readers[value[0]](value) if value[:1] in readers else value
    if isinstance(value, list):
        return [decoded(v) for v in value]
    if isinstance(value, dict):
        if "tuple" in value:
            return tuple(decoded(v) for v in value["tuple"])
        return Codes(array_of(value["of"]), value["form"], value["part"])
    return value


def on(module, value):
    if isinstance(value, (list, tuple)):
        return type(value)(on(module, v) for v in value)
    return value.on(module) if hasattr(value, "on") else value


def function_of(module, name):
    for part in name.split("."):
        module = getattr(module, part)
    return module


def parts_of(result):
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, (list, tuple)):
        return list(itertools.chain.from_iterable(parts_of(r) for r in result))
    return [result]


def call(module, function, arguments, keywords):
    """The results of a call in text, evaluated; raises what the call or the evaluation raises."""
    module.random.seed(0)
    keywords = {key: on(module, decoded(value)) for key, value in keywords.items()}
    parts = parts_of(function(*[on(module, decoded(a)) for a in arguments], **keywords))
    module.eval([p for p in parts if isinstance(p, module.array)])
    return parts


def described(module, part):
    """Dtype, shape and, where they are few, elements of one result."""
    if not isinstance(part, module.array):
        return [type(part).__name__, None, None]
    dtype = str(part.dtype).split(".")[-1].rstrip("_")
    few = part.size <= COMPARED
    wide = part.astype(module.float32) if dtype in ("float16", "bfloat16") and few else part
    values = np.array(wide).reshape(-1).tolist() if few else None
    if values and dtype == "complex64":
        values = [x for v in values for x in (v.real, v.imag)]
    return [dtype, list(part.shape), values if values is None else [short(v) for v in values]]


def short(value):
    if isinstance(value, float):
        return float(f"{value:.5g}") if math.isfinite(value) else str(value)
    return value
