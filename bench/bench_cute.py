"""The CuTe target beside NVIDIA's CuTe DSL: the same kernels and schedules, both sides in one run.

    python bench/bench_cute.py                 times of compiling, which needs no card
    python bench/bench_cute.py --card FILE     a card: loading, launching, the kernels' own time; FILE gets the rows

It runs under a Python that has the package nvidia-cutlass-dsl, with tiki in PYTHONPATH. Compiling is cold (no cache) with
the compiler loaded: text, compiler and binary of Tiki; tracing, compiler and binary of the DSL. What starting costs is
stated apart. `tools/bench.sh` does not run it, since it needs the package.
"""

import argparse
import json
import statistics
import sys
import time
import types

begin = time.perf_counter()
import cutlass
import cutlass.cute as cute
from cuda.bindings.driver import CUstream

start_dsl = time.perf_counter() - begin

import tiki as tk
import tiki.cute
from tiki.kernels import library

EPS = 1e-5

# ---- the DSL's side ----


@cute.kernel
def add_kernel(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor):
    """256 threads, four vectors of four elements each."""
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    first = block * 4096
    size = cute.size(x)
    xs, ys, zs = (cute.zipped_divide(t, (4,)) for t in (x, y, z))
    if first + 4096 <= size:
        a = [xs[None, block * 1024 + k * 256 + thread].load() for k in range(4)]
        b = [ys[None, block * 1024 + k * 256 + thread].load() for k in range(4)]
        for k in cutlass.range_constexpr(4):
            zs[None, block * 1024 + k * 256 + thread].store(a[k] + b[k])
    else:
        for i in range(first + thread, size, 256):
            z[i] = x[i] + y[i]


@cute.jit
def add(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor, stream: CUstream):
    blocks = cute.ceil_div(cute.size(x), 4096)
    add_kernel(x, y, z).launch(grid=[blocks, 1, 1], block=[256, 1, 1], stream=stream)


@cute.kernel
def norm_kernel(x: cute.Tensor, w: cute.Tensor, y: cute.Tensor, r: cute.Tensor, held: cutlass.Constexpr):
    """A row a block, 128 threads, `held` vectors of four elements in the registers of each."""
    thread, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    columns = cute.size(x, mode=[1])
    sums = cutlass.memory.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(4), byte_alignment=16)
    xs, ws, ys = (cute.zipped_divide(t, (4,)) for t in (x[row, None], w, y[row, None]))
    values = [xs[None, thread + 128 * k].load() for k in range(held)]
    total = cutlass.Float32(0.0)
    for k in cutlass.range_constexpr(held):
        square = values[k] * values[k]
        total = total + square.reduce(cute.ReductionOp.ADD, cutlass.Float32(0.0), 0)
    for step in cutlass.range_constexpr(5):
        total = total + cute.arch.shuffle_sync_bfly(total, offset=1 << step)
    if thread % 32 == 0:
        sums[thread // 32] = total
    cute.arch.barrier()
    all_sums = (sums[0] + sums[1]) + (sums[2] + sums[3])
    scale = cute.math.rsqrt(all_sums / columns + EPS)
    for k in cutlass.range_constexpr(held):
        ys[None, thread + 128 * k].store(values[k] * scale * ws[None, thread + 128 * k].load())
    if thread == 0:
        r[row] = scale


@cute.jit
def rms_norm(x: cute.Tensor, w: cute.Tensor, y: cute.Tensor, r: cute.Tensor, stream: CUstream):
    held = cute.size(x, mode=[1]) // 512
    rows = cute.size(x, mode=[0])
    norm_kernel(x, w, y, r, held).launch(grid=[rows, 1, 1], block=[128, 1, 1], smem=64, stream=stream)


@cute.kernel
def transpose_kernel(x: cute.Tensor, y: cute.Tensor, layout: cute.ComposedLayout):
    """A tile of 64 by 64, 256 threads, vectors of four elements; a swizzle keeps both ways free of conflicts.

    The swizzle is the pointer's, so of bytes: S<4, 4, 6> is S<4, 2, 6> of elements."""
    thread, _, _ = cute.arch.thread_idx()
    across, down, _ = cute.arch.block_idx()
    allocator = cutlass.memory.SmemAllocator()
    tile = allocator.allocate_tensor(cutlass.Float32, layout.outer, byte_alignment=1024, swizzle=layout.inner)
    from_tile = cute.local_tile(x, (64, 64), (down, across))
    to_tile = cute.local_tile(y, (64, 64), (across, down))
    for k in cutlass.range_constexpr(4):
        at = thread + 256 * k
        row, column = at // 16, at % 16
        read = cute.zipped_divide(from_tile[row, None], (4,))[None, column].load()
        cute.zipped_divide(tile[row, None], (4,))[None, column].store(read)
    cute.arch.barrier()
    for k in cutlass.range_constexpr(4):
        at = thread + 256 * k
        row, column = at // 16, at % 16
        out = cute.make_rmem_tensor((4,), cutlass.Float32)
        for i in cutlass.range_constexpr(4):
            out[i] = tile[column * 4 + i, row]
        cute.zipped_divide(to_tile[row, None], (4,))[None, column].store(out.load())


@cute.jit
def transpose(x: cute.Tensor, y: cute.Tensor, stream: CUstream):
    layout = cute.make_composed_layout(cute.make_swizzle(4, 4, 6), 0, cute.make_layout((64, 64), stride=(64, 1)))
    grid = [cute.size(x, mode=[1]) // 64, cute.size(x, mode=[0]) // 64, 1]
    transpose_kernel(x, y, layout).launch(grid=grid, block=[256, 1, 1], smem=64 * 64 * 4 + 1024, stream=stream)


TILE_M, TILE_N, TILE_K, STAGES = 128, 128, 32, 4


@cute.jit
def copy_tile(
    copy: cute.TiledCopy,
    read: cute.Tensor,
    at: cute.Tensor,
    to: cute.Tensor,
    tile: cutlass.Int32,
    stage: cutlass.Int32,
    shape: cutlass.Constexpr,
):
    """A tile by cp.async; zeros where it leaves the matrix."""
    for i in cutlass.range_constexpr(cute.size(read, mode=[1])):
        for j in cutlass.range_constexpr(cute.size(read, mode=[2])):
            if cute.elem_less(at[(0, 0), i, j, tile], shape):
                cute.copy(copy, read[None, i, j, tile], to[None, i, j, stage])
            else:
                to[None, i, j, stage].fill(0.0)


@cute.kernel
def gemm_kernel(
    a: cute.Tensor,
    b: cute.Tensor,
    d: cute.Tensor,
    a_layout: cute.ComposedLayout,
    b_layout: cute.ComposedLayout,
    copy_a: cute.TiledCopy,
    copy_b: cute.TiledCopy,
    mma: cute.TiledMma,
    edges: cutlass.Constexpr,
):
    """128 by 128 by 32, four stages of cp.async, two by two warps, ldmatrix, mma.sync m16n8k16.

    With `edges` of any size, as the library's product is; else of whole tiles."""
    thread, _, _ = cute.arch.thread_idx()
    block_m, block_n, _ = cute.arch.block_idx()
    allocator = cutlass.memory.SmemAllocator()
    a_smem = allocator.allocate_tensor(cutlass.Float16, a_layout.outer, byte_alignment=1024, swizzle=a_layout.inner)
    b_smem = allocator.allocate_tensor(cutlass.Float16, b_layout.outer, byte_alignment=1024, swizzle=b_layout.inner)
    a_tile = cute.local_tile(a, (TILE_M, TILE_K), (block_m, None))
    b_tile = cute.local_tile(b, (TILE_N, TILE_K), (block_n, None))
    d_tile = cute.local_tile(d, (TILE_M, TILE_N), (block_m, block_n))
    own_a, own_b, own_mma = copy_a.get_slice(thread), copy_b.get_slice(thread), mma.get_slice(thread)
    a_from, a_to = own_a.partition_S(a_tile), own_a.partition_D(a_smem)
    b_from, b_to = own_b.partition_S(b_tile), own_b.partition_D(b_smem)
    a_at = own_a.partition_S(cute.local_tile(cute.make_identity_tensor(a.shape), (TILE_M, TILE_K), (block_m, None)))
    b_at = own_b.partition_S(cute.local_tile(cute.make_identity_tensor(b.shape), (TILE_N, TILE_K), (block_n, None)))
    d_at = own_mma.partition_C(cute.local_tile(cute.make_identity_tensor(d.shape), (TILE_M, TILE_N), (block_m, block_n)))
    a_regs = mma.make_fragment_A(own_mma.partition_A(a_smem)[None, None, None, 0])
    b_regs = mma.make_fragment_B(own_mma.partition_B(b_smem)[None, None, None, 0])
    d_parts = own_mma.partition_C(d_tile)
    sums = mma.make_fragment_C(d_parts)
    sums.fill(0.0)
    load_a = cute.make_tiled_copy_A(
        cute.make_copy_atom(cute.nvgpu.warp.LdMatrix8x8x16bOp(False, 4), cutlass.Float16), mma
    )
    load_b = cute.make_tiled_copy_B(
        cute.make_copy_atom(cute.nvgpu.warp.LdMatrix8x8x16bOp(True, 4), cutlass.Float16), mma
    )
    lane_a, lane_b = load_a.get_slice(thread), load_b.get_slice(thread)
    a_read, a_view = lane_a.partition_S(a_smem), lane_a.retile(a_regs)
    b_read, b_view = lane_b.partition_S(b_smem), lane_b.retile(b_regs)
    tiles = cute.size(a_from, mode=[3])
    steps = cute.size(a_regs, mode=[2])
    for stage in cutlass.range_constexpr(STAGES - 1):
        if stage < tiles:
            if cutlass.const_expr(edges):
                copy_tile(copy_a, a_from, a_at, a_to, stage, stage, a.shape)
                copy_tile(copy_b, b_from, b_at, b_to, stage, stage, b.shape)
            else:
                cute.copy(copy_a, a_from[None, None, None, stage], a_to[None, None, None, stage])
                cute.copy(copy_b, b_from[None, None, None, stage], b_to[None, None, None, stage])
        cute.arch.cp_async_commit_group()
    for tile in range(tiles):
        cute.arch.cp_async_wait_group(STAGES - 2)
        cute.arch.barrier()
        ahead = tile + STAGES - 1
        if ahead < tiles:
            if cutlass.const_expr(edges):
                copy_tile(copy_a, a_from, a_at, a_to, ahead, ahead % STAGES, a.shape)
                copy_tile(copy_b, b_from, b_at, b_to, ahead, ahead % STAGES, b.shape)
            else:
                cute.copy(copy_a, a_from[None, None, None, ahead], a_to[None, None, None, ahead % STAGES])
                cute.copy(copy_b, b_from[None, None, None, ahead], b_to[None, None, None, ahead % STAGES])
        cute.arch.cp_async_commit_group()
        for k in cutlass.range_constexpr(steps):
            cute.copy(load_a, a_read[None, None, k, tile % STAGES], a_view[None, None, k])
            cute.copy(load_b, b_read[None, None, k, tile % STAGES], b_view[None, None, k])
            cute.gemm(mma, sums, a_regs[None, None, k], b_regs[None, None, k], sums)
    cute.arch.cp_async_wait_group(0)
    rounded = cute.make_fragment_like(sums, cutlass.Float16)
    rounded.store(sums.load().to(cutlass.Float16))
    if cutlass.const_expr(not edges):
        cute.autovec_copy(rounded, d_parts)
    for m in cutlass.range_constexpr(cute.size(sums, mode=[1]) if edges else 0):
        for n in cutlass.range_constexpr(cute.size(sums, mode=[2])):
            for half in cutlass.range_constexpr(2):
                if cute.elem_less(d_at[(0, half), m, n], d.shape):
                    cute.autovec_copy(rounded[(None, half), m, n], d_parts[(None, half), m, n])


@cute.jit
def gemm(a: cute.Tensor, b: cute.Tensor, d: cute.Tensor, stream: CUstream):
    launch_gemm(a, b, d, True, stream)


@cute.jit
def gemm_of_whole_tiles(a: cute.Tensor, b: cute.Tensor, d: cute.Tensor, stream: CUstream):
    launch_gemm(a, b, d, False, stream)


@cute.jit
def launch_gemm(a: cute.Tensor, b: cute.Tensor, d: cute.Tensor, edges: cutlass.Constexpr, stream: CUstream):
    half = cutlass.Float16
    rows, length = cute.size(a, mode=[0]), cute.size(a, mode=[1])
    columns = cute.size(b, mode=[1])
    turned = cute.make_tensor(b.iterator, cute.make_layout((columns, length), stride=(1, columns)))
    a_atom = cute.make_composed_layout(cute.make_swizzle(2, 4, 3), 0, cute.make_layout((8, 32), stride=(32, 1)))
    b_atom = cute.make_composed_layout(cute.make_swizzle(3, 4, 3), 0, cute.make_layout((64, 8), stride=(1, 64)))
    a_layout = cute.tile_to_shape(a_atom, (TILE_M, TILE_K, STAGES), (0, 1, 2))
    b_layout = cute.tile_to_shape(b_atom, (TILE_N, TILE_K, STAGES), (0, 1, 2))
    mode = cute.nvgpu.cpasync.LoadCacheMode.GLOBAL
    atom = cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(cache_mode=mode), half, num_bits_per_copy=128)
    copy_a = cute.make_tiled_copy_tv(atom, cute.make_layout((32, 4), stride=(4, 1)), cute.make_layout((1, 8)))
    copy_b = cute.make_tiled_copy_tv(atom, cute.make_layout((16, 8), stride=(1, 16)), cute.make_layout((8, 1)))
    mma = cute.make_tiled_mma(
        cute.nvgpu.warp.MmaF16BF16Op(half, cutlass.Float32, (16, 8, 16)), cute.make_layout((2, 2, 1)), (32, 32, 16)
    )
    gemm_kernel(a, turned, d, a_layout, b_layout, copy_a, copy_b, mma, edges).launch(
        grid=[rows // TILE_M, columns // TILE_N, 1],
        block=[128, 1, 1],
        smem=2 * (TILE_M + TILE_N) * TILE_K * STAGES + 1024,
        stream=stream,
    )


# ---- the cases ----

F32, F16 = ("float32", 4), ("float16", 2)


def like(dtype, *shape):
    """What the library's plans ask of an array."""
    strides, size = [], dtype[1]
    for extent in reversed(shape):
        strides.insert(0, size)
        size *= extent
    return types.SimpleNamespace(
        dtype=dtype[0], shape=shape, strides=tuple(strides), itemsize=dtype[1], size=size // dtype[1]
    )


class Case:
    """Operands in the order of the library's call, and which of them the DSL's function takes in which order."""

    def __init__(self, name, function, tensors, order, numbers=(), schedule=None):
        self.name, self.function, self.tensors, self.order = name, function, tensors, order
        self.numbers, self.schedule = numbers, schedule

    def plan(self):
        tensors = [like(*tensor) for tensor in self.tensors]
        return library.plan(self.name, *tensors, numbers=self.numbers, schedule=self.schedule, align=16)

    def by_tiki(self):
        begin = time.perf_counter()
        made = self.plan().kernels[0].build("cute", "sm_90a", True)
        return time.perf_counter() - begin, made

    def by_dsl(self, stages=False):
        dtypes = {"float32": tk.float32, "float16": tk.float16}
        values = [tiki.cute._Described(dtypes[self.tensors[i][0][0]], self.tensors[i][1:]) for i in self.order]
        begin = time.perf_counter()
        made = tiki.cute._compile(self.function, values, "sm_90a", stages)
        return time.perf_counter() - begin, made


def cases():
    """The schedules that the DSL's kernels are written by."""
    rows = [(F32, 8192, 2048), (F32, 2048), (F32, 8192, 2048), (F32, 8192)]
    tiles = {"tile_m": TILE_M, "tile_n": TILE_N, "tile_k": TILE_K, "stages": STAGES, "warps_m": 2, "warps_n": 2}
    add_by = {"threads": 256, "vector": 16, "per_thread": 4}
    norm_by = {"vector": 16, "threads_per_row": 128, "rows_per_block": 1, "held": 4, "overlap": 0}
    transpose_by = {"threads": 256, "vector": 16, "tile": 64, "overlap": 0, "group": 1}
    return [
        Case("add", add, [(F32, 1 << 24)] * 3, (0, 1, 2), (), add_by),
        Case("rms_norm", rms_norm, rows, (0, 1, 2, 3), (EPS,), norm_by),
        Case("transpose", transpose, [(F32, 4096, 4096)] * 2, (0, 1), (), transpose_by),
        Case("gemm", gemm, [(F16, 2048, 2048)] * 3, (0, 1, 2), (), tiles),
        Case("gemm", gemm_of_whole_tiles, [(F16, 2048, 2048)] * 3, (0, 1, 2), (), tiles),
    ]


# ---- compiling ----


def compile_all(rounds):
    begin = time.perf_counter()
    cases()[0].by_tiki()
    start_tiki = time.perf_counter() - begin
    print(f"start: import cutlass {start_dsl:.2f} s; Tiki's worker and its first kernel {start_tiki:.2f} s")
    print(f"{'kernel':<20} {'tiki ms':>8} {'dsl ms':>8} {'ratio':>6}   medians (least) of {rounds}, in turns")
    for case in cases():
        times = [(case.by_tiki()[0], case.by_dsl()[0]) for _ in range(rounds)]
        tiki_ms, dsl_ms = ([1e3 * pair[i] for pair in times] for i in (0, 1))
        middle = statistics.median(tiki_ms), statistics.median(dsl_ms)
        print(
            f"{case.function.__name__:<20} {middle[0]:8.1f} {middle[1]:8.1f} {middle[0] / middle[1]:6.2f}   "
            f"({min(tiki_ms):.1f}, {min(dsl_ms):.1f})",
            flush=True,
        )
        row = {"bench": "cute_compile", "kernel": case.function.__name__, "tiki_ms": middle[0], "dsl_ms": middle[1]}
        print(json.dumps(row), file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--card", metavar="FILE")
    parser.add_argument("--card-load", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.card_load:
        from bench_cute_card import load

        load(cases())
    elif given.card:
        from bench_cute_card import run

        run(cases(), given.card, __file__)
    else:
        compile_all(given.rounds)


if __name__ == "__main__":
    main()
