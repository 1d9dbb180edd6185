"""Ten thousand random calls of the ops agree with NumPy or are refused where the contract refuses.

`build/tests/op_calls` makes the calls (tests/edge/op_calls.c); compare_ops.py knows the values. The
seed is fixed unless TIKI_OP_SEED is set; a failure shows the seed and the call.
"""
import collections
import json
import os
import pathlib
import subprocess
import warnings

import pytest

import compare_ops

CALLS = int(os.environ.get("TIKI_OP_CALLS", "10000"))


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    program = pathlib.Path(os.environ["TIKI_BUILD"]) / "tests" / "op_calls"
    path = tmp_path_factory.mktemp("op_calls") / "calls.npz"
    ran = subprocess.run([program, "--calls", str(CALLS), "--out", path], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    print(ran.stdout)
    return compare_ops.Cases(path)


@pytest.fixture(scope="module")
def verdicts(cases):
    """(op, verdict, what is wrong) of each call."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [(json.loads(line)["op"], *compare_ops.check(cases, line)) for line in cases.lines]


def test_calls_agree_with_numpy(cases, verdicts, capsys):
    assert len(verdicts) == CALLS
    count = collections.Counter(verdict for _, verdict, _ in verdicts)
    with capsys.disabled():
        print("op calls:", ", ".join(f"{n} {verdict}" for verdict, n in count.most_common()))
    wrong = [f"call {number}: {text}\n    {line}" for number, (line, (_, verdict, text))
             in enumerate(zip(cases.lines, verdicts)) if verdict == compare_ops.WRONG]
    assert not wrong, f"{len(wrong)} calls differ:\n" + "\n".join(wrong[:20])
    assert count[compare_ops.TOO_LARGE] + count[compare_ops.UNKNOWN] < CALLS / 50


def test_every_op_is_compared(verdicts):
    """A row that is mostly refused, or has no reference, would test nothing."""
    called, agreed = (collections.Counter(op for op, verdict, _ in verdicts if only in (None, verdict))
                      for only in (None, compare_ops.AGREES))
    assert set(called) <= set(compare_ops.OPS)
    assert [f"{op}: {agreed[op]} of {n}" for op, n in called.items() if agreed[op] < n / 5] == []


def test_a_wrong_value_is_found(cases):
    """The comparison itself: a result that is off by one element is not accepted."""
    for line in cases.lines:
        case = json.loads(line)
        if case["op"] == "add" and case["status"] == "ok" and "int" in case["out"][0]["dtype"] \
                and cases.value(case["out"][0]).data.size:
            break
    else:
        pytest.fail("no integer addition among the calls")
    got = cases.value(case["out"][0])
    value = compare_ops.Value(got.dtype, got.data.copy())
    value.data.flat[0] += 1
    assert compare_ops.agrees(got, value, "add")
