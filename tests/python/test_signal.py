"""Convolutions and Fourier transforms beside MLX and NumPy: random geometries, gradients, vmap, and where MLX is wrong."""

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


# ---- Fourier transforms ----

TRANSFORMS = "fft ifft rfft irfft fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn".split()


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_transforms(data):
    """Names, lengths, axes and norms against NumPy in float64, dtypes and shapes against MLX."""
    name = data.draw(st.sampled_from(TRANSFORMS))
    shape = data.draw(st.lists(st.integers(1, 9), min_size=2, max_size=3))
    x = values(*shape) if name.startswith("r") else (values(*shape) + 1j * values(*shape)).astype(np.complex64)
    rank, keywords = len(shape), {"norm": data.draw(st.sampled_from(["backward", "ortho", "forward"]))}
    if name[-1] in "2n":
        keywords["axes"] = data.draw(st.lists(st.sampled_from(range(-rank, 0)), min_size=1, max_size=rank, unique=True))
        if data.draw(st.booleans()):
            keywords["s"] = [data.draw(st.integers(2, 11)) for _ in keywords["axes"]]
    else:
        keywords["axis"] = data.draw(st.integers(-rank, rank - 1))
        keywords["n"] = data.draw(st.sampled_from([None, 2, 3, 8, 67]))
    last = keywords.get("axis", keywords.get("axes", [-1])[-1])
    if name.startswith("irfft") and shape[last] == 1:
        keywords["n" if "axis" in keywords else "s"] = 3 if "axis" in keywords else [3] * len(keywords["axes"])
    own = getattr(tk.fft, name)(tk.array(x), **keywords)
    right = getattr(np.fft, name)(x.astype(np.complex128 if np.iscomplexobj(x) else np.float64), **keywords)
    theirs = getattr(mx.fft, name)(mx.array(x), **keywords)
    assert own.shape == tuple(theirs.shape) and str(own.dtype).split(".")[-1] == str(theirs.dtype).split(".")[-1]
    assert np.abs(np.array(own) - right).max() <= 1e-5 * max(1, np.abs(right).max())


@pytest.mark.parametrize("n", [1, 2, 96, 97, 1000, 1009, 4096, 10007, 65536, 99991])
def test_long_transforms(n):
    """Lengths with large primes too; the error stays at a few units of the root mean square."""
    x = (values(n) + 1j * values(n)).astype(np.complex64)
    right = np.fft.fft(x.astype(np.complex128))
    unit = 2.0**-23 * np.sqrt(np.mean(np.abs(right) ** 2))
    assert np.abs(np.array(tk.fft.fft(tk.array(x))) - right).max() <= 16 * unit
    half = np.fft.rfft(x.real.astype(np.float64))
    assert np.abs(np.array(tk.fft.rfft(tk.array(x.real))) - half).max() <= 16 * unit
    close(tk.fft.irfft(tk.fft.rfft(tk.array(x.real)), n), x.real)
    close(tk.fft.ifft(tk.fft.fft(tk.array(x))), x)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_gradients_of_transforms(name):
    x = values(3, 5) if name.startswith("r") else (values(3, 5) + 1j * values(3, 5)).astype(np.complex64)

    def loss(m):
        return lambda x: m.abs(getattr(m.fft, name)(x)).square().sum()

    own, theirs = tk.grad(loss(tk))(tk.array(x)), np.array(mx.grad(loss(mx))(mx.array(x)))
    close(own, theirs, 1e-4)


def test_shifts_and_frequencies():
    a = values(4, 5)
    for axes in (None, 0, -1, (0, 1), (1,)):
        close(tk.fft.fftshift(tk.array(a), axes), np.fft.fftshift(a, axes))
        close(tk.fft.ifftshift(tk.array(a), axes), np.fft.ifftshift(a, axes))
    for n, d in ((1, 1.0), (4, 0.5), (5, -2.0)):
        close(tk.fft.fftfreq(n, d), mx.fft.fftfreq(n, d))
        close(tk.fft.rfftfreq(n, d), mx.fft.rfftfreq(n, d))
    for call in ("fftfreq(0)", "fftfreq(3, 0)", "fft(x, n=0)", "fft(x, n=-1)", "irfft(x[:1])", "fft(x, norm='x')",
                 "fftn(x, s=(2,))", "fftn(x, (2, 3), (0,))", "fftn(x, axes=(0, 0))", "fft(x[:0])"):
        for m in (tk, mx):
            with pytest.raises(ValueError):
                m.eval(eval(f"f.{call}", {"f": m.fft, "x": m.zeros((4,))}))


STFT = [
    {}, {"hop_length": 5}, {"n_fft": 15}, {"center": False}, {"pad_mode": "constant"}, {"pad_mode": "edge"},
    {"norm": "ortho"}, {"onesided": False}, {"win_length": 10}, {"window": "hanning"},
]


@pytest.mark.parametrize("keywords", STFT)
def test_short_time_transforms(keywords):
    keywords = {"n_fft": 16, **keywords}
    x = values(2, 90)

    def given(m):
        window = {"window": m.hanning(12) + 0.1} if "window" in keywords else {}
        return {**keywords, **window}

    close(tk.fft.stft(tk.array(x), **given(tk)), mx.fft.stft(mx.array(x), **given(mx)))
    spectrum = np.array(mx.fft.stft(mx.array(x), **given(mx)))
    for length in (None, 60, 100):
        ours, theirs = ({**given(m), "length": length} for m in (tk, mx))
        for extra in (ours, theirs):
            extra.pop("pad_mode", None)
        close(tk.fft.istft(tk.array(spectrum), **ours), mx.fft.istft(mx.array(spectrum), **theirs), 1e-4)


def test_short_time_transforms_of_complex_signals():
    x = (values(50) + 1j * values(50)).astype(np.complex64)
    close(tk.fft.stft(tk.array(x), 16), mx.fft.stft(mx.array(x), 16))
    with pytest.raises(ValueError, match="too short"):
        tk.fft.stft(tk.zeros((5,)), 16, center=False)
    with pytest.raises(ValueError, match="window"):
        tk.fft.stft(tk.zeros((50,)), 16, window=tk.ones((17,)))
