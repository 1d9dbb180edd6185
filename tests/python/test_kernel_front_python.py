"""What of Python a kernel may hold: each program of kernel_python.txt gives on the device what Python gives, or is
refused at the line that ends in `# here`; where Python itself refuses, its error has the line as a note."""

import importlib.util
import pathlib
import re

import numpy
import pytest
from kernel_front import lower

from tiki.kernels.cute.lib.math import KernelError

TEXT = (pathlib.Path(__file__).parent / "kernel_python.txt").read_text()
HEAD = "import contextlib, functools, itertools, math as pymath\nfrom tiki.kernels.cute.lib.math import *\nGLOBAL = 3\n"
PROGRAMS = [tuple(part.split("\n", 1)) for part in re.split(r"^== ", TEXT, flags=re.M)[1:]]
A = numpy.array([-3, -2, -1, 0, 1, 2, 3, 4] * 4, "i4")
B = numpy.array([0, 1, 2, 3] * 8, "i4")


def load(source, path):
    path.write_text(HEAD + source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.f


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_programs(number, tmp_path, capsys):
    expectation, source = PROGRAMS[number]
    path = tmp_path / f"program{number}.py"
    function = load(source, path)
    if expectation == "works":
        kernel = lower(function, 2)
        found = numpy.zeros(32, "i4")
        ran = kernel.emulate(numpy.array([A, B]), found)
        assert not ran.findings, ran.text
        assert found.tolist() == [int(function(int(a), int(b))) for a, b in zip(A, B)]
        return
    kind, words = expectation.split(": ", 1)
    with pytest.raises(Exception) as caught:
        lower(function, 2)
    error = caught.value
    if kind == "refused":
        marked = [i for i, line in enumerate((HEAD + source).splitlines(), 1) if line.endswith("# here")]
        assert isinstance(error, KernelError) and str(error).startswith(f"{path}:{marked[0]}: "), error
        assert words in re.sub(r" on line \d+", " on line", str(error)), error
    else:
        assert type(error).__name__ == kind and words in str(error)
        assert re.match(rf"{re.escape(str(path))}:\d+: while kernel harness was built", error.__notes__[0])


def test_there_are_enough():
    kinds = [expectation.split(":")[0] for expectation, _ in PROGRAMS]
    assert kinds.count("works") >= 100 and kinds.count("refused") >= 80
    assert len({source for _, source in PROGRAMS}) == len(PROGRAMS)
