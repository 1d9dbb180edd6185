"""On a card, for bench_cute.py: the CuTe target's kernels beside the DSL's, in one run.

    load     from a binary that is built (in Tiki's cache, in the DSL's compiled function) to the end of a first launch
    launch   what the host does for one more launch, of a kernel that the card has done before the next one comes
    device   the kernel's own time: many launches, then a wait
"""

import json
import statistics
import struct
import time

import cutlass.cute  # noqa: F401
from cuda.bindings import driver

import tiki as tk
import tiki.cute

ROUNDS = 7


def check(result):
    code, *values = result
    if int(code) != 0:
        raise RuntimeError(f"the driver says {code}")
    return values[0] if values else None


class Tiki:
    """Launches of a case by the CuTe target."""

    def __init__(self, case, target="cute"):
        self.target = target
        self.tensors = [tk.ones(shape, getattr(tk, dtype[0])).to_device(tk.gpu) for dtype, *shape in case.tensors]
        tk.eval(*self.tensors)
        self.kernel, bound = case.plan().launches[0]
        self.arguments = [self.argument(*pair) for pair in zip(bound, self.kernel.params)]

    def argument(self, bound, parameter):
        kind, value = bound
        _, access, element, _ = parameter
        if kind == "tensor":
            array = self.tensors[value]
            return array if access == "read" else tk.output(array.shape, array.dtype)
        return struct.unpack("<f", struct.pack("<I", value))[0] if element == "f32" else value

    def launch(self):
        return tk.launch(self.kernel, *self.arguments, target=self.target)

    def run(self):
        self.last = self.launch()
        tk.async_eval(self.last)

    def run_all(self, count):
        """Put into the graph first, then evaluated by one call."""
        made = [self.launch() for _ in range(count)]
        tk.async_eval(made)
        self.last = made[-1]

    def wait(self):
        tk.eval(self.last)


class Dsl:
    """Launches of a case by what the DSL has compiled, on memory of the driver."""

    def __init__(self, case):
        self.compiled = case.by_dsl()[1].raw
        self.memory, values = [], []
        for index in case.order:
            dtype, *shape = case.tensors[index]
            size = dtype[1]
            for extent in shape:
                size *= extent
            self.memory.append(int(check(driver.cuMemAlloc(size))))
            check(driver.cuMemsetD8(self.memory[-1], 0, size))
            values.append(tiki.cute._Address(self.memory[-1]))
        self.arguments = [*values, check(driver.cuStreamCreate(1))]

    def run(self):
        self.compiled(*self.arguments)

    def run_all(self, count):
        for _ in range(count):
            self.run()

    def wait(self):
        check(driver.cuCtxSynchronize())

    def free(self):
        for address in self.memory:
            check(driver.cuMemFree(address))


def seconds(side, count, together=False):
    """Of one launch: until all were handed over, and until all are done."""
    side.run()
    side.wait()
    begin = time.perf_counter()
    if together:
        side.run_all(count)
    else:
        for _ in range(count):
            side.run()
    handed_over = time.perf_counter() - begin
    side.wait()
    return handed_over / count, (time.perf_counter() - begin) / count


def first(side):
    begin = time.perf_counter()
    side.run()
    side.wait()
    return time.perf_counter() - begin


def small(case):
    """The same case with little to do, for the time of a launch."""
    sizes = {"add": 4096, "rms_norm": 8, "transpose": 64, "gemm": 128}
    copy = type(case)(case.name, case.function, case.tensors, case.order, case.numbers, case.schedule)
    size = sizes[case.name]
    if case.name == "rms_norm":
        copy.tensors = [(case.tensors[0][0], *((size, 2048) if len(t) == 3 else (2048,) if i == 1 else (size,)))
                        for i, t in enumerate(case.tensors)]
    else:
        copy.tensors = [(t[0], *([size] * (len(t) - 1))) for t in case.tensors]
    return copy


def measure(case):
    """The kernel is built and in the cache before: `compare` has built the small one, which is the same kernel."""
    ours, theirs = Tiki(case), Dsl(case)
    loads = first(ours), first(theirs)
    short = small(case)
    our_short, their_short = Tiki(short), Dsl(short)
    seconds(our_short, 20), seconds(their_short, 20)
    each = [seconds(our_short, 200)[0] for _ in range(ROUNDS)]
    launches = [(seconds(our_short, 200, True)[0], seconds(their_short, 200, True)[0]) for _ in range(ROUNDS)]
    seconds(ours, 5), seconds(theirs, 5)
    times = [(seconds(ours, 20)[1], seconds(theirs, 20)[1]) for _ in range(ROUNDS)]
    theirs.free(), their_short.free()
    launch = [1e6 * statistics.median(pair[i] for pair in launches) for i in (0, 1)]
    device = [1e6 * statistics.median(pair[i] for pair in times) for i in (0, 1)]
    return {
        "kernel": case.function.__name__,
        "load_ms": [1e3 * loads[0], 1e3 * loads[1]],
        "launch_us": launch,
        "launch_each_us": 1e6 * statistics.median(each),
        "device_us": device,
    }


def compare(case):
    """Whether both targets give the same bits on whole numbers and on others."""
    sides = [Tiki(case, "ptx"), Tiki(case, "cute")]
    with tk.stream(tk.cpu):
        keys = tk.random.split(tk.random.key(7), len(case.tensors))
        drawn = [tk.random.normal(tuple(t[1:]), key=k).astype(getattr(tk, t[0][0])) for t, k in zip(case.tensors, keys)]
    results = []
    for side in sides:
        side.tensors = [array.to_device(tk.gpu) for array in drawn]
        bound = case.plan().launches[0][1]
        side.arguments = [side.argument(*pair) for pair in zip(bound, side.kernel.params)]
        made = side.launch()
        tk.eval(made)
        results.append([bytes(memoryview(a.to_device(tk.cpu))) for a in (made if isinstance(made, tuple) else (made,))])
    return results[0] == results[1]


def run(cases, path):
    check(driver.cuInit(0))
    check(driver.cuCtxSetCurrent(check(driver.cuDevicePrimaryCtxRetain(0))))
    info = tk.device_info(tk.gpu)
    rows = [{"bench": "cute_card", "device": info.get("device_name", "?")}]
    for what in (lambda case: {"kernel": case.function.__name__, "same_bits_as_ptx": compare(small(case))}, measure):
        for case in cases:
            try:
                rows.append(what(case))
            except Exception as error:  # the others are measured all the same
                rows.append({"kernel": case.function.__name__, "error": f"{type(error).__name__}: {error}"[:600]})
            print(json.dumps(rows[-1]), flush=True)
    with open(path, "w") as file:
        for row in rows:
            file.write(json.dumps(row) + "\n")
