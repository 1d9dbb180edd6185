"""Elementwise kernels: a vector add, and a bias with GELU that reads 16 bytes at a time.

    python examples/python/kernels_elementwise.py [--device cpu|emulator|gpu] [--text]

On the CPU the kernels run in the emulator, which judges them: a race or an access out of bounds is an error.
"""

import argparse
from typing import Any

import tiki as tk
from tiki.kernels.cute.lib.math import Float32, block_idx, cute, erf, thread_idx

THREADS = 128


@cute.kernel
def add_kernel(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor) -> None:
    i = block_idx()[0] * THREADS + thread_idx()[0]
    if i < x.shape[0]:
        z[i] = x[i] + y[i]


@cute.jit
def add(x: tk.array, y: tk.array) -> Any:
    z = cute.empty_like(x)
    add_kernel(x, y, z).launch(grid=cute.ceil_div(cute.size(x), THREADS), block=THREADS)
    return z


@cute.kernel
def bias_gelu_kernel(x: cute.Tensor, bias: cute.Tensor, y: cute.Tensor, lanes: cute.Constexpr[int]) -> None:
    """y = gelu(x + bias): a block a row, `lanes` elements a thread and step."""
    row, columns = block_idx()[0], x.shape[1]
    for j in range(thread_idx()[0] * lanes, columns, THREADS * lanes):
        values = x.load(row, j, lanes=lanes)
        for i in cute.range_constexpr(lanes):
            v = values[i].to(Float32) + bias[j + i].to(Float32)
            y[row, j + i] = 0.5 * v * (1 + erf(v * 0.7071067811865476))


@cute.jit
def bias_gelu(x: tk.array, bias: tk.array) -> Any:
    y = cute.empty_like(x)
    lanes = 16 // x.itemsize  # one access of 16 bytes, where rows allow it
    while x.shape[1] % lanes:
        lanes //= 2
    bias_gelu_kernel(x, bias, y, lanes).launch(grid=x.shape[0], block=THREADS)
    return y


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu", choices=["cpu", "emulator", "gpu"])
    parser.add_argument("--text", action="store_true", help="print the kernel of the sum")
    o = parser.parse_args()
    place = getattr(tk, o.device)

    x, y = tk.random.normal((1000,)), tk.random.normal((1000,))
    z = add(x.to_device(place), y.to_device(place)).to_device(tk.cpu)
    print("add: equal bits", bool(tk.array_equal(z, x + y)))
    if o.text:
        print(cute.compile(add, x, y).kernels[0].text)

    for shape in ((8, 256), (3, 70)):
        x, bias = tk.random.normal(shape).astype(tk.float16), tk.random.normal(shape[1:])
        found = bias_gelu(x.to_device(place), bias.to_device(place)).to_device(tk.cpu)
        v = x.astype(tk.float32) + bias
        error = tk.max(tk.abs(found - 0.5 * v * (1 + tk.erf(v * 0.5**0.5))))
        print(f"bias and gelu of {shape}: largest error {error.item():.4f}")


if __name__ == "__main__":
    main()
