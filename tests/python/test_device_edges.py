"""Ops on the emulator at their edges, against the processor: no elements, views without elements, integers, indices."""

import numpy as np
import pytest

import tiki as tk
import tiki.cute
from tiki import _core
from tiki.kernels import library

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool_"]


def on(device, values, dtype="float32"):
    return tk.array(np.array(values), getattr(tk, dtype)).to_device(device)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_sign_of_integers(dtype):
    values = [0, 1, 100] if dtype.startswith(("u", "b")) else [-100, -1, 0, 1, 100]
    there = tk.sign(on(tk.emulator, values, dtype))
    assert there.dtype == getattr(tk, dtype) and there.tolist() == tk.sign(on(tk.cpu, values, dtype)).tolist()


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("name", ["sum", "prod", "any", "all", "logsumexp"])
def test_reductions_of_nothing(name, keepdims):
    for shape, axis in [((0,), None), ((3, 0), 1), ((3, 0), 0), ((0, 3), 0), ((2, 0, 3), (1, 2)), ((2, 0, 3), None)]:
        for view in (lambda x: x, lambda x: x[::-1], lambda x: x.T if x.ndim == 2 else x[..., 1:]):
            there, here = (
                getattr(tk, name)(view(on(device, np.zeros(shape))), axis=axis, keepdims=keepdims)
                for device in (tk.emulator, tk.cpu)
            )
            assert there.shape == here.shape and there.tolist() == here.tolist(), (shape, axis)


def test_gradient_of_logsumexp_of_nothing():
    assert tk.grad(lambda x: tk.logsumexp(x, axis=1).sum())(on(tk.emulator, np.zeros((2, 0)))).shape == (2, 0)


def test_attention_without_keys():
    q = on(tk.emulator, np.ones((1, 2, 3, 8)))
    none = on(tk.emulator, np.ones((1, 2, 0, 8)))
    assert not tk.fast.scaled_dot_product_attention(q, none, none, scale=1.0).any().item()


@pytest.mark.parametrize("device", [tk.cpu, tk.emulator])
def test_indices_into_nothing(device):
    """No index is in range of an axis without elements, whether something is read or written."""
    at = on(device, [[0, 0], [0, 0]], "int32")
    for x in (on(device, np.zeros((2, 0))), on(device, np.zeros((2, 3)))[:, 3:], on(device, np.zeros((0, 2)))[::-1].T):
        with pytest.raises(IndexError, match="index 0 is out of range for an axis of length 0"):
            tk.eval(tk.take_along_axis(x, at, 1))
        with pytest.raises(IndexError, match="index 0 is out of range for an axis of length 0"):
            tk.eval(tk.put_along_axis(x, at, on(device, np.ones((2, 2))), 1))
        assert tk.put_along_axis(x, at[:, :0], on(device, np.ones((2, 0))), 1).shape == (2, 0)


def test_wrong_calls_of_the_library():
    w = on(tk.emulator, [1.0, 2.0])
    with pytest.raises(TypeError, match="operand 0 is no array"):
        library.rms_norm(None, w)
    with pytest.raises(TypeError, match="describes no tensor"):
        _core._library["plan"]("softmax", (w, w), (), None)
    with pytest.raises(TypeError, match="launch has no keyword grid, only target"):
        tk.launch(None, target=None, grid=1)
    with pytest.raises(TypeError, match="target is 3, expected a string or None"):
        tk.launch(None, target=3)
    with pytest.raises(TypeError, match="kernel_op decorates one function"):
        tk.kernel_op(hidden=1)()


def test_residuals_belong_to_a_call():
    """A forward rule that calls its own op with another shape."""

    @tk.kernel_op(hidden=1)
    def square(x):
        return x * x, x + x

    @square.jvp
    def rule(primals, tangents):
        x, t = primals, tangents
        return 2 * x * t if x.size == 1 else 2 * x * t + 0 * square(x[:1])

    x = tk.array([1.0, 2.0, 3.0])
    _, (tangent,) = tk.jvp(square, [x], [tk.ones_like(x)])
    assert tangent.tolist() == [2, 4, 6]


@pytest.mark.parametrize("name", ["softmax", "rms_norm", "transpose", "column_sum"])
def test_library_of_axes_with_one_element_or_none(name):
    """Their strides may be any."""
    x = tk.array(np.arange(12, dtype="f4").reshape(3, 4))
    function = getattr(library, name)
    for view in (
        lambda x: x[:, ::2][:, :1],
        lambda x: x[:, ::-1][:, 3:],
        lambda x: x[::-1][2:],
        lambda x: x[:0, ::2],
        lambda x: x[:, ::-2][:, 2:],
    ):
        expected = function(tk.array(np.array(view(x))).to_device(tk.emulator))
        assert function(view(x.to_device(tk.emulator))).tolist() == expected.tolist()


def test_column_sum_of_a_number():
    with pytest.raises(ValueError, match="column_sum: x has no axes, expected one or more"):
        library.column_sum(on(tk.emulator, 1.0))


@pytest.mark.parametrize("pad", ["", "a", "aa"])
def test_long_messages_in_other_alphabets(pad):
    """Messages are cut off, perhaps in the middle of a character."""
    with pytest.raises(KeyError, match="the library has no kernel"):
        _core._library["plan"](pad + "\u20ac" * 2000, (), (), None)
    with pytest.raises(ValueError, match="expected ptx or cute|target"):
        tk.launch(None, target=pad + "\u20ac" * 2000)
    with pytest.raises(NotImplementedError, match="\u20ac\u20ac"):
        _core._device["stream"](pad + "\u20ac" * 2000)


def test_an_output_in_place_is_no_output_of_the_cute_dsl():
    def scale(x, y, stream):
        raise AssertionError("never called")

    x = tk.ones((4,))
    with pytest.raises(NotImplementedError, match="scale: output y is in place of an array"):
        tk.cute.wrap(scale, outputs={"y": lambda x: tk.output(in_place=x)}).compile(x)


@pytest.mark.parametrize("device", [tk.cpu, tk.emulator])
def test_values_of_python_in_indexing_lie_beside_the_array(device):
    def fresh():
        return on(device, np.arange(12).reshape(3, 4))

    for key in (1, (slice(None), 1), [0, 2], np.array([2, 0]), (slice(None, None, -2), 2), [True, False, True]):
        expected = np.arange(12, dtype="f4").reshape(3, 4)
        assert fresh()[key].tolist() == expected[key].tolist()
        x = fresh()
        x[key] = 7
        added = fresh().at[key].add(1)
        expected[key] = 7
        assert x.device == added.device == device and x.tolist() == expected.tolist()
        expected = np.arange(12, dtype="f4").reshape(3, 4)
        expected[key] += 1
        assert added.tolist() == expected.tolist()
    x = fresh()
    x[x > 5] = 0
    x[0] = [4, 3, 2, 1]
    assert x.tolist() == [[4, 3, 2, 1], [4, 5, 0, 0], [0] * 4] and x[x > 4].tolist() == [5]
    assert tk.default_device() == tk.cpu
    with tk.stream(tk.emulator):
        x[1] = 9
        assert x.device == device and tk.default_device() == tk.Device(tk.emulator)


@pytest.mark.parametrize("device", [tk.cpu, tk.emulator])
def test_gradient_of_logsumexp_of_dead_rows(device):
    x = on(device, [[0.0, 1.0], [-np.inf, -np.inf]])
    assert tk.grad(lambda q: tk.logsumexp(q, axis=1).sum())(x).tolist()[1] == [0, 0]


@pytest.mark.parametrize("shapeless", [False, True])
def test_compiled_functions_are_recorded_for_each_device(shapeless):
    def f(x, i):
        return tk.take(x, i, axis=0) * 2 + x.sum()

    compiled = tk.compile(f, shapeless=shapeless)
    for rows in (3, 4, 5):
        for device in (tk.cpu, tk.emulator, tk.cpu):
            x, i = on(device, np.ones((rows, 2))), on(device, [0, -1], "int32")
            there = compiled(x, i)
            assert there.device == x.device and there.tolist() == f(x, i).tolist()


def test_compiled_functions_make_arrays_on_the_current_device():
    compiled = tk.compile(lambda: tk.ones((2,)))
    for device in (tk.cpu, tk.emulator, tk.cpu):
        with tk.stream(device):
            assert compiled().device == tk.ones((1,)).device


def test_shapeless_recordings_on_a_device():
    calls = []

    def f(x):
        calls.append(x.shape)
        return tk.where(x > 1, x, 0.0) / x.shape[0]

    compiled = tk.compile(f, shapeless=True)
    for rows in (2, 3, 5, 7):
        assert compiled(on(tk.emulator, np.full((rows, 2), 2.0))).tolist() == [[2 / np.float32(rows)] * 2] * rows
    assert len(calls) == 3


def same_on_both(f, *operands):
    here, there = (np.array(f(*(tk.array(x).to_device(d) for x in operands))) for d in (tk.cpu, tk.emulator))
    np.testing.assert_allclose(there, here, rtol=3e-6)
    return there


@pytest.mark.parametrize("name", ["logaddexp", "power", "expm1", "sinh", "cosh", "sigmoid"])
def test_exponentials_far_below_float32(name):
    far = np.arange(650, 800, 0.25, dtype=np.float32)
    for x in (far, -far):
        if name == "power":
            same_on_both(tk.power, np.full_like(x, 2), x)
        elif name == "logaddexp":
            same_on_both(tk.logaddexp, x, np.zeros_like(x))
        else:
            same_on_both(getattr(tk, name), x)


def test_remainders_of_large_quotients_are_exact():
    rng = np.random.default_rng(5)
    with np.errstate(all="ignore"):
        x, y = rng.integers(0, 2**32, (2, 5000), dtype=np.uint64).astype(np.uint32).view(np.float32)
        spread = (rng.normal(size=(2, 5000)) * 10.0 ** rng.integers(-8, 9, (2, 5000))).astype(np.float32)
        for a, b in ((x, y), spread, np.round(spread)):
            there = same_on_both(tk.remainder, a, b)
            np.testing.assert_array_equal(there, np.remainder(a, b))


def test_random_numbers_are_made_on_the_current_device():
    tk.random.seed(3)
    here = [tk.random.uniform(shape=(4,)).tolist() for _ in range(4)]
    tk.random.seed(3)
    for device, expected in zip((tk.cpu, tk.emulator, tk.cpu, tk.emulator), here):
        with tk.stream(device):
            drawn = tk.random.uniform(shape=(4,))
            assert drawn.device == tk.ones((1,)).device and drawn.tolist() == expected
