"""References are counted: of memory shared with others, of modules with compiled functions, of constants."""

import gc
import resource
import sys

import numpy as np

import tiki as tk
from tiki import nn, optimizers


def resident():
    """Bytes of the process in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def growth(work, count):
    """Objects, bytes of arrays and bytes of the process that `count` calls leave behind."""
    for _ in range(count // 10 + 1):  # what is made once and kept
        work()
    gc.collect()
    tk.clear_cache()
    before = len(gc.get_objects()), tk.get_active_memory(), resident()
    for _ in range(count):
        work()
    gc.collect()
    tk.clear_cache()
    after = len(gc.get_objects()), tk.get_active_memory(), resident()
    return [b - a for a, b in zip(before, after)]


def check(work, count, resident_limit=4 << 20):
    objects, arrays, process = growth(work, count)
    assert objects <= 20 and arrays <= 4096, (objects, arrays)
    assert process <= resident_limit, process


X = tk.arange(8, dtype=tk.float32)


def test_compiled_functions_and_modules():
    def work():
        model = nn.Linear(4, 4)
        optimizer = optimizers.SGD(learning_rate=0.1, momentum=0.9)
        step = nn.value_and_grad(model, lambda x: model(x).sum())
        compiled = tk.compile(lambda x: step(x), inputs=model.state)
        _, gradients = compiled(tk.ones((2, 4)))
        optimizer.update(model, gradients)
        tk.eval(model.parameters())

    check(work, 200, 8 << 20)


def test_memory_of_others():
    def work():
        source = np.ones((32, 32), np.float32)
        tk.eval(tk.asarray(source)[::-1] + tk.from_dlpack(source))
        memoryview(tk.array(source)).release()
        np.from_dlpack(tk.array(source) * 2)
        tk.ones(3).__dlpack__()  # never consumed

    check(work, 1000)


def test_counts_of_references():
    before = sys.getrefcount(None), sys.getrefcount(tk.float32), sys.getrefcount(X)
    for _ in range(1000):
        tk.sum(X, axis=None, keepdims=False)
        X.astype(tk.float32)
        X.dtype
        X == None  # noqa: E711
        X[None]
        X.reshape(2, 4)
    after = sys.getrefcount(None), sys.getrefcount(tk.float32), sys.getrefcount(X)
    assert all(abs(b - a) < 50 for a, b in zip(before, after)), (before, after)
