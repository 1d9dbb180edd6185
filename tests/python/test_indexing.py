"""Reading and writing by index: random keys against NumPy."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

import tiki as tk

shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)


@st.composite
def keys(draw, shape, distinct=False):
    """A key of integers, slices, None, ellipsis, index arrays and masks for a shape."""
    parts, axis, used_ellipsis = [], 0, False
    index_shape = draw(hnp.array_shapes(min_dims=0, max_dims=2, min_side=1, max_side=3))
    while axis < len(shape):
        kind = draw(st.sampled_from(["int", "slice", "slice", "none", "ellipsis", "array", "mask", "stop"]))
        length = shape[axis]
        if kind == "int" and length:
            parts.append(draw(st.integers(-length, length - 1)))
            axis += 1
        elif kind == "slice":
            bound = st.none() | st.integers(-length - 2, length + 2)
            parts.append(slice(draw(bound), draw(bound), draw(st.sampled_from([None, 1, 2, 3, -1, -2]))))
            axis += 1
        elif kind == "none" and len(parts) < 6:
            parts.append(None)
        elif kind == "ellipsis" and not used_ellipsis:
            used_ellipsis = True
            parts.append(Ellipsis)
            axis += draw(st.integers(0, len(shape) - axis))
        elif kind == "array" and length:
            few = draw(st.sampled_from([index_shape, (1,) * len(index_shape)]))
            parts.append(draw(hnp.arrays(np.int32, few, elements=st.integers(-length, length - 1))))
            axis += 1
        elif kind == "mask" and index_shape == (1,):
            parts.append(np.arange(length) == draw(st.integers(0, max(length - 1, 0))))
            axis += 1
        elif kind == "stop":
            break
    return tuple(parts) if len(parts) != 1 or draw(st.booleans()) else parts[0]


def to_tiki(key):
    if isinstance(key, tuple):
        return tuple(to_tiki(part) for part in key)
    return tk.array(key) if isinstance(key, np.ndarray) else key


def numbered(shape):
    return np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)


@given(st.data())
def test_reading(data):
    shape = data.draw(shapes)
    key = data.draw(keys(shape))
    a = numbered(shape)
    try:
        expected = a[key]
    except IndexError:
        with pytest.raises(IndexError):
            tk.array(a)[to_tiki(key)]
        return
    result = tk.array(a)[to_tiki(key)]
    assert result.shape == expected.shape
    np.testing.assert_array_equal(np.array(result), expected)


@given(st.data())
def test_reading_of_views(data):
    shape = data.draw(shapes)
    a = numbered(shape).T[::-1] if len(shape) else numbered(shape)
    x = tk.array(numbered(shape)).T
    x = x[::-1] if len(shape) else x
    key = data.draw(keys(a.shape))
    try:
        expected = a[key]
    except IndexError:
        return
    np.testing.assert_array_equal(np.array(x[to_tiki(key)]), expected)


@given(st.data())
def test_writing(data):
    shape = data.draw(shapes)
    key = data.draw(keys(shape))
    a = numbered(shape)
    try:
        target = a[key].shape
    except IndexError:
        return
    cut = data.draw(st.integers(0, len(target)))
    value_shape = tuple(1 if data.draw(st.booleans()) else n for n in target[cut:])
    value = -1 - numbered(value_shape)
    # repeated indices: which one wins is open, so the value is then the same everywhere
    if any(isinstance(part, np.ndarray) for part in (key if isinstance(key, tuple) else (key,))):
        value = np.full(value_shape, -1, np.float32)
    x = tk.array(a)
    x[to_tiki(key)] = tk.array(value)
    a[key] = value
    np.testing.assert_array_equal(np.array(x), a)


@given(st.data())
def test_updates_count_repeated_indices(data):
    shape = data.draw(shapes)
    key = data.draw(keys(shape))
    a = numbered(shape)
    try:
        target = a[key].shape
    except IndexError:
        return
    value = numbered(target) + 1
    for name, ufunc in (("add", np.add), ("subtract", np.subtract), ("maximum", np.maximum), ("minimum", np.minimum), ("multiply", np.multiply)):
        expected = a.copy()
        ufunc.at(expected, key, value)
        result = getattr(tk.array(a).at[to_tiki(key)], name)(tk.array(value))
        np.testing.assert_allclose(np.array(result), expected, rtol=1e-6, err_msg=name)


def test_keys_of_lists_and_numpy():
    a = numbered((3, 4))
    x = tk.array(a)
    for key in ([0, 2], ([0, 1], [2, 3]), (slice(None), [0, 0]), np.array([1, 0]), (np.int64(1), np.int64(2)), a > 5, [True, False, True]):
        np.testing.assert_array_equal(np.array(x[key]), a[key])
    assert x[[]].shape == (0, 4)
    for key in (3, -4, (0, 4), (0, 0, 0), (..., ...), "a", 1.5, [0.5], True, tk.array([0.5]), np.array([True])):
        with pytest.raises(IndexError):
            x[key]
    with pytest.raises(ValueError):
        x[0] = tk.ones((3,))
    with pytest.raises(IndexError):
        tk.eval(x[tk.array([7])])


def test_masks():
    a = numbered((3, 4))
    x = tk.array(a)
    x[x > 5] = 0.5
    a[a > 5] = 0.5
    np.testing.assert_array_equal(np.array(x), a)
    x[x < 3] = tk.array([7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0])
    a[a < 3] = [7, 8, 9, 10, 11, 12, 13, 14, 15]
    np.testing.assert_array_equal(np.array(x), a)
    rows = tk.array([True, False, True])
    x[rows] = tk.array([1.0, 2.0, 3.0, 4.0])
    a[[True, False, True]] = [1, 2, 3, 4]
    np.testing.assert_array_equal(np.array(x), a)
    y = tk.array([1, 2, 3]).at[tk.array([True, False, True])].add(10)
    assert y.tolist() == [11, 2, 13]


def test_gradients_of_indexing():
    a = numbered((3, 4))

    def loss(x):
        y = x[tk.array([0, 0, 2])] * 2
        z = tk.zeros((3, 4))
        z[:, 1:3] = x[:, 1:3] * x[:, 1:3]
        z[1] += x[1]
        return y.sum() + z.sum() + x.at[0, [1, 1]].add(x[2, 2]).sum()

    expected = np.ones((3, 4))
    expected[0] += 4
    expected[2] += 2
    expected[:, 1:3] += 2 * a[:, 1:3]
    expected[1] += 1
    expected[2, 2] += 2
    np.testing.assert_allclose(np.array(tk.grad(loss)(tk.array(a))), expected, rtol=1e-6)


@pytest.mark.parametrize("device", ["cpu", "emulator"])
@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize(
    "read",
    [np.array, np.asarray, lambda a: np.stack([a]), lambda a: np.zeros(2, np.float32) + a, memoryview,
     lambda a: a.tolist(), np.from_dlpack],
)
def test_numpy_raises_indices_out_of_range(device, begun, read):
    x = tk.ones((3, 2)).to_device(getattr(tk, device))
    bad = tk.take(x, tk.array([0, 7]).to_device(x.device), axis=0)
    if begun:
        tk.async_eval(bad)
        tk.synchronize()
    with pytest.raises(IndexError, match="index 7 is out of range"):
        read(bad)
    assert np.array(bad).tolist() == [[1, 1], [0, 0]] and np.array(x).tolist() == [[1, 1]] * 3


def test_numpy_raises_errors_of_functions():
    @tk.custom_function
    def f(x):
        raise RuntimeError("none")

    with pytest.raises(RuntimeError, match="none"):
        np.array(f(tk.ones((2,))))
