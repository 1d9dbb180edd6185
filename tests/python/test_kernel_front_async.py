"""Kernels in Python that copy while they compute: cp.async stages, mbarriers, bulk copies and TMA, wgmma, clusters."""

import numpy
import pytest
from kernel_front import example

from tiki import kernels
from tiki.kernels.cute.lib import Gemm, Load, Tensor, Warp
from tiki.kernels.cute.lib.math import (
    BFloat16,
    Constexpr,
    Float16,
    Float32,
    Int32,
    KernelError,
    TensorSpec,
    block_idx,
    cute,
    sync_threads,
    thread_idx,
)

arch = cute.arch


def whole(rng, *shape):
    """Small integers: every partial sum is a number of f32, so all orders give the same bits."""
    return rng.integers(-4, 5, shape).astype("f2")


# ---- cp.async ----


@cute.kernel
def pipelined(a: Tensor, b: Tensor, c: Tensor, stages: Constexpr, tile: Constexpr, warps: Constexpr):
    """c = a @ b.T: `stages` tiles of a and b in shared memory, all but one on their way."""
    tidx, _, _ = thread_idx()
    row, col, _ = block_idx()
    threads = 32 * warps.m * warps.n
    load = Load(Float16, tidx, num_threads=threads)
    gemm = Gemm(Float16, tidx, num_threads=threads, warp=warps)
    left = Tensor(dtype=Float16, rows=tile[0], cols=tile[2], stages=stages)
    right = Tensor(dtype=Float16, rows=tile[1], cols=tile[2], stages=stages)
    steps = (a.cols + (tile[2] - 1)) // tile[2]
    for stage in cute.range_constexpr(stages - 1):
        load.start(a, left.stage(stage), block_idx=(row, stage))
        load.start(b, right.stage(stage), block_idx=(col, stage))
        load.commit()
    total = gemm.zeros(tile[0], tile[1])
    for k in range(steps):
        load.wait(stages - 2)  # the oldest stage is there, and nobody reads the one before any more
        ahead = k + (stages - 1)
        load.start(a, left.stage(ahead % stages), block_idx=(row, ahead))
        load.start(b, right.stage(ahead % stages), block_idx=(col, ahead))
        load.commit()
        gemm(left.stage(k % stages), right.stage(k % stages), acc=total)
    load.wait(0, barrier=False)  # those that were started beyond the end
    c.write(total, block_idx=(row, col))


@cute.jit
def matmul(a, b, c, stages: Constexpr = 3, tile: Constexpr = (64, 64, 32), warps: Constexpr = Warp(2, 2)):
    grid = (cute.ceil_div(a.rows, tile[0]), cute.ceil_div(b.rows, tile[1]))
    pipelined(a, b, c, stages, tile, warps).launch(grid=grid, block=32 * warps.m * warps.n)


@pytest.mark.parametrize("shape", [(64, 64, 32), (64, 128, 160), (72, 40, 200), (1, 1, 8)])
@pytest.mark.parametrize("stages", [2, 3, 4])
def test_pipelined_product(shape, stages):
    m, n, k = shape
    rng = numpy.random.default_rng(0)
    a, b, c = whole(rng, m, k), whole(rng, n, k), numpy.zeros((m, n), "f4")
    matmul(a, b, c, stages=stages)
    assert numpy.array_equal(c, a.astype("f4") @ b.astype("f4").T)


def test_pipelined_product_of_any_size_in_any_interleaving():
    specs = [TensorSpec(Float16, ("m", "k")), TensorSpec(Float16, ("n", "k")), TensorSpec(Float32, ("m", "n"))]
    kernel = pipelined.lower(*specs, 3, (64, 32, 32), Warp(2, 1), grid=grid_of, block=64)
    assert kernels.parse(kernel.text) == kernel.raw and "cp_async_wait [groups = 1]" in kernel.text
    rng = numpy.random.default_rng(1)
    a, b = (rng.standard_normal(shape).astype("f2") for shape in ((100, 136), (40, 136)))
    exact = a.astype("f8") @ b.astype("f8").T
    bound = 137 * 2.0**-22 * (numpy.abs(a.astype("f8")) @ numpy.abs(b.astype("f8")).T)
    first = None
    for seed in range(20):
        c = numpy.zeros((100, 40), "f4")
        ran = kernel.emulate(a, b, c, 3, (64, 32, 32), Warp(2, 1), seed=seed)
        assert not ran.findings, ran.text
        assert (numpy.abs(c - exact) <= bound).all()
        first = c if first is None else first
        assert numpy.array_equal(c, first)


def assembled(kernel, arch):
    """The report of ptxas, where there is one."""
    try:
        return kernel.build(arch, binary=True).report
    except NotImplementedError as error:
        pytest.skip(str(error))


def test_they_assemble():
    specs = [TensorSpec(Float16, ("m", "k")), TensorSpec(Float16, ("n", "k")), TensorSpec(Float32, ("m", "n"))]
    product = pipelined.lower(*specs, 3, (128, 128, 32), Warp(2, 2), grid=grid_of, block=128)
    tile = TensorSpec(Float16, (128, 128))
    result = TensorSpec(Float32, (128, 128))
    at_once = by_wgmma.lower(tile, tile, result, (False, True), 2, True, block=256)
    roles = cute.compile(hopper, tile, tile, result, 32, 4).kernels[0]
    for kernel, target in [(product, "sm_80"), (product, "sm_90a"), (at_once, "sm_90a"), (roles, "sm_90a")]:
        report = assembled(kernel, target)
        assert report["spill_stores"] == report["spill_loads"] == report["stack_bytes"] == 0


def grid_of(a, b, c, stages, tile, warps):
    return cute.ceil_div(a.rows, tile[0]), cute.ceil_div(b.rows, tile[1])


@cute.kernel(grid=1, block=32)
def one_tile(x: Tensor, y: Tensor, wait: Constexpr):
    tidx, _, _ = thread_idx()
    load = Load(Float16, tidx, num_threads=32, vector=8)
    tile = Tensor(dtype=Float16, rows=16, cols=16)
    load.start(x, tile)
    load.commit()
    if wait:
        load.wait()
    for i in cute.range_constexpr(0, 16, 2):
        row, col = i + tidx // 16, tidx % 16
        y.raw[row, col] = tile.raw[row, col]


def test_beyond_the_matrix_are_zeros_and_a_missing_wait_is_found():
    x, y = numpy.ones((5, 12), "f2"), numpy.full((16, 16), 7, "f2")
    ran = one_tile.lower(x, y, True).emulate(x, y, True)
    assert not ran.findings, ran.text
    assert y.sum() == 60 and (y[:5, :12] == 1).all()
    found = {one["kind"] for one in one_tile.lower(x, y, False).emulate(x, y, False).findings}
    assert found == {"in flight", "shared race", "unfinished"}


# ---- wgmma ----


@cute.kernel(grid=1)
def by_wgmma(a: Tensor, b: Tensor, c: Tensor, turned: Constexpr, groups: Constexpr, fence: Constexpr):
    tidx, _, _ = thread_idx()
    threads = 128 * groups
    load = Load(a.dtype, tidx, num_threads=threads)
    left = Tensor(dtype=a.dtype, rows=a.rows, cols=a.cols)
    right = Tensor(dtype=a.dtype, rows=b.rows, cols=b.cols)
    load(a, left, fence=fence)
    load(b, right, fence=fence)
    gemm = Gemm(a.dtype, tidx, num_threads=threads, warp=Warp(4 * groups, 1), instruction="wgmma")
    left, right = left.T if turned[0] else left, right.T if turned[1] else right
    total = gemm(left, right)
    gemm(left, right, acc=total)
    c.write(total)


@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("sizes", [(64, 64, 64, 1), (128, 128, 32, 2), (256, 64, 16, 2), (64, 256, 128, 1)])
def test_products_by_wgmma(turned, sizes):
    m, n, k, groups = sizes
    rng = numpy.random.default_rng(2)
    a, b = whole(rng, *((k, m) if turned[0] else (m, k))), whole(rng, *((k, n) if turned[1] else (n, k)))
    c = numpy.zeros((m, n), "f4")
    kernel = by_wgmma.lower(a, b, c, turned, groups, True, block=128 * groups)
    ran = kernel.emulate(a, b, c, turned, groups, True, seed=1)
    assert not ran.findings, ran.text
    left, right = (x.astype("f4").T if t else x.astype("f4") for x, t in zip((a, b), turned))
    assert numpy.array_equal(c, 2 * (left @ right.T))
    assert "wgmma" in kernel.text and "mma.sync" not in kernel.build().text


def test_a_missing_proxy_fence_is_found():
    a, c = numpy.ones((64, 64), "f2"), numpy.zeros((64, 64), "f4")
    ran = by_wgmma.lower(a, a, c, (False, False), 1, False, block=128).emulate(a, a, c, (False, False), 1, False)
    assert any("proxy" in one["kind"] or "proxy" in one["message"] for one in ran.findings), ran.text


@pytest.mark.parametrize(
    "a, b, words",
    [
        ((48, 64), (64, 64), "expected a multiple of 64 rows"),
        ((64, 64), (260, 64), "8 to 256 columns in steps of 8"),
        ((64, 24), (64, 24), "over 24 columns, expected a multiple of 16"),
    ],
)
def test_what_wgmma_does_not_take(a, b, words):
    with pytest.raises(KernelError, match=r"test_kernel_front_async.py:\d+: .*" + words):
        by_wgmma.lower(
            TensorSpec(BFloat16, a), TensorSpec(BFloat16, b), TensorSpec(Float32, (64, 64)), (False, False), 1, True,
            block=128,
        )  # fmt: skip


# ---- TMA, mbarriers, warp roles: the product of the example ----

with_roles = example("kernels_gemm").with_roles


@cute.jit
def hopper(a, b, c, n: Constexpr, stages: Constexpr):
    with_roles(a, b, c, n, stages).launch(grid=(cute.ceil_div(a.rows, 64), cute.ceil_div(b.rows, n)), block=160)


@pytest.mark.parametrize("shape", [(64, 32, 64), (128, 64, 256), (70, 40, 136)])
def test_warp_roles(shape):
    m, n, k = shape
    rng = numpy.random.default_rng(3)
    a, b, c = whole(rng, m, k), whole(rng, n, k), numpy.zeros((m, n), "f4")
    for dynamic in (cute.dynamic, lambda x: x):
        plan = cute.compile(hopper, dynamic(a), dynamic(b), dynamic(c), 32, 2)
        for seed in range(20 if m == 70 else 3):
            c[:] = 0
            ran = plan.emulate(dynamic(a), dynamic(b), dynamic(c), 32, 2, seed=seed)[0]
            assert not ran.findings, ran.text
            assert numpy.array_equal(c, a.astype("f4") @ b.astype("f4").T)
        kernel = plan.kernels[0]
        assert kernels.parse(kernel.text) == kernel.raw and "cp.async.bulk.tensor" in kernel.build().text


def test_maps_on_devices():
    import tiki as tk

    rng = numpy.random.default_rng(4)
    a, b = whole(rng, 64, 64), whole(rng, 32, 64)
    c = tk.zeros((64, 32))
    hopper(tk.array(a), tk.array(b), c, 32, 2)
    assert numpy.array_equal(numpy.array(c), a.astype("f4") @ b.astype("f4").T)


@cute.kernel(grid=lambda x, y: cute.ceil_div(x.rows, 8), block=32)
def bulk(x: Tensor, y: Tensor):
    """y = 2 x through shared memory: a run of bytes in, a box out."""
    tidx, _, _ = thread_idx()
    bidx, _, _ = block_idx()
    tile = cute.make_smem_tensor(Float32, (8, 16), align=128)
    arrived = arch.make_mbarriers()
    boxes = cute.TensorMap(y, (8, 16))
    if tidx == 0:
        arch.mbarrier_init(arrived, 1)
        arch.mbarrier_init_fence()
        arch.mbarrier_arrive_and_expect_tx(arrived, 512)
        arch.cp_async_bulk(tile.iterator, x.raw.pointer(bidx * 8, 0), 512, arrived)
    sync_threads()
    arch.mbarrier_wait(arrived, 0)
    for i in cute.range_constexpr(0, 128, 32):
        place = tile.iterator + (i + tidx)
        place.store(place.load() * 2)
    arch.fence_proxy()
    sync_threads()
    if tidx == 0:
        boxes.store(tile, bidx * 8, 0)
        arch.cp_async_bulk_commit_group()
        arch.cp_async_bulk_wait_group(0)


def test_bulk_copies():
    x, y = numpy.arange(24 * 16, dtype="f4").reshape(24, 16), numpy.zeros((20, 16), "f4")
    ran = bulk.lower(x, y).emulate(x, y)
    assert not ran.findings, ran.text
    assert numpy.array_equal(y, 2 * x[:20])


@cute.kernel
def in_cluster(y, count):
    """Each block writes its rank to the next one's shared memory, then counts itself."""
    tidx, _, _ = thread_idx()
    bidx, _, _ = block_idx()
    rank, size = arch.block_in_cluster_idx()[0], arch.cluster_dim()[0]
    slot = cute.make_smem_tensor(Int32, 1)
    if tidx == 0:
        arch.map_dsmem_ptr(slot.iterator, (rank + 1) % size).store(rank)
    arch.cluster_arrive()
    arch.cluster_wait()
    if tidx == 0:
        y[bidx] = slot[0]
        arch.atomic_add(count.iterator, 1)
    arch.cluster_arrive()
    arch.cluster_wait()


@cute.jit
def clusters(y, count):
    in_cluster(y, count).launch(grid=8, block=32, cluster=4)


def test_clusters_and_atomics():
    y, count = numpy.zeros(8, "i4"), numpy.zeros(1, "i4")
    clusters(y, count)
    assert y.tolist() == [3, 0, 1, 2] * 2 and count[0] == 8


def test_words_that_do_not_fit():
    def build(body):
        @cute.kernel(grid=1, block=32)
        def kernel(x):
            body(x)

        return kernel.lower(TensorSpec(Float32, (16, 6)))

    def of_column(x):
        cute.TensorMap(x[None, 0], (8,))

    def padded(x):
        tile = Tensor(dtype=Float16, rows=64, cols=64, layout=cute.make_layout((64, 64), stride=(72, 1)))
        Gemm(Float16, thread_idx()[0], instruction="wgmma")(tile, tile)

    for body, words in [
        (padded, "a of a product by wgmma lies as"),
        (lambda x: arch.cp_async(x.iterator, x.iterator), "the target is in global memory, expected shared"),
        (lambda x: arch.mbarrier_init(x.iterator, 1), "an mbarrier behind a pointer to Float32"),
        (lambda x: arch.mbarrier_wait(3, 1), "an mbarrier is a int, expected a pointer"),
        (lambda x: cute.TensorMap(x, (8, 8)), "rows of 24 bytes; TMA takes multiples of 16"),
        (of_column, "TensorMap of something else than a whole tensor that is a parameter"),
        (lambda x: arch.fence_proxy("alias"), 'fence_proxy of "alias"'),
        (lambda x: Gemm(Float16, thread_idx()[0], instruction="mfma"), 'Gemm by "mfma"'),
        (lambda x: Tensor(dtype=Float16, rows=8, cols=8, stages=2).stage(2), "stage 2 of 2"),
    ]:
        with pytest.raises(KernelError, match=r"test_kernel_front_async.py:\d+: .*" + words):
            build(body)
