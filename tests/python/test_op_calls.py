"""Ten thousand random calls of the ops agree with NumPy or are refused where the contract refuses.

`build/tests/op_calls` makes the calls (tests/edge/op_calls.c); compare_ops.py knows the values. The
seed is fixed unless TIKI_OP_SEED is set; a failure shows the seed and the call.
"""
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


def test_calls_agree_with_numpy(cases):
    assert len(cases.lines) == CALLS
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, line in enumerate(cases.lines):
            found = compare_ops.check(cases, line)
            if found:
                wrong.append(f"call {number}: {found}\n    {line}")
    assert not wrong, f"{len(wrong)} calls differ:\n" + "\n".join(wrong[:20])


def test_every_op_gives_values(cases):
    """A row that is only ever refused would test nothing."""
    called, computed = set(), set()
    for line in cases.lines:
        case = json.loads(line)
        called.add(case["op"])
        if case["status"] == "ok":
            computed.add(case["op"])
    assert called - computed == set()


def test_every_op_has_a_reference(cases):
    called = {json.loads(line)["op"] for line in cases.lines}
    assert called - set(compare_ops.OPS) == set()


def test_a_wrong_value_is_found(cases):
    """The comparison itself: a result that is off by one element is not accepted."""
    for line in cases.lines:
        case = json.loads(line)
        if case["op"] == "add" and case["status"] == "ok" and case["out"][0]["dtype"] == "int32" \
                and case["out"][0]["shape"]:
            break
    else:
        pytest.skip("no integer addition among the calls")
    got = cases.value(case["out"][0])
    if got.data.size:
        value = compare_ops.Value(got.dtype, got.data.copy())
        value.data.flat[0] += 1
        assert compare_ops.agrees(got, value, "add")
