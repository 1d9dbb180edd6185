"""unique, depends, objects that stand for arrays, printing, methods of arrays, the modules of other devices."""
import numpy as np
import pytest

import mlx.core as mx
import tiki as tk

INPUTS = {
    "several": [3, 1, 2, 1, 3],
    "one": [7],
    "all equal": [4, 4, 4],
    "floats": [1.5, float("nan"), 1.5, float("nan"), -0.0, 0.0, float("inf")],
    "matrix": [[1.0, 2.0], [2.0, 4.0]],
    "bools": [True, False, True],
    "complex": [1j, 1, 1j, 2 - 1j],
}


def both(values, dtype=None):
    if dtype is None:
        return tk.array(values), mx.array(values)
    return tk.array(values, getattr(tk, dtype)), mx.array(values, getattr(mx, dtype))


def same(ours, theirs):
    assert str(theirs.dtype).split(".")[-1] == ours.dtype.name
    np.testing.assert_array_equal(ours.tolist(), theirs.tolist())
    assert ours.shape == theirs.shape


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("size", [0, 1, 2, 3, 8])
def test_unique(name, size):
    a, b = both(INPUTS[name])
    ours, theirs = tk.unique(a, size, True, True, True), mx.unique(b, size, True, True, True)
    assert isinstance(ours, tuple)
    for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        if not (index == 2 and size == 0):  # the inverse means nothing then
            same(one, other)


def test_unique_arguments():
    a, b = both([2, 1, 2, 3, 1], "int16")
    same(tk.unique(a, 3), mx.unique(b, 3))
    for options in ({"return_index": True}, {"return_inverse": True}, {"return_counts": True, "fill_value": 9}):
        for one, other in zip(tk.unique(a, 4, **options), mx.unique(b, 4, **options), strict=True):
            same(one, other)
    same(tk.unique(a, 5, fill_value=tk.array([1.75])), mx.unique(b, 5, fill_value=mx.array([1.75])))
    same(tk.unique(tk.zeros((0,)), 2, fill_value=5), mx.unique(mx.zeros((0,)), 2, fill_value=5))
    for one, other in zip(tk.unique(tk.zeros((0,)), 0, True, True, True), mx.unique(mx.zeros((0,)), 0, True, True, True)):
        same(one, other)
    for wrong in (lambda m, x: m.unique(x, -1), lambda m, x: m.unique(m.zeros((0,)), 2),
                  lambda m, x: m.unique(x, 2, fill_value=m.array([1, 2])), lambda m, x: m.unique(x, 2, fill_value=40000),
                  lambda m, x: m.unique(x.astype(m.uint8), 2, fill_value=-1)):
        for module, x in ((tk, a), (mx, b)):
            with pytest.raises(ValueError):
                wrong(module, x)


def test_unique_of_many_under_transforms():
    values = np.random.default_rng(3).integers(0, 40, 500)
    expected = np.unique(values, return_index=True, return_inverse=True, return_counts=True)
    for one, other in zip(tk.unique(tk.array(values), len(expected[0]), True, True, True), expected):
        np.testing.assert_array_equal(np.array(one), other)
    rows = tk.array([[3, 1, 3], [2, 2, 2]])
    assert tk.vmap(lambda row: tk.unique(row, 3, fill_value=0))(rows).tolist() == [[1, 3, 0], [2, 0, 0]]
    assert tk.compile(lambda x: tk.unique(x, 2))(tk.array([5, 4, 5])).tolist() == [4, 5]
    slope = tk.grad(lambda x: (tk.unique(x, 2) * tk.array([1.0, 10.0])).sum())(tk.array([3.0, 2.0, 3.0]))
    assert slope.tolist() == [10.0, 1.0, 0.0]


def test_depends():
    for module in (tk, mx):
        a, b = module.array([1, 2]), module.array(3.0)
        alone = module.depends(a, b)
        assert type(alone) is module.array and alone.tolist() == [1, 2]
        several = module.depends((a, b), [a + 1])
        assert type(several) is list and [x.tolist() for x in several] == [[1, 2], 3.0]
    # Dependencies have no part in the value: MLX gives them the cotangent too, and 9 in all.
    assert tk.grad(lambda x: tk.depends(x * x, [x, x + 1]))(tk.array(3.0)).item() == 6.0
    many = [tk.array(i) for i in range(30)]
    assert tk.depends(tk.array(5), many).item() == 5
    with pytest.raises(IndexError):  # the dependency is computed, and says what is wrong with it
        tk.eval(tk.depends(tk.array(1), tk.take(tk.array([1, 2]), tk.array(7), 0)))


class Wrapped:
    def __init__(self, module):
        self.module = module

    def __mlx_array__(self):
        return self.module.array([1, 2])


def test_objects_that_stand_for_arrays():
    for module in (tk, mx):
        w = Wrapped(module)
        made = [module.array(w), module.exp(w), module.array([3, 4]) + w, w + module.array([3, 4]), module.asarray(w)]
        assert [x.tolist() for x in made] == [[1, 2], module.exp(module.array([1, 2])).tolist(), [4, 6], [4, 6], [1, 2]]
        assert isinstance(module.ArrayLike(w), module.ArrayLike)
    assert tk.array(tk.ArrayLike([1, 2])).tolist() == [1, 2]
    wrong = type("Wrong", (), {"__mlx_array__": lambda self: 3})()
    for call in (lambda: tk.array(wrong), lambda: tk.array([1]) + wrong):
        with pytest.raises(TypeError, match="__mlx_array__"):
            call()


def words(array):
    return repr(array).split()


@pytest.mark.parametrize("precision", [0, 2, 3, 12])
def test_print_options(precision):
    lists = [[1 / 3, 2 / 3, 1e-8, 123456.789], 1 / 3, [-0.5, float("nan"), -float("inf")], [[1, 2]], [1 / 3 - 2j]]
    for values in lists:
        ours, theirs = both(values)
        with tk.printoptions(precision=precision), mx.printoptions(precision=precision):
            assert tk.get_printoptions().precision == mx.get_printoptions().precision == precision
            assert "".join(words(ours)) == "".join(words(theirs))
    half, other = both([1 / 3], "float16")
    for module in (tk, mx):
        module.set_printoptions(precision)
    assert words(half) == words(other)
    for module in (tk, mx):
        module.set_printoptions()
        assert module.get_printoptions().precision == module.PrintOptions().precision == -1
        assert module.PrintOptions(4).precision == 4
    assert repr(tk.array([1 / 3, 2])) == "array([0.33333334, 2.        ], dtype=float32)"
    with pytest.raises(ValueError), tk.printoptions(101):
        repr(tk.array(1.0))
    with tk.printoptions(1):
        assert repr(tk.array([[1.25, 10.0], [0.0, -3.0]])) == (
            "array([[ 1.2, 10.0],\n       [ 0.0, -3.0]], dtype=float32)"
        )


def test_matrix_norm():
    rng = np.random.default_rng(0)
    for shape, options in [((2, 3), {}), ((2, 3), {"ord": "nuc"}), ((3, 2), {"ord": 2}), ((3, 2), {"ord": -1}),
                           ((2, 3), {"ord": float("inf")}), ((2, 3), {"ord": "f"}), ((2, 3, 4), {"axis": (0, 1), "keepdims": True})]:
        values = rng.normal(size=shape).astype(np.float32)
        ours, theirs = tk.matrix_norm(tk.array(values), **options), mx.matrix_norm(mx.array(values), **options)
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(np.array(ours), np.array(theirs), rtol=1e-5)


def test_norms_of_half_types():
    values = [300.0, 400.0]
    for dtype in ("float16", "bfloat16"):
        assert tk.linalg.norm(tk.array(values, getattr(tk, dtype))).item() == 500.0
        cubes = tk.linalg.norm(tk.array(values, getattr(tk, dtype)), 3).item()
        assert cubes == pytest.approx((300.0**3 + 400.0**3) ** (1 / 3), rel=4e-3)
    assert mx.linalg.norm(mx.array(values, mx.float16)).item() == float("inf")


STATES = [("float32", [[1.0, 2.5], [3.0, 4.0]]), ("bfloat16", [1.5, -2.0]), ("bool_", [True, False]), ("int64", [2**40]),
          ("complex64", [1 + 2j]), ("float16", 0.5), ("uint8", [])]


@pytest.mark.parametrize("dtype, values", STATES)
def test_bytes_and_state(dtype, values):
    ours, theirs = both(values, dtype)
    assert bytes(ours) == bytes(theirs) == ours.__bytes__()
    (data, number), (other, other_number) = ours.__getstate__(), theirs.__getstate__()
    assert number == other_number and data.dtype == other.dtype
    np.testing.assert_array_equal(data, other)
    copy = tk.zeros((1,))
    copy.__setstate__(theirs.__getstate__())
    same(copy, theirs)


def test_bytes_of_a_view_and_wrong_states():
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert bytes(tk.array(values).T) == bytes(mx.array(values).T) == values.T.tobytes()
    for wrong in (None, (), ([1], 99), ([1], "float32")):
        with pytest.raises(ValueError):
            tk.zeros((1,)).__setstate__(wrong)


def test_division_by_name():
    for module in (tk, mx):
        a = module.array([3, 1, 2])
        assert a.__div__(2).tolist() == [1.5, 0.5, 1.0]
        assert a.__rdiv__(3).tolist() == [1.0, 3.0, 1.5]
        assert a.__div__(module.array([1.0, 2.0, 4.0])).tolist() == [3.0, 0.5, 0.5]


def test_metal():
    assert tk.metal.is_available() is mx.metal.is_available() is False
    assert tk.metal.device_info() == mx.metal.device_info() == {}
    held = tk.zeros((1000,)) + 1
    tk.eval(held)
    assert tk.metal.get_active_memory() == tk.get_active_memory() >= 4000
    assert tk.metal.get_peak_memory() >= tk.metal.get_active_memory()
    tk.metal.reset_peak_memory()
    assert tk.metal.get_peak_memory() == tk.get_peak_memory()
    tk.metal.clear_cache()
    assert tk.metal.get_cache_memory() == 0
    for name in ("set_cache_limit", "set_memory_limit"):
        before = getattr(tk.metal, name)(10**9)
        assert getattr(tk, name)(before) == 10**9
    assert tk.metal.set_wired_limit(0) == mx.metal.set_wired_limit(0) == 0


def test_what_only_metal_and_cuda_have():
    assert tk.cuda.is_available() is mx.cuda.is_available() is False
    for call in (lambda: tk.metal.start_capture("x.gputrace"), tk.metal.stop_capture,
                 lambda: tk.fast.metal_kernel(name="k", input_names=["a"], output_names=["b"], source="")):
        with pytest.raises(NotImplementedError, match="needs a Metal device"):
            call()
    with pytest.raises(NotImplementedError, match="cuda_kernel 'k'"):
        tk.fast.cuda_kernel(name="k", input_names=["a"], output_names=["b"], source="")
    with pytest.raises(NotImplementedError, match="precompiled_cuda_kernel 'k'"):
        tk.fast.precompiled_cuda_kernel(
            name="k", compiled_source=b"", inputs=[tk.array(1)], output_shapes=[(1,)], output_dtypes=[tk.float32],
            scalars=[], grid=(1, 1, 1), threadgroup=(1, 1, 1))
    for name in ("cuda_kernel", "precompiled_cuda_kernel"):
        assert callable(getattr(mx.fast, name))


def test_gradients_for_one_of_a_list():
    def f(module):
        return lambda x, y: (x * y).sum()

    for argnums in ([0], (1,), [0, 1], [1, 0], 1):
        ours = tk.grad(f(tk), argnums)(tk.array([1.0, 2.0]), tk.array([3.0, 5.0]))
        theirs = mx.grad(f(mx), argnums)(mx.array([1.0, 2.0]), mx.array([3.0, 5.0]))
        assert isinstance(ours, tuple) == isinstance(theirs, tuple)
        if isinstance(ours, tuple):
            assert [x.tolist() for x in ours] == [x.tolist() for x in theirs]
        else:
            assert ours.tolist() == theirs.tolist()
    named, other = (m.grad(lambda x, b: (x * b).sum(), [0], ["b"])(m.array([1.0]), b=m.array([2.0])) for m in (tk, mx))
    assert named[0].tolist() == other[0].tolist() and named[1]["b"].tolist() == other[1]["b"].tolist()


NAN, INF = float("nan"), float("inf")


def outcome(call):
    try:
        value = call()
    except Exception as error:
        return type(error)
    return str(value.dtype).split(".")[-1], np.array(value).tolist()


@pytest.mark.parametrize(
    "name",
    {
        "norm of a vector": lambda m: m.linalg.norm(m.array([3.0, -4.0]), ord=NAN),
        "norm of columns": lambda m: m.linalg.norm(m.array([[3.0, -4.0]]), ord=NAN, axis=0, keepdims=True),
        "norm of a matrix": lambda m: m.linalg.norm(m.array([[3.0, -4.0]]), ord=NAN),
        **{
            f"close by {relative} and {absolute}": lambda m, r=relative, a=absolute: m.isclose(
                m.array([1.0, 0.0, INF, INF, NAN]), m.array([1.0, 0.0, INF, -INF, NAN]), rtol=r, atol=a
            )
            for relative, absolute in ((1e-5, NAN), (NAN, 1e-8), (1e-5, -1.0), (-1.0, 0.5), (0.0, INF), (0.0, 0.0))
        },
        **{
            f"arange{given}": lambda m, given=given: m.arange(*given)
            for given in (
                (-1, 2**40, -1), (2**40, 2**40 + 2), (0, 2**33, 2**32), (2**31 - 2, 2**31 - 1), (2**31 - 2, 2**31),
                (-(2**31), -(2**31) + 1), (-(2**31) - 1, -(2**31) + 1), (0, 5, 2**40), (0.0, 2**40, 2**39),
            )
        },
    }.items(),
    ids=lambda case: case[0],
)
def test_arguments_at_the_edges(name):
    case = name[1]
    ours, theirs = outcome(lambda: case(tk)), outcome(lambda: case(mx))
    assert repr(ours) == repr(theirs)
