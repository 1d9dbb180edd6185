"""`target="cute"` in launches of Python, on a card: the library's ops, their gradients and kernels written in Python give
the bits that they give by PTX; the two examples of `tiki.cute.wrap` are trained through. Skipped without card and package."""

import importlib.util
import os
import subprocess
import sys

import pytest
from kernel_front import example

import tiki as tk
from tiki.kernels import library
from tiki.kernels.cute.lib.math import Float32, block_idx, cute, thread_idx

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HAS_PACKAGE = importlib.util.find_spec("cutlass") is not None or bool(os.environ.get("TIKI_CUTE_PYTHON"))

pytestmark = pytest.mark.skipif(not tk.is_available(tk.gpu) or not HAS_PACKAGE, reason="no GPU, or no nvidia-cutlass-dsl")


def drawn(*shapes, dtype=tk.float32):
    with tk.stream(tk.cpu):
        keys = tk.random.split(tk.random.key(5), len(shapes))
        made = [tk.random.normal(shape, key=key).astype(dtype) for shape, key in zip(shapes, keys)]
    return [array.to_device(tk.gpu) for array in made]


def bits(result):
    arrays = result if isinstance(result, (tuple, list)) else (result,)
    assert all(array.device == tk.gpu for array in arrays)
    return [bytes(memoryview(array.to_device(tk.cpu).reshape(-1).view(tk.uint8))) for array in arrays]


def assert_same(function, *arrays):
    """function(target, *arrays) by both targets."""
    by_ptx, by_cute = (bits(function(target, *arrays)) for target in ("ptx", "cute"))
    assert by_ptx == by_cute and any(any(one) for one in by_cute)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_library_rows(dtype):
    kind = getattr(tk, dtype)
    x, w = drawn((37, 768), (768,), dtype=kind)
    assert_same(lambda target, a, b: library.rms_norm(a, b, 1e-5, target=target), x, w)
    assert_same(lambda target, a: library.softmax(a, target=target), x)
    assert_same(lambda target, a: library.transpose(a, target=target), x)
    assert_same(lambda target, a: library.column_sum(a, target=target), x)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_library_products(dtype):
    a, b = drawn((200, 136), (136, 328), dtype=getattr(tk, dtype))
    assert_same(lambda target, *both: library.matmul(*both, target=target), a, b)
    a, b = drawn((512, 256), (256, 384), dtype=getattr(tk, dtype))
    assert_same(lambda target, *both: library.hopper_matmul(*both, target=target), a, b)


def test_library_gradients():
    x, w, a, b = drawn((37, 768), (768,), (128, 64), (64, 192))

    def gradient(call, *arrays):
        return lambda target, *given: tk.grad(
            lambda *inner: tk.sum(tk.square(call(target, *inner))), argnums=tuple(range(len(given)))
        )(*given)

    assert_same(gradient(lambda target, *given: library.rms_norm(*given, 1e-5, target=target)), x, w)
    assert_same(gradient(lambda target, given: library.softmax(given, target=target)), x)
    assert_same(
        gradient(lambda target, *given: library.matmul(*(one.astype(tk.float16) for one in given), target=target)), a, b
    )


@cute.kernel
def scale_kernel(x, y, factor: Float32):
    i = block_idx()[0] * 64 + thread_idx()[0]
    if i < x.shape[0]:
        y[i] = x[i] * factor


def test_launches_of_a_host_function():
    x = drawn((1000,))[0]

    def scaled(target, given):
        @cute.jit
        def host(a):
            y = cute.empty_like(a)
            scale_kernel(a, y, 3.0).launch(grid=cute.ceil_div(a.shape[0], 64), block=64, target=target)
            return y

        return host(given)

    assert_same(scaled, x)
    assert scaled("cute", x).tolist() == (3.0 * x.to_device(tk.cpu)).tolist()


def test_kernels_in_python():
    rows, products, elementwise = (example(name) for name in ("kernels_rows", "kernels_gemm", "kernels_elementwise"))
    x, w, y = drawn((37, 700), (700,), (37, 700))

    def by(function, **how):
        return lambda target, *arrays: tk.kernel_op(function, target=target, **how)(*arrays)

    assert_same(by(rows.row_sum), x)
    assert_same(by(rows.softmax), x)
    assert_same(by(elementwise.add), x.reshape(-1), y.reshape(-1))

    def gradient(target, *arrays):
        op = tk.kernel_op(lambda a, b: rows.norm(a, b, 1e-5), hidden=1, target=target)
        op.vjp(rows.rms_norm_vjp)
        return tk.grad(lambda *given: tk.sum(tk.square(op(*given))), argnums=(0, 1))(*arrays)

    assert_same(gradient, x, w)
    a, b = drawn((100, 136), (72, 136), dtype=tk.float16)
    assert_same(by(products.matmul), a, b)
    assert_same(by(products.matmul_sm90), a, b)


@pytest.mark.parametrize("name", ["05_cute_elementwise", "06_cute_rms_norm"])
def test_examples_train(name):
    if importlib.util.find_spec("cutlass") is None:
        pytest.skip("the running Python has no nvidia-cutlass-dsl")
    done = subprocess.run(
        [sys.executable, os.path.join(ROOT, "examples", "python", name + ".py")], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0 and "the loss is" in done.stdout, done.stdout + done.stderr
    print(done.stdout)
