"""`Tensor`: a matrix or row vector in device memory, shared memory or registers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tiki import layout as tl
from tiki.kernels.cute.lib import arch
from tiki.kernels.cute.lib import _numeric as numeric
from tiki.kernels.cute.lib._memory import Buffer, RawTensor, RegisterTensor, make_smem_tensor
from tiki.kernels.cute.lib._numeric import as_dtype
from tiki.kernels.cute.lib._tape import fail


def tile_layout(dtype: Any, rows: int, cols: int) -> Any:
    """Rows that follow on each other, swizzled so that eight rows of 16 bytes, which is what ldmatrix reads at
    once, lie in different banks; along rows and along columns."""
    bytes_of_row = cols * dtype.bytes
    span = next((span for span in (128, 64, 32) if bytes_of_row % span == 0), 0)
    if dtype.bytes > 2 or not span or rows % 8:
        return tl.make_ordered_layout((rows, cols), (1, 0))
    base = {1: 4, 2: 3}[dtype.bytes]
    bits = {128: 3, 64: 2, 32: 1}[span]
    outer = tl.make_ordered_layout((8, span // dtype.bytes), (1, 0))
    atom = tl.make_composed_layout(tl.Swizzle(bits, base, 3), 0, outer)
    return tl.tile_to_shape(atom, (rows, cols), (0, 1))


class Fragment:
    """Which elements of a tile a thread holds: element `v` of its registers is at row0 + rows[v], col0 + cols[v].

    row0 and col0 are of the thread. Elements 2i and 2i + 1 are neighbours of one row."""

    __slots__ = ("row0", "col0", "rows", "cols", "shape", "tv")

    def __init__(self, row0: Any, col0: Any, places: list[tuple[int, int]], shape: tuple[int, int], tv: str) -> None:
        self.row0 = row0
        self.col0 = col0
        self.rows = [row for row, _ in places]
        self.cols = [col for _, col in places]
        self.shape = shape
        self.tv = tv

    def matches(self, other: Fragment) -> bool:
        return self.tv == other.tv and self.shape == other.shape

    def place(self, v: int) -> tuple[Any, Any]:
        return self.row0 + self.rows[v], self.col0 + self.cols[v]

    def __len__(self) -> int:
        return len(self.rows)


class Tensor:
    """A tile or matrix. `Tensor(dtype=, rows=, cols=)` is a new one in shared memory; `layout=` chooses how it lies,
    by default rows with a swizzle; `stages` tiles of it lie one after the other. `Tensor(raw)` is what a raw tensor of one or two modes shows. Register tensors
    come from Gemm, which knows which thread holds what."""

    def __init__(
        self,
        raw: Any = None,
        *,
        dtype: Any = None,
        rows: int = 0,
        cols: int = 0,
        layout: Any = None,
        stages: int = 1,
        align: int = 16,
        fragment: Fragment | None = None,
    ) -> None:
        if raw is None:
            raw = self._shared(dtype, rows, cols, layout, stages, align)
        self.raw = raw
        self.stages = stages
        self.fragment = fragment

    @staticmethod
    def _shared(dtype: Any, rows: int, cols: int, layout: Any, stages: int, align: int) -> RawTensor:
        if dtype is None or not isinstance(rows, int) or not isinstance(cols, int) or rows < 1 or cols < 1:
            raise fail(
                f"Tensor(dtype={dtype}, rows={rows!r}, cols={cols!r}): a shared tensor has an element type and "
                f"integers of at least 1"
            )
        dtype = as_dtype(dtype)
        layout = tile_layout(dtype, rows, cols) if layout is None else layout
        made = make_smem_tensor(dtype, layout, align, stages)
        if made.rank != 2 or (tl.size(layout.shape[0]), tl.size(layout.shape[1])) != (rows, cols):
            raise fail(f"the layout {layout} is not one of {rows} rows and {cols} columns")
        return made

    def stage(self, index: Any) -> Tensor:
        """One of the tiles of a tensor with several `stages`: an integer, or a value of the device."""
        if isinstance(index, int) and not 0 <= index < self.stages:
            raise fail(f"stage {index} of {self.stages}")
        step = _size_of_layout(self.raw)
        raw = RawTensor(self.raw.iterator + index * step, self.raw.shape, self.raw.stride, 0, self.raw.swizzle)
        return Tensor(raw)

    @classmethod
    def _of_parameter(cls, raw: RawTensor) -> Tensor:
        return cls(raw)

    # ---- what it is ----

    @property
    def dtype(self) -> Any:
        return self.raw.element_type

    @property
    def space(self) -> str:
        """global, shared or registers."""
        return str(self.raw.memspace)

    @property
    def shape(self) -> tuple[Any, ...]:
        if self.fragment is not None:
            return self.fragment.shape
        from tiki.kernels.cute.lib._memory import size_of

        return (
            tuple(size_of(mode) for mode in self.raw.shape) if isinstance(self.raw.shape, tuple) else (self.raw.shape,)
        )

    @property
    def rows(self) -> Any:
        return self.shape[0]

    @property
    def cols(self) -> Any:
        return self.shape[-1]

    @property
    def T(self) -> Tensor:
        """Rows as columns: the same memory, nothing is moved."""
        if self.fragment is not None:
            raise fail(
                "the transpose of a register tensor: its layout belongs to the threads; write it to shared memory "
                "and take that one's .T"
            )
        return Tensor(self.raw.T)

    def __repr__(self) -> str:
        return f"<Tensor of {self.dtype.__name__} {self.shape} in {self.space}>"

    def __getitem__(self, coord: Any) -> Any:
        return self.raw[coord]

    def __setitem__(self, coord: Any, value: Any) -> None:
        self.raw[coord] = value

    def registers(self, what: str) -> Fragment:
        if self.fragment is None:
            raise fail(f"{what} of a tensor in {self.space} memory, expected a register tensor, which Gemm gives")
        return self.fragment

    # ---- elementwise, in registers ----

    def apply(self, vector: Tensor | None = None, block_idx: Any = 0, fn: Callable[..., Any] | None = None) -> None:
        """Each element becomes fn(element), or with a row vector fn(element, vector[block_idx * rows + row])."""
        fragment = self.registers("apply")
        if fn is None:
            raise fail("apply without fn")
        values = self._of_rows(vector, block_idx, fragment) if vector is not None else {}
        for v in range(len(fragment)):
            extra = (values[fragment.rows[v]],) if vector is not None else ()
            self.raw.set(v, fn(self.raw.get(v), *extra))

    def _of_rows(self, vector: Tensor, block_idx: Any, fragment: Fragment) -> dict[int, Any]:
        """The elements of a row vector that the thread's rows meet."""
        raw = vector.raw if isinstance(vector, Tensor) else vector
        if raw.rank != 1:
            raise fail(f"apply with a vector of {raw.rank} modes, expected 1")
        first = block_idx * fragment.shape[0] + fragment.row0
        return {row: raw.load(first + row) for row in dict.fromkeys(fragment.rows)}

    def scale(self, factor: Any) -> None:
        """Multiplies every element."""
        fragment = self.registers("scale")
        for v in range(len(fragment)):
            self.raw.set(v, self.raw.get(v) * factor)

    def fill(self, value: Any) -> None:
        """Sets every element."""
        self.registers("fill")
        self.raw.fill(value)

    def mul(self, other: Tensor) -> None:
        """Multiplies element by element with a tile in shared memory, or with registers that lie the same way."""
        self._combine("mul", other, lambda a, b: a * b)

    def add(self, other: Tensor) -> None:
        """Adds element by element, as mul multiplies."""
        self._combine("add", other, lambda a, b: a + b)

    def _combine(self, what: str, other: Tensor, combine: Callable[[Any, Any], Any]) -> None:
        fragment = self.registers(what)
        if other.shape != fragment.shape:
            raise fail(f"{what} of a tile {fragment.shape} with {other.shape}")
        if other.fragment is not None and not other.fragment.matches(fragment):
            raise fail(f"{what} of register tensors that lie differently over the threads")
        for v in range(0, len(fragment), 2):
            pair = (
                (other.raw.get(v), other.raw.get(v + 1))
                if other.fragment is not None
                else _pair(other.raw, *fragment.place(v))
            )
            for i in range(2):
                self.raw.set(v + i, combine(self.raw.get(v + i), pair[i].to(self.dtype)))

    # ---- moving ----

    def write(self, source: Tensor, block_idx: Any = 0, barrier: bool = True, fence: bool = False) -> None:
        """Registers to this tensor, converted. Of a tile in shared memory the whole block waits before (others may
        still read what was there) and after (others will read what is there now), unless `barrier` is off; with
        `fence` the async proxy (TMA, wgmma) sees the tile behind that. Of a
        matrix in device memory, tile `block_idx` (row and column of tiles, or the row) is written."""
        fragment = source.registers("write")
        if self.space == "shared":
            self._write_shared(source, fragment, barrier, fence)
        elif self.space == "global":
            self._write_global(source, fragment, block_idx)
        else:
            raise fail("write to a register tensor; use fill, add or mul")

    def _write_shared(self, source: Tensor, fragment: Fragment, barrier: bool, fence: bool) -> None:
        if self.shape != fragment.shape:
            raise fail(f"a tile {fragment.shape} is written to {self.shape}")
        buffer = self.raw.iterator.root
        if barrier and (not isinstance(buffer, Buffer) or buffer.touched or buffer.looped):
            arch.sync_threads()
        _store_pairs(self.raw, source, fragment, 0, 0)
        if fence:
            arch.fence_proxy("async_shared")
        if barrier:
            arch.sync_threads()

    def _write_global(self, source: Tensor, fragment: Fragment, block_idx: Any) -> None:
        row, col = block_idx if isinstance(block_idx, tuple) else (block_idx, 0)
        rows, cols = fragment.shape
        exact = all(isinstance(extent, int) and extent % tile == 0 for extent, tile in zip(self.shape, fragment.shape))
        _store_pairs(self.raw, source, fragment, row * rows, col * cols, None if exact else self.shape)


def _size_of_layout(raw: RawTensor) -> int:
    """Elements from one stage to the next."""
    return int(tl.cosize(tl.Layout(raw.shape, raw.stride)))


def _neighbours(raw: RawTensor) -> bool:
    """Whether two columns next to each other lie next to each other, and at an even place."""
    from tiki.kernels.cute.lib._memory import coalesced, flat

    if raw.rank != 2:
        return False
    _, step = coalesced(raw.shape[1], raw.stride[1])
    lengths = flat(coalesced(raw.shape[1], raw.stride[1])[0])
    others = [*flat(raw.stride[0]), *flat(step)[1:], raw.offset]
    even = all(isinstance(other, int) and other % 2 == 0 for other in others)
    return (
        flat(step)[0] == 1
        and isinstance(lengths[0], int)
        and lengths[0] % 2 == 0
        and even
        and (raw.swizzle is None or raw.swizzle[1] >= 1)
    )


def _pair(raw: RawTensor, row: Any, col: Any) -> tuple[Any, Any]:
    if _neighbours(raw):
        both = raw.load(row, col, lanes=2)
        return both[0], both[1]
    return raw.load(row, col), raw.load(row, col + 1)


def _store_pairs(raw: RawTensor, source: Tensor, fragment: Fragment, row0: Any, col0: Any, limits: Any = None) -> None:
    pairs = _neighbours(raw)
    for v in range(0, len(fragment), 2):
        row, col = fragment.place(v)
        row, col = row + row0, col + col0
        if pairs and limits is None:
            raw.store(source.raw.get(v, 2).to(raw.element_type), row, col)
            continue
        for i in range(2):
            mask = None if limits is None else (row < limits[0]) & (col + i < limits[1])
            raw.store(source.raw.get(v + i), row, col + i, mask=mask)


def new_registers(dtype: Any, fragment: Fragment) -> Tensor:
    """A register tensor of a tile, unset."""
    raw = RegisterTensor(dtype, tl.make_layout(len(fragment)), fragment.tv)
    return Tensor(raw, fragment=fragment)


def zeros(dtype: Any, fragment: Fragment) -> Tensor:
    """A register tensor of zeros."""
    made = new_registers(dtype, fragment)
    made.raw.fill(numeric.as_dtype(dtype)(0))
    return made
