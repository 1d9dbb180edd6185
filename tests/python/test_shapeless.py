"""Functions recorded for all shapes: tk.compile(f, shapeless=True)."""
import numpy as np
import pytest

import mlx.core as mx
import tiki as tk


class Counted:
    """A compiled function, and how often Python was called."""

    def __init__(self, function, **options):
        self.calls = 0
        self.function = function

        def counted(*args):
            self.calls += 1
            return function(*args)

        self.compiled = tk.compile(counted, shapeless=True, **options)

    def check(self, *args):
        ours, plain = self.compiled(*args), self.function(*args)
        for one, other in zip(ours if isinstance(ours, tuple) else [ours], plain if isinstance(plain, tuple) else [plain],
                              strict=True):
            assert one.shape == other.shape and one.dtype == other.dtype
            np.testing.assert_allclose(np.array(one), np.array(other), rtol=1e-5, atol=1e-6)


def draw(*shape):
    return tk.random.normal(shape)


WEIGHT = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)

FOLLOWED = {
    "elementwise": (lambda x: tk.exp(x) * 2 + x, [(2, 3), (4, 3), (5, 7), (1, 3), (8, 1)]),
    "mean": (lambda x: x.mean() + x.sum(axis=0), [(2, 3), (4, 3), (5, 7)]),
    "var": (lambda x: (x.var(axis=-1), x.std(), x.mean(axis=0, keepdims=True)), [(2, 3), (4, 3), (6, 8)]),
    "softmax": (lambda x: tk.softmax(x, axis=-1) - x.max(axis=1, keepdims=True), [(2, 3), (4, 3), (1, 5)]),
    "flatten": (lambda x: tk.flatten(x) + 1, [(2, 3, 4), (5, 3, 4), (5, 6, 7)]),
    "reshape by shape": (lambda x: x.reshape(x.shape[0], -1), [(2, 3, 4), (5, 3, 4), (7, 2, 2)]),
    "heads": (lambda x: x.reshape(x.shape[0], x.shape[1], 2, 3).transpose(0, 2, 1, 3), [(2, 5, 6), (4, 5, 6), (4, 9, 6)]),
    "half": (lambda x: x[: x.shape[0] // 2], [(4, 3), (8, 3), (12, 3)]),
    "behind the first": (lambda x: x[1:] - x[:-1], [(4, 3), (8, 3), (5, 3)]),
    "behind the first, flat": (lambda x: x[1:].reshape(-1) * 2 + 1, [(4, 3), (8, 3), (5, 3)]),
    "mean behind the first": (lambda x: x[1:].mean() + x[1:].mean(axis=0) + x.var(axis=0, ddof=1), [(4, 3), (8, 3), (5, 3)]),
    "two pieces": (lambda x: tk.concatenate([x[:-1], x]) * 2, [(4, 3), (8, 3), (5, 3)]),
    "reversed": (lambda x: x[::-1], [(4,), (9,), (2,)]),
    "scaled by a length": (lambda x: x * (1 / x.shape[0]) + x / x.shape[0] ** 0.5, [(4,), (9,), (2,)]),
    "causal": (lambda x: tk.where(tk.tri(x.shape[0], x.shape[1]), x, -1), [(4, 5), (6, 5), (6, 8)]),
    "product": (lambda x: x @ tk.array(WEIGHT), [(2, 6), (4, 6), (9, 6)]),
    "attention": (lambda q: tk.fast.scaled_dot_product_attention(q, q, q, scale=0.5, mask="causal"),
                  [(1, 2, 4, 8), (3, 2, 4, 8), (3, 2, 9, 8)]),
    "gradient": (lambda x: tk.grad(lambda y: (y.mean(axis=-1) ** 2).sum() + y.var())(x), [(2, 3), (4, 3), (5, 7)]),
    "arange": (lambda x: x + tk.arange(x.shape[-1]), [(2, 3), (2, 4), (5, 9)]),
}


@pytest.mark.parametrize("name", FOLLOWED)
def test_one_recording_for_all_shapes(name):
    function, shapes = FOLLOWED[name]
    counted = Counted(function)
    for shape in shapes[:2]:
        counted.check(draw(*shape))
    assert counted.calls == 3  # one shape, then two recordings for all
    for shape in shapes[2:]:
        counted.check(draw(*shape))
    calls = counted.calls
    began = [a == b != c for shape in shapes[2:] for a, b, c in zip(shapes[0], shapes[1], shape)]
    assert calls == 3 if not any(began) else calls <= 3 + 2 * sum(began)
    for shape in shapes:
        counted.check(draw(*shape))
    assert counted.calls == calls


def test_agrees_with_mlx():
    def f(m):
        return lambda x, w: m.softmax(x @ w, axis=-1).mean(axis=0) + (x.var(axis=-1)).sum()

    ours, theirs = tk.compile(f(tk), shapeless=True), mx.compile(f(mx), shapeless=True)
    rng = np.random.default_rng(1)
    w = rng.normal(size=(6, 3)).astype(np.float32)
    for rows in (2, 5, 9, 3):
        x = rng.normal(size=(rows, 6)).astype(np.float32)
        np.testing.assert_allclose(np.array(ours(tk.array(x), tk.array(w))), np.array(theirs(mx.array(x), mx.array(w))),
                                   rtol=1e-5)


def test_what_cannot_be_followed_is_recorded_by_itself():
    digits = Counted(lambda x: x + len(str(x.shape[0])))
    for rows in (4, 40, 400, 5):
        digits.check(draw(rows))
    numbers = tk.compile(lambda x: (x.sum(), x.shape[0]), shapeless=True)
    for rows in (4, 6, 20):
        assert numbers(draw(rows))[1] == rows
    fixed = tk.compile(lambda x: x.reshape(3, 2), shapeless=True)
    theirs = mx.compile(lambda x: x.reshape(3, 2), shapeless=True)
    assert fixed(draw(2, 3)).shape == theirs(mx.ones((2, 3))).shape == (3, 2)
    for call in (lambda: fixed(draw(4, 5)), lambda: theirs(mx.ones((4, 5)))):
        with pytest.raises(ValueError):
            call()
    assert fixed(draw(6, 1)).shape == (3, 2)


def test_ranks_dtypes_and_equal_lengths():
    counted = Counted(lambda x, y: (x @ y).sum(axis=-1))
    for rows, inner in ((2, 3), (4, 3), (4, 4), (5, 7)):
        counted.check(draw(rows, inner), draw(inner, rows))
    counted.check(draw(3), draw(3, 2))
    counted.check(draw(2, 3).astype(tk.float16), draw(3, 2).astype(tk.float16))


def test_state_and_random_keys():
    state = {"sum": tk.zeros((3,))}

    def add(x):
        state["sum"] = state["sum"] + x.mean(axis=0)
        return x * state["sum"]

    compiled = tk.compile(add, inputs=state, outputs=state, shapeless=True)
    expected = np.zeros(3)
    for rows in (2, 4, 7):
        x = draw(rows, 3)
        result = compiled(x)
        expected = expected + np.array(x).mean(axis=0)
        np.testing.assert_allclose(np.array(state["sum"]), expected, rtol=1e-5)
        np.testing.assert_allclose(np.array(result), np.array(x) * expected, rtol=1e-4, atol=1e-6)
    noisy = tk.compile(lambda x, key: x + tk.random.normal(x.shape, key=key), shapeless=True)
    for rows in (2, 4, 7):
        key = tk.random.key(rows)
        x = draw(rows, 3)
        assert tk.array_equal(noisy(x, key), x + tk.random.normal(x.shape, key=key)).item()
