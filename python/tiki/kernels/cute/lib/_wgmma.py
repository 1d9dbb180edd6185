"""The product of Gemm by wgmma: operands in shared memory, described instead of loaded; sums in registers.

A warpgroup (four warps) takes 64 rows, those above each other go to the warpgroups in turn; the whole width is one
instruction of up to 256 columns. A tile must lie as the instruction reads it: rows (or, of a transposed tile, columns)
of 32, 64 or 128 bytes swizzled over as much, which is the default layout of Tensor. Element e of a thread's sums is
at row 16 (warp) + lane / 4 + 8 (e / 2 % 2), column 8 (e / 4) + 2 (lane % 4) + e % 2: the PTX manual, section
"Register Fragments for wgmma.mma_async.m64nNk16".
"""

from __future__ import annotations

from typing import Any

from tiki.kernels.cute.lib import _async, _numeric
from tiki.kernels.cute.lib._memory import Buffer, RawTensor, coalesced, flat
from tiki.kernels.cute.lib._numeric import Boolean, Float16, Int64
from tiki.kernels.cute.lib._tape import current, fail
from tiki.kernels.cute.lib._tensor import Fragment, Tensor, new_registers


def fragment(gemm: Any, rows: int, cols: int) -> Fragment:
    """Which sums each thread holds."""
    groups = gemm.warp.m // 4
    if rows % (64 * groups) or cols % 8 or not 8 <= cols <= 256:
        raise fail(
            f"a product of {rows} rows and {cols} columns by wgmma of {gemm.warp}: expected a multiple of "
            f"{64 * groups} rows, and 8 to 256 columns in steps of 8"
        )
    blocks = rows // (64 * groups)
    places = [
        (64 * groups * block + 8 * half, 8 * j + right)
        for block in range(blocks)
        for j in range(cols // 8)
        for half in range(2)
        for right in range(2)
    ]
    threads = f"(4,8,4,{groups})", f"({2 * rows},1,16,64)"
    values = f"(2,2,{cols // 8},{blocks})", f"({rows},8,{8 * rows},{64 * groups})"
    tv = f"({threads[0]},{values[0]}):({threads[1]},{values[1]})"
    row0 = gemm.warp_m * 16 + gemm.lane // 4
    return Fragment(row0, gemm.lane % 4 * 2, places, (rows, cols), tv)


class _Side:
    """An operand: how its matrix is described, and where blocks of rows and steps along k lie."""

    def __init__(self, name: str, raw: RawTensor, rows_at_once: int) -> None:
        self.raw = raw
        self.across = flat(coalesced(raw.shape[1], raw.stride[1])[1])[0] != 1  # lines run along rows, not along k
        along = 0 if self.across else 1
        lengths, steps = (flat(one) for one in coalesced(raw.shape[along], raw.stride[along]))
        lines, line_steps = (flat(one) for one in coalesced(raw.shape[1 - along], raw.stride[1 - along]))
        self.span = {1: 16, 2: 32, 3: 64}.get(raw.swizzle[0] if raw.swizzle else 0, 0)
        self.block = steps[1] if len(steps) > 1 else 0  # from one run of `span` elements to the next
        plain = steps[0] == 1 and lengths[0] == self.span and line_steps == [self.span] and len(steps) < 3
        if not self.span or raw.swizzle[1:] != (3, 3) or not plain or lines[0] % 8 or raw.offset != 0:  # type: ignore[index]
            raise fail(
                f"{name} of a product by wgmma lies as {raw.layout}: expected the default layout of Tensor, rows of "
                f"16, 32 or 64 elements (or more) with a swizzle as wide"
            )
        if not isinstance(raw.iterator.root, Buffer):
            raise fail(f"{name} of a product by wgmma is no buffer of its own")
        raw.iterator.root.aligned(1024)
        if self.across and rows_at_once > self.span and not self.block:
            raise fail(f"{name} of a product by wgmma has {self.span} rows in a run, fewer than the instruction takes")

    def descriptor(self, row0: Any, k: int) -> Any:
        """Of the matrix from a row and a step along k on. Eight lines are `stride` bytes; the next run across is
        `lead` bytes further."""
        if self.across:
            moved: Any = row0 // self.span * self.block + k * self.span
        else:
            moved = row0 * self.span + k // self.span * self.block + k % self.span
        pointer = self.raw.iterator + moved
        attrs = {"swizzle": f"swizzle_{2 * self.span}", "stride": 16 * self.span}
        attrs["lead"] = 2 * self.block if self.across and self.block else 16
        pointer.touch(1, 16)
        return current().emit("matrix_descriptor", (pointer.ir,), attrs, _numeric.number_type(Int64))


def issue(gemm: Any, a: Tensor, b: Tensor, acc: Tensor | None, clear: Any) -> Tensor:
    """Starts the product and closes its group; gives the accumulator, which must not be touched before the wait.
    Where `clear` holds, what is in the accumulator does not count."""
    rows, cols, length = gemm.check(a, b)
    if acc is None:
        acc, clear = new_registers(_numeric.Float32, fragment(gemm, rows, cols)), True
    gemm.check_accumulator(acc, rows, cols)
    groups, half = gemm.warp.m // 4, "f16" if gemm.dtype is Float16 else "bf16"
    left, right = _Side("a", a.raw, 64), _Side("b", b.raw, cols)
    _async.wgmma_fence()
    for block in range(rows // (64 * groups)):
        row0 = gemm.warpgroup * 64 + 64 * groups * block
        for k in range(0, length, 16):
            kept = True if k else (not clear if isinstance(clear, bool) else ~clear)
            attrs: dict[str, Any] = {"m": 64, "n": cols, "k": 16, "a_type": f"a_{half}", "b_type": f"b_{half}"}
            attrs.update({name: 1 for name, side in (("a_mn", left), ("b_mn", right)) if side.across})
            if block:
                attrs["d_index"] = block * (cols // 2)
            operands = (acc.raw.ir, left.descriptor(row0, k), right.descriptor(0, k), Boolean(kept).ir)
            current().emit("wgmma", operands, attrs)
    _async.wgmma_commit_group()
    return acc


def product(gemm: Any, a: Tensor, b: Tensor, acc: Tensor | None) -> Tensor:
    """The product, waited for."""
    acc = issue(gemm, a, b, acc, False)
    _async.wgmma_wait_group(0)
    return acc
