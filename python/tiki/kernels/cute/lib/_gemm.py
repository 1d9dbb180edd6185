"""`Gemm` and `Warp`: products of tiles in shared memory by mma.sync (or wgmma, _wgmma), accumulated in registers.

Gemm(a, b) is a @ b.T: a is [m, k], b is [n, k]. mma.sync is m16n8k16 of f16 or bf16 into f32. Operands come by
ldmatrix, transposed where the tile lies the other way, or element by element where its layout keeps no eight
elements together. A warp takes 16 rows, then the warps above, then the next 16; of columns 16 likewise, so that one
ldmatrix of four matrices feeds two instructions.

The maps of ldmatrix and mma.sync to lanes are those of the PTX manual, sections "Matrix fragments for mma.m16n8k16
with .f16/.bf16" and "ldmatrix".
"""

from __future__ import annotations

from typing import Any

from tiki.kernels.cute.lib import _async, _wgmma
from tiki.kernels.cute.lib._memory import RawTensor, RegisterTensor, coalesced, flat
from tiki.kernels.cute.lib._numeric import BFloat16, Float16, Float32, as_dtype
from tiki.kernels.cute.lib._tape import current, fail
from tiki.kernels.cute.lib._tensor import Fragment, Tensor, zeros


class Warp:
    """How the warps of a block lie over a product: `m` over its rows, `n` over its columns."""

    __slots__ = ("m", "n")

    def __init__(self, m: int, n: int) -> None:
        self.m = m
        self.n = n

    def __repr__(self) -> str:
        return f"Warp({self.m}, {self.n})"


class Gemm:
    """A product of tiles by `num_threads` threads. `gemm(a, b)` gives a @ b.T in registers; with `acc` it is added.

    `instruction` is "mma.sync", or "wgmma" for sm_90a: then warps lie over rows, in fours, what threads wrote to the
    operands needs a fence of the async proxy (`Load(..., fence=True)`), and `start` and `wait` let products go on
    behind the issue."""

    def __init__(
        self,
        element_type: Any,
        tidx: Any,
        num_threads: int = 128,
        warp: Warp | None = None,
        instruction: str = "mma.sync",
    ) -> None:
        self.dtype = as_dtype(element_type)
        self.instruction = instruction
        if instruction not in ("mma.sync", "wgmma"):
            raise fail(f'Gemm by "{instruction}", expected "mma.sync" or "wgmma"')
        self.warp = warp if warp is not None else Warp(num_threads // 32, 1)
        if self.dtype not in (Float16, BFloat16):
            raise fail(f"Gemm of {self.dtype.__name__}, expected Float16 or BFloat16")
        if 32 * self.warp.m * self.warp.n != num_threads:
            raise fail(
                f"{self.warp} are {self.warp.m * self.warp.n} warps, and {num_threads} threads are {num_threads / 32:g}"
            )
        if instruction == "wgmma" and (self.warp.n != 1 or self.warp.m % 4):
            raise fail(f"{self.warp} of a product by wgmma, expected warps over rows, in fours")
        self.lane = tidx % 32
        number = tidx // 32
        self.warp_m = number % self.warp.m if self.warp.m > 1 else 0
        self.warp_n = number // self.warp.m if self.warp.n > 1 else 0
        self.warpgroup = tidx // 128 if self.warp.m > 4 else 0

    # ---- the accumulators ----

    def fragment(self, rows: int, cols: int) -> Fragment:
        """Which elements of a product each thread holds."""
        if self.instruction == "wgmma":
            return _wgmma.fragment(self, rows, cols)
        m, n = self.warp.m, self.warp.n
        if rows % (16 * m) or cols % (16 * n):
            raise fail(
                f"a product of {rows} rows and {cols} columns by {self.warp}: expected multiples of {16 * m} and "
                f"{16 * n}"
            )
        places = [
            (i * 16 * m + 8 * down, j * 16 * n + 8 * half + right)
            for j in range(cols // (16 * n))
            for half in range(2)
            for i in range(rows // (16 * m))
            for down in range(2)
            for right in range(2)
        ]
        threads = f"(4,8,{m},{n})", f"({2 * rows},1,16,{16 * rows})"
        values = (
            f"(2,2,{rows // (16 * m)},2,{cols // (16 * n)})",
            f"({rows},8,{16 * m},{8 * rows},{16 * n * rows})",
        )
        tv = f"({threads[0]},{values[0]}):({threads[1]},{values[1]})"
        row0 = self.warp_m * 16 + self.lane // 4
        col0 = self.warp_n * 16 + self.lane % 4 * 2
        return Fragment(row0, col0, places, (rows, cols), tv)

    def zeros(self, rows: int, cols: int) -> Tensor:
        """An accumulator of a product, zero."""
        return zeros(Float32, self.fragment(rows, cols))

    # ---- the product ----

    def __call__(self, a: Tensor, b: Tensor, acc: Tensor | None = None) -> Tensor:
        if self.instruction == "wgmma":
            return _wgmma.product(self, a, b, acc)
        rows, cols, length = self.check(a, b)
        if acc is None:
            acc = self.zeros(rows, cols)
        self.check_accumulator(acc, rows, cols)
        self.multiply(a, b, acc, rows, cols, length)
        return acc

    def start(self, a: Tensor, b: Tensor, acc: Tensor, clear: Any = False) -> None:
        """Begins the product of "wgmma" and closes its group: accumulator and operands must not be touched before a
        `wait`. Where `clear` holds, what is in the accumulator does not count."""
        if self.instruction != "wgmma":
            raise fail('Gemm.start of "mma.sync", which ends with its issue; call the Gemm')
        _wgmma.issue(self, a, b, acc, clear)

    @staticmethod
    def wait(groups: int = 0) -> None:
        """Waits until at most so many products are unfinished."""
        _async.wgmma_wait_group(groups)

    def check_accumulator(self, acc: Tensor, rows: int, cols: int) -> None:
        fragment = acc.registers("Gemm into")
        if fragment.shape != (rows, cols) or fragment.tv != self.fragment(rows, cols).tv:
            raise fail(
                f"the accumulator is of {fragment.shape} and lies over the threads in its way, the product is of "
                f"{(rows, cols)} by {self.warp}; an accumulator comes from a Gemm with the same warps"
            )
        if acc.dtype is not Float32:
            raise fail(f"an accumulator of {acc.dtype.__name__}, expected Float32")

    def multiply(self, a: Tensor, b: Tensor, acc: Tensor, rows: int, cols: int, length: int) -> None:
        """By mma.sync."""
        along_m, along_n = rows // (16 * self.warp.m), cols // (16 * self.warp.n)
        left = RegisterTensor(self.dtype, f"{8 * along_m}:1")
        right = RegisterTensor(self.dtype, f"{8 * along_n}:1")
        for k in range(0, length, 16):
            for i in range(along_m):
                self.load_a(a.raw, left, 8 * i, self.warp_m * 16 + i * 16 * self.warp.m, k)
            for j in range(along_n):
                self.load_b(b.raw, right, 8 * j, self.warp_n * 16 + j * 16 * self.warp.n, k)
            for j in range(2 * along_n):
                for i in range(along_m):
                    _mma(acc.raw, left, right, 4 * (j * along_m + i), 8 * i, 4 * j)

    def check(self, a: Tensor, b: Tensor) -> tuple[int, int, int]:
        for name, one in (("a", a), ("b", b)):
            if not isinstance(one, Tensor) or one.space != "shared":
                raise fail(f"Gemm of {name} = {one!r}, expected a Tensor in shared memory")
            if one.dtype is not self.dtype:
                raise fail(f"Gemm of {self.dtype.__name__} with {name} of {one.dtype.__name__}")
        if a.cols != b.cols:
            raise fail(f"Gemm of a {a.shape} and b {b.shape}: a @ b.T needs as many columns in both")
        if a.cols % 16:
            raise fail(f"Gemm over {a.cols} columns, expected a multiple of 16")
        return a.rows, b.rows, a.cols

    def load_a(self, raw: RawTensor, target: RegisterTensor, index: int, row0: Any, k: int) -> None:
        """16 x 16 of a: the matrices of rows 0 and 8, then those of columns 8."""
        lane = self.lane
        if _together(raw, 1):
            _ldmatrix(target, index, raw.pointer(row0 + lane % 16, lane // 16 * 8 + k), False)
        elif _together(raw, 0):
            _ldmatrix(target, index, raw.pointer(row0 + lane // 8 % 2 * 8, lane // 16 * 8 + lane % 8 + k), True)
        else:
            self.elements(raw, target, index, row0, k, [(0, 0), (8, 0), (0, 8), (8, 8)])

    def load_b(self, raw: RawTensor, target: RegisterTensor, index: int, row0: Any, k: int) -> None:
        """16 x 16 of b, for two instructions: the matrices of columns 0 and 8, then those of rows 8."""
        lane = self.lane
        if _together(raw, 1):
            _ldmatrix(target, index, raw.pointer(row0 + lane // 16 * 8 + lane % 8, lane // 8 % 2 * 8 + k), False)
        elif _together(raw, 0):
            _ldmatrix(target, index, raw.pointer(row0 + lane // 16 * 8, lane % 16 + k), True)
        else:
            self.elements(raw, target, index, row0, k, [(0, 0), (0, 8), (8, 0), (8, 8)])

    def elements(
        self, raw: RawTensor, target: RegisterTensor, index: int, row0: Any, k: int, corners: list[tuple[int, int]]
    ) -> None:
        """The same without ldmatrix: lane l holds row l / 4, columns 2 (l % 4) and the next of each matrix."""
        for matrix, (down, right) in enumerate(corners):
            for i in range(2):
                place = (row0 + (self.lane // 4 + down), self.lane % 4 * 2 + (right + i + k))
                target.set(index + 2 * matrix + i, raw.load(*place))


def _together(raw: RawTensor, mode: int) -> bool:
    """Whether eight elements along a mode lie together and at a multiple of 16 bytes, as ldmatrix reads them."""
    lengths, steps = coalesced(raw.shape[mode], raw.stride[mode])
    lengths, steps = flat(lengths), flat(steps)
    others = [*steps[1:], *flat(coalesced(raw.shape[1 - mode], raw.stride[1 - mode])[1]), raw.offset]
    if raw.swizzle is not None and raw.swizzle[1] < 3:
        return False
    return steps[0] == 1 and lengths[0] % 8 == 0 and all(isinstance(other, int) and other % 8 == 0 for other in others)


def _ldmatrix(target: RegisterTensor, index: int, pointer: Any, transposed: bool) -> None:
    attrs: dict[str, Any] = {"count": 4}
    if index:
        attrs["index"] = index
    if transposed:
        attrs["transposed"] = 1
    pointer.touch(1, 16)
    current().emit("load_matrix", (target.ir, pointer.ir), attrs)


def _mma(acc: RegisterTensor, left: RegisterTensor, right: RegisterTensor, d: int, a: int, b: int) -> None:
    attrs: dict[str, Any] = {"m": 16, "n": 8, "k": 16, "d_index": d, "a_index": a, "b_index": b, "c_index": d}
    kept = {name: value for name, value in attrs.items() if value or name in "mnk"}
    current().emit("mma", (acc.ir, left.ir, right.ir, acc.ir), kept)
