"""The kernels of the library in the emulator, over drawn shapes, dtypes, strides, alignments and schedules: no finding,
and what the CPU's ops give. A schedule that is refused is refused as such."""

import pathlib
import re

import ml_dtypes
import numpy
import pytest
from hypothesis import given, settings, strategies as st

import tiki as tk
from tiki.kernels import library

DTYPES = {"f4": numpy.float32, "f2": numpy.float16, "bf16": ml_dtypes.bfloat16}
EPSILON = {"f4": 2.0**-22, "f2": 2.0**-10, "bf16": 2.0**-7}
TABLE = (pathlib.Path(__file__).parents[2] / "include" / "tiki" / "library.def").read_text()
FIELDS = {
    name: (int(low), int(high), power == "true")
    for name, low, high, power in re.findall(r"TK_LIBRARY_FIELD\((\w+), +(\d+), +(\d+), +(true|false)", TABLE)
}
KERNELS = {
    name: (tensors.split(), fields.split())
    for name, tensors, fields in re.findall(r'TK_LIBRARY\(\w+, +(\w+), +"([^"]*)", +"[^"]*", +"([^"]*)"', TABLE)
}
MOST = {"threads": 128, "threads_per_row": 128, "rows_per_block": 8, "chunks": 9, "tile": 64, "tile_m": 64, "tile_n": 64,
        "tile_k": 64, "stages": 4, "warps_m": 4, "warps_n": 4, "held": 32}  # fmt: skip


@st.composite
def schedules(draw, name):
    """Some fields of a kernel's schedule, within the table's ranges and small enough for an emulator."""
    chosen = {}
    for field in KERNELS[name][1]:
        low, high, power = FIELDS[field]
        high = min(high, MOST.get(field, high))
        if not draw(st.booleans()):
            continue
        if power:
            powers = [one for one in (0, *(2**i for i in range(11))) if low <= one <= high]
            chosen[field] = draw(st.sampled_from(powers))
        else:
            chosen[field] = draw(st.integers(low, high))
    return chosen


@st.composite
def arrays(draw, shape, dtype, rng, whole=False, apart=True):
    """An array whose rows may lie apart."""
    gap = draw(st.sampled_from([0, 0, 1, 3, 8])) if apart and len(shape) > 1 else 0
    made = numpy.zeros((*shape[:-1], shape[-1] + gap), dtype)
    made[...] = rng.integers(-4, 5, made.shape) if whole else rng.standard_normal(made.shape)
    return made[..., : shape[-1]]


def extents(most, least=0):
    """Lengths around those that vectors and tiles have."""
    usual = [one for one in (0, 1, 2, 7, 8, 16, 31, 32, 33, 64, 65, 100, 128, 200, 257, 300) if least <= one <= most]
    return st.one_of(st.sampled_from(usual), st.integers(least, most))


def own(array, dtype=tk.float32):
    """An array as Tiki's, in float32."""
    return tk.array(numpy.ascontiguousarray(array.astype("f4"))).astype(dtype)


def judged(name, *given_arrays, numbers=(), schedule=None, seed=0, align=0):
    """Runs a kernel; False where its schedule is refused."""
    try:
        plan = library.plan(name, *given_arrays, numbers=numbers, schedule=schedule, align=align)
    except ValueError as error:
        assert schedule and "schedule: " in str(error), str(error)
        return False
    for report in plan.emulate(*given_arrays, seed=seed):
        assert not report.findings, report.text
    return True


def near(found, expected, dtype, slack=4, scale=1.0):
    expected = numpy.array(expected)
    found = found.astype("f4")
    assert found.shape == expected.shape
    limit = slack * EPSILON[dtype] * (numpy.abs(expected) + scale)
    with numpy.errstate(invalid="ignore"):
        good = (
            (numpy.abs(found - expected) <= limit) | (found == expected) | (numpy.isnan(found) & numpy.isnan(expected))
        )
    assert good.all(), (found, expected)


def drawn(function):
    """A test of a drawn generator, dtype, seed and data."""
    decorated = given(
        data=st.data(), dtype=st.sampled_from(list(DTYPES)), seed=st.integers(0, 99), number=st.integers(0, 2**32 - 1)
    )(function)
    return settings(max_examples=150)(decorated)


def shape_of(draw, most_cols, least_cols=0):
    lead = draw(st.lists(extents(5), max_size=2))
    return (*lead, draw(extents(most_cols, least_cols)))


@drawn
def test_elementwise(data, dtype, seed, number):
    rng, kind = numpy.random.default_rng(number), DTYPES[dtype]
    shape = (data.draw(extents(300)) * data.draw(st.integers(1, 4)),)
    x, y = (data.draw(arrays(shape, kind, rng)) for _ in range(2))
    align = data.draw(st.sampled_from([0, 8, 16]))
    z = numpy.zeros(shape, kind)
    if judged("add", x, y, z, schedule=data.draw(schedules("add")), seed=seed, align=align):
        near(z, own(x) + own(y), dtype)
    factor = float(numpy.float32(rng.standard_normal()))
    if judged("axpy", x, y, z, numbers=(factor,), schedule=data.draw(schedules("axpy")), seed=seed, align=align):
        near(z, own(x) * factor + own(y), dtype)


@drawn
def test_copies(data, dtype, seed, number):
    rng, to = numpy.random.default_rng(number), data.draw(st.sampled_from(list(DTYPES)))
    shape = shape_of(data.draw, 300)
    x, y = data.draw(arrays(shape, DTYPES[dtype], rng)), data.draw(arrays(shape, DTYPES[to], rng))
    if data.draw(st.booleans()):
        x = x[..., ::-1]
    if len(shape) > 1 and data.draw(st.booleans()):
        x, y = x.swapaxes(0, 1), y.swapaxes(0, 1)
    elif len(shape) > 1 and data.draw(st.booleans()):
        x = numpy.broadcast_to(x[:1], shape) if shape[0] else x
    if judged("copy", x, y, schedule=data.draw(schedules("copy")), seed=seed):
        assert numpy.array_equal(y, numpy.array(own(x)).astype(DTYPES[to]))
    value = float(rng.integers(-9, 9))
    if judged("fill", y, numbers=(value,), schedule=data.draw(schedules("fill")), seed=seed):
        assert (y == DTYPES[to](value)).all()


@drawn
def test_transpose(data, dtype, seed, number):
    rng, kind = numpy.random.default_rng(number), DTYPES[dtype]
    shape = (*data.draw(st.lists(extents(3), max_size=1)), data.draw(extents(100)), data.draw(extents(100)))
    x = data.draw(arrays(shape, kind, rng))
    y = data.draw(arrays((*shape[:-2], shape[-1], shape[-2]), kind, rng))
    if judged("transpose", x, y, schedule=data.draw(schedules("transpose")), seed=seed):
        assert numpy.array_equal(y.astype("f4"), numpy.array(tk.swapaxes(own(x), -1, -2)))


@drawn
def test_rms_norm(data, dtype, seed, number):
    rng, kind = numpy.random.default_rng(number), DTYPES[dtype]
    shape = shape_of(data.draw, 300, 1)
    x, y = (data.draw(arrays(shape, kind, rng)) for _ in range(2))
    weight = data.draw(arrays(shape[-1:], kind, rng)) if data.draw(st.booleans()) else None
    rstd = numpy.zeros(shape[:-1], "f4") if data.draw(st.booleans()) else None
    if judged("rms_norm", x, weight, y, rstd, numbers=(1e-5,), schedule=data.draw(schedules("rms_norm")), seed=seed):
        near(y, tk.fast.rms_norm(own(x), None if weight is None else own(weight), 1e-5), dtype, 8)
        if rstd is not None:
            near(rstd, tk.rsqrt(tk.mean(own(x).square(), -1) + 1e-5), "f4", 16)


@drawn
def test_rms_norm_backward(data, dtype, seed, number):
    rng, kind = numpy.random.default_rng(number), DTYPES[dtype]
    shape = shape_of(data.draw, 200, 1)
    x, dy, dx = (data.draw(arrays(shape, kind, rng)) for _ in range(3))
    weight, dweight = data.draw(arrays(shape[-1:], kind, rng)), numpy.zeros(shape[-1:], "f4")
    schedule = data.draw(schedules("rms_norm_backward"))
    if judged("rms_norm_backward", x, weight, dy, dx, dweight, numbers=(1e-5,), schedule=schedule, seed=seed):
        norm = lambda x, weight: tk.fast.rms_norm(x, weight, 1e-5)  # noqa: E731
        _, expected = tk.vjp(norm, [own(x), own(weight)], [own(dy)])
        near(dx, expected[0], dtype, 32)
        near(dweight, expected[1], "f4", 64, 1.0 + numpy.sqrt(dy.size))


@drawn
def test_softmax(data, dtype, seed, number):
    rng, kind = numpy.random.default_rng(number), DTYPES[dtype]
    shape = shape_of(data.draw, 300)
    x, y, dy, dx = (data.draw(arrays(shape, kind, rng)) for _ in range(4))
    if shape[-1] and x.size and data.draw(st.booleans()):
        x[..., 0] = -numpy.inf
    if judged("softmax", x, y, schedule=data.draw(schedules("softmax")), seed=seed):
        near(y, tk.softmax(own(x), -1), dtype, 8, 0.02)
    y[...] = numpy.array(tk.softmax(own(numpy.clip(x, -9, 9)), -1)).astype(kind)
    if judged("softmax_backward", y, dy, dx, schedule=data.draw(schedules("softmax_backward")), seed=seed):
        p, g = own(y), own(dy)
        near(dx, p * (g - tk.sum(p * g, -1, keepdims=True)), dtype, 16)


@drawn
def test_column_sum(data, dtype, seed, number):
    rng, kind = numpy.random.default_rng(number), DTYPES[dtype]
    shape = (*data.draw(st.lists(extents(40), min_size=1, max_size=2)), data.draw(extents(200)))
    x, y = data.draw(arrays(shape, kind, rng)), numpy.zeros(shape[-1:], "f4")
    if judged("column_sum", x, y, schedule=data.draw(schedules("column_sum")), seed=seed):
        near(y, tk.sum(own(x), tuple(range(len(shape) - 1))), "f4", 16, 1.0 + numpy.sqrt(x.size))


def product(data, name, rng, kind, sizes, gap):
    """Operands of a product, row- or column-major, and d."""
    m, n, k = sizes
    operands = []
    for rows, cols in ((m, k), (k, n)):
        turned = data.draw(st.booleans())
        shape = (cols, rows) if turned else (rows, cols)
        base = numpy.zeros((shape[0], -(-(shape[1] + gap) // 8) * 8 if gap >= 0 else shape[1]), kind)
        base[...] = rng.integers(-4, 5, base.shape)
        part = base[:, : shape[1]]
        operands.append(part.T if turned else part)
    return (*operands, data.draw(arrays((m, n), kind, rng)))


def check_product(a, b, d):
    """Small integers: partial sums are exact in every order, so d is the sum rounded once."""
    expected = numpy.array(own(a) @ own(b))
    assert numpy.array_equal(d.astype("f4"), expected.astype(d.dtype).astype("f4"))


@drawn
def test_gemm(data, dtype, seed, number):
    rng, kind = numpy.random.default_rng(number), DTYPES["f2" if dtype == "f4" else dtype]
    sizes = [data.draw(extents(100)) for _ in range(3)]
    a, b, d = product(data, "gemm", rng, kind, sizes, data.draw(st.sampled_from([-1, 0, 8])))
    align = data.draw(st.sampled_from([0, 16]))
    if judged("gemm", a, b, d, schedule=data.draw(schedules("gemm")), seed=seed, align=align):
        check_product(a, b, d)


@drawn
def test_hopper_gemm(data, dtype, seed, number):
    rng, kind = numpy.random.default_rng(number), DTYPES["f2" if dtype == "f4" else dtype]
    sizes = [data.draw(extents(150, 1)) for _ in range(3)]  # NumPy forgets the pitch of an empty array
    a, b, d = product(data, "hopper_gemm", rng, kind, sizes, 0)
    schedule = data.draw(schedules("hopper_gemm"))
    if judged("hopper_gemm", a, b, d, schedule=schedule, seed=seed, align=16):
        check_product(a, b, d)


def test_every_kernel_is_drawn():
    with open(__file__) as file:
        tested = set(re.findall(r'judged\("(\w+)"', file.read()))
    assert tested == set(KERNELS)


def test_what_a_plan_does_not_take():
    x, y = numpy.zeros((2, 3), "f4"), numpy.zeros((2, 4), "f4")
    with pytest.raises(ValueError, match="softmax"):
        library.plan("softmax", x, y)
    with pytest.raises(KeyError):
        library.plan("hardmax", x, x)
    assert repr(library.plan("softmax", x, x)) == "<plan of softmax: 1 launches>"
    assert library.plan("softmax", x, x).kernels[0].name.startswith("softmax")
