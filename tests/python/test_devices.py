"""Devices, streams, memory counters, dtypes' categories and limits, waiting and interruption."""

import os
import signal
import subprocess
import sys
import threading
import time

import mlx.core as mx
import numpy as np
import pytest
from patience import PATIENCE

import tiki as tk
from tiki import nn


def test_devices_and_streams():
    assert tk.default_device() == tk.cpu and repr(tk.default_device()) == "Device(cpu, 0)"
    assert tk.is_available(tk.cpu) and not tk.is_available(tk.gpu)
    assert tk.device_count(tk.cpu) == 1 and tk.device_info()["threads"] >= 1
    stream = tk.new_stream(tk.cpu)
    x = tk.add(tk.ones((4,)), 1, stream=stream)
    y = tk.multiply(x, 2, stream=tk.cpu) + x.sum(stream=stream)
    assert y.tolist() == [12, 12, 12, 12]
    with tk.stream(stream):
        assert tk.default_stream(tk.cpu) == stream
        z = y * 2
    assert tk.default_stream(tk.cpu) != stream and z.tolist() == [24] * 4
    tk.synchronize()
    with pytest.raises(NotImplementedError):
        tk.add(1, 2, stream=tk.gpu)
    with pytest.raises(TypeError):
        tk.add(1, 2, stream=3)


def test_memory_counters():
    before = tk.get_active_memory()
    x = tk.ones((1000, 1000)) + 1
    tk.eval(x)
    assert tk.get_active_memory() - before >= 4_000_000
    tk.reset_peak_memory()
    assert tk.get_peak_memory() >= tk.get_active_memory()
    del x
    assert tk.get_active_memory() <= before + 4096
    old = tk.set_memory_limit(tk.get_active_memory() + 10_000_000)
    try:
        with pytest.raises(MemoryError):
            tk.eval(tk.random.uniform(shape=(5000, 5000)))
    finally:
        tk.set_memory_limit(old)
    tk.clear_cache()
    assert tk.get_cache_memory() == 0


NAMES = "bool_ uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64".split()


def test_promotion_and_categories():
    def name(dtype):
        return str(dtype).split(".")[-1].removesuffix("_")

    for a in NAMES:
        for b in NAMES:
            own = tk.result_type(getattr(tk, a), getattr(tk, b))
            assert name(own) == name(mx.result_type(getattr(mx, a), getattr(mx, b))), (a, b)
            assert tk.can_cast(getattr(tk, a), getattr(tk, b)) == mx.can_cast(getattr(mx, a), getattr(mx, b)), (a, b)
        for c in "complexfloating floating inexact signedinteger unsignedinteger integer number generic".split():
            assert tk.issubdtype(getattr(tk, a), getattr(tk, c)) == mx.issubdtype(getattr(mx, a), getattr(mx, c)), (a, c)
        assert tk.issubdtype(getattr(tk, a), getattr(tk, a))
    assert tk.issubdtype(tk.floating, tk.inexact) and not tk.issubdtype(tk.inexact, tk.floating)
    assert tk.isdtype(tk.int8, ("signed integer", "bool")) and not tk.isdtype(tk.int8, "real floating")


def test_limits_of_dtypes():
    for name in ("float16", "bfloat16", "float32"):
        own, theirs = tk.finfo(getattr(tk, name)), mx.finfo(getattr(mx, name))
        assert (own.min, own.max, own.eps) == (theirs.min, theirs.max, theirs.eps)
    for name in ("int8", "uint16", "int64"):
        own, theirs = tk.iinfo(getattr(tk, name)), mx.iinfo(getattr(mx, name))
        assert (own.min, own.max) == (theirs.min, theirs.max)
    with pytest.raises(ValueError):
        tk.finfo(tk.int8)
    with pytest.raises(ValueError):
        tk.iinfo(tk.float32)


def test_waiting_lets_other_threads_run():
    counts = [0]
    done = threading.Event()

    def count():
        while not done.is_set():
            counts[0] += 1
            time.sleep(0.001)

    def counted_meanwhile():
        a = tk.random.normal((900, 900))
        for _ in range(6):
            a = a @ a * 0.01
        before = counts[0]
        tk.eval(a)
        return counts[0] - before

    thread = threading.Thread(target=count)
    thread.start()
    try:  # a busy machine may not let it run each time
        assert any(counted_meanwhile() > 3 for _ in range(500))
    finally:
        done.set()
        thread.join()


def test_interrupt():
    # A shell that starts this run in the background has the signal ignored, which children inherit.
    code = """
import signal
import tiki as tk
signal.signal(signal.SIGINT, signal.default_int_handler)
a = tk.ones((1200, 1200))
try:
    print("ready", flush=True)
    for _ in range(3000):
        a = (a @ a) * 1e-4
    tk.eval(a)
    print("done")
except KeyboardInterrupt:
    tk.eval(tk.ones((2,)) + 1)
    print("interrupted")
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.7)
    os.kill(process.pid, signal.SIGINT)
    try:
        assert process.communicate(timeout=PATIENCE)[0].strip() == "interrupted"
    finally:
        process.kill()


def test_broadcast_shapes():
    assert tk.broadcast_shapes((2, 1), (3,), ()) == (2, 3)
    with pytest.raises(ValueError):
        tk.broadcast_shapes((2,), (3,))


def test_version():
    header = open(os.path.join(os.path.dirname(__file__), "../../include/tiki/version.h")).read()
    assert f'TK_VERSION "{tk.__version__}"' in header
    assert np.array(tk.array(1)).item() == 1


STANDIN = os.path.join(os.environ.get("TIKI_BUILD", "build"), "lib", "libstandin_cuda.so")


@pytest.mark.skipif(not os.path.exists(STANDIN), reason="the stand-in of the driver is not built")
def test_dlpack_of_memory_on_a_gpu():
    program = """
import tiki as tk
x = tk.array([1.0, 2.0, 3.0]).to_device(tk.gpu)
assert x.__dlpack_device__() == (2, 0) and tk.ones(2).__dlpack_device__() == (1, 0)
y = tk.from_dlpack(x)
assert y.device == tk.gpu and y.tolist() == [1, 2, 3]
del x
assert y.tolist() == [1, 2, 3] and tk.from_dlpack(y.reshape(3, 1)).shape == (3, 1)
for wrong in ({"dl_device": (1, 0)}, {"copy": True}):
    try:
        y.__dlpack__(**wrong)
    except BufferError as error:
        print(error)
"""
    environment = dict(os.environ, TIKI_CUDA_DRIVER=STANDIN)
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "the array is on device (2, 0), device (1, 0) was asked",
        "memory of a GPU is shared, not copied: copy the array",
    ]


def test_numbers_are_drawn_where_they_are_used():
    """The implicit key may lie elsewhere: the numbers are those of the key all the same."""
    tk.random.seed(5)
    here = [tk.random.normal((3,)), tk.random.uniform(shape=(3,))]
    tk.random.seed(5)
    there = [tk.random.normal((3,), stream=tk.emulator)]
    with tk.stream(tk.emulator):
        there.append(tk.random.uniform(shape=(3,)))
        assert tk.random.bernoulli(0.5, (3,)).device == tk.Device(tk.emulator)
    for a, b in zip(here, there, strict=True):
        assert b.device == tk.Device(tk.emulator)
        np.testing.assert_allclose(a.tolist(), b.tolist(), rtol=1e-6)
    x = tk.ones((2, 3, 4)).to_device(tk.emulator)
    drawn = [
        tk.random.categorical(x),
        tk.random.bernoulli(x * 0.5),
        tk.random.uniform(x * 0, x, shape=(2, 3, 4)),
        tk.random.normal((2, 3, 4), loc=x),
        nn.Dropout(0.5)(x),
        nn.Dropout2d(0.5)(tk.ones((1, 2, 2, 3)).to_device(tk.emulator)),
    ]
    tk.eval(drawn)
    assert all(a.device == x.device for a in drawn)
    assert tk.random.normal((3,)).device == tk.Device(tk.cpu)


def test_names_are_no_devices():
    with pytest.raises(ValueError, match="'emulator' is no device: expected tiki.cpu, tiki.emulator"):
        tk.ones((2,)).to_device("emulator")
