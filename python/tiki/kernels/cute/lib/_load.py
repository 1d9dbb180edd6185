"""`Load`: a tile from device memory to shared memory, by all threads of the block."""

from __future__ import annotations

from typing import Any

from tiki.kernels.cute.lib import _contract as contract
from tiki.kernels.cute.lib import arch
from tiki.kernels.cute.lib._memory import RawTensor, coalesced, flat
from tiki.kernels.cute.lib._numeric import Numeric, as_dtype, select
from tiki.kernels.cute.lib._tape import current, fail
from tiki.kernels.cute.lib._tensor import Tensor


class Load:
    """`Load(dtype, tidx, num_threads=, vector=)(source, target, block_idx=)` copies tile `block_idx` of a matrix
    (row and column of tiles, or the row) to a shared tensor of the tile's size, `vector` bytes at a time. Rows and
    columns beyond the matrix become zeros. The block waits before and after, unless `barrier` is off; with `fence` the
    async proxy (wgmma) sees the tile too. `start`, `commit` and `wait` do it by cp.async."""

    def __init__(self, element_type: Any, tidx: Any, num_threads: int = 128, vector: int = 16) -> None:
        self.dtype = as_dtype(element_type)
        self.tidx = tidx
        self.num_threads = num_threads
        if vector not in (2, 4, 8, 16) or vector < self.dtype.bytes:
            raise fail(
                f"Load with {vector} bytes at a time of {self.dtype.__name__}, expected 2, 4, 8 or 16 and an element "
                f"at least"
            )
        self.lanes = vector // self.dtype.bytes

    def __call__(
        self, source: Tensor, target: Tensor, block_idx: Any = 0, barrier: bool = True, fence: bool = False
    ) -> None:
        self.copy(source, target, block_idx, barrier, self.chunk, fence)

    def start(self, source: Tensor, target: Tensor, block_idx: Any = 0) -> None:
        """The same by cp.async, without barriers: `commit` closes a group of copies, `wait` waits for groups. The
        target must not be touched from here to the wait, and by others not before a barrier behind it. A tile beyond
        the matrix is zeros, as pipelines ask for at their end."""
        if self.lanes * self.dtype.bytes < 4:
            raise fail("Load.start with 2 bytes at a time: cp.async copies 4, 8 or 16")
        self.copy(source, target, block_idx, False, self.start_chunk, False)

    @staticmethod
    def commit() -> None:
        """Closes the group of copies that were started."""
        arch.cp_async_commit_group()

    @staticmethod
    def wait(groups: int = 0, barrier: bool = True) -> None:
        """Waits until at most so many groups of the thread are unfinished; then the block meets, and sees the bytes."""
        arch.cp_async_wait_group(groups)
        if barrier:
            arch.sync_threads()

    def copy(self, source: Tensor, target: Tensor, block_idx: Any, barrier: bool, chunk: Any, fence: bool) -> None:
        raw, tile = source.raw, target.raw
        self.check(source, target)
        row, col = block_idx if isinstance(block_idx, tuple) else (block_idx, 0)
        rows, cols = target.shape
        exact = chunk == self.chunk and all(
            isinstance(extent, int) and extent % length == 0 for extent, length in zip(source.shape, target.shape)
        )
        if barrier:
            arch.sync_threads()
        chunks = rows * (cols // self.lanes)
        for first in range(0, chunks, self.num_threads):
            chunk(
                raw, tile, *self.piece((row * rows, col * cols), cols, first, chunks), None if exact else source.shape
            )
        if fence:
            arch.fence_proxy("async_shared")
        if barrier:
            arch.sync_threads()

    def piece(self, origin: tuple[Any, Any], cols: int, first: int, chunks: int) -> tuple[Any, Any, Any]:
        """One vector of each thread: its place in the matrix and in the tile, and which threads have one."""
        in_row = cols // self.lanes
        number = self.tidx + first
        if isinstance(number, Numeric):
            number.nonneg = True
        row, col = number // in_row, number % in_row * self.lanes
        mask = (number < chunks) if first + self.num_threads > chunks else None
        return (origin[0] + row, origin[1] + col), (row, col), mask

    def inside(self, there: tuple[Any, Any], limits: Any) -> Any:
        return (there[0] < limits[0]) & (there[1] + (self.lanes - 1) < limits[1])

    def chunk(self, raw: RawTensor, tile: RawTensor, there: Any, here: Any, mask: Any, limits: Any) -> None:
        inside: Any = mask
        if limits is not None:
            bounds = self.inside(there, limits)
            inside = bounds if mask is None else mask & bounds
        tile.store(raw.load(*there, lanes=self.lanes, mask=inside), *here, mask=mask)

    def start_chunk(self, raw: RawTensor, tile: RawTensor, there: Any, here: Any, mask: Any, limits: Any) -> None:
        """Beyond the matrix a copy of 0 bytes, which writes zeros."""
        bytes_ = self.lanes * self.dtype.bytes
        size = None if limits is None else select(self.inside(there, limits), bytes_, 0)
        arch.cp_async(tile.pointer(*here), raw.pointer(*there), bytes_, size=size, mask=mask)

    def check(self, source: Tensor, target: Tensor) -> None:
        """What a vector asks of both sides; of strides that are known at launch only, the launch checks it."""
        if source.space != "global" or target.space != "shared":
            raise fail(f"Load from {source.space} to {target.space} memory, expected global to shared")
        if source.dtype is not self.dtype or target.dtype is not self.dtype:
            raise fail(f"Load of {self.dtype.__name__} from {source.dtype.__name__} to {target.dtype.__name__}")
        raw = source.raw
        if raw.rank != 2 or flat(raw.stride[1])[0] != 1:
            raise fail("Load from a tensor whose last mode is not contiguous")
        if target.cols % self.lanes:
            raise fail(
                f"rows of {target.cols} elements are no multiple of {self.lanes}, which Load moves at once; choose a "
                f"smaller vector"
            )
        for step in [*flat(raw.stride[0]), raw.offset]:
            self.divides(step)
        self.whole_rows(source)
        lengths, steps = coalesced(tile_shape(target)[1], target.raw.stride[1])
        unit = flat(steps)[0] == 1 and flat(lengths)[0] % self.lanes == 0
        if not unit or (target.raw.swizzle is not None and 1 << target.raw.swizzle[1] < self.lanes):
            raise fail(
                f"the layout of the target does not keep {self.lanes} elements of a row together; choose a smaller "
                f"vector"
            )

    def divides(self, step: Any) -> None:
        if isinstance(step, int):
            if step % self.lanes:
                raise fail(
                    f"rows are {step} elements apart, which is no multiple of {self.lanes}; choose a smaller vector"
                )
            return
        self.require(step)

    def whole_rows(self, source: Tensor) -> None:
        """No vector lies half beyond a row: the columns are a multiple of it."""
        cols = source.cols
        if isinstance(cols, int):
            if cols % self.lanes:
                raise fail(
                    f"the source has {cols} columns, which is no multiple of {self.lanes}; choose a smaller vector"
                )
            return
        self.require(cols)

    def require(self, value: Any) -> None:
        if self.lanes == 1:
            return
        trace = current()
        param = next((param for param in trace.params if param.var is value.ir), None)
        if param is None:
            raise fail(
                "a stride that is computed on the device: Load cannot tell whether vectors are aligned; use a vector "
                "of one element"
            )
        trace.require(contract.combine("mod", contract.Dim("param", param), self.lanes), "==", 0)


def tile_shape(tensor: Tensor) -> Any:
    return tensor.raw.shape
