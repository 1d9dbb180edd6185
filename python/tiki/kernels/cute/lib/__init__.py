"""Tiles and what is done with them: `Tensor`, `Load`, `Gemm`, `Warp`.

A tensor says where its values live: device memory, the block's shared memory, or registers. Loads, stores and
synchronisation stay visible, and `.raw` leads to the level below.
"""

from tiki.kernels.cute.lib._gemm import Gemm, Warp
from tiki.kernels.cute.lib._load import Load
from tiki.kernels.cute.lib._tensor import Tensor

__all__ = ["Gemm", "Load", "Tensor", "Warp"]
