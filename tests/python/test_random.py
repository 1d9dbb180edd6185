"""Random numbers: MLX's bits for the same keys, the implicit sequence, state."""

import mlx.core as mx
import numpy as np
import pytest

import tiki as tk

SHAPE = (5, 7)


def both(function):
    results = []
    for m in (tk, mx):
        m.random.seed(11)
        value = function(m)
        value = value.astype(m.float32) if str(value.dtype).endswith("float16") else value
        results.append(np.array(value))
    return results


EXACT = """
m.random.uniform(shape=s) | m.random.uniform(-2, 3, s) | m.random.uniform(shape=s, dtype=m.float16) | m.random.uniform(low=0.5)
m.random.uniform(shape=s, dtype=m.bfloat16)
m.random.bernoulli(0.3, s) | m.random.bernoulli(shape=s) | m.random.bernoulli(m.array([0.1, 0.9])) | m.random.randint(-5, 100, s)
m.random.randint(0, 10, s, dtype=m.uint8) | m.random.permutation(20) | m.random.permutation(m.arange(12).reshape(4, 3))
m.random.permutation(m.arange(12).reshape(4, 3), axis=1) | m.random.key(3) | m.random.split(m.random.key(3)) | m.random.split(m.random.key(3), 5)
m.random.uniform(shape=s, key=m.random.key(9)) | m.random.categorical(m.zeros((3, 4))) | m.random.categorical(m.zeros((3, 4)), num_samples=6)
m.random.categorical(m.zeros((3, 4)), axis=0) | m.random.categorical(m.zeros((3, 4)), shape=(8, 3)) | m.random.uniform(m.array([0.0, 1.0]), 2.0, (3, 2))
m.random.randint(m.array([0, 10]), m.array([10, 20]), (3, 2))
""".strip().splitlines()


@pytest.mark.parametrize("case", [c.strip() for line in EXACT for c in line.split(" | ")])
def test_same_bits(case):
    own, theirs = both(lambda m: eval(case, {"m": m, "s": SHAPE}))
    assert own.dtype == theirs.dtype and own.shape == theirs.shape
    np.testing.assert_array_equal(own, theirs)


CLOSE = """
m.random.normal(s) | m.random.normal(s, loc=2.0, scale=3.0) | m.random.normal(s, scale=m.full((7,), 2.0)) | m.random.normal()
m.random.truncated_normal(-1.0, 2.0, s) | m.random.gumbel(s) | m.random.laplace(s) | m.random.laplace(s, loc=1.0, scale=2.0)
""".strip().splitlines()


@pytest.mark.parametrize("case", [c.strip() for line in CLOSE for c in line.split(" | ")])
def test_close_values(case):
    own, theirs = both(lambda m: eval(case, {"m": m, "s": SHAPE}))
    assert own.dtype == theirs.dtype and own.shape == theirs.shape
    np.testing.assert_allclose(own, theirs, rtol=1e-4, atol=1e-5)


def test_the_implicit_sequence_is_that_of_mlx():
    draws = []
    for m in (tk, mx):
        m.random.seed(5)
        draws.append([np.array(m.random.uniform(shape=(3,))) for _ in range(4)])
    for own, theirs in zip(*draws):
        np.testing.assert_array_equal(own, theirs)


def test_state():
    tk.random.seed(3)
    saved = [tk.array(s) for s in tk.random.state]
    first = tk.random.normal((4,)).tolist()
    tk.random.state[0] = saved[0]
    assert tk.random.normal((4,)).tolist() == first
    with pytest.raises(TypeError):
        tk.random.uniform("a")
    with pytest.raises(ValueError):
        tk.random.uniform(key=tk.array([1.0]))
