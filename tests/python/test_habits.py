"""What users of Python expect: the right exception with what was given and expected, arrays from any thread, and
an end of the program that is clean."""

import importlib.util
import pathlib
import pkgutil
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from patience import PATIENCE

import tiki as tk
from tiki import nn

# A call, the exceptions it must be, and words that its message must have: argument, given, expected.
WRONG = {
    "shapes": (lambda: tk.ones((2, 3)) + tk.ones((4,)), ValueError, ("add", "(2, 3)", "(4,)")),
    "products": (lambda: tk.ones((2, 3)) @ tk.ones((2, 3)), ValueError, ("matmul", "3", "2")),
    "reshape": (lambda: tk.ones(6).reshape(4, 2), ValueError, ("reshape", "6", "8")),
    "axis is an index": (lambda: tk.ones((2, 3)).sum(axis=5), IndexError, ("sum", "5", "2")),
    "axis is a value": (lambda: tk.ones((2, 3)).sum(axis=-3), ValueError, ("sum", "-3", "2")),
    "dtype is a type": (lambda: tk.ones(3) << 1, TypeError, ("left_shift", "f32", "integer")),
    "dtype is a value": (lambda: tk.bitwise_invert(tk.ones(3)), ValueError, ("bitwise_invert", "f32", "integer")),
    "argument": (lambda: tk.zeros("three"), TypeError, ("shape", "str")),
    "argument's name": (lambda: tk.sum(tk.ones(3), axes=1), TypeError, ("sum()", "axes")),
    "missing": (lambda: tk.full((2,)), TypeError, ("full()", "vals")),
    "too many": (lambda: tk.exp(tk.ones(2), None, None), TypeError, ("exp()", "1")),
    "no number": (lambda: tk.linspace("a", 1), TypeError, ("start", "number", "str")),
    "no array": (lambda: tk.array(object()), ValueError, ("object", "numbers")),
    "uneven": (lambda: tk.array([[1, 2], [3]]), ValueError, ("uneven", "same lengths")),
    "index": (lambda: tk.ones(3)[7], IndexError, ("7", "3")),
    "more indices": (lambda: tk.ones(3)[0, 0], (IndexError, ValueError), ("2", "1")),
    "integer": (lambda: tk.array(2**70), OverflowError, (str(2**70), "64")),
    "size": (lambda: tk.zeros((2**40, 2**40)), OverflowError, ("1099511627776", "63 bits")),
    "file": (lambda: tk.load("/no/such/file.npy"), OSError, ("/no/such/file.npy",)),
    "file is a runtime error": (lambda: tk.load("/no/such/file.npy"), RuntimeError, ("/no/such/file.npy",)),
    "format": (lambda: tk.load("x.csv"), ValueError, ("csv", "npy")),
    "truth": (lambda: bool(tk.ones(2)), ValueError, ("2", "one element")),
    "gradient": (lambda: tk.grad(lambda x: x * 2)(tk.ones(2)), ValueError, ("scalar",)),
    "batch": (lambda: tk.vmap(lambda x, y: x + y)(tk.ones(2), tk.ones(3)), ValueError, ("2", "3")),
    "weights": (lambda: nn.Linear(2, 3).load_weights([("weight", tk.ones((1, 1)))]), ValueError, ("bias",)),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors(name):
    call, kinds, words = WRONG[name]
    with pytest.raises(kinds) as raised:
        tk.eval(call())
    for word in words:
        assert word in str(raised.value), str(raised.value)


def test_memory():
    before = tk.set_memory_limit(tk.get_active_memory() + 2**20)
    try:
        with pytest.raises(MemoryError, match="limit"):
            tk.eval(tk.zeros((2**22,)) + 1)
    finally:
        tk.set_memory_limit(before)
    assert (tk.ones(4) + 1).tolist() == [2, 2, 2, 2]


def test_exceptions_of_the_user_come_through():
    class Mine(Exception):
        pass

    def fails(x):
        raise Mine("mine")

    for transform in (tk.grad, tk.compile, tk.vmap, tk.checkpoint):
        with pytest.raises(Mine, match="mine"):
            transform(fails)(tk.ones(2))
    assert tk.grad(lambda x: x.sum())(tk.ones(2)).tolist() == [1, 1]


# ---- threads ----


def in_threads(work, count=6):
    results, errors = [None] * count, []

    def run(i):
        try:
            results[i] = work(i)
        except BaseException as error:  # shown below, in the test's thread
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors
    return results


def test_arrays_go_between_threads():
    shared = tk.random.normal((64, 64), key=tk.random.key(0))
    lazy = in_threads(lambda i: (shared @ shared + i).sum())  # built there, evaluated here
    wanted = (np.asarray(shared) @ np.asarray(shared)).sum()
    for i, value in enumerate(lazy):
        assert abs(value.item() - wanted - 4096 * i) < 1
    together = (shared * 3).sum()  # built here, evaluated there, all at once
    assert len(set(in_threads(lambda _: together.item()))) == 1


def test_transforms_in_threads():
    compiled = tk.compile(lambda x: tk.tanh(x) * 2)

    def work(i):
        x = tk.full((16,), i / 10)
        values = []
        for _ in range(20):
            values.append(tk.value_and_grad(lambda a: compiled(a).sum())(x)[1][0].item())
        assert len(set(values)) == 1
        return values[0]

    for i, value in enumerate(in_threads(work)):
        assert abs(value - 2 * (1 - np.tanh(i / 10) ** 2)) < 1e-5


def test_the_implicit_key_follows_seed_in_a_thread():
    def work(_):
        return tk.random.normal((4,), key=tk.random.key(3)).tolist()

    assert len({tuple(row) for row in in_threads(work)}) == 1


# ---- the end ----

ENDINGS = {
    "work runs": "a = tk.random.normal((600, 600)); tk.async_eval(a @ a @ a)",
    "in a thread": "import threading; a = tk.ones(4); threading.Thread(target=lambda: tk.eval(a @ a), daemon=True).start()",
    "cycles": "a = tk.ones(4); l = [a]; l.append(l); f = tk.compile(lambda x: x + l[0]); f(a); l.append(f)",
    "memory of others": "import numpy as np; a = tk.asarray(np.ones(9, np.float32)); b = tk.from_dlpack(np.ones(3)); c = a + 1",
    "a trace": "from tiki import profile; profile.start(); tk.eval(tk.ones(4) + 1)",
    "an exception": "import sys; a = tk.ones(3) + 1; sys.exit(0)",
}


@pytest.mark.parametrize("name", ENDINGS)
def test_programs_end_cleanly(name):
    done = subprocess.run(
        [sys.executable, "-c", "import tiki as tk; " + ENDINGS[name]], capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0 and done.stderr == "", done.stderr


def test_interrupt_ends_a_program():
    # A shell that starts this run in the background has the signal ignored, which children inherit.
    code = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    code += "import tiki as tk\nprint('ready', flush=True)\na = tk.random.normal((1500, 1500))\nwhile True: tk.eval(a @ a @ a)"
    program = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert program.stdout.readline() == "ready\n"
        time.sleep(0.5)
        program.send_signal(signal.SIGINT)
        _, errors = program.communicate(timeout=PATIENCE)
    finally:
        program.kill()
    assert program.returncode in (-signal.SIGINT, 1, 130)
    assert errors.rstrip().endswith("KeyboardInterrupt")


def test_forked_children_get_an_error_not_a_hang():
    code = (
        "import os, tiki as tk\n"
        "tk.eval(tk.ones(4) + 1)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    try:\n"
        "        tk.eval(tk.ones(4) + 2)\n"
        "    except RuntimeError as error:\n"
        "        os._exit(7 if 'fork' in str(error) else 8)\n"
        "    os._exit(9)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout == "7\n", (done.stdout, done.stderr)


def test_each_module_has_a_page():
    path = pathlib.Path(__file__).parents[2] / "tools" / "docs_python.py"
    spec = importlib.util.spec_from_file_location("docs_python", path)
    pages = importlib.util.module_from_spec(spec)
    sys.modules["docs_python"] = pages
    spec.loader.exec_module(pages)
    modules = {f"tiki.{found.name}" for found in pkgutil.iter_modules(tk.__path__) if not found.name.startswith("_")}
    assert modules <= set(pages.MODULES)
    for name in pages.MODULES:
        text = pages.page_of(importlib.import_module(name))
        assert text.startswith(f"# {name}\n") and len(text) > 60, name
