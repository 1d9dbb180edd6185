"""An elementwise kernel in NVIDIA's CuTe DSL, as an op with a gradient, trained through.

y = x / (1 + |x|), dy/dx = 1 / (1 + |x|)^2. A thread takes one element; the arrays are flat to it. It needs the package
nvidia-cutlass-dsl (docs/cute.md), and a GPU to run; without one the kernels are compiled and their size is shown.
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

THREADS = 128


@cute.kernel
def softsign_kernel(x: cute.Tensor, y: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    i = block * THREADS + thread
    if i < cute.size(x):
        v = x[i]
        y[i] = v / (1.0 + cutlass.max(v, -v))


@cute.kernel
def softsign_backward_kernel(x: cute.Tensor, dy: cute.Tensor, dx: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    i = block * THREADS + thread
    if i < cute.size(x):
        v = x[i]
        d = 1.0 + cutlass.max(v, -v)
        dx[i] = dy[i] / (d * d)


@tiki.cute.wrap(outputs={"y": "x"}, batching="leading")
@cute.jit
def softsign(x: cute.Tensor, y: cute.Tensor, stream: CUstream):
    blocks = (cute.size(x) + THREADS - 1) // THREADS
    softsign_kernel(x, y).launch(grid=[blocks, 1, 1], block=[THREADS, 1, 1], stream=stream)


@tiki.cute.wrap(outputs={"dx": "x"})
@cute.jit
def softsign_backward(x: cute.Tensor, dy: cute.Tensor, dx: cute.Tensor, stream: CUstream):
    blocks = (cute.size(x) + THREADS - 1) // THREADS
    softsign_backward_kernel(x, dy, dx).launch(grid=[blocks, 1, 1], block=[THREADS, 1, 1], stream=stream)


@softsign.vjp
def softsign_vjp(primals, cotangents, outputs):
    return softsign_backward(primals, cotangents)


def compile_only():
    like = tk.output((4096,), tk.float32)
    for function, arguments in ((softsign, (like,)), (softsign_backward, (like, like))):
        made = function.compile(*arguments, arch="sm_90a")
        print(f"{function.__name__}: {len(made.cubin)} bytes for sm_90a")


def train(steps, size=4096):
    """Finds the scales and offsets for which softsign(a x + b) is the target."""
    with tk.stream(tk.cpu):
        x = tk.random.normal((size,), key=tk.random.key(1))
        target = (1.7 * x - 0.6) / (1.0 + tk.abs(1.7 * x - 0.6))
    x, target = x.to_device(tk.gpu), target.to_device(tk.gpu)

    def loss(a, b):
        return tk.mean(tk.square(softsign(a * x + b) - target))

    a, b = tk.ones((1,)).to_device(tk.gpu), tk.zeros((1,)).to_device(tk.gpu)
    step = tk.value_and_grad(loss, argnums=(0, 1))
    for number in range(steps):
        value, (da, db) = step(a, b)
        a, b = a - 2.0 * da, b - 2.0 * db
        tk.eval(a, b, value)
    print(f"after {steps} steps the loss is {value.item():.2e}, a = {a.item():.4f}, b = {b.item():.4f}")
    return value.item()


if __name__ == "__main__":
    main(__doc__, train, compile_only, steps=300)
