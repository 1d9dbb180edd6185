"""Instructions with the names of CuTe DSL's `cute.arch`."""

from __future__ import annotations

from typing import Any

from tiki.kernels.cute.lib import _numeric as numeric
from tiki.kernels.cute.lib._async import TensorMap as TensorMap
from tiki.kernels.cute.lib._async import atomic_add as atomic_add
from tiki.kernels.cute.lib._async import atomic_cas as atomic_cas
from tiki.kernels.cute.lib._async import atomic_exch as atomic_exch
from tiki.kernels.cute.lib._async import atomic_max as atomic_max
from tiki.kernels.cute.lib._async import atomic_min as atomic_min
from tiki.kernels.cute.lib._async import cluster_arrive as cluster_arrive
from tiki.kernels.cute.lib._async import cluster_wait as cluster_wait
from tiki.kernels.cute.lib._async import cp_async as cp_async
from tiki.kernels.cute.lib._async import cp_async_bulk as cp_async_bulk
from tiki.kernels.cute.lib._async import cp_async_bulk_commit_group as cp_async_bulk_commit_group
from tiki.kernels.cute.lib._async import cp_async_bulk_wait_group as cp_async_bulk_wait_group
from tiki.kernels.cute.lib._async import cp_async_commit_group as cp_async_commit_group
from tiki.kernels.cute.lib._async import cp_async_mbarrier_arrive_noinc as cp_async_mbarrier_arrive_noinc
from tiki.kernels.cute.lib._async import cp_async_wait_group as cp_async_wait_group
from tiki.kernels.cute.lib._async import elect_one as elect_one
from tiki.kernels.cute.lib._async import fence_acq_rel_cluster as fence_acq_rel_cluster
from tiki.kernels.cute.lib._async import fence_acq_rel_gpu as fence_acq_rel_gpu
from tiki.kernels.cute.lib._async import fence_proxy as fence_proxy
from tiki.kernels.cute.lib._async import make_mbarriers as make_mbarriers
from tiki.kernels.cute.lib._async import map_dsmem_ptr as map_dsmem_ptr
from tiki.kernels.cute.lib._async import mbarrier_arrive as mbarrier_arrive
from tiki.kernels.cute.lib._async import mbarrier_arrive_and_expect_tx as mbarrier_arrive_and_expect_tx
from tiki.kernels.cute.lib._async import mbarrier_expect_tx as mbarrier_expect_tx
from tiki.kernels.cute.lib._async import mbarrier_init as mbarrier_init
from tiki.kernels.cute.lib._async import mbarrier_init_fence as mbarrier_init_fence
from tiki.kernels.cute.lib._async import mbarrier_try_wait as mbarrier_try_wait
from tiki.kernels.cute.lib._async import mbarrier_wait as mbarrier_wait
from tiki.kernels.cute.lib._async import warpgroup_reg_alloc as warpgroup_reg_alloc
from tiki.kernels.cute.lib._async import warpgroup_reg_dealloc as warpgroup_reg_dealloc
from tiki.kernels.cute.lib._async import wgmma_commit_group as wgmma_commit_group
from tiki.kernels.cute.lib._async import wgmma_fence as wgmma_fence
from tiki.kernels.cute.lib._async import wgmma_wait_group as wgmma_wait_group
from tiki.kernels.cute.lib._numeric import Boolean, Float32, Int32, Int64, Numeric
from tiki.kernels.cute.lib._tape import current, fail

WARP_SIZE = 32


def _index(name: str, axis: str) -> Any:
    ir = current().emit(name, (), {"axis": axis}, numeric.number_type(Int32), first=True)
    return numeric.wrap(Int32, ir, True)


def _indices(name: str) -> tuple[Any, Any, Any]:
    return _index(name, "x"), _index(name, "y"), _index(name, "z")


def thread_idx() -> tuple[Any, Any, Any]:
    """The thread in its block."""
    return _indices("thread_index")


def block_idx() -> tuple[Any, Any, Any]:
    """The block in the grid."""
    return _indices("block_index")


def block_dim() -> tuple[Any, Any, Any]:
    """Threads of a block."""
    return _indices("block_size")


def grid_dim() -> tuple[Any, Any, Any]:
    """Blocks of the grid."""
    return _indices("grid_size")


def cluster_idx() -> tuple[Any, Any, Any]:
    """The cluster in the grid."""
    return _indices("cluster_index")


def cluster_dim() -> tuple[Any, Any, Any]:
    """Blocks of a cluster."""
    return _indices("cluster_size")


def block_in_cluster_idx() -> tuple[Any, Any, Any]:
    """The block in its cluster."""
    return _indices("cluster_block")


def lane_idx() -> Any:
    """The thread in its warp, of a block with one axis."""
    return _index("thread_index", "x") % WARP_SIZE


def warp_idx() -> Any:
    """The warp in its block, of a block with one axis."""
    return _index("thread_index", "x") // WARP_SIZE


def make_warp_uniform(value: Any) -> Any:
    """The value, said to be the same in the whole warp; nothing checks it on a card."""
    value = numeric.as_numeric(value)
    ir = current().emit("assume_uniform", (value.ir,), {"group": "warp"}, value.ir.type)
    return numeric.wrap(type(value), ir, value.nonneg)


def get_dyn_smem(dtype: Any, alignment: int = 16) -> Any:
    """A pointer to the dynamic shared memory whose bytes the launch gives."""
    from tiki.kernels.cute.lib._memory import Pointer

    dtype = numeric.as_dtype(dtype)
    ir = current().emit("dynamic_shared", (), {"align": alignment}, ("pointer", dtype.scalar, "shared"), first=True)
    return Pointer(ir, dtype, "shared", None)


# ---- order ----


def barrier(barrier_id: int = 0, number_of_threads: int = 0) -> None:
    """Meets and orders the block, or so many threads that use this barrier."""
    attrs = {"id": barrier_id} if barrier_id else {}
    if number_of_threads:
        attrs["threads"] = number_of_threads
    current().emit("barrier", (), attrs)


def sync_threads() -> None:
    """Meets and orders the block."""
    barrier()


def sync_warp(mask: Any = None) -> None:
    """Meets and orders the lanes of a warp."""
    current().emit("warp_barrier", (None if mask is None else numeric.as_numeric(mask).to(Int32).ir,))


# ---- lanes of a warp ----


def _shuffle(mode: str, value: Any, lane: Any, width: int) -> Any:
    if not isinstance(value, Numeric):
        value = numeric.as_numeric(value)
    dtype = type(value)
    if dtype.width < 16:
        return _shuffle(mode, value.to(Int32), lane, width).to(dtype)
    attrs: dict[str, Any] = {"mode": mode}
    if width != WARP_SIZE:
        attrs["width"] = width
    where = numeric.as_numeric(lane).to(Int32)
    return numeric.wrap(dtype, current().emit("shuffle", (value.ir, where.ir, None), attrs, value.ir.type))


def shuffle_sync(value: Any, lane: Any, width: int = WARP_SIZE) -> Any:
    """The value of a lane."""
    return _shuffle("index", value, lane, width)


def shuffle_sync_up(value: Any, delta: Any, width: int = WARP_SIZE) -> Any:
    """The value of the lane `delta` below; the own where there is none."""
    return _shuffle("up", value, delta, width)


def shuffle_sync_down(value: Any, delta: Any, width: int = WARP_SIZE) -> Any:
    """The value of the lane `delta` above; the own where there is none."""
    return _shuffle("down", value, delta, width)


def shuffle_sync_bfly(value: Any, mask: Any, width: int = WARP_SIZE) -> Any:
    """The value of the lane whose number differs in the bits of `mask`."""
    return _shuffle("butterfly", value, mask, width)


def warp_reduction(value: Any, combine: Any, threads_in_group: int = WARP_SIZE) -> Any:
    """`combine` over the lanes of each group, by butterflies: all lanes get the result, of one order."""
    if threads_in_group not in (1, 2, 4, 8, 16, 32):
        raise fail(f"a reduction over {threads_in_group} lanes, expected a power of two up to 32")
    distance = threads_in_group // 2
    while distance:
        value = combine(value, shuffle_sync_bfly(value, distance))
        distance //= 2
    return value


def warp_reduction_sum(value: Any, threads_in_group: int = WARP_SIZE) -> Any:
    """The sum over the lanes of each group."""
    return warp_reduction(value, lambda a, b: a + b, threads_in_group)


def warp_reduction_max(value: Any, threads_in_group: int = WARP_SIZE) -> Any:
    """The largest value of the lanes of each group."""
    return warp_reduction(value, fmax, threads_in_group)


def _vote(word: str, value: Any) -> Any:
    truth = numeric.as_numeric(value).to(Boolean)
    return numeric.wrap(Boolean, current().emit("vote", (truth.ir, None), {"vote": word}, numeric.number_type(Boolean)))


def vote_all_sync(value: Any) -> Any:
    """Whether the value is true in all lanes."""
    return _vote("all", value)


def vote_any_sync(value: Any) -> Any:
    """Whether the value is true in some lane."""
    return _vote("any", value)


def vote_ballot_sync(value: Any) -> Any:
    """A bit for each lane."""
    truth = numeric.as_numeric(value).to(Boolean)
    return numeric.wrap(Int32, current().emit("ballot", (truth.ir, None), {}, numeric.number_type(Int32)))


# ---- arithmetic as the hardware has it ----


def _approx(name: str, value: Any) -> Any:
    return numeric.unary(name, value, "f32")


def exp2(value: Any) -> Any:
    """2 to the value, as the hardware approximates it."""
    return _approx("exp2_approx", value)


def exp(value: Any) -> Any:
    """e to the value, by way of exp2."""
    return exp2(numeric.as_numeric(value) * 1.4426950408889634)


def log2(value: Any) -> Any:
    """The logarithm to base 2, as the hardware approximates it."""
    return _approx("log2_approx", value)


def log(value: Any) -> Any:
    """The natural logarithm, by way of log2."""
    return log2(value) * 0.6931471805599453


def rsqrt(value: Any) -> Any:
    """1 / square root, as the hardware approximates it."""
    return _approx("rsqrt_approx", value)


def rcp_approx(value: Any) -> Any:
    """1 / value, as the hardware approximates it."""
    return _approx("rcp_approx", value)


def sqrt_approx(value: Any) -> Any:
    """The square root, as the hardware approximates it."""
    return _approx("sqrt_approx", value)


def tanh_approx(value: Any) -> Any:
    """The hyperbolic tangent, as the hardware approximates it."""
    return _approx("tanh_approx", value)


def sin_approx(value: Any) -> Any:
    """The sine, as the hardware approximates it."""
    return _approx("sin_approx", value)


def cos_approx(value: Any) -> Any:
    """The cosine, as the hardware approximates it."""
    return _approx("cos_approx", value)


def fmax(a: Any, b: Any) -> Any:
    """The larger; a NaN wins."""
    return numeric.extreme("max", a, b)


def fmin(a: Any, b: Any) -> Any:
    """The smaller; a NaN wins."""
    return numeric.extreme("min", a, b)


def fma(a: Any, b: Any, c: Any) -> Any:
    """a * b + c, rounded once."""
    return numeric.fma(a, b, c)


def popc(value: Any) -> Any:
    """How many bits are set."""
    value = numeric.as_numeric(value)
    if type(value).is_float or type(value).width < 32:
        raise fail(f"popc of {type(value).__name__}, expected Int32 or Int64")
    return numeric.wrap(Int32, current().emit("popcount", (value.ir,), {}, numeric.number_type(Int32)), True)


def clz(value: Any) -> Any:
    """Zeros above the highest bit that is set."""
    value = numeric.as_numeric(value)
    if type(value).is_float or type(value).width < 32:
        raise fail(f"clz of {type(value).__name__}, expected Int32 or Int64")
    return numeric.wrap(Int32, current().emit("leading_zeros", (value.ir,), {}, numeric.number_type(Int32)), True)


def bitcast(value: Any, dtype: Any) -> Any:
    """The same bits as another type of the same size."""
    value, dtype = numeric.as_numeric(value), numeric.as_dtype(dtype)
    if type(value).width != dtype.width or dtype is Boolean:
        raise fail(f"bitcast of {type(value).__name__} to {dtype.__name__}: the sizes differ")
    if dtype.scalar == type(value).scalar:
        return numeric.wrap(dtype, value.ir)
    return numeric.wrap(dtype, current().emit("bitcast", (value.ir,), {}, numeric.number_type(dtype)))


def clock64() -> Any:
    """The clock of the SM."""
    return numeric.wrap(Int64, current().emit("clock", (), {"clock": "cycles"}, numeric.number_type(Int64)))


def trap(message: str = "") -> None:
    """Ends the launch with an error."""
    current().emit("trap", (), {"message": message} if message else {})


def raw(name: str, *operands: Any, dtype: Any = Float32, lanes: int = 1, result: bool = True, **attrs: Any) -> Any:
    """Any operation of the kernel IR by name: operands are values or None, attributes are keywords."""
    from tiki.kernels.cute.lib._tape import OPERATIONS

    if name not in OPERATIONS:
        raise fail(f"{name} is no operation of kernels")
    irs = tuple(
        None if one is None else one.ir if hasattr(one, "ir") else numeric.as_numeric(one).ir for one in operands
    )
    for attr in attrs:
        if attr not in OPERATIONS[name].attrs:
            raise fail(f"{name} has no attribute {attr}")
    type_ = numeric.number_type(numeric.as_dtype(dtype), lanes) if result else None
    ir = current().emit(name, irs, attrs, type_)
    if not result:
        return None
    return (
        numeric.wrap(numeric.as_dtype(dtype), ir) if lanes == 1 else numeric.Vector(ir, numeric.as_dtype(dtype), lanes)
    )
