"""Kernels that reduce rows: a sum, a softmax that reads its row once for maximum and sum, an RMS norm; the norm with its
derivative as an op.

    python examples/python/kernels_rows.py [--device cpu|emulator|gpu] [--rows N] [--columns N]
"""

import argparse
from typing import Any

import tiki as tk
from tiki.kernels.cute.lib.math import Float32, block_idx, cute, exp, fmax, math, sync_threads, thread_idx

THREADS = 128
WARPS = THREADS // 32


@cute.jit
def over_block(value: Any, slots: cute.Tensor, combine: cute.Constexpr[Any]) -> Any:
    """A value of every thread combined over the block; all threads get the result, of one order."""
    tidx = thread_idx()[0]
    value = cute.arch.warp_reduction(value, combine)
    sync_threads()  # others may still read the slots
    if tidx % 32 == 0:
        slots[tidx // 32] = value
    sync_threads()
    result = slots[0]
    for warp in cute.range_constexpr(1, WARPS):
        result = combine(result, slots[warp])
    return result


def plus(a: Any, b: Any) -> Any:
    return a + b


@cute.kernel(grid=lambda x, y: x.shape[0], block=THREADS)
def sum_kernel(x: cute.Tensor, y: cute.Tensor) -> None:
    row, tidx = block_idx()[0], thread_idx()[0]
    slots = cute.make_smem_tensor(Float32, WARPS)
    total = Float32(0)
    for j in range(tidx, x.shape[1], THREADS):
        total += x[row, j].to(Float32)
    total = over_block(total, slots, plus)
    if tidx == 0:
        y[row] = total


@cute.kernel(grid=lambda x, y: x.shape[0], block=THREADS)
def softmax_kernel(x: cute.Tensor, y: cute.Tensor) -> None:
    """The sum follows the maximum: what was summed before a larger value came is scaled down."""
    row, tidx = block_idx()[0], thread_idx()[0]
    slots = cute.make_smem_tensor(Float32, WARPS)
    lowest = Float32(-3e38)
    most, total = lowest, Float32(0)
    for j in range(tidx, x.shape[1], THREADS):
        value = x[row, j].to(Float32)
        before = most
        most = fmax(most, value)
        total = total * exp(before - most) + exp(value - most)
    largest = over_block(most, slots, fmax)
    total = over_block(total * exp(most - largest), slots, plus)
    for j in range(tidx, x.shape[1], THREADS):
        y[row, j] = exp(x[row, j].to(Float32) - largest) / total


@cute.kernel(grid=lambda x, w, y, rstd, eps: x.shape[0], block=THREADS)
def norm_kernel(x: cute.Tensor, w: cute.Tensor, y: cute.Tensor, rstd: cute.Tensor, eps: Float32) -> None:
    row, tidx = block_idx()[0], thread_idx()[0]
    slots = cute.make_smem_tensor(Float32, WARPS)
    squares = Float32(0)
    for j in range(tidx, x.shape[1], THREADS):
        value = x[row, j].to(Float32)
        squares += value * value
    scale: Any = 1.0 / math.sqrt(over_block(squares, slots, plus) / x.shape[1] + eps)
    for j in range(tidx, x.shape[1], THREADS):
        y[row, j] = x[row, j].to(Float32) * scale * w[j].to(Float32)
    if tidx == 0:
        rstd[row] = scale


@cute.jit
def row_sum(x: tk.array) -> Any:
    y = cute.empty((x.shape[0],), Float32)
    sum_kernel(x, y).launch()
    return y


@cute.jit
def softmax(x: tk.array) -> Any:
    y = cute.empty_like(x)
    softmax_kernel(x, y).launch()
    return y


@cute.jit
def norm(x: tk.array, w: tk.array, eps: Float32) -> Any:
    y, rstd = cute.empty_like(x), cute.empty((x.shape[0],), Float32)
    norm_kernel(x, w, y, rstd, eps).launch()
    return y, rstd


@tk.kernel_op(hidden=1)
def rms_norm(x: tk.array, w: tk.array) -> Any:
    """The kernel as an op; the last result is kept for the derivative."""
    return norm(x, w, 1e-5)


def rms_norm_vjp(primals: Any, dy: Any, outputs: Any) -> Any:
    (x, w), rstd = primals, outputs[1].reshape(-1, 1)
    unit, dunit = x * rstd, dy * w
    dx = rstd * (dunit - unit * tk.mean(dunit * unit, axis=-1, keepdims=True))
    return dx, tk.sum(dy * unit, axis=0)


rms_norm.vjp(rms_norm_vjp)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu", choices=["cpu", "emulator", "gpu"])
    parser.add_argument("--rows", type=int, default=5)
    parser.add_argument("--columns", type=int, default=300)
    o = parser.parse_args()
    place = getattr(tk, o.device)

    def there(x: tk.array) -> tk.array:
        return x.to_device(place)

    def error(found: tk.array, expected: tk.array) -> float:
        return float(tk.max(tk.abs(found.to_device(tk.cpu) - expected)).item())

    x, w = tk.random.normal((o.rows, o.columns)), tk.random.normal((o.columns,))
    print(f"sum: largest error {error(row_sum(there(x)), tk.sum(x, axis=-1)):.1e}")
    print(f"softmax: largest error {error(softmax(there(x)), tk.softmax(x, axis=-1)):.1e}")
    print(f"rms_norm: largest error {error(rms_norm(there(x), there(w)), tk.fast.rms_norm(x, w, 1e-5)):.1e}")

    def loss(x: tk.array, w: tk.array) -> tk.array:
        return tk.sum(tk.square(rms_norm(x, w)))

    def expected(x: tk.array, w: tk.array) -> tk.array:
        return tk.sum(tk.square(tk.fast.rms_norm(x, w, 1e-5)))

    ours, theirs = tk.grad(loss, (0, 1))(there(x), there(w)), tk.grad(expected, (0, 1))(x, w)
    print("its gradients: largest errors", " ".join(f"{error(a, b):.1e}" for a, b in zip(ours, theirs)))


if __name__ == "__main__":
    main()
