"""docs/differences.md: few rows, each with its tests; and the values of rows that no other test holds.

Each test states what Tiki gives and that MLX does not: a row whose MLX has changed is to be taken out.
"""

import pathlib

import mlx.core as mx
import numpy as np
import pytest

import tiki as tk

ROOT = pathlib.Path(__file__).parents[2]
MOST_ROWS = 40


def rows():
    """(cells, file that tests without one are in) of each row."""
    default = None
    for line in (ROOT / "docs/differences.md").read_text().splitlines():
        if line.startswith("## "):
            default = None
        if line.startswith("Without a file: "):
            default = line.split("`")[1]
        if line.startswith("| ") and not line.startswith("| expression |"):
            yield [cell.strip() for cell in line.strip("|").split(" | ")], default


def test_there_are_few():
    assert 0 < len(list(rows())) <= MOST_ROWS


def test_each_row_has_its_tests():
    for cells, default in rows():
        assert len(cells) == 5 and all(cells), cells
        for entry in cells[4].split("; "):
            file, colon, name = entry.rpartition(": ")
            text = (ROOT / "tests" / (file or default)).read_text()
            python, c = f"def test_{name}(" in text, f"static void {name}(" in text
            assert python or c or f'"{name}"' in text, entry


def test_softmax_of_integers():
    values = np.int32([[1, 3], [2, 1]])
    weights = np.exp(values - values.max(axis=0))
    np.testing.assert_allclose(np.array(tk.softmax(tk.array(values), axis=0)), weights / weights.sum(axis=0), rtol=1e-6)
    assert mx.softmax(mx.array(values), axis=0).dtype == mx.int32


def test_full_in_a_dtype():
    for value in (1.5, [1.5, 2.0]):
        own, theirs = (m.full((2,), m.array(value) if isinstance(value, list) else value, dtype=m.int8) for m in (tk, mx))
        assert own.dtype == tk.int8 and own.tolist() == ([1, 2] if isinstance(value, list) else [1, 1])
        assert theirs.dtype == mx.float32


COMPLEX = {"sigmoid": lambda z: 1 / (1 + np.exp(-z)), "expm1": np.expm1}


def test_functions_of_complex():
    z = np.complex64([[1 + 2j, -0.5j]])
    for name, function in COMPLEX.items():
        np.testing.assert_allclose(np.array(getattr(tk, name)(tk.array(z))), function(z), rtol=2e-6)
        with pytest.raises(ValueError):
            getattr(mx, name)(mx.array(z))
    whole = z @ np.float32([[1, 1], [1, -1]]) / np.sqrt(2)
    np.testing.assert_allclose(np.array(tk.hadamard_transform(tk.array(z))), whole, rtol=1e-6)
    np.testing.assert_allclose(np.array(mx.hadamard_transform(mx.array(z))), whole.real, rtol=1e-6)


def test_axes_that_are_none():
    for call in (
        lambda m: m.concatenate([m.ones((3,))], axis=-6),
        lambda m: m.flip(m.ones((3,)), axis=(0, 0)),
        lambda m: m.fft.fftshift(m.ones((3,)), axes=(0, 0)),
    ):
        with pytest.raises(ValueError, match="axis"):
            call(tk)
        assert call(mx).shape == (3,)


def refused_by_mlx(call):
    with pytest.raises((ValueError, RuntimeError)):
        mx.eval(call(mx))
    return np.array(call(tk))


def test_what_the_cpu_package_lacks():
    random = np.random.default_rng(0)
    x, w = random.normal(size=(1, 3, 3, 3, 2)).astype(np.float32), random.normal(size=(4, 2, 2, 2, 1)).astype(np.float32)
    parts = [np.array(tk.conv3d(tk.array(x[..., g : g + 1]), tk.array(w[2 * g : 2 * g + 2]))) for g in range(2)]
    own = refused_by_mlx(lambda m: m.conv3d(m.array(x), m.array(w), groups=2))
    np.testing.assert_allclose(own, np.concatenate(parts, axis=-1), rtol=1e-5, atol=1e-5)

    signal = random.normal(size=24).astype(np.float32)
    own = refused_by_mlx(lambda m: m.fft.stft(m.array(signal)[::-1], n_fft=8, hop_length=4, center=False))
    straight = mx.fft.stft(mx.array(signal[::-1].copy()), n_fft=8, hop_length=4, center=False)
    np.testing.assert_allclose(own, np.array(straight), rtol=1e-4, atol=1e-4)

    a, b = (random.integers(-8, 8, shape) / 8 for shape in ((2, 3, 4), (5, 4, 2)))
    own = refused_by_mlx(lambda m: m.gather_mm(m.array(a, dtype=m.float16), m.array(b, dtype=m.float16), rhs_indices=m.array([4, 1])))
    np.testing.assert_allclose(own, a @ b[[4, 1]], rtol=2e-3, atol=1e-3)


def test_kernels_that_do_not_fit():
    x, w = np.ones((1, 4, 1), np.float32), np.ones((1, 3, 1), np.float32)
    with pytest.raises(ValueError, match="does not fit"):
        tk.conv1d(tk.array(x), tk.array(w), stride=2, dilation=2)
    assert mx.conv1d(mx.array(x), mx.array(w), stride=2, dilation=2).shape == (1, 1, 1)
