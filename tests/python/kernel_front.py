"""Helpers of the tests of kernels written in Python: a function run by the lanes of the emulator, the examples' kernels."""

import importlib.util
import inspect
import pathlib

import numpy
import pytest

from tiki.kernels.cute.lib.math import Int32, KernelError, cute, thread_idx

NUMPY = {
    "i32": numpy.int32,
    "i64": numpy.int64,
    "f32": numpy.float32,
    "f16": numpy.float16,
    "i16": numpy.int16,
    "f64": numpy.float64,
}


def example(name):
    """A program of examples/python as a module."""
    path = pathlib.Path(__file__).parents[2] / "examples" / "python" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lower(function, count, dtype=Int32, result=Int32, lanes=32):
    """A kernel in which each thread calls the function with its column of the arguments."""
    body = cute.jit(function)

    @cute.kernel(grid=1, block=lanes)
    def harness(x, y):
        lane, _, _ = thread_idx()
        y[lane] = body(*[x[i, lane] for i in range(count)])

    inputs = cute.TensorSpec(dtype, (max(count, 1), lanes))
    return harness.lower(inputs, cute.TensorSpec(result, (lanes,)))


def on_device(function, *columns, dtype=Int32, result=Int32, seed=0):
    """The function's results for columns of arguments, by the emulator."""
    lanes = len(columns[0]) if columns else 32
    x = numpy.array(columns if columns else [[0] * lanes], NUMPY[dtype.scalar])
    y = numpy.zeros(lanes, NUMPY[result.scalar])
    ran = lower(function, len(columns), dtype, result, lanes).emulate(x, y, seed=seed)
    assert not ran.findings, ran.text
    return y


def marked_line(function):
    """The line of a function that ends in `# here`."""
    lines, first = inspect.getsourcelines(function)
    return next(first + i for i, line in enumerate(lines) if line.rstrip().endswith("# here"))


def fails(function, *words, count=1, dtype=Int32, result=Int32):
    """Building the function fails on its marked line with a message that has all of the words."""
    with pytest.raises(KernelError) as caught:
        lower(function, count, dtype, result)
    message = str(caught.value)
    assert message.startswith(f"{__file__.replace('kernel_front', function.__module__)}:{marked_line(function)}: "), (
        message
    )
    for word in words:
        assert word in message, message
