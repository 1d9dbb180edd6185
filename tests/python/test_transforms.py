"""Gradients, forward mode, vmap, checkpoints, custom functions, compiled functions; on trees."""

import gc
import threading
import weakref

import mlx.core as mx
import numpy as np
import pytest

import tiki as tk


def both(function, *arrays):
    """The results of `function(module, arrays)` on Tiki and MLX, as flat lists of NumPy arrays."""

    def flat(value):
        if isinstance(value, dict):
            return [leaf for key in sorted(value) for leaf in flat(value[key])]
        if isinstance(value, (list, tuple)):
            return [leaf for child in value for leaf in flat(child)]
        return [] if value is None else [np.array(value)]

    return [flat(function(m, *[m.array(a) for a in arrays])) for m in (tk, mx)]


def agree(function, *arrays, rtol=1e-5, atol=1e-6):
    own, theirs = both(function, *arrays)
    assert len(own) == len(theirs)
    for a, b in zip(own, theirs):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


X = np.float32([[0.5, -1.5, 2.0], [1.0, 0.25, -0.75]])
Y = np.float32([[1.5, 0.5, -1.0], [2.0, -0.5, 1.25]])


def test_gradients_with_argnums_and_argnames():
    def loss(m):
        return lambda a, b, scale=None: (m.tanh(a) * b * (1 if scale is None else scale)).sum()

    agree(lambda m, a, b: m.grad(loss(m))(a, b), X, Y)
    agree(lambda m, a, b: m.grad(loss(m), argnums=1)(a, b), X, Y)
    agree(lambda m, a, b: m.grad(loss(m), argnums=[1, 0])(a, b), X, Y)
    agree(lambda m, a, b: m.value_and_grad(loss(m), argnames="scale")(a, b, scale=b), X, Y)
    agree(lambda m, a, b: m.value_and_grad(loss(m), argnums=(0, 1), argnames=["scale"])(a, b, scale=a), X, Y)
    agree(lambda m, a, b: m.grad(lambda t: (m.grad(lambda u: (u**3).sum())(t) * b).sum())(a), X, Y)


def test_gradients_of_trees():
    def run(m, a, b):
        def loss(tree, factor):
            return (tree["w"][0] * tree["b"]["c"] * factor).sum(), tree["w"][1]

        tree = {"w": [a, b], "b": {"c": b}}
        if m is tk:
            tree["b"].update(name="text", n=3)
        (value, aux), grads = m.value_and_grad(loss)(tree, 2.0)
        return value, aux, grads["w"], grads["b"]["c"]

    agree(run, X, Y)


def test_gradient_errors():
    x = tk.array([1.0, 2.0])
    with pytest.raises(ValueError, match="scalar"):
        tk.grad(lambda a: a)(x)
    with pytest.raises(ValueError):
        tk.grad(lambda a: 3.0)(x)
    with pytest.raises(ZeroDivisionError):
        tk.grad(lambda a: 1 / 0)(x)
    with pytest.raises(ValueError):
        tk.grad(lambda a: a.sum(), argnums=2)(x)
    with pytest.raises(ValueError):
        tk.grad(lambda a: a.sum(), argnums=[0, 0])(x)
    with pytest.raises(ValueError):
        tk.grad(lambda a: a.sum())(tk.array([1, 2]))
    with pytest.raises(ValueError):
        tk.grad(lambda a: a.sum(), argnames="b")(x)


def test_control_flow_sees_values():
    def loss(a):
        total = a * 0
        for i in range(int(a.item())):
            total = total + a * i
        return total if a > 2 else a

    assert tk.grad(loss)(tk.array(4.0)).item() == 6
    assert tk.grad(loss)(tk.array(1.0)).item() == 1


def test_evaluating_inside_does_not_change_the_gradient():
    def loss(a):
        b = tk.exp(a)
        tk.eval(b)
        c = b * b
        c.tolist()
        return c.sum()

    np.testing.assert_allclose(np.array(tk.grad(loss)(tk.array(X))), 2 * np.exp(2 * X), rtol=1e-5)


def test_vjp_and_jvp():
    agree(lambda m, a, b: m.vjp(lambda p, q: (p * q, m.sin(p)), [a, b], [b, a]), X, Y)
    agree(lambda m, a, b: m.jvp(lambda p, q: (p * q, m.sin(p)), [a, b], [b, a]), X, Y)
    with pytest.raises(ValueError):
        tk.jvp(lambda a: a, [tk.array(1.0)], [])
    with pytest.raises(ValueError):
        tk.vjp(lambda a: a, [tk.array(1.0)], [])


def test_vmap():
    agree(lambda m, a, b: m.vmap(lambda p, q: m.outer(p, q).sum(axis=0))(a, b), X, Y)
    agree(lambda m, a, b: m.vmap(lambda p, q: p @ q, in_axes=(0, None))(a, b.T), X, Y)
    agree(lambda m, a, b: m.vmap(lambda p, q: (p * q, p + q), in_axes=(1, 1), out_axes=(0, 1))(a, b), X, Y)
    agree(lambda m, a, b: m.vmap(lambda t: t["a"] * t["b"][0], in_axes={"a": 0, "b": [0]})({"a": a, "b": [b]}) if m is tk else a * b, X, Y)
    agree(lambda m, a, b: m.vmap(m.grad(lambda p, q: (p * p * q).sum()))(a, b), X, Y)
    with pytest.raises(ValueError):
        tk.vmap(lambda p, q: p + q)(tk.ones((2,)), tk.ones((3,)))
    with pytest.raises(Exception):
        tk.vmap(lambda p: p.item())(tk.ones((2,)))


def test_checkpoint():
    calls = []

    def block(w, x):
        calls.append(1)
        return tk.tanh(x @ w["w"]) * 2

    def loss(f):
        return lambda w, x: f(w, f(w, x)).sum()

    w, x = {"w": tk.array(X[:, :2])}, tk.array(Y[:, :2])
    plain = tk.value_and_grad(loss(block), argnums=(0, 1))(w, x)
    n_plain = len(calls)
    kept = tk.value_and_grad(loss(tk.checkpoint(block)), argnums=(0, 1))(w, x)
    assert len(calls) - n_plain > n_plain
    np.testing.assert_allclose(kept[0].item(), plain[0].item(), rtol=1e-6)
    np.testing.assert_allclose(np.array(kept[1][0]["w"]), np.array(plain[1][0]["w"]), rtol=1e-6)
    np.testing.assert_allclose(np.array(kept[1][1]), np.array(plain[1][1]), rtol=1e-6)


def test_custom_function():
    def make(m):
        @m.custom_function
        def f(x, y):
            return m.sin(x) * y, y

        @f.vjp
        def f_vjp(primals, cotangents, outputs):
            x, y = primals
            assert isinstance(cotangents, tuple) and len(outputs) == 2
            return cotangents[0] * 10, cotangents[1] * y

        @f.jvp
        def f_jvp(primals, tangents):
            return tangents[0] * 5, tangents[1]

        @m.custom_function
        def g(x):
            return x * 2

        @g.vjp
        def g_vjp(primal, cotangent, output):
            return cotangent * primal

        return f, g

    agree(lambda m, a, b: m.value_and_grad(lambda p, q: make(m)[0](p, q)[0].sum(), argnums=(0, 1))(a, b), X, Y)
    agree(lambda m, a, b: m.grad(lambda p: make(m)[1](p).sum())(a), X, Y)
    agree(lambda m, a, b: m.jvp(lambda p, q: make(m)[0](p, q)[0], [a, b], [b, b]), X, Y)

    f = tk.custom_function(lambda x: x * 2)
    f.vmap(lambda inputs, axes: (inputs * 3, axes))
    assert tk.vmap(f)(tk.array([1.0, 2.0])).tolist() == [3, 6]
    plain = tk.custom_function(lambda x: x * 2)
    assert tk.vmap(plain)(tk.array([1.0, 2.0])).tolist() == [2, 4]
    assert tk.grad(lambda a: plain(a).sum())(tk.array([1.0])).tolist() == [2]


def test_compile_records_once_for_each_form():
    calls = []

    @tk.compile
    def f(x, options, factor=1):
        calls.append(1)
        return {"y": tk.exp(x) * options["scale"] * factor, "same": options["name"]}

    x = tk.array([0.0, 1.0])
    for _ in range(3):
        out = f(x, {"scale": tk.array(2.0), "name": "a"})
        np.testing.assert_allclose(np.array(out["y"]), 2 * np.exp([0.0, 1.0]), rtol=1e-6)
    assert len(calls) == 1 and out["same"] == "a"
    f(tk.array([1.0]), {"scale": tk.array(2.0), "name": "a"})
    f(x, {"scale": tk.array(2.0), "name": "b"})
    f(x, {"scale": 3.0, "name": "b"})
    np.testing.assert_allclose(np.array(f(x, {"scale": 3.0, "name": "b"}, factor=2)["y"])[0], 6, rtol=1e-6)
    assert len(calls) == 5
    with pytest.raises(Exception):
        tk.compile(lambda a: a.item())(x)
    with pytest.raises(ZeroDivisionError):
        tk.compile(lambda a: 1 / 0)(x)


def test_compile_with_state():
    state = {"w": tk.array(1.0), "list": [tk.array([1.0, 2.0])]}
    original = state["w"]

    def step(x):
        state["w"] = state["w"] + x
        state["list"][0] = state["list"][0] * 2
        return state["w"] * 10

    step = tk.compile(step, inputs=state, outputs=state)
    assert step(tk.array(2.0)).item() == 30
    assert step(tk.array(2.0)).item() == 50
    assert state["w"].item() == 5 and state["list"][0].tolist() == [4, 8] and original.item() == 1


def test_compile_with_random_state():
    tk.random.seed(7)
    expected = [tk.random.uniform(shape=(2,)).tolist() for _ in range(3)]
    tk.random.seed(7)
    draw = tk.compile(lambda: tk.random.uniform(shape=(2,)), inputs=[tk.random.state], outputs=[tk.random.state])
    assert [draw().tolist() for _ in range(3)] == expected


def test_compile_composes_with_transforms():
    f = tk.compile(lambda a: tk.tanh(a) * a)
    x = tk.array(X)
    plain = tk.grad(lambda a: (tk.tanh(a) * a).sum())(x)
    np.testing.assert_allclose(np.array(tk.grad(lambda a: f(a).sum())(x)), np.array(plain), rtol=1e-5)
    np.testing.assert_allclose(np.array(tk.compile(tk.grad(lambda a: f(a).sum()))(x)), np.array(plain), rtol=1e-5)
    np.testing.assert_allclose(np.array(tk.vmap(f)(x)), np.tanh(X) * X, rtol=1e-5)
    tk.disable_compile()
    try:
        assert f(x).shape == (2, 3)
    finally:
        tk.enable_compile()


def test_compiled_constants_stay():
    def make():
        constant = tk.array(np.arange(1000, dtype=np.float32))
        return tk.compile(lambda a: (a + constant) * 2)

    f = make()
    gc.collect()
    for i in range(4):
        np.testing.assert_array_equal(np.array(f(tk.full((1000,), float(i)))), (np.arange(1000) + i) * 2)


def test_threads():
    results, w = {}, tk.array(X)

    def work(n):
        f = tk.compile(lambda a: (tk.exp(a) * n).sum())
        for _ in range(20):
            value, gradient = tk.value_and_grad(f)(w)
            tk.eval(value, gradient)
        results[n] = (value.item(), np.array(gradient))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 5)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    for n in range(1, 5):
        np.testing.assert_allclose(results[n][1], n * np.exp(X), rtol=1e-5)


def test_nothing_leaks():
    def count():
        gc.collect()
        return tk.get_active_memory()

    def use():
        x = tk.array(np.ones((64, 64), np.float32))
        f = tk.custom_function(lambda a: a @ a)
        f.vjp(lambda p, c, o: c @ p)
        g = tk.compile(tk.grad(lambda a: tk.checkpoint(lambda b: tk.tanh(b @ b))(a).sum() + f(a).sum()))
        tk.eval(g(x), tk.vmap(lambda a: a * 2)(x), tk.jvp(lambda a: a * a, [x], [x]))
        with pytest.raises(ValueError):
            tk.grad(lambda a: a)(x)

    use()
    before = count()
    for _ in range(200):
        use()
    assert count() <= before + 4096


def test_cycles_are_collected():
    class Model:
        pass

    model = Model()
    model.w = tk.ones((4,))
    model.step = tk.compile(lambda x: model.w * x, inputs=[model.w])
    model.step(tk.ones((4,)))
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None
