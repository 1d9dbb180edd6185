"""Nothing is left behind: no Python objects, no buffers, no bytes of the C heap, after many loads, saves, transforms
and cyclic references; and evaluating inside a function that is differentiated changes no gradient.

The heap is measured by glibc's mallinfo2, so that a leaked graph node of a few hundred bytes shows.
"""

import ctypes
import gc
import io
import weakref

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import tiki as tk
import tiki.nn as nn
import tiki.optimizers as optim

FIELDS = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"


class Mallinfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in FIELDS.split()]


def heap():
    """Bytes handed out by malloc, mapped ones included."""
    function = ctypes.CDLL(None).mallinfo2
    function.restype = Mallinfo
    info = function()
    return info.uordblks + info.hblkhd


def counted():
    gc.collect()
    tk.clear_cache()
    return len(gc.get_objects()), tk.get_active_memory(), heap()


def leaks(use, times, slack=100_000):
    """Objects and bytes left by `times` uses, after some to fill what is kept on purpose."""
    for n in range(max(20, times // 20)):
        use(n)
    objects, memory, heap_before = counted()
    for n in range(times):
        use(n)
    after = counted()
    assert after[0] - objects <= 20, f"{after[0] - objects} objects are left"
    assert after[1] - memory <= 4096, f"{after[1] - memory} bytes of buffers are left"
    assert after[2] - heap_before <= slack, f"{after[2] - heap_before} bytes of the heap are left"


def test_a_leak_would_be_seen():
    kept = []
    with pytest.raises(AssertionError, match="bytes of buffers"):
        leaks(lambda n: kept.append(tk.eval(made := tk.ones((64, 64)) + 1) or made), 10)
    with pytest.raises(AssertionError, match="bytes of the heap"):
        leaks(lambda n: kept.append(tk.zeros((2,)) + n), 1000, 10_000)


FILES = {
    "npy": lambda file, n: tk.save(file, tk.full((16, 16), n)),
    "npz": lambda file, n: tk.savez(file, a=tk.full((16, 16), n), b=tk.arange(n + 1)),
    "compressed.npz": lambda file, n: tk.savez_compressed(file, a=tk.full((16, 16), n)),
    "safetensors": lambda file, n: tk.save_safetensors(file, {"a": tk.full((16, 16), n)}, {"n": str(n)}),
    "gguf": lambda file, n: tk.save_gguf(file, {"a": tk.full((16, 16), float(n))}),
}


@pytest.mark.parametrize("kind", FILES)
def test_a_thousand_loads_and_saves(kind, tmp_path):
    file = str(tmp_path / f"file.{kind}")

    def use(n):
        FILES[kind](file, n % 7)
        loaded = tk.load(file)
        tk.eval(loaded)

    leaks(use, 200)  # a thousand in all


@pytest.mark.parametrize("kind", ["npy", "npz", "safetensors"])
def test_files_in_memory_and_files_that_are_none(kind, tmp_path):
    stream = io.BytesIO()
    FILES[kind](stream, 3)
    broken = tmp_path / f"broken.{kind}"
    broken.write_bytes(stream.getvalue()[:40])

    def use(n):
        tk.eval(tk.load(io.BytesIO(stream.getvalue()), format=kind))
        with pytest.raises((ValueError, OSError)):
            tk.eval(tk.load(str(broken)))

    leaks(use, 200)


X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


def custom(a):
    f = tk.custom_function(lambda b: b * b)
    f.vjp(lambda p, c, o: 2 * p * c)
    return tk.grad(lambda b: f(b).sum())(a)


TRANSFORMS = {
    "grad": lambda a: tk.grad(lambda b: (b * tk.sin(b)).sum())(a),
    "value_and_grad": lambda a: tk.value_and_grad(lambda t: (t["x"] * t["y"][0]).sum())({"x": a, "y": [a]}),
    "second grad": lambda a: tk.grad(lambda b: tk.grad(lambda c: (c**3).sum())(b).sum())(a),
    "vjp": lambda a: tk.vjp(lambda b, c: [b * c, b + c], [a, a], [a, a]),
    "jvp": lambda a: tk.jvp(lambda b: tk.exp(b) * b, [a], [a]),
    "vmap": lambda a: tk.vmap(lambda b: b @ b)(a),
    "checkpoint": lambda a: tk.grad(lambda b: tk.checkpoint(lambda c: tk.tanh(c * c))(b).sum())(a),
    "custom_function": custom,
    "compile": lambda a: tk.compile(lambda b: tk.exp(b) * 2 + b)(a),
    "compile of grad": lambda a: tk.compile(tk.grad(lambda b: (b * b).sum()))(a),
}


@pytest.mark.parametrize("kind", TRANSFORMS)
def test_ten_thousand_transforms(kind):
    """A thousand of each, on new functions and new arrays."""

    def use(n):
        tk.eval(TRANSFORMS[kind](tk.array(X + n)))

    leaks(use, 1000)


def test_calls_that_fail_leave_nothing():
    x = tk.array(X)

    def fails(a):
        raise KeyError(a.shape)

    def use(n):
        for transform in (tk.grad, tk.compile, tk.vmap, tk.checkpoint):
            with pytest.raises((KeyError, ValueError)):
                transform(fails)(x)
        with pytest.raises(ValueError):
            tk.grad(lambda a: a)(x)
        with pytest.raises(ValueError):
            tk.reshape(x, (5,))
        with pytest.raises((IndexError, ValueError)):
            tk.eval(tk.take(x, tk.array([99]), axis=0))

    leaks(use, 200)


def test_training_steps_leave_nothing():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = optim.AdamW(0.01)
    step = nn.value_and_grad(model, lambda x: model(x).square().mean())

    def use(n):
        _, gradients = step(tk.array(X))
        optimizer.update(model, gradients)
        tk.eval(model.parameters(), optimizer.state)

    leaks(use, 300)


class Node:
    """Something that holds arrays and functions, and itself."""


def cyclic_compile(node):
    node.w = tk.ones((4,))
    node.step = tk.compile(lambda x: node.w * x, inputs=[node.w])
    node.step(tk.ones((4,)))


def cyclic_custom(node):
    node.f = tk.custom_function(lambda x: x * node.scale)
    node.f.vjp(lambda p, c, o: c * node.scale)
    node.scale = tk.array(2.0)
    node.g = tk.grad(lambda x: node.f(x).sum())
    node.g(tk.ones((3,)))


def cyclic_transform(node):
    node.saved = tk.checkpoint(lambda x: tk.tanh(x) + node.w)
    node.w = tk.ones((3,))
    node.all = [node, {"me": node}, tk.grad(lambda x: node.saved(x).sum())(tk.ones((3,)))]
    node.step = tk.vmap(lambda x: x * node.w)


def cyclic_module(node):
    node.model = nn.Linear(3, 3)
    node.model.owner = lambda: node
    node.step = nn.value_and_grad(node.model, lambda x: node.model(x).sum())
    tk.eval(node.step(tk.ones((1, 3))))


@pytest.mark.parametrize("tie", [cyclic_compile, cyclic_custom, cyclic_transform, cyclic_module])
def test_cycles_are_collected(tie):
    def use(n):
        node = Node()
        tie(node)
        return weakref.ref(node)

    gone = [use(n) for n in range(10)]
    gc.collect()
    assert [reference for reference in gone if reference() is not None] == []
    leaks(use, 200)


# ---- evaluation inside a function ----

STEPS = {
    "exp": lambda a: tk.exp(a * 0.3),
    "square": lambda a: a * a,
    "softmax": lambda a: tk.softmax(a, axis=-1) + a,
    "turn": lambda a: a.T.reshape(a.shape),
    "sort": lambda a: tk.sort(a, axis=-1),
    "write": lambda a: written(a),
    "norm": lambda a: a - a.mean(axis=0, keepdims=True),
    "matmul": lambda a: a @ (a.T @ a) * 0.1,
    "part": lambda a: tk.concatenate([a[:1] * 2, a[1:]], axis=0),
}


def written(a):
    b = a * 1.0
    b[1] = b[0] * b[2]
    return b


LOOKS = {
    "eval": lambda a: tk.eval(a),
    "eval of parts": lambda a: tk.eval(a[0], a.sum()),
    "tolist": lambda a: a.tolist(),
    "numpy": lambda a: np.array(a),
    "text": lambda a: str(a),
    "item": lambda a: a[0, 0].item(),
    "async": lambda a: tk.async_eval(a),
    "truth": lambda a: bool((a > 0).any()),
}


@settings(max_examples=80)
@given(st.lists(st.tuples(st.sampled_from(list(STEPS)), st.sampled_from([None, *LOOKS])), min_size=1, max_size=6))
def test_evaluating_inside_changes_no_gradient(program):
    def function(looking):
        def run(a):
            for step, look in program:
                a = STEPS[step](a)
                if looking and look:
                    LOOKS[look](a)
            return a

        return run

    def all_of(run):
        x, ones = tk.array(X), tk.ones(X.shape)
        loss = lambda a: (run(a) * a).sum()  # noqa: E731
        return [
            tk.grad(loss)(x), *tk.value_and_grad(loss)(x), tk.vjp(run, [x], [ones])[1][0], tk.jvp(run, [x], [ones])[1][0],
            tk.grad(lambda a: (tk.grad(loss)(a) ** 2).sum())(x), tk.grad(lambda a: tk.checkpoint(run)(a).sum())(x),
        ]  # fmt: skip

    for order, plain, looked in zip((1, 1, 1, 1, 1, 2, 1), all_of(function(False)), all_of(function(True))):
        if order == 1:
            np.testing.assert_array_equal(np.array(plain), np.array(looked))
        else:  # the parts of a second derivative may be added up in another order
            np.testing.assert_allclose(np.array(plain), np.array(looked), rtol=1e-5, atol=1e-5)
