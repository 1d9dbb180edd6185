"""Fused layers: one pass over memory instead of several."""

from collections.abc import Sequence
from typing import Any, NoReturn

from tiki import _core as _core

rms_norm = _core._fast.rms_norm
layer_norm = _core._fast.layer_norm
rope = _core._fast.rope
scaled_dot_product_attention = _core._fast.scaled_dot_product_attention
cross_entropy = _core._fast.cross_entropy
gated_delta_update = _core._fast.gated_delta_update


def _refuse(name: str, device: str) -> NoReturn:
    raise NotImplementedError(
        f"{name} needs {device}, which this build does not have; kernels in Python are written with tiki.kernels"
    )


def metal_kernel(
    name: str,
    input_names: Sequence[str],
    output_names: Sequence[str],
    source: str,
    header: str = "",
    ensure_row_contiguous: bool = True,
    atomic_outputs: bool = False,
    compile_options: Sequence[str] | None = None,
) -> Any:
    """A kernel from Metal source: there is no Metal device."""
    _refuse(f"metal_kernel '{name}'", "a Metal device")


def cuda_kernel(
    name: str,
    input_names: Sequence[str],
    output_names: Sequence[str],
    source: str,
    header: str = "",
    ensure_row_contiguous: bool = True,
    shared_memory: int = 0,
) -> Any:
    """A kernel from CUDA source: there is no compiler for it."""
    _refuse(f"cuda_kernel '{name}'", "a compiler of CUDA source")


def precompiled_cuda_kernel(
    *,
    name: str,
    compiled_source: bytes,
    inputs: Sequence[_core.array],
    output_shapes: Sequence[Sequence[int]],
    output_dtypes: Sequence[_core.Dtype],
    scalars: Sequence[Any],
    grid: tuple[int, int, int],
    threadgroup: tuple[int, int, int],
    shared_memory: int = 0,
    init_value: float | None = None,
    ensure_row_contiguous: bool = False,
    stream: Any = None,
) -> Any:
    """A kernel from PTX or a cubin: arrays are not on a CUDA device."""
    _refuse(f"precompiled_cuda_kernel '{name}'", "arrays on a CUDA device")
