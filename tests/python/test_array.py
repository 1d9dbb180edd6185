"""The array type: creation, conversions, operators, text."""

import copy
import gc
import subprocess
import sys
import weakref

import numpy as np
import pytest

import tiki as tk


def test_creation_from_lists():
    assert tk.array([[1, 2], [3, 4]]).dtype == tk.int32
    assert tk.array([1, 2.5]).tolist() == [1.0, 2.5]
    assert tk.array([True, False]).dtype == tk.bool_
    assert tk.array([1 + 2j]).dtype == tk.complex64
    assert tk.array([]).dtype == tk.float32
    assert tk.array([[], []]).shape == (2, 0)
    assert tk.array(2**40).dtype == tk.int64
    assert tk.array([2**63]).dtype == tk.uint64
    assert tk.array([1, 2], dtype=tk.float16).dtype == tk.float16
    assert tk.array([tk.array(1), 2]).tolist() == [1, 2]
    assert tk.array([tk.array([1.0]), [2]]).shape == (2, 1)


@pytest.mark.parametrize("wrong", [[[1, 2], [3]], [1, [2]], "a", [None], {}, [[1], 2], object()])
def test_creation_refuses(wrong):
    with pytest.raises(ValueError):
        tk.array(wrong)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_integers_that_do_not_fit(dtype):
    low, high, kind = np.iinfo(dtype).min, np.iinfo(dtype).max, getattr(tk, dtype)
    assert tk.array([[low], [high]], dtype=kind).tolist() == [[low], [high]]
    x = tk.array([1, 2, 3], dtype=kind)
    for value in (low - 1, high + 1, 10**5000):
        calls = [
            lambda: tk.array(value, dtype=kind),
            lambda: tk.array([1, value], dtype=kind),
            lambda: tk.array([[1, 2], [value, 3]], dtype=kind),
            lambda: tk.asarray(value, dtype=kind),
            lambda: x.__setitem__(0, value),
            lambda: x.__setitem__(slice(0, 2), [1, value]),
            lambda: x.at[0].add(value),
            lambda: x.at[tk.array([0])].maximum(value),
            lambda: x + value,
        ]
        for call in calls:
            with pytest.raises(OverflowError, match="does not fit"):
                call()
    assert x.tolist() == [1, 2, 3]
    assert x.at[0].subtract(1).tolist() == [0, 2, 3]


def test_integers_of_both_kinds():
    for dtype in (None, tk.int64, tk.uint64):
        with pytest.raises(OverflowError):
            tk.array([2**63, -1], dtype=dtype)
    assert tk.array([2**63, -1], dtype=tk.float32).tolist() == [2.0**63, -1]
    assert tk.array([2, 0], dtype=tk.bool_).tolist() == [True, False]
    assert tk.array([300.0, 1], dtype=tk.int8).tolist() == [127, 1]
    assert tk.array(np.array([300]), dtype=tk.int8).tolist() == [44]


def test_creation_from_numpy():
    for dtype in "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 float32 complex64".split():
        source = np.arange(6).reshape(2, 3).astype(dtype)
        for view in (source, source.T, source[::-1, ::2], source[:0]):
            made = tk.array(view)
            assert made.dtype == getattr(tk, "bool_" if dtype == "bool" else dtype)
            np.testing.assert_array_equal(np.array(made), view)
    assert tk.array(np.zeros(2)).dtype == tk.float32
    assert tk.array(np.zeros(2), dtype=tk.float64).dtype == tk.float64
    assert tk.array(np.zeros(2, complex)).dtype == tk.complex64


def test_values_to_python():
    assert tk.array(3).item() == 3 and type(tk.array(3).item()) is int
    assert tk.array(True).item() is True
    assert tk.array(1.5, dtype=tk.bfloat16).item() == 1.5
    assert tk.array([1 + 2j]).item() == 1 + 2j
    assert tk.array([2**64 - 1], dtype=tk.uint64).item() == 2**64 - 1
    assert int(tk.array(2.7)) == 2 and float(tk.array([1])) == 1.0 and complex(tk.array(1j)) == 1j
    assert bool(tk.array(1)) and not tk.array([0.0])
    assert [10, 20, 30][tk.array(1)] == 20
    with pytest.raises(ValueError):
        bool(tk.array([1, 2]))
    with pytest.raises(TypeError):
        len(tk.array(1))
    with pytest.raises(TypeError):
        [1][tk.array(0.0)]


def test_operators():
    a, b = np.array([7, -8, 9], np.int32), np.array([2, 3, -4], np.int32)
    x, y = tk.array(a), tk.array(b)
    for operator in "+ - * // % & | ^ == != < <= > >=".split():
        for left, right, expected in ((x, y, f"a {operator} b"), (x, 2, f"a {operator} 2"), (2, y, f"2 {operator} b")):
            result = eval(f"left {operator} right")
            np.testing.assert_array_equal(np.array(result), eval(expected), err_msg=expected)
    np.testing.assert_allclose(np.array(x / y), a / b, rtol=1e-6)
    assert (x << 1).tolist() == [14, -16, 18] and (x >> 1).tolist() == [3, -4, 4]
    assert (x**2).tolist() == [49, 64, 81] and (2.0 ** tk.array([1, 2])).tolist() == [2, 4]
    assert (~x).tolist() == [-8, 7, -10] and (-x).tolist() == [-7, 8, -9] and abs(x).tolist() == [7, 8, 9]
    assert (tk.ones((2, 3)) @ tk.ones((3, 2))).tolist() == [[3, 3], [3, 3]]
    assert [q.tolist() for q in divmod(x, 4)] == [[1, -2, 2], [3, 0, 1]]
    assert 9 in x and 5 not in x
    assert not (x == "a") and (x == None) is False  # noqa: E711
    with pytest.raises(TypeError):
        x + "a"


def test_in_place_operators_change_the_box():
    x = tk.array([1.0, 2.0])
    alias = x
    x += 1
    x *= tk.array([2.0, 3.0])
    assert alias is x and alias.tolist() == [4, 9]
    x[0] = -1
    assert alias.tolist() == [-1, 9]


def test_weak_scalars_keep_the_dtype():
    for dtype in (tk.float16, tk.bfloat16, tk.int8, tk.uint32):
        assert (tk.ones((2,), dtype) + 1).dtype == dtype
    assert (tk.ones((2,), tk.int8) + 1.0).dtype == tk.float32
    assert (tk.ones((2,), tk.float32) * 1j).dtype == tk.complex64


def test_text():
    assert repr(tk.array([1, 2, 3])) == "array([1, 2, 3], dtype=int32)"
    assert repr(tk.array([[1, 2], [3, 4.5]])) == "array([[1. , 2. ],\n       [3. , 4.5]], dtype=float32)"
    assert f"{tk.array(1.5):.3f}" == "1.500"
    for values in (np.arange(27).reshape(3, 3, 3), np.float32([1e10, -1]), np.array([True, False]), np.complex64([1 + 2j, 3.5])):
        own = repr(tk.array(values)).split(", dtype")[0]
        assert own == repr(values).split(", dtype")[0].removesuffix(")")


def test_iteration():
    rows = list(tk.arange(6).reshape(3, 2))
    assert len(rows) == 3 and rows[2].tolist() == [4, 5]
    a, b = tk.array([1, 2])
    assert (a.item(), b.item()) == (1, 2)
    with pytest.raises(TypeError):
        iter(tk.array(1))


def test_copies_are_values():
    import pickle

    x = tk.array([[1.0, 2.0]])
    for made in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        x2 = made
        x2[0] = 5
        assert x.tolist() == [[1, 2]] and x2.tolist() == [[5, 5]]
    for dtype in (tk.bfloat16, tk.complex64, tk.bool_):
        y = pickle.loads(pickle.dumps(tk.ones((2, 2), dtype)))
        assert y.dtype == dtype and y.shape == (2, 2)
    assert pickle.loads(pickle.dumps(tk.float32)) is tk.float32
    assert copy.deepcopy({"a": tk.int8})["a"] is tk.int8


def test_an_error_is_of_its_array_alone():
    """Also when that array is gone and another one lies where it was."""
    bad = tk.take(tk.ones((3,)), tk.array([7]))
    with pytest.raises(IndexError, match="index 7"):
        memoryview(bad)
    del bad
    for _ in range(50):
        y = tk.ones((2,))
        assert y.__array__().tolist() == [1, 1]


def test_numpy_and_dlpack():
    x = tk.arange(12).reshape(3, 4).T[::2]
    np.testing.assert_array_equal(np.asarray(x), np.arange(12).reshape(3, 4).T[::2])
    np.testing.assert_array_equal(np.from_dlpack(x), np.asarray(x))
    assert not np.asarray(x).flags.writeable
    assert np.array(x, dtype=np.float64).dtype == np.float64
    source = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    for view in (source, source[::-1], source.T, source[:, :1], source[:0]):
        np.testing.assert_array_equal(np.array(tk.from_dlpack(view)), view)
        np.testing.assert_array_equal(np.array(tk.from_dlpack(view, copy=True)), view)
    assert x.__dlpack_device__() == (1, 0)
    capsule = x.__dlpack__(max_version=(1, 0))
    assert "dltensor_versioned" in repr(capsule)
    assert "dltensor_versioned" not in repr(x.__dlpack__())
    assert (np.float32([1, 2]) + tk.array([1.0, 2.0])).tolist() == [2, 4]


def test_bfloat16_and_ml_dtypes():
    import ml_dtypes

    x = tk.array([1.5, -2.0], dtype=tk.bfloat16)
    made = np.array(x)
    assert made.dtype == ml_dtypes.bfloat16 and made.astype(np.float32).tolist() == [1.5, -2.0]
    back = tk.array(made)
    assert back.dtype == tk.bfloat16 and back.tolist() == [1.5, -2.0]


def test_buffers_outlive_the_box():
    x = tk.array([1.0, 2.0])
    view = memoryview(x)
    x[0] = 9
    assert view.tolist() == [1, 2]
    del x
    gc.collect()
    assert view.tolist() == [1, 2]


def test_weak_references():
    x = tk.array([1])
    reference = weakref.ref(x)
    assert reference() is x
    del x
    assert reference() is None


def seconds_of_import(module):
    """The least of a few, of processor time, so that a busy machine counts little."""
    code = f"import time; t=time.process_time(); import {module}; print(time.process_time()-t)"
    return min(float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(5))


def test_import_is_quick_and_exit_is_clean():
    # a tenth of a second, or as much more as this machine is slower at a module of Python's own
    assert seconds_of_import("tiki") < max(0.1, 2.5 * seconds_of_import("asyncio"))
    code = "import tiki as tk; x=[tk.random.normal((300,300)) for _ in range(4)]; tk.async_eval(*x)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_asarray_shares_memory_and_array_copies():
    for source in (
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.arange(6, dtype=np.int64).reshape(2, 3)[:, ::-1],
        np.arange(24, dtype=np.uint16).reshape(2, 3, 4).T[::-2],
        np.ones((3, 1), np.complex64),
        np.array(5, np.int32),
    ):
        shared, copied = tk.asarray(source), tk.array(source)
        np.testing.assert_array_equal(np.asarray(shared), source)
        np.testing.assert_array_equal(np.asarray(tk.asarray(source, copy=False) + 0), source)
        assert np.shares_memory(np.asarray(shared), source)
        assert not np.shares_memory(np.asarray(copied), source)
        assert not np.shares_memory(np.asarray(tk.asarray(source, copy=True)), source)
    assert tk.asarray(np.ones(2)).dtype == tk.float32  # as array does
    assert tk.asarray(np.ones(2), tk.float64, copy=False).dtype == tk.float64
    frozen = np.ones(3, np.float32)
    frozen.flags.writeable = False
    assert np.shares_memory(np.asarray(tk.asarray(frozen)), frozen)
    odd = np.frombuffer(bytes(9), np.uint8)[1:].view(np.float32)  # not aligned
    assert tk.asarray(odd).tolist() == [0, 0]
    assert tk.asarray(np.zeros((0, 2), np.float32)).shape == (0, 2)
    for wrong in (np.ones(2), [1.0], odd, 3):
        with pytest.raises(ValueError):
            tk.asarray(wrong, copy=False)


def test_shared_memory_is_held_as_long_as_needed():
    source = np.arange(4, dtype=np.float32)
    reference = weakref.ref(source)
    x = tk.asarray(source)
    y = x[1:] * 2
    del source, x
    gc.collect()
    assert reference() is not None and y.tolist() == [2, 4, 6]
    gc.collect()
    assert reference() is None


def test_shared_bfloat16():
    import ml_dtypes

    source = np.array([[1.5, 2.5]], ml_dtypes.bfloat16)
    shared = tk.asarray(source, copy=False)
    assert shared.dtype == tk.bfloat16 and shared.tolist() == [[1.5, 2.5]]
    assert np.asarray(shared).itemsize == 2 and np.asarray(shared).dtype == ml_dtypes.bfloat16


def flags_of(capsule):
    """The flags in a versioned capsule: after two numbers, two pointers."""
    import ctypes

    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.c_uint64.from_address(get(capsule, b"dltensor_versioned") + 24).value


def test_dlpack_says_what_may_be_written():
    x = tk.arange(3, dtype=tk.float32)
    assert flags_of(x.__dlpack__(max_version=(1, 1))) == 1  # read-only
    assert flags_of(x.__dlpack__(max_version=(1, 1), copy=True)) == 2  # a copy
    assert not np.from_dlpack(x).flags.writeable
    frozen = np.ones((3, 1), np.float32)
    frozen.flags.writeable = False
    assert tk.from_dlpack(frozen).tolist() == [[1], [1], [1]]
    strange = np.lib.stride_tricks.as_strided(np.ones(4, np.float32), (1, 4), (12345, 4))
    assert tk.from_dlpack(strange).tolist() == [[1, 1, 1, 1]]
    assert tk.asarray(strange, copy=False).tolist() == [[1, 1, 1, 1]]
    with pytest.raises(BufferError):
        x.__dlpack__(dl_device=(2, 0))
