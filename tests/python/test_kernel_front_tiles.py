"""Tiles: products of every orientation, and one tile of the backward pass of attention as its users write it."""

import os
import subprocess

import numpy
import pytest

import tiki as tk
from tiki import kernels
from tiki.kernels.cute.lib import Gemm, Load, Tensor, Warp
from tiki.kernels.cute.lib.math import (
    Float16,
    Float32,
    Int32,
    TensorSpec,
    block_idx,
    cute,
    exp2,
    thread_idx,
)


@cute.kernel(grid=1, block=128)
def product(a: Tensor, b: Tensor, c: Tensor, a_turned, b_turned, warps, layout):
    tidx, _, _ = thread_idx()
    load = Load(Float16, tidx, num_threads=128, vector=2 if layout else 16)
    left = Tensor(dtype=Float16, rows=a.rows, cols=a.cols, layout=layout)
    right = Tensor(dtype=Float16, rows=b.rows, cols=b.cols)
    load(a, left)
    if b.cols % 8 == 0:
        Load(Float16, tidx, num_threads=128)(b, right)
    gemm = Gemm(Float16, tidx, num_threads=128, warp=warps)
    c.write(gemm(left.T if a_turned else left, right.T if b_turned else right))


@pytest.mark.parametrize("warps", [(4, 1), (1, 4), (2, 2)])
@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)])
def test_products_are_exact(warps, turned):
    """Small integers: every partial sum is a number of f32, so all orders give the same bits."""
    rng = numpy.random.default_rng(0)
    a = rng.integers(-4, 5, (64, 32) if not turned[0] else (32, 64)).astype("f2")
    b = rng.integers(-4, 5, (64, 32) if not turned[1] else (32, 64)).astype("f2")
    c = numpy.zeros((64, 64), "f4")
    kernel = product.lower(a, b, c, *turned, Warp(*warps), None)
    text = kernel.text
    assert ("load_matrix.transposed" in text) == any(turned) and ("load_matrix %" in text) == (not all(turned))
    ran = kernel.emulate(a, b, c, *turned, Warp(*warps), None, seed=3)
    assert not ran.findings, ran.text
    left, right = (x.astype("f4").T if t else x.astype("f4") for x, t in zip((a, b), turned))
    assert numpy.array_equal(c, left @ right.T)


def test_a_layout_without_rows_of_16_bytes():
    rng = numpy.random.default_rng(1)
    a, b = rng.integers(-4, 5, (2, 64, 16)).astype("f2")
    c = numpy.zeros((64, 64), "f4")
    layout = cute.make_layout((64, 16), stride=(17, 1))
    kernel = product.lower(a, b, c, False, False, Warp(2, 2), layout)
    ran = kernel.emulate(a, b, c, False, False, Warp(2, 2), layout)
    assert not ran.findings, ran.text
    assert numpy.array_equal(c, a.astype("f4") @ b.astype("f4").T)


@cute.jit
def attention_backward_tile(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    grad_out: Tensor,
    lse_log2: Tensor,
    delta: Tensor,
    query_block: Int32,
    scale: Float32,
    grad_key,
    grad_value,
):
    # Q, K, V, dO: shared [64, 64], fp16. LSE and delta: global row vectors.
    # dK, dV: register [64, 64], fp32 accumulators owned by the caller.
    tidx, _, _ = thread_idx()
    qk = Gemm(query.raw.element_type, tidx, num_threads=128, warp=Warp(1, 4))
    kv = Gemm(query.raw.element_type, tidx, num_threads=128, warp=Warp(4, 1))
    probs_smem = Tensor(dtype=query.raw.element_type, rows=64, cols=64)  # shared, fp16
    ds_smem = Tensor(dtype=query.raw.element_type, rows=64, cols=64)  # shared, fp16

    # Gemm(a, b) computes a @ b.T; scores live in fp32 registers.
    probs = qk(a=query, b=key)
    probs.apply(
        vector=lse_log2,
        block_idx=query_block,
        fn=lambda score, lse: exp2(score * scale * 1.4426950408889634 - lse),
    )
    probs_smem.write(probs)  # register -> shared [64, 64], fp16, with barrier

    # dS = P * (dO @ V.T - delta), in fp32 registers.
    ds = qk(a=grad_out, b=value)
    ds.apply(vector=delta, block_idx=query_block, fn=lambda dp, d: dp - d)
    ds.mul(probs_smem)
    ds_smem.write(ds)  # register -> shared [64, 64], fp16, with barrier

    kv(a=probs_smem.T, b=grad_out.T, acc=grad_value)  # dV += P.T @ dO
    kv(a=ds_smem.T, b=query.T, acc=grad_key)  # dK += dS.T @ Q
    grad_query = qk(a=ds_smem, b=key.T)  # dQ = dS @ K
    grad_query.scale(scale)
    return grad_query


@cute.kernel(grid=lambda q, k, *rest: cute.ceil_div(k.rows, 64), block=128)
def attention_backward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    do: Tensor,
    lse_log2: Tensor,
    delta: Tensor,
    dq: Tensor,
    dk: Tensor,
    dv: Tensor,
    scale: Float32,
):
    tidx, _, _ = thread_idx()
    key_block, _, _ = block_idx()
    load = Load(Float16, tidx, num_threads=128)
    query, key, value, grad_out = (Tensor(dtype=Float16, rows=64, cols=64) for _ in range(4))
    load(k, key, block_idx=key_block)
    load(v, value, block_idx=key_block)
    kv = Gemm(Float16, tidx, num_threads=128, warp=Warp(4, 1))
    grad_key, grad_value = kv.zeros(64, 64), kv.zeros(64, 64)
    for query_block in range(q.rows // 64):
        load(q, query, block_idx=query_block)
        load(do, grad_out, block_idx=query_block)
        grad_query = attention_backward_tile(
            query, key, value, grad_out, lse_log2, delta, query_block, scale, grad_key, grad_value
        )
        dq.write(grad_query, block_idx=query_block)
    grad_key.scale(scale)
    dk.write(grad_key, block_idx=key_block)
    dv.write(grad_value, block_idx=key_block)


def lowered_backward():
    queries, keys = TensorSpec(Float16, ("queries", 64)), TensorSpec(Float16, ("keys", 64))
    rows = TensorSpec(Float32, "queries")
    grad_q, grad_k = TensorSpec(Float32, ("queries", 64)), TensorSpec(Float32, ("keys", 64))
    return attention_backward.lower(queries, keys, keys, queries, rows, rows, grad_q, grad_k, grad_k, 0.125)


def test_attention_backward_assembles(tmp_path):
    (tmp_path / "backward.tk").write_text(lowered_backward().text)
    command = [os.environ.get("TIKI_BIN", "tiki"), "kernel", "build", tmp_path / "backward.tk", "--arch"]
    for arch in ("sm_80", "sm_90a"):
        ran = subprocess.run([*command, arch], capture_output=True, text=True, check=False)
        if "no ptxas" in ran.stderr:
            pytest.skip("no ptxas")
        assert ran.returncode == 0, ran.stderr
        assert "spilled           0 bytes stored" in ran.stdout


def test_attention_backward():
    kernel = lowered_backward()
    kernel.raw.verify()
    assert kernels.parse(kernel.text) == kernel.raw
    rng = numpy.random.default_rng(0)
    q, do = rng.standard_normal((2, 128, 64)).astype("f2")
    k, v = rng.standard_normal((2, 64, 64)).astype("f2")
    exact = {name: x.astype("f8") for name, x in zip("qkvo", (q, k, v, do))}
    scores = 0.125 * exact["q"] @ exact["k"].T
    lse = numpy.log(numpy.exp(scores).sum(1))
    probs = numpy.exp(scores - lse[:, None])
    delta = (exact["o"] * (probs @ exact["v"])).sum(1)
    ds = probs * (exact["o"] @ exact["v"].T - delta[:, None])
    expected = (0.125 * ds @ exact["k"], 0.125 * ds.T @ exact["q"], probs.T @ exact["o"])
    lse_log2, delta = (lse * numpy.log2(numpy.e)).astype("f4"), delta.astype("f4")
    first = None
    for seed in range(20):
        grads = [numpy.zeros(one.shape, "f4") for one in expected]
        ran = kernel.emulate(q, k, v, do, lse_log2, delta, *grads, 0.125, seed=seed)
        assert not ran.findings, ran.text
        for found, one in zip(grads, expected):
            assert numpy.abs(found - one).max() < 2e-3 * numpy.abs(one).max()
        first = first or grads
        assert all(numpy.array_equal(found, one) for found, one in zip(grads, first))


# ---- the tile in an operator: heads, several key blocks, launched by a host function ----


@cute.kernel
def backward_of_heads(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    do: Tensor,
    lse_log2: Tensor,
    delta: Tensor,
    dq_parts: Tensor,
    dk: Tensor,
    dv: Tensor,
    scale: Float32,
    query_blocks: Int32,
    key_blocks: Int32,
):
    """Block (key block, head): heads lie below each other; the parts of dQ of each key block by themselves."""
    tidx, _, _ = thread_idx()
    key_block, head, _ = block_idx()
    load = Load(Float16, tidx, num_threads=128)
    query, key, value, grad_out = (Tensor(dtype=Float16, rows=64, cols=64) for _ in range(4))
    load(k, key, block_idx=head * key_blocks + key_block)
    load(v, value, block_idx=head * key_blocks + key_block)
    kv = Gemm(Float16, tidx, num_threads=128, warp=Warp(4, 1))
    grad_key, grad_value = kv.zeros(64, 64), kv.zeros(64, 64)
    for i in range(query_blocks):
        query_block = head * query_blocks + i
        load(q, query, block_idx=query_block)
        load(do, grad_out, block_idx=query_block)
        grad_query = attention_backward_tile(
            query, key, value, grad_out, lse_log2, delta, query_block, scale, grad_key, grad_value
        )
        dq_parts.write(grad_query, block_idx=key_block * (dq_parts.rows // 64 // key_blocks) + query_block)
    grad_key.scale(scale)
    dk.write(grad_key, block_idx=head * key_blocks + key_block)
    dv.write(grad_value, block_idx=head * key_blocks + key_block)


@cute.kernel(block=256)
def add_parts(parts, total, count: Int32):
    i = block_idx()[0] * 256 + thread_idx()[0]
    size = total.shape[0] * total.shape[1]
    if i < size:
        value = Float32(0)
        for part in range(count):
            value += parts[part * total.shape[0] + i // total.shape[1], i % total.shape[1]]
        total[i // total.shape[1], i % total.shape[1]] = value


@cute.jit
def attention_backward_op(q, k, v, do, lse_log2, delta, scale: Float32, heads):
    """Gradients of attention over heads that lie below each other, rows of 64."""
    query_blocks, key_blocks = q.rows // heads // 64, k.rows // heads // 64
    parts = cute.empty((key_blocks * q.rows, 64), Float32)
    dq, dk, dv = cute.empty((q.rows, 64), Float32), cute.empty((k.rows, 64), Float32), cute.empty((k.rows, 64), Float32)
    backward_of_heads(q, k, v, do, lse_log2, delta, parts, dk, dv, scale, query_blocks, key_blocks).launch(
        grid=(key_blocks, heads), block=128
    )
    add_parts(parts, dq, key_blocks).launch(grid=cute.ceil_div(q.rows * 64, 256))
    return dq, dk, dv


def forward(q, k, v, do, scale):
    """lse to base 2 and delta, as the forward pass keeps them."""
    scores = scale * (q @ k.swapaxes(-1, -2))
    lse = tk.logsumexp(scores, -1)
    out = tk.softmax(scores, -1) @ v
    return (lse * 1.4426950408889634).reshape(-1), (do * out).sum(-1).reshape(-1)


@pytest.mark.parametrize("device", ["cpu", "emulator"])
@pytest.mark.parametrize("shape", [(1, 1, 64, 64), (1, 2, 128, 64), (2, 2, 64, 192), (1, 3, 192, 128)])
def test_attention_backward_is_that_of_tiki(shape, device):
    batch, heads, queries, keys = shape
    scale, place = 0.125, getattr(tk, device)
    rng = numpy.random.default_rng(5)
    sizes = [(batch, heads, rows, 64) for rows in (queries, keys, keys, queries)]
    half = [tk.array(rng.standard_normal(size).astype("f2")) for size in sizes]
    q, k, v, do = (one.astype(tk.float32) for one in half)
    attention = lambda q, k, v: tk.fast.scaled_dot_product_attention(q, k, v, scale=scale)  # noqa: E731
    _, expected = tk.vjp(attention, [q, k, v], [do])
    rows = [one.reshape(-1, 64) for one in half] + list(forward(q, k, v, do, scale))
    given = [one.to_device(place) for one in rows]
    for found, one in zip(attention_backward_op(*given, scale, batch * heads), expected):
        assert found.device == place
        one = numpy.array(one).reshape(-1, 64)
        assert numpy.abs(numpy.array(found) - one).max() < 4e-3 * numpy.abs(one).max()


def test_attention_backward_in_any_interleaving():
    rng = numpy.random.default_rng(6)
    q, do = rng.standard_normal((2, 128, 64)).astype("f2")
    k, v = rng.standard_normal((2, 192, 64)).astype("f2")
    lse, delta = (numpy.array(one) for one in forward(*(tk.array(x.astype("f4")) for x in (q, k, v, do)), 0.125))
    given = (q, k, v, do, lse, delta, 0.125, 1)
    plan = cute.compile(attention_backward_op, *given)
    assert [one.kernel.raw.name for one in plan.launches] == ["backward_of_heads", "add_parts"]
    for seed in range(20):
        for report in plan.emulate(*given, seed=seed):
            assert not report.findings, report.text
