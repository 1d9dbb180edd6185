"""Convolutions beside MLX and NumPy: random geometries, gradients, vmap, and where MLX is wrong."""

import mlx.core as mx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import tiki as tk

RNG = np.random.default_rng(5)


def values(*shape):
    return RNG.uniform(-2, 2, shape).astype(np.float32)


def close(own, theirs, tolerance=1e-5):
    own, theirs = np.array(own), np.array(theirs)
    assert own.shape == theirs.shape and own.dtype == theirs.dtype
    if own.size:
        assert np.abs(own - theirs).max() <= tolerance * max(1.0, np.abs(theirs).max())


@st.composite
def geometries(draw):
    rank = draw(st.integers(1, 3))
    each = lambda low, high: [draw(st.integers(low, high)) for _ in range(rank)]
    groups, channels, outputs = draw(st.sampled_from([1, 1, 2, 3])), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    inputs, kernel = each(3, 6), each(1, 3)
    keywords = dict(
        stride=each(1, 3), padding=(each(0, 2), each(0, 2)), kernel_dilation=each(1, 2), input_dilation=each(1, 3),
        groups=groups, flip=draw(st.booleans()),
    )
    spans = [(n - 1) * d + 1 + low + high for n, d, low, high in
             zip(inputs, keywords["input_dilation"], *keywords["padding"])]
    kernel = [k if (k - 1) * d < span else 1 for k, d, span in zip(kernel, keywords["kernel_dilation"], spans)]
    x = values(draw(st.integers(1, 2)), *inputs, groups * channels)
    return x, values(groups * outputs, *kernel, channels), keywords


@settings(max_examples=150, deadline=None)
@given(geometries())
def test_conv_general(geometry):
    x, w, keywords = geometry
    own = tk.conv_general(tk.array(x), tk.array(w), **keywords)
    groups = keywords.pop("groups")  # MLX has none in three dimensions
    parts = zip(np.split(x, groups, axis=-1), np.split(w, groups, axis=0))
    close(own, mx.concatenate([mx.conv_general(mx.array(a), mx.array(b), **keywords) for a, b in parts], axis=-1))


@settings(max_examples=60, deadline=None)
@given(geometries())
def test_batches_of_convolutions(geometry):
    x, w, keywords = geometry
    function = lambda x, w: tk.conv_general(x, w, **keywords)
    xs, ws = tk.stack([tk.array(x), -tk.array(x), tk.array(x) * 2]), tk.stack([tk.array(w), tk.array(w) + 1, -tk.array(w)])
    close(tk.vmap(function)(xs, ws), tk.stack([function(a, b) for a, b in zip(xs, ws)]))
    close(tk.vmap(function, (0, None))(xs, ws[0]), tk.stack([function(a, ws[0]) for a in xs]))
    close(tk.vmap(function, (None, 0))(xs[0], ws), tk.stack([function(xs[0], b) for b in ws]))


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_gradients_of_transposed_convolutions(rank):
    """MLX gives a gradient by the input of the wrong shape where output_padding passes the last kernel."""
    x, w = values(1, *(3,) * rank, 2), values(3, *(2,) * rank, 2)

    def loss(m):
        return lambda x, w: (getattr(m, f"conv_transpose{rank}d")(x, w, stride=2, output_padding=1) ** 2).sum()

    own = tk.grad(loss(tk), argnums=(0, 1))(tk.array(x), tk.array(w))
    step = 1e-2
    direction = values(*x.shape)
    ahead, behind = (loss(tk)(tk.array(x + s * step * direction), tk.array(w)).item() for s in (1, -1))
    assert own[0].shape == x.shape
    np.testing.assert_allclose((np.array(own[0]) * direction).sum(), (ahead - behind) / (2 * step), rtol=2e-3)
    close(own[1], mx.grad(loss(mx), argnums=1)(mx.array(x), mx.array(w)))


def test_convolutions_of_integers_and_complex_numbers():
    """MLX refuses them; NumPy convolves both."""
    a, v = np.int32([1, 2, 3, 4]), np.int32([5, 6])
    np.testing.assert_array_equal(np.array(tk.convolve(tk.array(a), tk.array(v))), np.convolve(a, v))
    z = (values(6) + 1j * values(6)).astype(np.complex64)
    close(tk.convolve(tk.array(z), tk.array(z[:3]), "same"), np.convolve(z, z[:3], "same"))
