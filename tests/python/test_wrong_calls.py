"""Calls that are wrong in one way, or odd: what MLX refuses Tiki refuses, with an exception of the kind that
docs/python.md says, and what MLX takes gives the same dtypes, shapes and values. The calls and MLX's word on each are a
table, data/wrong_calls.jsonl, that make_wrong_calls.py draws. What docs/differences.md says of these calls is below.
"""

import json
import math
import pathlib
import re
import warnings

import pytest

import tiki as tk
from test_differential import NOT_OPS
from tiki import nn
from wrong_calls import ERRORS, call, described, function_of, whole

TABLE = pathlib.Path(__file__).parent / "data" / "wrong_calls.jsonl"
CASES = {}
for line in TABLE.read_text().splitlines():
    case = json.loads(line)
    CASES.setdefault(case[0], []).append(case[1:])

# No two programs agree on signs and phases of vectors, on the order within a partition, on memory that is not set.
UNSURE = set("""empty empty_like partition argpartition topk linalg.svd linalg.eig linalg.eigh linalg.qr""".split())

# Rows of docs/differences.md: names, and what is in the text of the call. Tiki gives values where MLX refuses ...
GIVES = r"""
(nn.)?sigmoid                                   @complex64
argmax|kron|random.categorical|linalg.lu        \[0,
kron|vecdot                                     @
conv.*                                          @u?int|@bool|@complex64|@float64|\[1\]|\[0,1|"groups":.2
hadamard_transform                              @float64
linalg.solve                                    @bfloat16|,1\]
fast.r.*                                        @u?int
gather_mm                                       @b?float16
segmented_mm                                    @complex64
roll|tril|trace|eye|tri                         1099511627776
(stop_gradient|contiguous|trunc|allclose|mean|std|prod|max|min|count_nonzero|argmin|cumprod|cumulative_prod|inner|kron|broadcast_arrays|atleast_.d|meshgrid|.*_like|hadamard_transform|to_fp8|gather_mm|fast.scaled_dot_product_attention)  [\[ ](true|3|2.5)
"""
# ... refuses where MLX gives them ...
REFUSES = r"""
flip                              "axis":.\[0,.0\]
conc.*                            "axis":.-?[1-9]
as_strided                        @
full_like|block_masked_mm         \[0
put_along_axis                    \[0,|\[1,2,3,1\]
fast.gated_delta_update           \[0,
linalg.eig.*                      "UPLO"
random.randint                    1099511627776
random.truncated_normal           NaN|Infinity|3,
nn.losses.gaussian_nll_loss       "full"
"""
# ... and gives others.
OTHERS = "to_fp8 @float64"


def is_row(rows, text):
    """Whether a call is one of those that the rows speak of."""
    name = text.partition("(")[0]
    for row in rows.strip().splitlines():
        names, _, inside = row.partition(" ")
        if re.fullmatch(names, name) and re.search(inside.strip(), text):
            return True
    return False


def failing(name):
    wrong = []
    function = function_of(nn, name[3:]) if name.startswith("nn.") else function_of(tk, name)
    for arguments, keywords, verdict in CASES[name]:
        text = f"{name}({json.dumps(arguments)}, {json.dumps(keywords)})"
        fault, rows = fault_of(name, function, arguments, keywords, verdict)
        if fault and not is_row(rows, text):
            wrong.append(f"{text}: {fault}")
    return wrong


def fault_of(name, function, arguments, keywords, verdict):
    """What is wrong, or None, and the rows that may explain it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            own = [described(tk, part) for part in call(tk, function, arguments, keywords)]
    except ERRORS as error:
        if isinstance(verdict, str):
            return None, ""
        return f"MLX gives {verdict}, Tiki {type(error).__name__}: {error}", REFUSES
    except Exception as error:  # noqa: BLE001, these are the ones that no user expects
        return f"not an error of a call: {type(error).__name__}: {error}", ""
    if isinstance(verdict, str):
        return f"MLX: {verdict}, Tiki gives {own}", GIVES
    return differing(name, own, verdict), OTHERS


def differing(name, own, theirs):
    if [p[:2] for p in own] != [p[:2] for p in theirs]:
        return f"{own}, MLX gives {theirs}"
    for (dtype, _, mine), (_, _, yours) in zip(own, theirs):
        if mine is None or yours is None or name in UNSURE:
            continue
        loose = 0 if whole(dtype) else 4e-2 if dtype in ("float16", "bfloat16") else 2e-3
        for a, b in zip(mine, yours):
            a, b = float(a), float(b)
            if not (a == b or math.isnan(a) and math.isnan(b) or abs(a - b) <= loose * max(1, abs(b))):
                return f"{own}, MLX gives {theirs}"
    return None


@pytest.mark.parametrize("name", CASES)
def test_wrong_calls(name):
    wrong = failing(name)
    assert not wrong, "\n".join(wrong)


def test_every_function_has_cases():
    import draw_ops
    from wrong_more import MORE

    assert set(CASES) == set(draw_ops.CALLS) | set(MORE)
    assert all(len(cases) >= 5 for name, cases in CASES.items()), {n: len(c) for n, c in CASES.items() if len(c) < 5}
    with_arguments = sum(isinstance(verdict, str) for cases in CASES.values() for _, _, verdict in cases)
    assert with_arguments > 1000
    assert not set(draw_ops.CALLS) & NOT_OPS
