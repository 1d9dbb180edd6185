"""Tiles: products of every orientation, and one tile of the backward pass of attention as its users write it."""

import os
import subprocess

import numpy
import pytest
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
