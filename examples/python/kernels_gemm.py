"""Products: c = a @ b.T by mma.sync with stages of cp.async, and by TMA and wgmma with warps of two roles.

    python examples/python/kernels_gemm.py [--device cpu|emulator|gpu] [--size M N K] [--report]

Shared memory holds several tiles of a and b. While the tensor cores work on one, the others are on their way.
"""

import argparse
from typing import Any

import tiki as tk
from tiki.kernels.cute.lib import Gemm, Load, Tensor, Warp
from tiki.kernels.cute.lib.math import Float16, Float32, block_idx, cute, sync_threads, thread_idx

arch = cute.arch


@cute.kernel
def pipelined(
    a: Tensor,
    b: Tensor,
    c: Tensor,
    tile: cute.Constexpr[tuple[int, int, int]],
    stages: cute.Constexpr[int],
    warps: cute.Constexpr[Warp],
) -> None:
    """Stage k % stages holds step k. A step waits for its own group of copies, then starts those of the step
    stages - 1 further on, into the stage that everybody has left."""
    tidx, (row, col, _) = thread_idx()[0], block_idx()
    m, n, k = tile
    threads = 32 * warps.m * warps.n
    load = Load(Float16, tidx, num_threads=threads)
    gemm = Gemm(Float16, tidx, num_threads=threads, warp=warps)
    left = Tensor(dtype=Float16, rows=m, cols=k, stages=stages)
    right = Tensor(dtype=Float16, rows=n, cols=k, stages=stages)
    total = gemm.zeros(m, n)

    for step in cute.range_constexpr(stages - 1):
        load.start(a, left.stage(step), block_idx=(row, step))
        load.start(b, right.stage(step), block_idx=(col, step))
        load.commit()
    for step in range((a.cols + (k - 1)) // k):
        load.wait(stages - 2)  # all but the youngest groups have come; and a barrier
        ahead = step + (stages - 1)
        load.start(a, left.stage(ahead % stages), block_idx=(row, ahead))  # beyond the end: zeros
        load.start(b, right.stage(ahead % stages), block_idx=(col, ahead))
        load.commit()
        gemm(left.stage(step % stages), right.stage(step % stages), acc=total)
    load.wait(0, barrier=False)
    c.write(total, block_idx=(row, col))


@cute.jit
def matmul(a: Any, b: Any, tile: Any = (64, 64, 32), stages: int = 3, warps: Any = Warp(2, 2)) -> Any:
    c = cute.empty((a.rows, b.rows), Float32)
    grid = cute.ceil_div(a.rows, tile[0]), cute.ceil_div(b.rows, tile[1])
    pipelined(a, b, c, tile, stages, warps).launch(grid=grid, block=32 * warps.m * warps.n)
    return c


@cute.kernel
def with_roles(a: Tensor, b: Tensor, c: Tensor, n: cute.Constexpr[int], stages: cute.Constexpr[int]) -> None:
    """A warpgroup multiplies 64 x n by wgmma; thread 128 keeps TMA busy. full[s]: the bytes of stage s have come.
    empty[s]: the products that read stage s are done."""
    tidx, (row, col, _) = thread_idx()[0], block_idx()
    left = Tensor(dtype=Float16, rows=64, cols=64, stages=stages)
    right = Tensor(dtype=Float16, rows=n, cols=64, stages=stages)
    full, empty = arch.make_mbarriers(stages), arch.make_mbarriers(stages)
    boxes_a, boxes_b = cute.TensorMap(a, (64, 64), swizzle=128), cute.TensorMap(b, (n, 64), swizzle=128)
    if tidx == 0:
        for stage in cute.range_constexpr(stages):
            arch.mbarrier_init(full + stage, 1)
            arch.mbarrier_init(empty + stage, 1)
        arch.mbarrier_init_fence()
    sync_threads()
    steps = (a.cols + 63) // 64
    gemm = Gemm(Float16, tidx, num_threads=128, instruction="wgmma")
    if tidx // 128 == 1:
        if tidx == 128:
            for step in range(steps):
                stage, turn = step % stages, step // stages
                arch.mbarrier_wait(empty + stage, (turn + 1) % 2)
                arch.mbarrier_arrive_and_expect_tx(full + stage, boxes_a.bytes + boxes_b.bytes)
                boxes_a.load(left.stage(stage), full + stage, row * 64, step * 64)
                boxes_b.load(right.stage(stage), full + stage, col * n, step * 64)
    else:
        total = gemm.zeros(64, n)
        for step in range(steps):
            stage, turn = step % stages, step // stages
            arch.mbarrier_wait(full + stage, turn % 2)
            gemm(left.stage(stage), right.stage(stage), acc=total)
            arch.barrier(1, 128)  # every warp has retired its products
            if tidx == 0:
                arch.mbarrier_arrive(empty + stage)
        c.write(total, block_idx=(row, col))


@cute.jit
def matmul_sm90(a: Any, b: Any, n: int = 64, stages: int = 3) -> Any:
    c = cute.empty((a.rows, b.rows), Float32)
    grid = cute.ceil_div(a.rows, 64), cute.ceil_div(b.rows, n)
    with_roles(a, b, c, n, stages).launch(grid=grid, block=160)
    return c


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu", choices=["cpu", "emulator", "gpu"])
    parser.add_argument("--size", type=int, nargs=3, default=[100, 72, 136])
    parser.add_argument("--report", action="store_true", help="what the assembler says of the kernels")
    o = parser.parse_args()
    place = getattr(tk, o.device)
    m, n, k = o.size
    a, b = tk.random.normal((m, k)).astype(tk.float16), tk.random.normal((n, k)).astype(tk.float16)
    exact = a.astype(tk.float32) @ b.astype(tk.float32).T
    for product in (matmul, matmul_sm90):
        c = product(a.to_device(place), b.to_device(place)).to_device(tk.cpu)
        error = tk.max(tk.abs(c - exact)).item()
        print(f"{product.__name__}: {m} x {n} x {k}, largest error {error:.1e}")
        plan = cute.compile(product, a, b)
        if o.report:
            print(plan.kernels[0].build(binary=True).report)
        findings = [one for seed in range(3) for run in plan.emulate(a, b, seed=seed) for one in run.findings]
        print(f"{len(findings)} findings in three interleavings")


if __name__ == "__main__":
    main()
