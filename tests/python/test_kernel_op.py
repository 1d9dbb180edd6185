"""Devices and kernels as ops in Python: moves, launches, rules, the library's kernels, refusals."""

import mlx.core as mx
import numpy as np
import pytest

import tiki as tk
from tiki import kernels
from tiki.kernels import library

SQUARE = """
tiki kernel 1
kernel square(%x: ptr<f32, global> read align 4 size %n, %y: ptr<f32, global> write align 4 size %n,
  %r: ptr<f32, global> write align 4 size %n, %n: i32)
form thread
require %n >= 0
grid (ceildiv(%n, 32), 1, 1)
block (32, 1, 1)
{
  %t = thread_index.x : i32
  %b = block_index.x : i32
  %f = mul %b, i32(32) : i32
  %i = add %f, %t : i32
  %in = icmp.slt %i, %n : i1
  if %in {
    %px = offset %x, %i : ptr<f32, global>
    %py = offset %y, %i : ptr<f32, global>
    %pr = offset %r, %i : ptr<f32, global>
    %v = load %px : f32
    %w = mul %v, %v : f32
    %u = add %v, %v : f32
    store %py, %w
    store %pr, %u
  }
}
"""
SCALE = """
tiki kernel 1
kernel scale(%x: ptr<f32, global> read_write align 4 size %n, %factor: f32, %n: i32)
form thread
grid (ceildiv(%n, 32), 1, 1)
block (32, 1, 1)
{
  %t = thread_index.x : i32
  %b = block_index.x : i32
  %f = mul %b, i32(32) : i32
  %i = add %f, %t : i32
  %in = icmp.slt %i, %n : i1
  if %in {
    %p = offset %x, %i : ptr<f32, global>
    %v = load %p : f32
    %w = mul %v, %factor : f32
    store %p, %w
  }
}
"""
square_kernel = kernels.parse(SQUARE, "square.tk")
scale_kernel = kernels.parse(SCALE, "scale.tk")


def square(x):
    out = tk.output(x.shape, x.dtype)
    return tk.launch(square_kernel, x, out, tk.output(x.shape, x.dtype), x.size)


def there(array):
    return array.to_device(tk.emulator)


def test_devices():
    x = tk.arange(6, dtype=tk.float32)
    y = there(x)
    assert x.device == tk.cpu and y.device == tk.emulator and repr(y.device) == "Device(emulator, 0)"
    assert y.to_device(tk.emulator) is y and y.tolist() == x.tolist()
    z = y * 2 + y
    assert z.device == tk.emulator and np.array(z).tolist() == [0, 3, 6, 9, 12, 15] and z[3].item() == 9
    assert z.to_device(tk.cpu).device == tk.cpu and "9" in repr(z)
    with pytest.raises(ValueError, match="move one of them with to_device"):
        x + y
    with pytest.raises(ValueError, match="an array on cpu:0, and stream= names emulator:0"):
        tk.add(x, x, stream=tk.emulator)
    with pytest.raises(NotImplementedError, match="has no kernel on emulator:0"):
        tk.sort(y)
    with tk.stream(tk.emulator):
        assert tk.default_device() == tk.emulator and tk.zeros((3,)).device == tk.emulator
        assert tk.array([1.0, 2.0]).device == tk.emulator and (x + x).device == tk.cpu
    assert tk.default_device() == tk.cpu and tk.new_stream(tk.emulator).device == tk.emulator
    assert tk.is_available(tk.emulator) and not tk.is_available(tk.Device(tk.emulator, 1))
    assert tk.device_info(tk.emulator)["variant"] == "kernels, executed and judged"


def test_gradients_cross_devices():
    x = tk.array([1.0, 2.0, 3.0])

    def loss(x):
        y = there(x * x)
        return (y * y).to_device(tk.cpu).sum()

    assert tk.grad(loss)(x).tolist() == [4, 32, 108]


def test_launches():
    x = there(tk.arange(5, dtype=tk.float32))
    y, r = square(x)
    assert y.tolist() == [0, 1, 4, 9, 16] and r.tolist() == [0, 2, 4, 6, 8]
    z = tk.launch(scale_kernel, tk.output(in_place=y), 0.5, 5)
    assert z.tolist() == [0, 0.5, 2, 4.5, 8] and y.tolist() == [0, 1, 4, 9, 16]
    with pytest.raises(ValueError, match="parameter n is an integer, a float is bound"):
        tk.launch(scale_kernel, tk.output(in_place=y), 0.5, 5.0)
    with pytest.raises(tk.DtypeError, match="parameter x points to f32"):
        square(y.astype(tk.int32))
    with pytest.raises(ValueError, match="parameter x needs 9 elements"):
        tk.launch(scale_kernel, tk.output(in_place=y), 0.5, 9)
    with pytest.raises(NotImplementedError, match="kernel square cannot be launched on cpu:0"):
        tk.eval(square(tk.ones((3,)))[0])
    with pytest.raises(ValueError, match="needs a shape and a dtype"):
        tk.output((3,))


def test_findings_name_kernel_and_line():
    bad = kernels.parse(SCALE.replace("offset %x, %i", "offset %x, i32(100000)"))
    with pytest.raises(RuntimeError, match=r"kernel scale launched at test_kernel_op.py:\d+: out of bounds"):
        tk.eval(tk.launch(bad, tk.output(in_place=there(tk.ones((3,)))), 0.5, 3))


def make(**options):
    @tk.kernel_op(hidden=1, **options)
    def op(x):
        return square(x)

    return op


def test_rules():
    op = make(batching="loop")

    @op.vjp
    def op_vjp(primal, cotangent, outputs):
        return cotangent * outputs[1]

    @op.jvp
    def op_jvp(primal, tangent):
        return 2 * primal * tangent

    x = there(tk.arange(4, dtype=tk.float32))
    assert op(x).tolist() == [0, 1, 4, 9]
    loss = lambda x: op(x).to_device(tk.cpu).sum()  # noqa: E731
    assert tk.grad(loss)(x).tolist() == [0, 2, 4, 6]
    assert tk.grad(tk.checkpoint(loss))(x).tolist() == [0, 2, 4, 6]
    _, tangents = tk.jvp(op, [x], [tk.ones_like(x)])
    assert tangents[0].tolist() == [0, 2, 4, 6]
    rows = there(tk.arange(6, dtype=tk.float32).reshape(2, 3))
    assert tk.vmap(op)(rows).tolist() == [[0, 1, 4], [9, 16, 25]]
    assert tk.vmap(tk.grad(loss))(rows).tolist() == [[0, 2, 4], [6, 8, 10]]
    assert tk.compile(op)(x).tolist() == [0, 1, 4, 9]
    assert tk.vmap(make(batching="leading"))(rows).tolist() == [[0, 1, 4], [9, 16, 25]]


def test_missing_rules_refuse():
    op = make()
    x = there(tk.ones((3,)))
    with pytest.raises(NotImplementedError, match="op has no vjp, which reverse mode needs"):
        tk.grad(lambda x: op(x).to_device(tk.cpu).sum())(x)
    with pytest.raises(NotImplementedError, match="op has no jvp, which forward mode needs"):
        tk.jvp(op, [x], [x])
    with pytest.raises(NotImplementedError, match="op has no vmap, which vmap needs"):
        tk.vmap(op)(x.reshape(1, 3))
    with pytest.raises(NotImplementedError, match="kernel square has no derivative"):
        tk.grad(lambda x: square(x)[0].to_device(tk.cpu).sum())(x)
    with pytest.raises(ValueError, match="batching"):
        tk.kernel_op(batching="magic")


@pytest.mark.parametrize("columns", [5, 64])
def test_library(columns):
    rng = np.random.default_rng(3)
    x, w = rng.normal(size=(7, columns)).astype("f"), rng.normal(size=columns).astype("f")
    near = lambda a, b: np.allclose(np.array(a), np.array(b), rtol=1e-4, atol=1e-4)  # noqa: E731
    tx, tw = there(tk.array(x)), there(tk.array(w))
    assert near(library.rms_norm(tx, tw), mx.fast.rms_norm(mx.array(x), mx.array(w), 1e-5))
    assert near(library.softmax(tx), mx.softmax(mx.array(x), -1))
    assert near(library.transpose(tx), x.T) and near(library.column_sum(tx), x.sum(0))
    ours = tk.grad(lambda x, w: library.rms_norm(x, w).to_device(tk.cpu).square().sum(), (0, 1))(tx, tw)
    theirs = mx.grad(lambda x, w: mx.fast.rms_norm(x, w, 1e-5).square().sum(), (0, 1))(mx.array(x), mx.array(w))
    assert near(ours[0], theirs[0]) and near(ours[1], theirs[1])
    half = there(tk.array(x).astype(tk.float16))
    assert np.allclose(np.array(library.matmul(half, half.T)), x @ x.T, rtol=2e-2, atol=5e-2)


def test_schedules():
    x = there(tk.random.normal((8, 256)))
    fields = library.schedule("softmax", x)
    assert fields["vector"] == 16 and {"threads_per_row", "rows_per_block", "held", "cluster"} < set(fields)
    plain = library.softmax(x)
    fields["threads_per_row"], fields["held"] = 8, 0
    assert np.allclose(np.array(library.softmax(x, fields)), np.array(plain), atol=1e-6)
    with pytest.raises(ValueError, match="less than a row of 256"):
        library.softmax(x, {"threads_per_row": 8, "held": 1, "cluster": 1})
    with pytest.raises(KeyError):
        library.softmax(x, {"tile_m": 16})
