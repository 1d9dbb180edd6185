"""The names that kernels are written with: `cute`, element types, `thread_idx`, functions of numbers."""

from __future__ import annotations

from tiki.kernels.cute.lib import cute
from tiki.kernels.cute.lib._flow import const_expr, range_constexpr
from tiki.kernels.cute.lib._specs import Constexpr, TensorSpec
from tiki.kernels.cute.lib._numeric import (
    BFloat16,
    Boolean,
    Float8E4M3FN,
    Float8E5M2,
    Float16,
    Float32,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    TFloat32,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    select,
)
from tiki.kernels.cute.lib._tape import KernelError
from tiki.kernels.cute.lib.arch import (
    block_dim,
    block_idx,
    exp,
    exp2,
    fma,
    fmax,
    fmin,
    grid_dim,
    lane_idx,
    log,
    log2,
    rsqrt,
    shuffle_sync,
    shuffle_sync_bfly,
    shuffle_sync_down,
    shuffle_sync_up,
    sync_threads,
    sync_warp,
    thread_idx,
    warp_idx,
    warp_reduction_max,
    warp_reduction_sum,
)
from tiki.kernels.cute.lib.cute import ceil_div, math

ceil, cos, erf, floor, sin, sqrt, tanh = math.ceil, math.cos, math.erf, math.floor, math.sin, math.sqrt, math.tanh

__all__ = [
    "BFloat16", "Boolean", "Constexpr", "Float16", "Float32", "Float64", "Float8E4M3FN", "Float8E5M2", "Int16",
    "Int32", "Int64", "Int8", "KernelError", "TFloat32", "TensorSpec", "Uint16", "Uint32", "Uint64", "Uint8",
    "block_dim", "block_idx", "ceil", "ceil_div", "const_expr", "cos", "cute", "erf", "exp", "exp2", "floor", "fma",
    "fmax", "fmin", "grid_dim", "lane_idx", "log", "log2", "math", "range_constexpr", "rsqrt", "select",
    "shuffle_sync", "shuffle_sync_bfly", "shuffle_sync_down", "shuffle_sync_up", "sin", "sqrt", "sync_threads",
    "sync_warp", "tanh", "thread_idx", "warp_idx", "warp_reduction_max", "warp_reduction_sum",
]  # fmt: skip
