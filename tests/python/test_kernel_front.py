"""Kernels written in Python: numbers, parameters, specialisation, the first kernels against NumPy, tiles."""

import importlib.util
import pathlib
import re
import threading

import numpy
import pytest
import tiki as tk
from kernel_front import on_device
from tiki import kernels
from tiki.kernels.cute.lib import Gemm, Load, Tensor, Warp, _numeric
from tiki.kernels.cute.lib.math import (
    BFloat16,
    Boolean,
    Float16,
    Float32,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    KernelError,
    TensorSpec,
    Uint32,
    block_idx,
    cute,
    exp2,
    fmax,
    thread_idx,
)

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="module")
def docs(tmp_path_factory):
    """The examples of the page about kernels, as one module."""
    text = (ROOT / "docs" / "kernel-authoring.md").read_text()
    path = tmp_path_factory.mktemp("docs") / "kernel_examples.py"
    path.write_text("\n\n".join(re.findall(r"```python\n(.*?)```", text, re.S)))
    spec = importlib.util.spec_from_file_location("kernel_examples", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


VECTOR_ADD = """tiki kernel 1

kernel vector_add(
  %n: i32,
  %x: ptr<f32, global> read align 4 size %n,
  %y: ptr<f32, global> read align 4 size %n,
  %z: ptr<f32, global> write align 4 size %n)
form thread
require %n >= 0
require %n < 2147483648
grid (ceildiv(%n, 256), 1, 1)
block (256, 1, 1)
{
  %tidx = thread_index.x : i32
  %bidx = block_index.x : i32
  %0 = mul %bidx, i32(256) : i32
  %i = add %0, %tidx : i32
  %1 = icmp.slt %i, %n : i1
  if %1 {
    %2 = offset %x, %i : ptr<f32, global>
    %3 = load %2 : f32
    %4 = offset %y, %i : ptr<f32, global>
    %5 = load %4 : f32
    %6 = add %3, %5 : f32
    %7 = offset %z, %i : ptr<f32, global>
    store %7, %6
  }
}
"""


def test_vector_add(docs):
    assert docs.kernel.text == VECTOR_ADD
    assert kernels.parse(docs.kernel.text) == docs.kernel.raw
    assert docs.kernel.launch(docs.x, docs.y, docs.z)["grid"] == (4, 1, 1)
    rng = numpy.random.default_rng(0)
    for n in (0, 1, 255, 256, 257):
        x, y, z = rng.standard_normal((3, n)).astype("f4")
        assert not docs.kernel.emulate(x, y, z).findings
        assert numpy.array_equal(z, x + y)


def test_sizes_beyond_32_bits():
    """Sizes are Int32 in kernels: what has more elements is refused, also where strides of 0 hide it."""

    @cute.kernel(grid=1, block=32)
    def count(x, n):
        n[0] = cute.size(x)

    out = cute.TensorSpec(Int32, (1,))
    for shape, stride in (((1 << 16, 1 << 16), None), ((1 << 16, 1 << 16), (0, 0))):
        with pytest.raises(cute.KernelError, match="spans 4294967296 elements"):
            count.lower(cute.TensorSpec(Float32, shape, stride), out)
    text = count.lower(cute.TensorSpec(Float32, ("n", "m"), (None, 1)), out).text
    assert "require %x_shape0 * %m < 2147483648" in text


@cute.kernel(grid=lambda x, y, a: cute.ceil_div(x.shape[0], 64), block=64)
def axpy(x, y, a: Float32):
    tidx, _, _ = thread_idx()
    bidx, _, _ = block_idx()
    i = bidx * 64 + tidx
    if i < x.shape[0]:
        y[i] = a * x[i] + y[i]


@cute.kernel(grid=lambda x, y: x.shape[0], block=32)
def softmax(x, y):
    lane, _, _ = thread_idx()
    row, _, _ = block_idx()
    largest, total = Float32(-float("inf")), Float32(0)
    for j in range(lane, x.shape[1], 32):  # online: the sum follows the maximum
        value = x[row, j].to(Float32) * 1.4426950408889634
        before = largest
        largest = max(largest, value)
        total = total * exp2(before - largest) + exp2(value - largest)
    most = cute.arch.warp_reduction(largest, fmax)
    total = cute.arch.warp_reduction_sum(total * exp2(largest - most) if largest > -float("inf") else Float32(0))
    for j in range(lane, x.shape[1], 32):
        y[row, j] = exp2(x[row, j].to(Float32) * 1.4426950408889634 - most) / total


@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-6), ("float16", 1e-3)])
def test_rows_against_numpy(docs, dtype, tolerance):
    rng = numpy.random.default_rng(1)
    matrix = TensorSpec(dtype, ("rows", "cols"))
    for seed, shape in enumerate([(1, 1), (3, 7), (2, 128), (2, 333)]):
        x = (rng.standard_normal(shape) * 3).astype(dtype)
        w = rng.standard_normal(shape[1]).astype(dtype)
        y = numpy.zeros_like(x)
        exact = x.astype("f8")
        assert not softmax.lower(matrix, matrix).emulate(x, y, seed=seed).findings
        e = numpy.exp(exact - exact.max(-1, keepdims=True))
        assert numpy.allclose(y, e / e.sum(-1, keepdims=True), atol=tolerance)
        norm = docs.rms_norm.lower(matrix, TensorSpec(dtype, "cols"), matrix, 1e-6)
        assert not norm.emulate(x, w, y, 1e-6, seed=seed).findings
        assert numpy.allclose(y, exact / numpy.sqrt((exact**2).mean(-1, keepdims=True) + 1e-6) * w, atol=8 * tolerance)


def test_axpy_and_static_shapes():
    x, y = numpy.arange(100, dtype="f4"), numpy.ones(100, "f4")
    kernel = axpy.lower(x, y, 0.5)
    assert "%n" not in kernel.text and "grid (2, 1, 1)" in kernel.text
    assert not kernel.emulate(x, y, 0.5).findings
    assert numpy.array_equal(y, x * numpy.float32(0.5) + 1)
    assert kernel.raw.params == [("x", "read", "f32", 4), ("y", "read_write", "f32", 4), ("a", "", "f32", 0)]
    assert axpy.lower(tk.array(x), tk.array(y), 1.0) is kernel


def test_specialised_once():
    a, b = TensorSpec("float32", "n"), TensorSpec("float16", "n")
    assert axpy.lower(a, a, 0.5) is axpy.lower(TensorSpec(Float32, ("n",)), a, 7.0)
    assert axpy.lower(a, a, 0.5) is not axpy.lower(b, a, 0.5)
    assert axpy.lower(a, a, 0.5) is not axpy.lower(a, a, 0.5, block=128)


def test_sixteen_threads_build_at_once():
    specs = [TensorSpec("float32", (n, 8 + n % 4)) for n in range(1, 9)]
    made: list[dict] = [{} for _ in range(16)]
    start = threading.Barrier(16)

    def work(number):
        start.wait()
        for i in range(len(specs)):
            spec = specs[(i + number) % len(specs)]
            made[number][spec.shape] = softmax.lower(spec, spec)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(len(one) == len(specs) for one in made)
    assert all(one[shape] is made[0][shape] for one in made for shape in one)


# ---- numbers ----


@pytest.mark.parametrize(
    "a, b, expected",
    [(Int32, Int64, Int64), (Int8, Int16, Int16), (Int32, Float16, Float16), (Float16, BFloat16, Float32),
     (Float32, Float64, Float64), (Boolean, Int32, Int32), (Int32, Uint32, Uint32), (Float16, Float32, Float32)],
)  # fmt: skip
def test_promotion(a, b, expected):
    assert _numeric.promote(a, b) is expected and _numeric.promote(b, a) is expected


def test_integers_as_python_has_them():
    a = numpy.array([-7, -8, 7, 8, 0, 1, -1, 2**31 - 1, -(2**31), 5, -5, 9, -9, 3, -3, 6])
    b = numpy.array([2, 3, -2, -3, 5, 1, -1, 7, 7, 4, 4, -4, -4, 8, 8, 16])
    for function in (lambda_floor, lambda_rest, lambda_constant):
        assert on_device(function, a, b).tolist() == [int(numpy.int64(function(int(x), int(y)))) for x, y in zip(a, b)]


def lambda_floor(a, b):
    return a // b


def lambda_rest(a, b):
    return a % b


def lambda_constant(a, b):
    return (a // 3) ^ (a % 5) ^ (a // 8) ^ (a % 4) ^ ((b << 2) >> 1)


def conversions(a, b):
    return Float32(Int32(a) + Int32(b)) + a.to(Float16).to(Float32) + Float32(a > b)


def test_conversions():
    a = numpy.array([1.75, -2.5, 1e10, numpy.nan] * 8, "f4")
    b = numpy.array([3.9, -3.9, 0.5, 1.0] * 8, "f4")
    with numpy.errstate(all="ignore"):
        half = a.astype("f2").astype("f4")
    whole = numpy.array([1 + 3, -2 - 3, numpy.int32(2**31 - 1), 0 + 1] * 8, "f4")
    expected = whole + half + (a > b)
    found = on_device(conversions, a, b, dtype=Float32, result=Float32)
    assert numpy.array_equal(found, expected, equal_nan=True)


# ---- tiles ----


def test_product_builds_and_verifies(docs):
    a, b = TensorSpec(Float16, ("m", 128)), TensorSpec(Float16, ("n", 128))
    kernel = docs.product.lower(a, b, TensorSpec(Float32, ("m", "n")))
    kernel.raw.verify()
    assert kernels.parse(kernel.text) == kernel.raw
    assert "load_matrix" in kernel.text and "mma" in kernel.text
    assert ("a", "read", "f16", 16) in kernel.raw.params


@cute.kernel(grid=1, block=32)
def needs_gemm(a: Tensor, rows, warps):
    tidx, _, _ = thread_idx()
    tile = Tensor(dtype=Float16, rows=rows, cols=16)
    Load(Float16, tidx, num_threads=32)(a, tile)
    Gemm(Float16, tidx, num_threads=32, warp=warps)(tile, tile)


@pytest.mark.parametrize(
    "spec, rows, warps, words",
    [
        (TensorSpec(Float16, (16, 16)), 24, Warp(1, 1), "expected multiples of 16 and 16"),
        (TensorSpec(Float16, (16, 16)), 16, Warp(2, 1), "2 warps, and 32 threads are 1"),
        (TensorSpec(Float16, (16, 12)), 16, Warp(1, 1), "12 elements apart, which is no multiple of 8"),
        (TensorSpec(Float32, (16, 16)), 16, Warp(1, 1), "Load of Float16 from Float32"),
    ],
)
def test_tiles_that_do_not_fit(spec, rows, warps, words):
    with pytest.raises(KernelError, match=r"test_kernel_front.py:\d+: .*" + words):
        needs_gemm.lower(spec, rows, warps)


def test_text_and_errors_of_kernels():
    with pytest.raises(ValueError, match="k.tk"):
        kernels.parse("tiki kernel 1\nkernel x(", "k.tk")
    assert ("fma", "a * b + c, rounded once") in kernels.operations()


def test_what_prints():
    """Artifacts and reports print in a line, not with their bytes and counts."""
    x, y = numpy.arange(100, dtype="f4"), numpy.ones(100, "f4")
    kernel = axpy.lower(x, y, 0.5)
    assert repr(kernel.emulate(x, y, 0.5)).startswith("<nothing found; ")
    artifact = kernel.build("sm_90a", "ptx", binary=False)
    assert repr(artifact) == f"<artifact for sm_90a, {len(artifact.text)} characters of text, no binary>"


@cute.kernel(block=64)
def racing(x, y):
    t = thread_idx()[0]
    slots = cute.make_smem_tensor(Float32, 64)
    slots[t] = x[t]
    y[t] = slots[63 - t]


def test_a_report_prints_what_was_found():
    x, y = numpy.ones(64, "f4"), numpy.zeros(64, "f4")
    report = racing.lower(x, y, grid=1).emulate(x, y)
    assert report.findings and "shared race: " in repr(report)
