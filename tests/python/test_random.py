"""Random numbers: MLX's bits for the same keys, the implicit sequence, state."""

import math
import statistics

import mlx.core as mx
import numpy as np
import pytest
from hypothesis import given, strategies as st

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
m.random.randint(m.array([0, 10]), m.array([10, 20]), (3, 2)) | m.random.categorical(m.zeros((4,)), num_samples=50)
m.random.categorical(m.arange(4.0).reshape(1, 4), num_samples=50) | m.random.categorical(m.arange(6.0), shape=(5, 8))
m.random.categorical(m.arange(4.0).reshape(4, 1), axis=0, num_samples=50) | m.random.categorical(m.arange(4.0)) | m.random.categorical(m.arange(4.0), num_samples=0)
m.random.categorical(m.arange(4.0).reshape(1, 4)) | m.random.categorical(m.arange(4.0), shape=()) | m.random.categorical(m.arange(4.0).reshape(1, 1, 4), axis=2)
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


QUANTILE = np.vectorize(statistics.NormalDist().inv_cdf, otypes=[np.float64])


def quantile(u):
    """sqrt(2) erfinv(u) in float64, from the side where 1 - |u| is exact."""
    return np.where(u < 0, 1.0, -1.0) * QUANTILE((1 - np.abs(u)) / 2)


def exact_normal(unit, symmetric):
    return quantile(symmetric)


def exact_laplace(unit, symmetric):
    return np.sign(symmetric) * np.log1p(-np.abs(symmetric))


def exact_gumbel(unit, symmetric):
    return -np.log(-np.log(unit))


def exact_truncated(unit, symmetric):
    low, high = math.erf(-1 / math.sqrt(2)), math.erf(2 / math.sqrt(2))
    return np.clip(quantile(low + (high - low) * unit), -1, 2)


EXACTLY = {
    "normal": (exact_normal, lambda m, n, key: m.random.normal((n,), key=key)),
    "laplace": (exact_laplace, lambda m, n, key: m.random.laplace((n,), key=key)),
    "gumbel": (exact_gumbel, lambda m, n, key: m.random.gumbel((n,), key=key)),
    "truncated_normal": (exact_truncated, lambda m, n, key: m.random.truncated_normal(-1.0, 2.0, (n,), key=key)),
}


@pytest.mark.parametrize("name", EXACTLY)
def test_values_of_the_same_uniform_bits(name):
    """Within 4 units in the last place and 1e-6 of the float64 value, and 1e-4 of MLX's."""
    exact, draw = EXACTLY[name]
    for seed in range(3):
        n, key = 10_000, tk.random.key(seed)
        unit = np.array(tk.random.uniform(shape=(n,), key=key)).astype(np.float64)
        low = float(np.nextafter(np.float32(-1), np.float32(0)))
        symmetric = np.array(tk.random.uniform(low, 1.0, (n,), key=key)).astype(np.float64)
        own, theirs = np.array(draw(tk, n, key)), np.array(draw(mx, n, mx.random.key(seed)))
        with np.errstate(divide="ignore"):
            expected = exact(unit, symmetric)
        bound = 4 * np.spacing(np.abs(expected).astype(np.float32)) + 1e-6
        assert (np.abs(own - expected) <= bound).all(), np.abs(own - expected).max()
        np.testing.assert_allclose(own, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("classes", (10, 100, 1_000, 10_000))
@pytest.mark.parametrize("dtype", ("float32", "bfloat16", "float64"))
def test_categories_of_one_row(classes, dtype):
    """One row is drawn by running sums, with MLX's weights and roundings: the same classes, all of them."""
    random = np.random.default_rng(classes)
    for scale, count in ((0, 3), (1, 20_000_000 // classes), (20, 1000)):
        row, n = (scale * random.normal(size=classes)).astype(np.float32), min(count, 200_000)
        with mx.stream(mx.cpu):
            own, theirs = both(lambda m: m.random.categorical(m.array(row).astype(getattr(m, dtype)), num_samples=n))
        np.testing.assert_array_equal(own, theirs)


@pytest.mark.parametrize("classes", (10, 100, 1_000, 10_000))
def test_categories_of_rows(classes):
    """Rows are drawn by their noise; at most one in 100,000 differs."""
    a = np.random.default_rng(classes).normal(size=(min(200_000, 4_000_000 // classes), classes)).astype(np.float32)
    own, theirs = both(lambda m: m.random.categorical(m.array(a)))
    assert np.count_nonzero(own != theirs) <= own.size * 1e-5


def test_what_cannot_be_is_never_drawn():
    low = -float("inf")
    drawn = np.array(tk.random.categorical(tk.array([low, 0.0, low, 1.0, low]), num_samples=10_000, key=tk.random.key(1)))
    assert set(drawn.tolist()) == {1, 3}
    for row in ([low, low], [0.0, float("nan")], [1.0, -low, -low]):
        assert tk.random.categorical(tk.array(row), num_samples=3).tolist() == [0, 0, 0]


DRAWS = {
    "uniform": lambda m, n: m.random.uniform(-1, 2, (n, 3)),
    "randint": lambda m, n: m.random.randint(-9, 50, (n,)),
    "bernoulli": lambda m, n: m.random.bernoulli(0.4, (n, 2)),
    "permutation": lambda m, n: m.random.permutation(n + 2),
    "rows": lambda m, n: m.random.permutation(m.arange(3 * n).reshape(n, 3)),
    "categorical": lambda m, n: m.random.categorical(m.zeros((n, 4))),
    "seed": lambda m, n: m.random.seed(n) or m.random.uniform(),
    "key": lambda m, n: m.random.uniform(shape=(n,), key=m.random.key(n)),
    "split": lambda m, n: m.random.split(m.random.key(n), n),
}


@given(st.integers(0, 2**62), st.lists(st.tuples(st.sampled_from(list(DRAWS)), st.integers(1, 9)), min_size=1, max_size=8))
def test_the_implicit_sequence_is_that_of_mlx(seed, draws):
    for m in (tk, mx):
        m.random.seed(seed)
    for name, n in draws:
        own, theirs = (np.array(DRAWS[name](m, n)) for m in (tk, mx))
        assert own.dtype == theirs.dtype
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


@pytest.mark.parametrize("low, high", [(2.5, 5.5), (-5.5, -1.2), (0.2, 3.8), (2, 7.9), ([5, 1], [2, 3]), ([2.7, -3.2], 9.9)])
def test_bounds_of_whole_numbers(low, high):
    """They lose their fractions; bounds that are arrays give the lower one where nothing lies between."""
    ours, theirs = (
        m.random.randint(*(m.array(b) if isinstance(b, list) else b for b in (low, high)), (50, 2), key=m.random.key(3))
        for m in (tk, mx)
    )
    assert ours.tolist() == theirs.tolist()


def test_large_bounds_of_whole_numbers():
    """Beyond what a float32 holds."""
    assert set(tk.random.randint(16777217.5, 16777219.5, (50,)).tolist()) <= {16777217, 16777218}


@pytest.mark.parametrize("low, high", [(5.5, 2.5), (0.2, 0.8), (float("nan"), 5), (0, float("inf"))])
def test_bounds_without_whole_numbers(low, high):
    with pytest.raises(ValueError, match="low < high|finite"):
        tk.random.randint(low, high, (3,))
