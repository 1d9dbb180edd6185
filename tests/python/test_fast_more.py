"""Attention with sinks and the gated delta rule, with MLX's values and derivatives."""
import numpy as np
import pytest

import mlx.core as mx
import tiki as tk

RNG = np.random.default_rng(7)


def draw(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def close(ours, theirs, bound=1e-5):
    ours, theirs = np.array(ours, dtype=np.float64), np.array(theirs, dtype=np.float64)
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=bound * max(1, np.abs(theirs).max(initial=0)))


# heads, heads of k and v, queries, keys, mask
CASES = {
    "plain": (2, 2, 3, 5, None),
    "grouped": (4, 2, 70, 130, None),
    "one query": (4, 1, 1, 9, None),
    "causal": (2, 2, 6, 6, "causal"),
    "bools": (2, 1, 5, 7, "bool"),
    "added": (2, 2, 4, 4, "float"),
}


def make(case, dtype=np.float32):
    heads, kv_heads, queries, keys, mask = CASES[case]
    arrays = [draw(2, heads, queries, 8), draw(2, kv_heads, keys, 8), draw(2, kv_heads, keys, 8), draw(heads)]
    if mask == "bool":
        mask = RNG.random((queries, keys)) > 0.4
        mask[0] = False  # a row that sees its sink only
    elif mask == "float":
        mask = draw(queries, keys)
    return arrays, mask


def attend(module, mask):
    given = module.array(mask) if isinstance(mask, np.ndarray) else mask

    def f(q, k, v, sinks):
        return module.fast.scaled_dot_product_attention(q, k, v, scale=0.4, mask=given, sinks=sinks)

    return f


@pytest.mark.parametrize("case", CASES)
def test_sinks(case):
    arrays, mask = make(case)
    ours = attend(tk, mask)(*map(tk.array, arrays))
    close(ours, attend(mx, mask)(*map(mx.array, arrays)))


@pytest.mark.parametrize("case", CASES)
def test_gradients_of_sinks(case):
    arrays, mask = make(case)
    weights = draw(2, CASES[case][0], CASES[case][2], 8)

    def loss(module):
        return lambda *a: (attend(module, mask)(*a) * module.array(weights)).sum()

    ours = tk.grad(loss(tk), [0, 1, 2, 3])(*map(tk.array, arrays))
    theirs = mx.grad(loss(mx), [0, 1, 2, 3])(*map(mx.array, arrays))
    for one, other in zip(ours, theirs, strict=True):
        close(one, other)


def test_sinks_under_other_transforms():
    arrays, _ = make("grouped")
    ours, theirs = list(map(tk.array, arrays)), list(map(mx.array, arrays))
    tangents = [draw(*a.shape) for a in arrays]
    f, g = attend(tk, None), attend(mx, None)
    close(tk.jvp(f, ours, list(map(tk.array, tangents)))[1][0], mx.jvp(g, theirs, list(map(mx.array, tangents)))[1][0])
    two = [tk.stack([a, a * 0.5]) for a in ours]
    batched = tk.vmap(f)(*two)
    shared = tk.vmap(f, in_axes=(0, 0, 0, None))(*two[:3], ours[3])
    for i in range(2):
        close(batched[i], f(*(a[i] for a in two)))
        close(shared[i], f(*(a[i] for a in two[:3]), ours[3]))

    def norm_of_gradient(s):
        return (tk.grad(lambda s: (f(*ours[:3], s) ** 2).sum())(s) ** 2).sum()

    sinks, step = ours[3], 1e-2
    slope = tk.grad(norm_of_gradient)(sinks)
    for head in range(2):
        ahead, behind = (norm_of_gradient(sinks.at[head].add(e)).item() for e in (step, -step))
        assert slope[head].item() == pytest.approx((ahead - behind) / (2 * step), rel=2e-2, abs=1e-3)


def test_edges_of_sinks():
    arrays, _ = make("plain")
    q, k, v, sinks = map(tk.array, arrays)
    without = tk.fast.scaled_dot_product_attention(q, k, v, scale=0.4)
    close(attend(tk, None)(q, k, v, tk.full((2,), -float("inf"))), without, 1e-6)
    assert attend(tk, None)(q, k, v, tk.full((2,), float("1e30"))).abs().max().item() == 0
    nothing = attend(tk, np.zeros((3, 5), bool))(q, k, v, sinks)
    assert nothing.abs().max().item() == 0
    assert tk.grad(lambda s: attend(tk, np.zeros((3, 5), bool))(q, k, v, s).sum())(sinks).tolist() == [0, 0]
    for module, make_array in ((tk, tk.array), (mx, mx.array)):
        a = [make_array(x) for x in arrays]
        with pytest.raises(ValueError):
            attend(module, None)(*a[:3], make_array(np.ones(3, np.float32)))
    half = attend(tk, None)(*(a.astype(tk.float16) for a in (q, k, v, sinks)))
    assert half.dtype == tk.float16
    close(half, attend(mx, None)(*(mx.array(a).astype(mx.float16) for a in arrays)), 4e-3)
    assert attend(tk, None)(*(a.astype(tk.float64) for a in (q, k, v, sinks))).dtype == tk.float64


def delta_arrays(heads=4, key_heads=2, steps=5):
    gate = [1 / (1 + np.exp(-draw(2, steps, heads))) for _ in range(2)]
    return [draw(2, steps, key_heads, 4), draw(2, steps, key_heads, 4), draw(2, steps, heads, 3)] + gate


@pytest.mark.parametrize("state", [False, True])
@pytest.mark.parametrize("mask", [False, True])
def test_gated_delta_update(state, mask):
    arrays = delta_arrays()
    options = {}
    if state:
        options["initial_state"] = draw(2, 4, 3, 4)
    if mask:
        options["mask"] = np.array([[1, 1, 0, 1, 1], [1, 0, 0, 1, 1]], bool)

    def run(module, *a):
        return module.fast.gated_delta_update(*a, **{k: module.array(v) for k, v in options.items()})

    ours = run(tk, *map(tk.array, arrays))
    theirs = run(mx, *map(mx.array, arrays))
    assert isinstance(ours, list)
    for one, other in zip(ours, theirs, strict=True):
        assert one.dtype.name == str(other.dtype).split(".")[-1]
        close(one, other)
    gradients = tk.grad(lambda *a: sum((x * x).sum() for x in run(tk, *a)), [0, 1, 2, 3, 4])(*map(tk.array, arrays))
    expected = mx.grad(lambda *a: sum((x * x).sum() for x in run(mx, *a)), [0, 1, 2, 3, 4])(*map(mx.array, arrays))
    for one, other in zip(gradients, expected, strict=True):
        close(one, other)


def test_gated_delta_update_dtypes_and_errors():
    arrays = delta_arrays(2, 2, 3)
    half = [a.astype(np.float16) for a in arrays]
    ours = tk.fast.gated_delta_update(*map(tk.array, half))
    theirs = mx.fast.gated_delta_update(*map(mx.array, half))
    assert [x.dtype.name for x in ours] == [str(x.dtype).split(".")[-1] for x in theirs] == ["float16", "float32"]
    close(ours[0], theirs[0], 5e-3)
    q, k, v, gamma, beta = map(tk.array, arrays)
    for wrong in ((q[0], k, v, gamma, beta), (q, k, v[:, :2], gamma, beta), (q, k, v, gamma[:, :, :1], beta),
                  (q, k, v, gamma, beta, tk.zeros((2, 2, 4, 3))), (q, k, v, gamma, beta, None, tk.zeros((3,)))):
        with pytest.raises(ValueError, match="gated_delta_update"):
            tk.fast.gated_delta_update(*wrong)
    empty = tk.fast.gated_delta_update(q[:, :0], k[:, :0], v[:, :0], gamma[:, :0], beta[:, :0])
    assert [x.shape for x in empty] == [(2, 0, 2, 3), (2, 2, 3, 4)]
    one = tk.vmap(lambda a: tk.fast.gated_delta_update(a, k, v, gamma, beta)[0])(tk.stack([q, q + 1]))
    close(one[1], tk.fast.gated_delta_update(q + 1, k, v, gamma, beta)[0])
