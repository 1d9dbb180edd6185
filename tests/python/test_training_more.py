"""Losses and clipping at their edges, with MLX's values."""
import numpy as np
import pytest

import mlx.core as mx
import mlx.nn
import mlx.optimizers
import tiki as tk
import tiki.nn
import tiki.optimizers

RNG = np.random.default_rng(5)


@pytest.mark.parametrize("smoothing", [0.0, 0.25])
@pytest.mark.parametrize("axis", [-1, 0])
def test_cross_entropy_of_weights_that_do_not_sum_to_one(smoothing, axis):
    logits = RNG.normal(size=(4, 5)).astype(np.float32) * 3
    targets = RNG.random(size=(4, 5)).astype(np.float32) * 2

    def loss(m, nn):
        return lambda x: nn.losses.cross_entropy(x, m.array(targets), axis=axis, label_smoothing=smoothing)

    ours, theirs = loss(tk, tiki.nn)(tk.array(logits)), loss(mx, mlx.nn)(mx.array(logits))
    np.testing.assert_allclose(np.array(ours), np.array(theirs), rtol=2e-6, atol=2e-6)
    ours = tk.grad(lambda x: loss(tk, tiki.nn)(x).sum())(tk.array(logits))
    theirs = mx.grad(lambda x: loss(mx, mlx.nn)(x).sum())(mx.array(logits))
    np.testing.assert_allclose(np.array(ours), np.array(theirs), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32"])
@pytest.mark.parametrize("limit", [0, 1.0, 100.0, 1e-4])
def test_clip_grad_norm(dtype, limit):
    def clip(m, optimizers):
        values = {"a": m.array([3.0, -4.0]).astype(getattr(m, dtype)), "b": [m.array([[12.0]]).astype(getattr(m, dtype))]}
        return optimizers.clip_grad_norm(values, limit)

    (ours, norm), (theirs, expected) = clip(tk, tiki.optimizers), clip(mx, mlx.optimizers)
    assert norm.item() == pytest.approx(expected.item(), rel=1e-3) == pytest.approx(13, rel=1e-3)
    for one, other in ((ours["a"], theirs["a"]), (ours["b"][0], theirs["b"][0])):
        assert one.dtype.name == str(other.dtype).split(".")[-1]
        np.testing.assert_allclose(one.tolist(), other.tolist(), rtol=1e-2 if dtype == "bfloat16" else 2e-3)


def test_clip_grad_norm_refuses_what_is_below_zero():
    for m, optimizers in ((tk, tiki.optimizers), (mx, mlx.optimizers)):
        with pytest.raises(ValueError):
            optimizers.clip_grad_norm({"a": m.array([1.0])}, -1.0)
