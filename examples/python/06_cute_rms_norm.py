"""A tiled RMS norm in NVIDIA's CuTe DSL, as an op with a gradient, trained through.

y = x r w with r = 1 / sqrt(mean(x^2) + eps) of each row. A block takes a tile of ROWS rows, a warp one row of it, a lane
every 32nd column; the sum over a row is five shuffles. The forward kernel keeps r as a hidden result; the backward one gives
    dx = r (w dy) - x r^3 mean(w dy x),
and dw, the sum of dy x r over the rows, is ops of Tiki. It needs the package nvidia-cutlass-dsl (docs/cute.md), and a GPU to
run; without one the kernels are compiled and their size is shown.
"""

import sys

import tiki as tk
import tiki.cute
from _cute_main import main

try:
    import cutlass
    import cutlass.cute as cute
    from cuda.bindings.driver import CUstream
except ImportError as error:
    print(f"skipped: {error}; install it with `python3 -m pip install 'nvidia-cutlass-dsl==4.8.*'`")
    sys.exit(0)

ROWS = 4  # of a tile, one for each warp


@cute.jit
def sum_of_warp(value: cutlass.Float32):
    for step in cutlass.range_constexpr(5):
        value = value + cute.arch.shuffle_sync_bfly(value, offset=1 << step)
    return value


@cute.kernel
def norm_kernel(x: cute.Tensor, w: cute.Tensor, y: cute.Tensor, r: cute.Tensor, eps: cutlass.Float32):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    columns = cute.size(x, mode=[1])
    x_tile = cute.local_tile(x, (ROWS, columns), (block, 0))
    y_tile = cute.local_tile(y, (ROWS, columns), (block, 0))
    warp, lane = thread // 32, thread % 32
    row = block * ROWS + warp
    if row < cute.size(x, mode=[0]):
        total = cutlass.Float32(0.0)
        for column in range(lane, columns, 32):
            total += x_tile[warp, column] * x_tile[warp, column]
        scale = cute.math.rsqrt(sum_of_warp(total) / columns + eps)
        for column in range(lane, columns, 32):
            y_tile[warp, column] = x_tile[warp, column] * scale * w[column]
        if lane == 0:
            r[row] = scale


@cute.kernel
def norm_backward_kernel(x: cute.Tensor, w: cute.Tensor, dy: cute.Tensor, r: cute.Tensor, dx: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    columns = cute.size(x, mode=[1])
    x_tile = cute.local_tile(x, (ROWS, columns), (block, 0))
    dy_tile = cute.local_tile(dy, (ROWS, columns), (block, 0))
    dx_tile = cute.local_tile(dx, (ROWS, columns), (block, 0))
    warp, lane = thread // 32, thread % 32
    row = block * ROWS + warp
    if row < cute.size(x, mode=[0]):
        scale = r[row]
        total = cutlass.Float32(0.0)
        for column in range(lane, columns, 32):
            total += w[column] * dy_tile[warp, column] * x_tile[warp, column]
        shared = sum_of_warp(total) / columns * scale * scale * scale
        for column in range(lane, columns, 32):
            dx_tile[warp, column] = scale * w[column] * dy_tile[warp, column] - x_tile[warp, column] * shared


@tiki.cute.wrap(outputs={"y": "x", "r": lambda x, w, eps: tk.output(x.shape[:1], tk.float32)}, hidden=1)
@cute.jit
def rms_norm(
    x: cute.Tensor, w: cute.Tensor, y: cute.Tensor, r: cute.Tensor, eps: cutlass.Float32, stream: CUstream
):
    tiles = (cute.size(x, mode=[0]) + ROWS - 1) // ROWS
    norm_kernel(x, w, y, r, eps).launch(grid=[tiles, 1, 1], block=[32 * ROWS, 1, 1], stream=stream)


@tiki.cute.wrap(outputs={"dx": "x"})
@cute.jit
def rms_norm_backward(
    x: cute.Tensor, w: cute.Tensor, dy: cute.Tensor, r: cute.Tensor, dx: cute.Tensor, stream: CUstream
):
    tiles = (cute.size(x, mode=[0]) + ROWS - 1) // ROWS
    norm_backward_kernel(x, w, dy, r, dx).launch(grid=[tiles, 1, 1], block=[32 * ROWS, 1, 1], stream=stream)


@rms_norm.vjp
def rms_norm_vjp(primals, cotangents, outputs):
    x, w, _ = primals
    r = outputs[1]
    dw = tk.sum(cotangents * x * tk.reshape(r, (-1, 1)), axis=0)
    return rms_norm_backward(x, w, cotangents, r), dw, None


def compile_only():
    x, w, r = tk.output((64, 1000), tk.float32), tk.output((1000,), tk.float32), tk.output((64,), tk.float32)
    for function, arguments in ((rms_norm, (x, w, 1e-5)), (rms_norm_backward, (x, w, x, r))):
        made = function.compile(*arguments, arch="sm_90a")
        print(f"{function.__name__}: {len(made.cubin)} bytes for sm_90a")


def train(steps, rows=64, columns=1000):
    """Finds the weights whose norm gives the target; the first gradients are compared with those on the processor."""
    with tk.stream(tk.cpu):
        x = tk.random.normal((rows, columns), key=tk.random.key(1))
        wanted = tk.random.uniform(0.5, 1.5, (columns,), key=tk.random.key(2))
        start = tk.random.uniform(0.5, 1.5, (columns,), key=tk.random.key(3))
    target = tk.fast.rms_norm(x, wanted, 1e-5)
    there_x, there_target = x.to_device(tk.gpu), target.to_device(tk.gpu)

    def loss(a, w):
        return tk.mean(tk.square(rms_norm(a, w, 1e-5) - there_target))

    def same_on_cpu(a, w):
        return tk.mean(tk.square(tk.fast.rms_norm(a, w, 1e-5) - target))

    w = start.to_device(tk.gpu)
    by_kernel = [g.to_device(tk.cpu) for g in tk.grad(loss, argnums=(0, 1))(there_x, w)]
    by_ops = tk.grad(same_on_cpu, argnums=(0, 1))(x, start)
    for ours, theirs in zip(by_kernel, by_ops):
        print(f"gradients differ by {tk.max(tk.abs(ours - theirs)).item():.1e} at most, of {tk.max(tk.abs(theirs)).item():.1e}")
    step = tk.value_and_grad(loss, argnums=1)
    for _ in range(steps):
        value, dw = step(there_x, w)
        w = w - 300.0 * dw
        tk.eval(w, value)
    far = tk.max(tk.abs(w.to_device(tk.cpu) - wanted)).item()
    print(f"after {steps} steps the loss is {value.item():.2e}, weights differ by {far:.1e} at most")
    return value.item()


if __name__ == "__main__":
    main(__doc__, train, compile_only, steps=100)
