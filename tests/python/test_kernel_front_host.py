"""Host functions: what they launch, on arrays of every device and on NumPy's, plans, graphs, errors at their line."""

import os
import threading

import numpy
import pytest
from kernel_front import marked_line

import tiki as tk
from tiki.kernels.cute.lib.math import (
    Constexpr,
    Float32,
    Int32,
    KernelError,
    TensorSpec,
    block_idx,
    cute,
    sync_threads,
    thread_idx,
)


@cute.kernel
def add_kernel(x, y, z):
    tidx, _, _ = thread_idx()
    bidx, _, _ = block_idx()
    i = bidx * 64 + tidx
    if i < x.shape[0]:
        z[i] = x[i] + y[i]


@cute.jit
def add(x, y, z):
    add_kernel(x, y, z).launch(grid=cute.ceil_div(x.shape[0], 64), block=64)


@cute.kernel
def scale_kernel(x, y, factor: Float32, count: Int32):
    tidx, _, _ = thread_idx()
    bidx, _, _ = block_idx()
    i = bidx * 64 + tidx
    if i < count:
        y[i] = x[i] * factor


@cute.jit
def scaled(x, factor: Float32):
    y = cute.empty_like(x)
    scale_kernel(x, y, factor, x.shape[0]).launch(grid=(cute.ceil_div(cute.size(x), 64), 1, 1), block=[64, 1, 1])
    return y


@cute.jit
def scaled_in_part(x, count: Int32):
    y = cute.empty_like(x)
    scale_kernel(x, y, 2.0, count).launch(grid=cute.ceil_div(cute.size(x), 64), block=64)
    return y


def test_elements_that_no_kernel_writes():
    """Not an error, since kernels may write an array in turns: NaN on the emulator, the same in every run."""
    for _ in range(3):
        x = tk.arange(100, dtype=tk.float32).to_device(tk.emulator)
        got = numpy.array(scaled_in_part(x, 40))
        assert numpy.array_equal(got[:40], 2 * numpy.arange(40, dtype="f4")) and numpy.isnan(got[40:]).all()


# ---- arrays of all kinds ----


@pytest.mark.parametrize("n", [1, 64, 100])
@pytest.mark.parametrize("device", ["cpu", "emulator"])
def test_arrays_of_tiki(n, device):
    place = getattr(tk, device)
    x, y = (tk.arange(n, dtype=tk.float32).to_device(place), tk.ones((n,)).to_device(place))
    z = tk.zeros((n,)).to_device(place)
    alias, old = z, z + 0
    assert add(x, y, z) is None
    assert z.device == place and alias is z and numpy.array_equal(numpy.array(z), numpy.arange(n) + 1)
    assert old.tolist() == [0] * n and x.tolist() == list(range(n))
    w = scaled(x, 0.5)
    assert w.device == place and w.tolist() == (numpy.arange(n) / 2).tolist()


def test_arrays_of_numpy():
    x, y, z = numpy.arange(70, dtype="f4"), numpy.ones(70, "f4"), numpy.zeros(70, "f4")
    add(x, y, z)
    assert numpy.array_equal(z, x + 1)
    assert numpy.array_equal(scaled(x, 3.0), 3 * x)
    rows = numpy.zeros((70, 3), "f4")
    add(x, y, rows[:, 1])  # strided
    assert numpy.array_equal(rows[:, 1], x + 1) and not rows[:, [0, 2]].any()


def test_an_array_twice():
    x = tk.arange(5, dtype=tk.float32)
    add(x, x, x)
    assert x.tolist() == [0, 2, 4, 6, 8]


@pytest.mark.parametrize("device", ["cpu", "emulator"])
def test_nothing(device):
    x, z = (tk.zeros((0,)).to_device(getattr(tk, device)) for _ in range(2))
    add(x, x, z)
    assert z.tolist() == [] and scaled(x, 2.0).shape == (0,)
    empty = numpy.zeros(0, "f4")
    add(empty, empty, empty)
    add(*map(cute.dynamic, (empty, empty, empty)))
    assert scaled(empty, 2.0).shape == (0,)


@cute.kernel
def halve_kernel(x, y, count: Int32):
    """y[i] = x[2 i] + x[2 i + 1], of `count` elements of x."""
    tidx, _, _ = thread_idx()
    bidx, _, _ = block_idx()
    i = bidx * 32 + tidx
    if 2 * i + 1 < count:
        y[i] = x[2 * i] + x[2 * i + 1]
    elif 2 * i < count:
        y[i] = x[2 * i]


@cute.jit
def total(x):
    """Several launches, as many as the size asks for."""
    count, source, spare = x.shape[0], x, cute.empty_like(x)
    target = cute.empty_like(x)
    while count > 1:
        half = (count + 1) // 2
        halve_kernel(source, target, count).launch(grid=cute.ceil_div(half, 32), block=32)
        source, target, spare, count = target, spare, target, half
    return source


def test_several_launches():
    for n in (2, 3, 100):
        x = tk.arange(n, dtype=tk.float32)
        plan = cute.compile(total, x)
        assert len(plan.launches) == (n - 1).bit_length() and len(plan.kernels) == 1
        assert total(x)[0].item() == n * (n - 1) / 2
    x = tk.arange(4, dtype=tk.float32)
    assert total(tk.array([3.0])).tolist() == [3] and total(x.to_device(tk.emulator))[0].item() == 6


@cute.kernel
def tile_kernel(x, y, tile: Constexpr):
    tidx, _, _ = thread_idx()
    bidx, _, _ = block_idx()
    buffer = cute.make_smem_tensor(Float32, tile)
    for i in cute.range_constexpr(0, tile, 32):
        buffer[i + tidx] = x[bidx * tile + i + tidx]
    sync_threads()
    for i in cute.range_constexpr(0, tile, 32):
        y[bidx * tile + i + tidx] = buffer[tile - 1 - i - tidx]


@cute.jit
def reverse_tiles(x, y, tile: Constexpr = 64):
    tile_kernel(x, y, tile).launch(grid=x.shape[0] // tile, block=32)


def test_constants_choose_the_kernel():
    x, y = numpy.arange(256, dtype="f4"), numpy.zeros(256, "f4")
    for tile in (32, 64, 128):
        reverse_tiles(x, y, tile=tile)
        assert numpy.array_equal(y, x.reshape(-1, tile)[:, ::-1].reshape(-1))
    kernels = {cute.compile(reverse_tiles, x, y, tile).kernels[0].text for tile in (32, 64)}
    assert len(kernels) == 2 and cute.compile(reverse_tiles, x, y) is cute.compile(reverse_tiles, x, y, 64)


@cute.jit
def of_trees(parts, more):
    """Adds what is in lists, tuples and dictionaries."""
    for i in range(len(parts) - 1):
        add_kernel(parts[i], parts[i + 1], parts[i + 1]).launch(grid=1, block=64)
    add_kernel(parts[-1], more["x"], more["x"]).launch(grid=1, block=64)
    return {"sum": more["x"], "count": len(parts)}


def test_trees_of_arrays():
    rows = numpy.ones((4, 3), "f4")
    assert of_trees([rows[0]], {"x": rows[1]})["sum"].tolist() == [2, 2, 2]
    made = of_trees([rows[0], rows[1], rows[2]], {"x": rows[3]})
    assert made["count"] == 3 and made["sum"].tolist() == [5, 5, 5]
    x = [tk.ones((3,)) for _ in range(3)]
    assert of_trees(tuple(x[:2]), {"x": x[2]})["sum"] is x[2] and x[2].tolist() == [3, 3, 3]


# ---- plans ----


def test_open_numbers_share_a_plan():
    x = numpy.arange(10, dtype="f4")
    plans = {id(cute.compile(scaled, x, factor)) for factor in (1.0, 2.0, 3.0)}
    assert len(plans) == 1
    for factor in (0.5, numpy.float32(4.0), numpy.float64(0.25), Float32(2.0)):
        assert numpy.array_equal(scaled(x, factor), x * numpy.float32(2.0 if isinstance(factor, Float32) else factor))


@cute.jit
def some(x, y, count: Int32, factor: Float32):
    if count > 4:
        scale_kernel(x, y, factor, count).launch(grid=cute.ceil_div(count, 64), block=64)
    else:
        scale_kernel(x, y, 1.0, count).launch(grid=1, block=64)


def test_numbers_that_are_seen_have_plans_of_their_own():
    x, y = numpy.arange(100, dtype="f4"), numpy.zeros(100, "f4")
    for count in (3, 70, 5, 3, 70):
        for factor in (2.0, 3.0):
            y[:] = -1
            some(x, y, count, factor)
            expected = numpy.full(100, -1, "f4")
            expected[:count] = x[:count] * (numpy.float32(factor) if count > 4 else 1)
            assert numpy.array_equal(y, expected)
    assert cute.compile(some, x, y, 70, 1.0) is cute.compile(some, x, y, 70, 9.0)
    assert cute.compile(some, x, y, 70, 1.0) is not cute.compile(some, x, y, 71, 1.0)


def test_one_kernel_for_all_sizes():
    kernels = set()
    for n in (1, 63, 64, 200):
        x, z = numpy.arange(n, dtype="f4"), numpy.zeros(n, "f4")
        add(cute.dynamic(x), cute.dynamic(x), cute.dynamic(z))
        assert numpy.array_equal(z, 2 * x)
        kernels.update(id(one) for one in cute.compile(add, *map(cute.dynamic, (x, x, z))).kernels)
    assert len(kernels) == 1
    x, z = tk.arange(77, dtype=tk.float32), tk.zeros((77,))
    add(cute.dynamic(x), cute.dynamic(x), cute.dynamic(z))
    assert z[76].item() == 152


def test_extents_are_checked():
    named = add_kernel.lower(*[TensorSpec("float32", "n")] * 3, grid=1, block=64)
    x, y = numpy.zeros(10, "f4"), numpy.zeros(9, "f4")
    with pytest.raises(KernelError, match="y has an extent of 9, kernel add_kernel expects n = 10 there"):
        named.emulate(x, y, x)
    with pytest.raises(KernelError, match="x has 2 axes, kernel add_kernel was made for 1"):
        named.emulate(x.reshape(2, 5), x, x)
    with pytest.raises(KernelError, match="z is an array of float64, kernel add_kernel was made for float32"):
        named.emulate(x, x, x.astype("f8"))
    with pytest.raises(KernelError, match="x is a list, kernel add_kernel expects an array"):
        named.emulate([1.0], x, x)
    with pytest.raises(KernelError, match="z is written by kernel add_kernel, and Tiki's arrays are values"):
        named.emulate(x, x, tk.zeros((10,)))
    assert not named.emulate(tk.zeros((10,)), x, x.copy().view("u4")).findings
    halves = [TensorSpec("bfloat16", "n")] * 3
    z = numpy.zeros(10, "u2")
    add_kernel.lower(*halves, grid=1, block=64).emulate(*[tk.arange(10).astype(tk.bfloat16)] * 2, z)
    assert (z.astype("u4") << 16).view("f4").tolist() == [2 * i for i in range(10)]
    plan = cute.compile(add, x, x, x)
    with pytest.raises(KernelError, match="was compiled for other arguments"):
        plan(y, y, y)


FACTORS = (2.0, 3.0)


@cute.jit
def of_globals(x):
    return x * FACTORS[0] + FACTORS[1]


@cute.kernel
def globals_kernel(x):
    x[thread_idx()[0]] = of_globals(x[thread_idx()[0]])


@cute.jit
def with_globals(x):
    globals_kernel(x).launch(grid=1, block=x.shape[0])


def test_values_from_outside_are_part_of_the_kind():
    global FACTORS
    x = numpy.ones(8, "f4")
    with_globals(x)
    FACTORS = (10.0, 1.0)
    with_globals(x)
    assert x.tolist() == [51] * 8


def test_sixteen_threads_make_one_plan():
    made, start = [], threading.Barrier(16)

    def work():
        start.wait()
        x = numpy.ones(33, "f4")
        made.append((id(cute.compile(scaled, x, 2.0)), scaled(x, 2.0).sum()))

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 16 and set(made) == {(made[0][0], 66.0)}


def test_what_a_plan_shows():
    x = TensorSpec(Float32, (128,))
    plan = cute.compile(add, x, x, x)
    assert repr(plan.launches) == "(<launch of add_kernel, grid (2, 1, 1), block (64, 1, 1)>,)"
    kernel = plan.launches[0].kernel
    assert "kernel add_kernel(" in kernel.text and kernel.raw.name == "add_kernel"
    artifact = kernel.build(arch="sm_80")
    assert ".target sm_80" in artifact.text and artifact.binary is None and len(artifact.identity) == 64
    assert artifact.report["registers"] == -1 and '"grid"' in artifact.contract
    with pytest.raises(KeyError, match="metal"):
        kernel.build(target="metal")
    reports = [plan.emulate(*numpy.ones((3, 128), "f4"), seed=seed) for seed in range(20)]
    assert all(len(one) == 1 and not one[0].findings and one[0].read_bytes == 1024 for one in reports)
    with pytest.raises(KernelError, match="is called with a TensorSpec"):
        add(x, x, x)


# ---- the launch ----


@cute.kernel
def cluster_kernel(y):
    buffer = cute.arch.get_dyn_smem(Int32)
    tidx, _, _ = thread_idx()
    bidx, _, _ = block_idx()
    (buffer + tidx).store(cute.arch.block_in_cluster_idx()[0] * 100 + tidx)
    sync_threads()
    y[bidx * 32 + tidx] = (buffer + (31 - tidx)).load()


@cute.jit
def clusters(y, stream):
    cluster_kernel(y).launch(grid=4, block=32, cluster=(2, 1, 1), smem=32 * 4, stream=stream)


@cute.jit
def targeted(x, y, target):
    add_kernel(x, x, y).launch(grid=1, block=64, target=target)


def test_targets():
    x, y = tk.ones((4,)).to_device(tk.emulator), tk.zeros((4,)).to_device(tk.emulator)
    targeted(x, y, None)
    assert y.tolist() == [2] * 4
    targeted(x, y, "cute")
    with pytest.raises(NotImplementedError, match="target cute builds for GPUs, the emulator runs kernels as they are"):
        tk.eval(y)
    with pytest.raises(ValueError, match="metal"):
        targeted(x, y, "metal")


def test_clusters_shared_memory_streams():
    y = tk.zeros((128,), dtype=tk.int32).to_device(tk.emulator)
    clusters(y, tk.new_stream(tk.emulator))
    expected = [100 * (block % 2) + 31 - lane for block in range(4) for lane in range(32)]
    assert y.tolist() == expected
    launch = cute.compile(clusters, y, None).launches[0]
    assert launch.cluster == (2, 1, 1) and "dynamic_shared 128" in launch.kernel.text


# ---- layouts of arrays ----


@cute.kernel
def tiled_kernel(a, b, tv):
    tidx, _, _ = thread_idx()
    bidx, _, _ = block_idx()
    mine = cute.composition(a[(None, None), bidx], tv)[tidx, None]
    his = cute.composition(b[(None, None), bidx], tv)[tidx, None]
    for i in cute.range_constexpr(cute.size(mine)):
        his[i] = mine[i] * 2


@cute.jit
def tiled(a, b):
    """A tile of 16 x 8 by 32 threads with four values each."""
    tiler, tv = cute.make_layout_tv(cute.make_layout((8, 4), stride=(4, 1)), cute.make_layout((2, 2), stride=(2, 1)))
    tiles_a, tiles_b = cute.zipped_divide(a, tiler), cute.zipped_divide(b, tiler)
    tiled_kernel(tiles_a, tiles_b, tv).launch(grid=cute.size(tiles_b, mode=[1]), block=cute.size(tv, mode=[0]))


@cute.kernel
def corner_kernel(a, b):
    tidx, _, _ = thread_idx()
    b[tidx] = a[tidx % 4, tidx // 4]


@cute.jit
def corner(a, b):
    corner_kernel(cute.local_tile(a, (4, 4), (1, 2)).T, b).launch(grid=1, block=16)


def test_layouts_of_arrays():
    a = numpy.arange(32 * 24, dtype="f4").reshape(32, 24)
    b = numpy.zeros_like(a)
    tiled(a, b)
    assert numpy.array_equal(b, 2 * a)
    plan = cute.compile(tiled, a, b)
    assert cute.compile(tiled, a, b) is plan and len(tiled_kernel.kernels) == 1
    x, y = tk.array(a), tk.zeros((16,))
    corner(x, y)
    assert numpy.array_equal(numpy.array(y).reshape(4, 4), a[4:8, 8:12])
    with pytest.raises(KernelError, match="zipped_divide of a tensor whose extents are known at launch only"):
        lower_divided()


def lower_divided():
    @cute.kernel(grid=1, block=32)
    def divided(x):
        cute.zipped_divide(x, (4,))

    divided.lower(TensorSpec(Float32, "n"))


# ---- graphs ----


def test_in_graphs():
    @tk.kernel_op
    def double(x):
        return scaled(x, 2.0)

    @double.vjp
    def double_vjp(primal, cotangent, output):
        return scaled(cotangent, 2.0)

    x = tk.arange(6, dtype=tk.float32)
    loss = lambda x: (double(x) * x).sum()  # noqa: E731
    assert tk.grad(loss)(x).tolist() == [0, 4, 8, 12, 16, 20]
    assert tk.compile(double)(x).tolist() == [0, 2, 4, 6, 8, 10]
    there = x.to_device(tk.emulator)
    assert tk.compile(lambda x: double(x) + double(double(x)))(there).tolist() == [6 * i for i in range(6)]
    with pytest.raises(NotImplementedError, match="kernel scale_kernel has no derivative"):
        tk.grad(lambda x: scaled(x, 2.0).sum())(x)


# ---- errors ----


def not_launched(x):
    add_kernel(x, x, x)  # here


def no_grid(x):
    add_kernel(x, x, x).launch(block=64)  # here


def float_grid(x):
    add_kernel(x, x, x).launch(grid=1.5, block=64)  # here


def negative_grid(x):
    add_kernel(x, x, x).launch(grid=(1, -1), block=64)  # here


def four_extents(x):
    add_kernel(x, x, x).launch(grid=(1, 1, 1, 1), block=64)  # here


def elements(x):
    return x[0]  # here


def other_arrays(x):
    add_kernel(x, numpy.zeros(3, "f4"), x).launch(grid=1, block=64)  # here


def written_element(x):
    x[0] = 1.0  # here


def arithmetic(x):
    return 2.0 * x  # here


def no_element_type(x):
    return cute.empty((2,), "f5")  # here


@pytest.mark.parametrize(
    "function, words",
    [
        (not_launched, "is called and not launched"),
        (no_grid, "has no grid"),
        (float_grid, "1.5 in a grid, expected an integer"),
        (negative_grid, "a grid of (1, -1)"),
        (four_extents, "a grid of 4 extents"),
        (written_element, "elements are read and written by kernels"),
        (arithmetic, "arithmetic with an array in a host function"),
        (elements, "elements are read and written by kernels"),
        (other_arrays, "argument y of kernel add_kernel is an array that is no argument of the host function"),
        (no_element_type, "'f5' is no element type"),
    ],
)
def test_errors_at_their_line(function, words):
    with pytest.raises(KernelError) as caught:
        cute.jit(function)(numpy.zeros(4, "f4"))
    message = str(caught.value)
    assert words in message, message
    if function is not no_grid:  # which names the kernel's own line
        assert message.startswith(f"{os.path.abspath(__file__)}:{marked_line(function)}: "), message


@pytest.mark.parametrize("device", ["cpu", "emulator"])
def test_emulate_writes_what_kernels_write(device):
    x, z = (tk.ones((70,)).to_device(getattr(tk, device)) for _ in range(2))
    assert not any(report.findings for report in cute.compile(add, x, x, z).emulate(x, x, z))
    assert x.device == z.device == getattr(tk, device) and z.tolist() == [2] * 70


@cute.kernel(grid=1, block=32)
def out_of_bounds(x):
    x[thread_idx()[0] + 1000] = 0.0


@cute.jit
def counted(x, count: Int32):
    scale_kernel(x, x, 2.0, count).launch(grid=1, block=64)


def test_errors_of_calls():
    x = tk.zeros((4,))
    with pytest.raises(KernelError, match="arrays on cpu:0 and emulator:0: move one of them"):
        add(x, x.to_device(tk.emulator), x)
    with pytest.raises(KernelError, match="with arrays of Tiki and others"):
        add(x, numpy.zeros(4, "f4"), x)
    with pytest.raises(KernelError, match="argument factor of scaled is a str, expected a number for Float32"):
        scaled(x, "2")
    with pytest.raises(KernelError, match="is called; launch it from a @cute.jit function"):
        add_kernel(x, x, x)
    with pytest.raises(KernelError, match="cute.empty makes an array of a host function"):
        cute.empty((3,), "float32")
    with pytest.raises(RuntimeError, match="an array of cute.empty is read before a kernel wrote it"):
        cute.jit(lambda x: add_kernel(x, cute.empty_like(x), x).launch(grid=1, block=64))(x)
    for count in (2**31, -(2**31) - 1, 8.5, float("nan")):
        with pytest.raises(KernelError, match=f"argument count of counted is {count}, which Int32 cannot hold"):
            counted(x, count)
    with pytest.raises(KernelError, match=r"a grid of \(2147483648,\)"):
        cute.jit(lambda x: out_of_bounds(x).launch(grid=2**31))(x)
    with pytest.raises(KernelError, match="cute.dynamic of 3, expected an array"):
        cute.dynamic(3)
    with pytest.raises(KernelError, match=r"modes \[1\] of an array with 1"):
        cute.dynamic(x, [1])
    with pytest.raises(TypeError, match="expected a stream or a device, not 5"):
        cute.jit(lambda x: out_of_bounds(x).launch(stream=5))(x)
    with pytest.raises(ValueError, match="hidden is -1"):
        tk.kernel_op(counted, hidden=-1)
    with pytest.raises(KernelError, match="returns an array of cute.empty that no kernel writes"):
        cute.jit(lambda x: [x, cute.empty_like(x)])(x)
    with pytest.raises(KernelError, match="one array is bound to two parameters that kernel"):
        cute.jit(lambda x: writes_two(x, x).launch(grid=1, block=4))(x)
    launch = cute.jit(lambda x: out_of_bounds(x).launch())
    with pytest.raises(RuntimeError, match=r"kernel out_of_bounds launched at test_kernel_front_host.py:\d+"):
        launch(numpy.zeros(4, "f4"))
    launch(x)
    with pytest.raises(RuntimeError, match=r"kernel out_of_bounds launched at test_kernel_front_host.py:\d+"):
        tk.eval(x)


@cute.kernel
def writes_two(x, y):
    x[thread_idx()[0]] = 1.0
    y[thread_idx()[0]] = 2.0


@pytest.mark.parametrize("modes", [0, ["a"], [2], iter([-3])])
def test_modes_that_are_none(modes):
    with pytest.raises(KernelError, match="cute.dynamic: modes .*expected"):
        cute.dynamic(tk.ones((4, 8)), modes)


def test_modes_may_be_an_iterator():
    assert cute.dynamic(tk.ones((4, 8)), iter([0])).shape == (None, 8)
