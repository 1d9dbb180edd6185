"""What each op of the table should give, by NumPy, for tests/python/test_op_calls.py.

`op_values.py` knows memory, dtypes and tolerances; `op_math.py`, `op_moves.py` and `op_makes.py` the ops.

Operands come as the program wrote them. Floats are computed with in float64 and complex numbers in
complex128, which holds every narrower operand exactly; integers in their own width, modulo 2^n. A
result is then rounded to the dtype that the promotion rules give, and compared within the class of
the op: exact, a few units in the last place, or a multiple of the sum of magnitudes.

A function raises Refuse where the contract (docs/numerics.md, docs/differences.md) or NumPy has no
value. Whatever else NumPy raises counts as a refusal too.
"""
import json

import numpy as np

import op_linalg
import op_makes
import op_math
import op_more
import op_moves
import op_quant
import op_signal
from op_values import HUGE, NP, OPS, Refuse, Value, agrees, from_memory

# Each enters its functions into OPS.
REFERENCES = (op_makes, op_math, op_more, op_moves, op_quant, op_signal, op_linalg)
SIZES = {"shape", "reps", "repeats", "num", "n", "m", "low", "high", "sections", "num_samples",
         "slice_sizes", "size", "start", "stop", "step"}


class Cases:
    def __init__(self, path):
        with np.load(path) as archive:
            self.lines = bytes(archive["cases"]).decode().splitlines()
            self.data = archive["data"].tobytes()

    def value(self, record):
        shape, dtype = tuple(record["shape"]), record["dtype"]
        if "at" not in record:
            return None
        count = int(np.prod(shape, dtype=np.int64))
        raw = np.frombuffer(self.data, dtype=NP[dtype] if dtype != "bool" else np.uint8, count=count,
                            offset=record["at"]) if count else np.zeros(0, NP[dtype])
        return Value(dtype, from_memory(raw.reshape(shape), dtype), record.get("weak"))

    def argument(self, value):
        if isinstance(value, dict):
            return self.value(value)
        if isinstance(value, list) and value and isinstance(value[0], dict):
            return [self.value(v) for v in value]
        return value


def is_huge(args):
    for name, value in args.items():
        numbers = value if isinstance(value, list) else [value]
        if name in SIZES and any(isinstance(n, int) and not isinstance(n, bool) and abs(n) > HUGE for n in numbers):
            return True
    return False


def reference_of(case, args):
    """A list of values, None when there is nothing to compare with, or Refuse."""
    with np.errstate(all="ignore"):
        try:
            expected = OPS[case["op"]](**args)
        except np.linalg.LinAlgError as error:  # NumPy gives up on what is not finite
            return None if "converge" in str(error) else Refuse(str(error))
        except (Refuse, ValueError, IndexError, TypeError, OverflowError, ZeroDivisionError) as error:
            if isinstance(error, TypeError) and "argument" in str(error):
                raise
            return Refuse(f"{type(error).__name__}: {error}")
    return expected if expected is None or isinstance(expected, list) else [expected]


# What became of a call. UNKNOWN: nothing to compare with (`check` of a reference says why).
AGREES, REFUSED, TOO_LARGE, UNKNOWN, WRONG = "agrees", "refused", "too large", "unknown", "wrong"


def check(cases, line):
    """One of the words above, and for WRONG what is wrong."""
    case = json.loads(line)
    huge = is_huge(case["args"])
    if any("at" not in out for out in case["out"]):
        return TOO_LARGE, None
    if case["status"] in ("overflow", "out of memory") and (huge or case["op"] in ("arange", "linspace")):
        return REFUSED, None
    if huge and case["op"] not in ("slice", "slice_update"):
        return TOO_LARGE, None
    args = {name: cases.argument(value) for name, value in case["args"].items()}
    expected = reference_of(case, args)
    if expected is None:
        return UNKNOWN, None
    if isinstance(expected, Refuse):
        if case["status"] == "ok":
            return WRONG, f"gave values, expected a refusal ({expected})"
        return REFUSED, None
    wrong = difference(cases, case, expected)
    return (WRONG, wrong) if wrong else (AGREES, None)


def difference(cases, case, expected):
    """None, or how the results of a call differ from what is expected."""
    fault = any(getattr(v, "fault", False) for v in expected)
    if fault != (case["status"] == "index error"):
        return f"status {case['status']}, index fault expected: {fault}"
    if case["status"] not in ("ok", "index error"):
        return f"refused: {case['message']}"
    if len(case["out"]) != len(expected):
        return f"{len(case['out'])} results, expected {len(expected)}"
    for out, value in zip(case["out"], expected):
        wrong = agrees(cases.value(out), value, case["op"])
        if wrong:
            return wrong
    return None
