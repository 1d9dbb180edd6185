"""Memory of a GPU shared with torch and CuPy, both ways: in place, in order behind slow work on other streams, and as long
as somebody holds it. Skipped without a card and without them."""

import ctypes
import gc

import numpy as np
import pytest

import tiki as tk

pytestmark = pytest.mark.skipif(not tk.is_available(tk.gpu), reason="no GPU")

BIG = 1 << 24


def pointer(x):
    """The address of Tiki's memory: the first word of a capsule's tensor."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    capsule = x.__dlpack__()
    return ctypes.cast(get(capsule, b"dltensor"), ctypes.POINTER(ctypes.c_void_p))[0]


def there(array):
    return array.to_device(tk.gpu)


def slow_twos():
    """A matrix of 2 that takes a second: products by the identity in float32, right and slow."""
    one = there(tk.eye(3000))
    x = there(tk.ones((3000, 3000)))
    for _ in range(12):
        x = x @ one
    x = x + 1
    tk.async_eval(x)
    return x


@pytest.fixture
def torch():
    module = pytest.importorskip("torch")
    if not module.cuda.is_available():
        pytest.skip("torch sees no card")
    return module


@pytest.fixture
def cupy():
    return pytest.importorskip("cupy")


@pytest.mark.parametrize("name", "float32 float16 bfloat16 float64 int8 int16 int32 int64 uint8 bool".split())
def test_in_place_both_ways(torch, name):
    t = torch.arange(24, device="cuda").reshape(2, 3, 4).to(getattr(torch, name))
    x = tk.from_dlpack(t)
    assert x.device == tk.gpu and x.shape == (2, 3, 4) and pointer(x) == t.data_ptr()
    np.testing.assert_array_equal(np.array(x.astype(tk.float32)), t.float().cpu().numpy())
    back = torch.from_dlpack(x)
    assert back.data_ptr() == t.data_ptr() and back.dtype == t.dtype and torch.equal(back, t)


def test_views_and_nothing(torch):
    t = torch.arange(24.0, device="cuda").reshape(4, 6).t()[1:5, ::2]
    x = tk.from_dlpack(t)
    assert pointer(x) == t.data_ptr()
    np.testing.assert_array_equal(np.array(x), t.cpu().numpy())
    assert tk.from_dlpack(torch.empty((0, 3), device="cuda")).shape == (0, 3)


def test_writes_are_seen(torch):
    t = torch.zeros(1000, device="cuda")
    x = tk.from_dlpack(t)
    t.fill_(7)
    torch.cuda.synchronize()
    assert float((x + 0).sum()) == 7000


def test_a_slow_producer_in_torch(torch):
    side = torch.cuda.Stream()
    for trial in range(3):
        with torch.cuda.stream(side):
            t = torch.zeros(BIG, device="cuda")
            torch.cuda._sleep(600_000_000)
            t += trial + 1
            x = tk.from_dlpack(t)
        assert float((x * 1).sum()) == BIG * (trial + 1)


def test_a_slow_producer_in_tiki(torch):
    for stream in (torch.cuda.current_stream(), torch.cuda.Stream()):
        x = slow_twos()
        with torch.cuda.stream(stream):
            assert float((torch.from_dlpack(x) - 2).abs().max()) == 0


def test_memory_of_torch_lives_as_long_as_needed(torch):
    t = torch.full((BIG,), 5.0, device="cuda")
    x = y = tk.from_dlpack(t)
    for _ in range(200):
        y = y + x
    tk.async_eval(y)
    del t, x
    gc.collect()
    others = [torch.full((BIG,), 9.0, device="cuda") for _ in range(4)]
    assert float(y[123]) == 5.0 * 201
    del others


def test_memory_of_tiki_lives_as_long_as_needed(torch):
    side = torch.cuda.Stream()
    for _ in range(3):
        x = there(tk.ones((BIG // 4,))) * 6
        with torch.cuda.stream(side):
            t = torch.from_dlpack(x)
            del x
            torch.cuda._sleep(400_000_000)
            total = t.sum()
            del t  # while torch still reads it
            gc.collect()
        tk.eval(there(tk.ones((BIG // 4,))) * 8)
        side.synchronize()
        assert float(total) == 6.0 * (BIG // 4)


def test_gradients(torch):
    x = tk.from_dlpack(torch.linspace(-1, 1, 1000, device="cuda"))
    t = torch.linspace(-1, 1, 1000, device="cuda", requires_grad=True)
    (t**3).sum().backward()
    got = torch.from_dlpack(tk.grad(lambda a: (a * a * a).sum())(x))
    assert float((got - t.grad).abs().max()) < 1e-6


def test_cupy(cupy):
    c = cupy.arange(12, dtype=cupy.float32).reshape(3, 4)
    x = tk.from_dlpack(c)
    assert pointer(x) == c.data.ptr
    y = x * 2
    d = cupy.from_dlpack(y)
    assert d.data.ptr == pointer(y)
    np.testing.assert_array_equal(cupy.asnumpy(d), 2 * cupy.asnumpy(c))
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        big = cupy.zeros(BIG, dtype=cupy.float32)
        for _ in range(400):
            big += 1
        x = tk.from_dlpack(big)
        worst = abs(cupy.from_dlpack(slow_twos()) - 2).max()
    assert float((x * 1).sum()) == 400.0 * BIG
    stream.synchronize()
    assert float(worst) == 0


def message(make):
    with pytest.raises(IndexError) as caught:
        tk.eval(make())
    return str(caught.value)


def test_indices_out_of_range():
    """Op, first bad index, axis and position are the processor's; it is told once, and the values are there."""
    rng = np.random.default_rng(3)
    for rows, count, bad in ((5, 7, 1), (1000, 4096, 3), (64, 1 << 18, 1 << 18)):
        at = rng.integers(0, rows, count).astype(np.int32)
        at[rng.choice(count, bad, replace=False)] += rows
        index, a = tk.array(at), tk.array(rng.standard_normal((rows, 64)).astype(np.float32))
        v = tk.array(rng.standard_normal((count, 64)).astype(np.float32))
        assert message(lambda: tk.take(there(a), there(index), axis=0)) == message(lambda: tk.take(a, index, axis=0))
        assert message(lambda: there(a).at[there(index)].add(there(v))) == message(lambda: a.at[index].add(v))
        tk.eval(there(tk.ones((3,))) + 1)
    y = tk.take(there(tk.array([1.0, 2.0, 3.0])), there(tk.array(np.array([0, 7, 2], np.uint32))), axis=0)
    tk.async_eval(y)
    with pytest.raises(IndexError):
        tk.synchronize()
    assert np.array(y).tolist() == [1, 0, 3]
