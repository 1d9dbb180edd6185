"""Quantisation beside MLX's: the same bits of codes, scales and biases; values, products, gradients, layers."""

import itertools

import mlx.core as mx
import mlx.nn as mxnn
import mlx.utils as mxutils
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tiki as tk
import tiki.nn as nn
from tiki.utils import tree_flatten

RNG = np.random.default_rng(5)
AFFINE = [("affine", size, bits) for size in (32, 64, 128) for bits in (1, 2, 3, 4, 5, 6, 8)]
FORMATS = AFFINE + [("mxfp4", 32, 4), ("mxfp8", 32, 8), ("nvfp4", 16, 4)]
TOLERANCE = {"float32": 1e-5, "float16": 1e-2, "bfloat16": 6e-2}


def named(mode, size, bits):
    return {"mode": mode, "group_size": size, "bits": bits}


def cast(m, values, dtype="float32"):
    return m.array(values).astype(getattr(m, dtype))


def numbers(a):
    """Values as NumPy holds them; bfloat16 as float32, which is exact."""
    wide = {tk.bfloat16: tk.float32, mx.bfloat16: mx.float32}
    return np.array(a.astype(wide[a.dtype])) if a.dtype in wide else np.array(a)


def same(own, theirs):
    assert str(own.dtype).split(".")[1] == str(theirs.dtype).split(".")[-1]
    np.testing.assert_array_equal(numbers(own), numbers(theirs))


def close(own, theirs, tolerance=1e-5):
    assert str(own.dtype).split(".")[1] == str(theirs.dtype).split(".")[-1]
    a, b = numbers(own).astype(np.float64), numbers(theirs).astype(np.float64)
    assert a.shape == b.shape
    assert np.abs(a - b).max(initial=0) <= tolerance * max(1, np.abs(b).max(initial=0))


def sample(scale):
    """Rows of normal numbers; zeros, a constant, one sign, and gaps among them."""
    w = (RNG.standard_normal((24, 256)) * scale).astype(np.float32)
    w[3], w[4], w[5], w[6], w[7, ::2] = 0, 1.5 * scale, np.abs(w[5]), -np.abs(w[6]), 0
    return w


@pytest.mark.parametrize("mode, size, bits", FORMATS)
def test_codes_have_the_same_bits(mode, size, bits):
    for dtype, scale in itertools.product(TOLERANCE, (1, 1e-3, 100)):
        w = sample(scale)
        own, theirs = (m.quantize(cast(m, w, dtype), **named(mode, size, bits)) for m in (tk, mx))
        assert len(own) == len(theirs)
        for a, b in zip(own, theirs):
            same(a, b)
        for result in (dtype, "float32", "bfloat16"):
            a, b = (m.dequantize(*q, **named(mode, size, bits), dtype=getattr(m, result)) for m, q in ((tk, own), (mx, theirs)))
            close(a, b, TOLERANCE[dtype])
        if dtype == "float32" or mode != "affine":
            same(tk.dequantize(*own, **named(mode, size, bits)), mx.dequantize(*theirs, **named(mode, size, bits)))


def test_a_global_scale():
    w = sample(1)
    for dtype, scale in itertools.product(TOLERANCE, (1.0, 3.7, 100.0, 0.01)):
        own, theirs = (m.quantize(cast(m, w, dtype), mode="nvfp4", global_scale=m.array(scale)) for m in (tk, mx))
        for a, b in zip(own, theirs):
            same(a, b)
        same(tk.dequantize(*own, mode="nvfp4", global_scale=tk.array(scale)), mx.dequantize(*theirs, mode="nvfp4", global_scale=mx.array(scale)))


@pytest.mark.parametrize("mode, size, bits", [f for f in FORMATS if f[2] > 1])
def test_products(mode, size, bits):
    w, w3 = RNG.standard_normal((96, 256)).astype(np.float32), RNG.standard_normal((3, 40, 256)).astype(np.float32)
    how = named(mode, size, bits)
    for (dtype, tolerance), rows in itertools.product(TOLERANCE.items(), (1, 3, 20)):
        x, y = RNG.standard_normal((2, rows, 256)).astype(np.float32), RNG.standard_normal((2, rows, 96)).astype(np.float32)
        x3 = RNG.standard_normal((3, rows, 256)).astype(np.float32)
        results = []
        for m in (tk, mx):
            q, q3 = m.quantize(cast(m, w, dtype), **how), m.quantize(cast(m, w3, dtype), **how)
            results.append([
                m.quantized_matmul(cast(m, x, dtype), *q, **how),
                m.quantized_matmul(cast(m, x[0, 0], dtype), *q, **how),
                m.quantized_matmul(cast(m, y, dtype), *q, transpose=False, **how),
                m.quantized_matmul(cast(m, x3, dtype), *q3, **how),
                m.quantized_matmul(cast(m, x3[:1], dtype), *q3, **how),
                m.gather_qmm(cast(m, x, dtype), *q3, rhs_indices=m.array([[0, 2], [1, 1]]), **how),
                m.gather_qmm(cast(m, x3, dtype), *q3, lhs_indices=m.array([2, 0, 0, 1]), rhs_indices=m.array([2, 2, 0, 1]), sorted_indices=False, **how),
            ])
        for a, b in zip(*results):
            close(a, b, tolerance)


@pytest.mark.parametrize("mode, size, bits", [("affine", 32, 4), ("affine", 64, 3), ("mxfp4", 32, 4), ("mxfp8", 32, 8), ("nvfp4", 16, 4)])
def test_gradients(mode, size, bits):
    w, w3 = RNG.standard_normal((96, 128)).astype(np.float32), RNG.standard_normal((3, 40, 128)).astype(np.float32)
    x, y = RNG.standard_normal((2, 3, 128)).astype(np.float32), RNG.standard_normal((2, 3, 96)).astype(np.float32)
    how = named(mode, size, bits)

    def gradients(m):
        q, q3 = m.quantize(m.array(w), **how), m.quantize(m.array(w3), **how)
        pick = m.array([[0, 2], [1, 1]])
        plain = lambda x, *q: (m.quantized_matmul(x, *q, **how) ** 2).sum()
        turned = lambda x, *q: (m.quantized_matmul(x, *q, transpose=False, **how) ** 2).sum()
        gathered = lambda x, *q: (m.gather_qmm(x, *q, rhs_indices=pick, **how) ** 2).sum()
        cases = [(plain, x, q), (turned, y, q), (gathered, x, q3)]
        results = [m.grad(f)(m.array(x), *q) for f, x, q in cases]
        if mode == "affine":
            results += [m.grad(f, argnums=i)(m.array(x), *q) for f, x, q in cases for i in (2, 3)]
            results += [m.grad(lambda *q: (m.dequantize(*q, **how) ** 2).sum(), argnums=i)(*q) for i in (1, 2)]
            results.append(m.grad(lambda w: sum((a * a).sum() for a in m.quantize(w, **how)[1:]))(m.array(w)))
        return results

    for a, b in zip(gradients(tk), gradients(mx)):
        close(a, b, 1e-4)


def test_transforms_agree_with_the_dense_product():
    """vmap and jvp, which MLX does not have for these."""
    x, w = tk.array(RNG.standard_normal((4, 3, 64)).astype(np.float32)), tk.array(RNG.standard_normal((5, 8, 64)).astype(np.float32))
    q = tk.quantize(w, group_size=32)
    values = tk.dequantize(*q, group_size=32)
    product = lambda x, *q: tk.quantized_matmul(x, *q, group_size=32)
    close_own = lambda a, b: np.testing.assert_allclose(np.array(a), np.array(b), rtol=1e-4, atol=1e-4)
    close_own(tk.vmap(lambda x: product(x, *[a[0] for a in q]))(x), x @ values[0].T)
    close_own(tk.vmap(lambda *q: product(x, *q))(*q), tk.stack([x @ v.T for v in values]))
    close_own(tk.vmap(lambda i: tk.gather_qmm(x, *q, rhs_indices=i, group_size=32))(tk.array([[0, 1, 2, 3], [4, 4, 0, 0]])),
              tk.stack([x @ values[tk.array(i)].swapaxes(-1, -2) for i in ([0, 1, 2, 3], [4, 4, 0, 0])]))
    out, tangent = tk.jvp(lambda x, s: product(x, q[0][0], s, q[2][0]), [x, q[1][0]], [x, q[1][0]])
    half = tk.dequantize(*tk.quantize(w, mode="nvfp4"), mode="nvfp4", global_scale=tk.array(2688.0), dtype=tk.float16)
    assert half.dtype == tk.float16  # docs/differences.md
    zero_bias = tk.dequantize(q[0], q[1], tk.zeros_like(q[2]), group_size=32)
    close_own(tangent[0], x @ values[0].T + x @ zero_bias[0].T)


def test_both_quantised():
    """MLX has these on other devices than the CPU only; their definition is the product of values."""
    x, w = RNG.standard_normal((3, 4, 128)).astype(np.float32), RNG.standard_normal((3, 24, 128)).astype(np.float32)
    for mode, scale in [("mxfp4", None), ("mxfp8", None), ("nvfp4", None), ("nvfp4", 3.0)]:
        extra = {} if scale is None else {"global_scale": mx.array(scale)}
        through = lambda a: mx.dequantize(*mx.quantize(mx.array(a), mode=mode, **extra), mode=mode, dtype=mx.float32, **extra)
        expected = through(x) @ through(w).swapaxes(-1, -2)
        own = {} if scale is None else {"global_scale_x": tk.array(scale), "global_scale_w": tk.array(scale)}
        codes = tk.quantize(tk.array(w), mode=mode, **({} if scale is None else {"global_scale": tk.array(scale)}))
        pick = {"lhs_indices": tk.array([0, 1, 2]), "rhs_indices": tk.array([0, 1, 2])}
        close(tk.qqmm(tk.array(x), tk.array(w), mode=mode, **own), expected, 1e-5)
        close(tk.qqmm(tk.array(x), *codes, mode=mode, **own), expected, 1e-5)
        close(tk.gather_qqmm(tk.array(x), tk.array(w), mode=mode, **own, **pick), expected, 1e-5)
        close(tk.gather_qqmm(tk.array(x), *codes, mode=mode, **own), expected, 1e-5)
        straight = tk.grad(lambda x, w: tk.qqmm(x, w, mode=mode, **own).sum(), argnums=(0, 1))(tk.array(x), tk.array(w))
        close(straight[0], mx.broadcast_to(through(w).sum(1, keepdims=True), x.shape), 1e-5)
        close(straight[1], mx.broadcast_to(through(x).sum(1, keepdims=True), w.shape), 1e-5)


def test_fp8():
    for dtype in TOLERANCE:
        v = np.concatenate([RNG.standard_normal(2000) * 10.0 ** RNG.integers(-4, 4, 2000), np.arange(-17, 18) * 2.0**-10, [448, 464, 465, np.inf, -np.inf]])
        same(tk.to_fp8(cast(tk, v.astype(np.float32), dtype)), mx.to_fp8(cast(mx, v.astype(np.float32), dtype)))
        same(tk.from_fp8(tk.arange(256).astype(tk.uint8), getattr(tk, dtype)), mx.from_fp8(mx.arange(256).astype(mx.uint8), getattr(mx, dtype)))
    assert tk.from_fp8(tk.array([56], tk.uint8)).dtype == tk.bfloat16
    # docs/differences.md: MLX gives 448 for a NaN, and unrelated codes for float64
    assert tk.to_fp8(tk.array([float("nan")])).tolist() == [127]
    assert tk.to_fp8(tk.array([1.0, -0.0, 3.0], tk.float64)).tolist() == [56, 128, 68]


def test_values_that_are_not_finite():
    """docs/differences.md: a NaN makes its group NaN; a scale below 2^-127 does not wrap."""
    w = np.ones((1, 64), np.float32)
    w[0, 3] = np.nan
    for mode in ("affine", "mxfp8", "nvfp4"):
        values = np.array(tk.dequantize(*tk.quantize(tk.array(w), mode=mode, group_size=64 if mode == "affine" else None), mode=mode, dtype=tk.float32, group_size=64 if mode == "affine" else None))
        assert np.isnan(values[0, 3]) and not np.isnan(values[0, 32:]).any() or mode == "affine" and np.isnan(values).all()
    tiny = tk.array(np.full((1, 32), 1e-39, np.float32))
    assert np.abs(np.array(tk.dequantize(*tk.quantize(tiny, mode="mxfp8"), mode="mxfp8", dtype=tk.float32)) - 1e-39).max() < 1e-39 / 8


def test_pairs_segments_and_masks():
    a, b = RNG.standard_normal((4, 3, 5)).astype(np.float32), RNG.standard_normal((6, 5, 7)).astype(np.float32)
    p, q = RNG.standard_normal((70, 100)).astype(np.float32), RNG.standard_normal((100, 40)).astype(np.float32)
    masks = [RNG.random(shape) < 0.5 for shape in ((3, 2), (3, 4), (4, 2))]

    def results(m):
        x, y, u, v = (m.array(z) for z in (a, b, p, q))
        out, left, right = (m.array(z) for z in masks)
        scaled = [m.array(z.astype(np.float32) * 2) for z in masks]
        i, j = m.array([0, 0, 3]), m.array([2, 3, 3])
        segments = m.array([[0, 30], [30, 100], [10, 10], [7, 3]]).astype(m.uint32)
        return [
            m.gather_mm(x, y, i, j), m.gather_mm(x, y[:4]), m.gather_mm(x, y, None, m.array([[0], [1]])),
            m.gather_mm(x, y, rhs_indices=m.array([0, 1, 1, 2]), sorted_indices=True), m.gather_mm(x[0], y, None, i),
            m.grad(lambda x: (m.gather_mm(x, y, i, j) ** 2).sum())(x), m.grad(lambda y: (m.gather_mm(x, y, i, j) ** 2).sum())(y),
            m.block_masked_mm(u, v, 32, out, left, right), m.block_masked_mm(u, v, 32, *scaled), m.block_masked_mm(u, v, 32, out, *scaled[1:]),
            m.block_masked_mm(u, v), m.block_masked_mm(m.stack([u, u]), v, 32, m.stack([out, out])),
            m.grad(lambda u: (m.block_masked_mm(u, v, 32, out, left, right) ** 2).sum())(u),
            m.segmented_mm(u, v, segments), m.segmented_mm(v.T, u.T, segments[0]),
        ]

    for own, theirs in zip(results(tk), results(mx)):
        close(own, theirs, 2e-5)
    # docs/differences.md: the derivative by a mask is the sum of what it scales, switched off or not
    ones, off = tk.array(np.ones((3, 2), np.float32)), tk.zeros((3, 2))
    slope = tk.grad(lambda mask: tk.block_masked_mm(tk.array(p), tk.array(q), 32, mask).sum())
    np.testing.assert_allclose(np.array(slope(ones)), np.array(slope(off)), rtol=1e-5)
    np.testing.assert_allclose(float(slope(off).sum()), (p.astype(np.float64) @ q).sum(), rtol=1e-4)
    segments = tk.array([[0, 30], [30, 100]])
    np.testing.assert_allclose(np.array(tk.grad(lambda u: tk.segmented_mm(u, tk.array(q), segments).sum())(tk.array(p))),
                               np.broadcast_to(q.sum(1), p.shape), rtol=2e-4, atol=1e-5)


def test_indices_out_of_range_are_named():
    a, b = tk.ones((2, 3, 4)), tk.ones((2, 4, 3))
    with pytest.raises(IndexError, match="index 2 is out of range"):
        tk.eval(tk.gather_mm(a, b, tk.array([0, 2]), tk.array([0, 1])))
    with pytest.raises(IndexError, match="index 5 is out of range"):
        tk.eval(tk.gather_qmm(tk.ones((2, 3, 64)), *tk.quantize(tk.ones((2, 4, 64))), rhs_indices=tk.array([0, 5])))
    with pytest.raises(IndexError, match="index 9 is out of range"):
        tk.eval(tk.segmented_mm(a[0], b[0], tk.array([[0, 9]])))


ERRORS = """
m.quantize(w, group_size=16) | m.quantize(w, bits=7) | m.quantize(w, mode='foo') | m.quantize(w[0]) | m.quantize(w[:, :33]) | m.quantize(w.astype(m.int32))
m.quantize(w, mode='mxfp4', group_size=16) | m.quantize(w, mode='mxfp8', bits=4) | m.quantize(w, global_scale=m.array(1.0)) | m.dequantize(*q[:2])
m.dequantize(q[0].astype(m.int32), *q[1:]) | m.dequantize(q[0], q[1][:, :1], q[2][:, :1]) | m.dequantize(*q, dtype=m.int32) | m.dequantize(*q, mode='mxfp4')
m.quantized_matmul(m.ones((3, 64)), *q) | m.quantized_matmul(m.ones((3, 128), dtype=m.complex64), *q) | m.gather_mm(w, w[:5]) | m.gather_mm(w, w.T, m.array([0.5]))
m.to_fp8(m.array([1])) | m.from_fp8(m.array([1])) | m.from_fp8(m.array([1], m.uint8), m.int32) | m.qqmm(w, w, global_scale_x=m.array(1.0))
m.block_masked_mm(w, w.T, 32, m.ones((2, 2))) | m.segmented_mm(w, w.T, m.array([[0.5, 1.0]])) | m.segmented_mm(w, w.T, m.array([[1, 2, 3]]))
"""


@pytest.mark.parametrize("case", [c.strip() for line in ERRORS.strip().splitlines() for c in line.split(" | ")])
def test_errors(case):
    for m in (mx, tk):
        w = m.array(np.ones((96, 128), np.float32))
        with pytest.raises((ValueError, RuntimeError)) as caught:
            m.eval(eval(case, {"m": m, "w": w, "q": m.quantize(w)}))
    assert isinstance(caught.value, ValueError) and len(str(caught.value)) > 20


@given(st.data())
def test_strided_operands(data):
    """Views of x, codes and scales give what copies give."""
    size, bits = data.draw(st.sampled_from([(32, 4), (32, 3), (64, 8)]))
    rows, groups, m = (data.draw(st.integers(1, 4)) for _ in range(3))
    w = tk.array(RNG.standard_normal((2, 2 * rows, groups * size)).astype(np.float32))
    step = data.draw(st.sampled_from([1, -1, 2]))
    q = [a[:, ::step] for a in tk.quantize(w, group_size=size, bits=bits)]
    x = tk.array(RNG.standard_normal((groups * size, 2, m)).astype(np.float32)).transpose(1, 2, 0)
    values = np.array(tk.dequantize(*q, group_size=size, bits=bits)).astype(np.float64)
    got = np.array(tk.quantized_matmul(x, *q, group_size=size, bits=bits))
    expected = np.array(x).astype(np.float64) @ values.swapaxes(-1, -2)
    assert np.abs(got - expected).max() <= 1e-5 * max(1, np.abs(expected).max())
    again = tk.quantize(w.swapaxes(0, 1), group_size=size, bits=bits)
    for a, b in zip(again, tk.quantize(w, group_size=size, bits=bits)):
        np.testing.assert_array_equal(np.array(a), np.array(b).swapaxes(0, 1))


# ---- layers ----


def both(make):
    results = []
    for m, n in ((tk, nn), (mx, mxnn)):
        m.random.seed(4)
        results.append(make(m, n))
    return results


def same_parameters(own, theirs, frozen=False):
    get = (lambda m: m.trainable_parameters()) if frozen else (lambda m: m.parameters())
    a, b = tree_flatten(get(own), destination={}), mxutils.tree_flatten(get(theirs), destination={})
    a, b = ({k: v for k, v in t.items() if v is not None} for t in (a, b))
    assert a.keys() == b.keys()
    for name in a:
        close(a[name], b[name], 1e-6)


@pytest.mark.parametrize("mode", ["affine", "mxfp4", "mxfp8", "nvfp4"])
def test_layers(mode):
    x, tokens = RNG.standard_normal((3, 64)).astype(np.float32), np.array([[1, 4], [0, 9]])
    own, theirs = both(lambda m, n: n.QuantizedLinear(64, 32, mode=mode))
    same_parameters(own, theirs), same_parameters(own, theirs, True)
    assert repr(own) == repr(theirs)
    close(own(tk.array(x)), theirs(mx.array(x)))
    own, theirs = both(lambda m, n: n.QuantizedLinear.from_linear(n.Linear(64, 32), mode=mode))
    same_parameters(own, theirs), same_parameters(own, theirs, True)
    close(own(tk.array(x)), theirs(mx.array(x)))
    slopes = [m.grad(lambda x: layer(x).sin().sum())(m.array(x)) for m, layer in ((tk, own), (mx, theirs))]
    close(slopes[0], slopes[1], 1e-5)
    own, theirs = both(lambda m, n: n.Embedding(10, 64).to_quantized(mode=mode))
    slopes = [m.grad(lambda x: layer.as_linear(x).sin().sum())(m.array(x)) for m, layer in ((tk, own), (mx, theirs))]
    close(slopes[0], slopes[1], 1e-5)
    assert repr(own) == repr(theirs)
    close(own(tk.array(tokens)), theirs(mx.array(tokens)))
    close(own.as_linear(tk.array(x)), theirs.as_linear(mx.array(x)))
    own, theirs = both(lambda m, n: n.QuantizedEmbedding(10, 64, mode=mode))
    close(own(tk.array(tokens)), theirs(mx.array(tokens)), 1e-2)  # normal numbers: within units of MLX's


def test_quantising_a_model():
    def make(m, n):
        model = n.Sequential(n.Embedding(10, 64), n.Linear(64, 64), n.ReLU(), n.Linear(64, 32, bias=False), n.LayerNorm(32))
        n.quantize(model, bits=8, class_predicate=lambda path, layer: {"group_size": 32, "bits": 4} if path == "layers.1" else hasattr(layer, "to_quantized"))
        return model

    own, theirs = both(make)
    assert [type(l).__name__ for l in own.layers] == [type(l).__name__ for l in theirs.layers]
    same_parameters(own, theirs), same_parameters(own, theirs, True)
    close(own(tk.array([1, 2])), theirs(mx.array([1, 2])), 1e-4)
    with pytest.raises(ValueError, match="cannot be quantised"):
        nn.quantize(nn.Sequential(nn.ReLU()), class_predicate=lambda p, m: True)
    with pytest.raises(ValueError, match="quantize_input"):
        nn.quantize(nn.Sequential(nn.Linear(64, 64)), quantize_input=True)


def test_qq_linear():
    own, theirs = both(lambda m, n: n.QQLinear(64, 32))
    same_parameters(own, theirs), same_parameters(own, theirs, True)
    assert repr(own) == repr(theirs)
    x = tk.array(RNG.standard_normal((3, 64)).astype(np.float32))
    training = own(x)
    assert "weight" in tk.nn.value_and_grad(own, lambda x: own(x).sum())(x)[1]
    own.eval(), theirs.eval()
    same_parameters(own, theirs)
    close_values = np.abs(np.array(own(x)) - np.array(training)).max()
    assert close_values < 1e-5
    own.train(), theirs.train()
    same_parameters(own, theirs)
    linear = nn.Linear(64, 32, bias=False)
    assert isinstance(linear.to_quantized(mode="mxfp8", quantize_input=True), nn.QQLinear)
    with pytest.raises(NotImplementedError):
        nn.QQLinear.from_linear(nn.Linear(64, 32))
