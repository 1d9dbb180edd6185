"""On a card, for bench_cute.py: the CuTe target's kernels beside the DSL's, in one run.

    load     from a binary that is built (in Tiki's cache, in the DSL's compiled function) to the end of a first launch, in
             processes of their own in which both sides have launched another kernel before
    module   the driver's part of it: a binary in memory to a loaded function, by the same calls for both sides
    launch   what the host does for one more launch, of a kernel that the card has done before the next one comes
    device   the kernel's own time: how much longer more launches take than fewer, handed over by tens, which is sooner than
             they are done; each launch writes to memory of its own on both sides
"""

import json
import os
import statistics
import struct
import subprocess
import sys
import time

import cutlass.cute  # noqa: F401
import numpy
from cuda.bindings import driver

import tiki as tk
import tiki.cute

ROUNDS, PROCESSES = 15, 3
FEW, MANY, TENS = 10, 50, 10


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
        self.made = [self.launch() for _ in range(count)]
        tk.async_eval(self.made)
        self.last = self.made[-1]

    def wait(self):
        tk.eval(self.last)


class Dsl:
    """Launches of a case by what the DSL has compiled, on memory of the driver; launch i writes to the i-th of `sets`."""

    def __init__(self, case, sets=1, data=None):
        """`data`: the bytes of each tensor, zeros without."""
        self.compiled = case.by_dsl()[1].raw
        self.memory, self.sets, self.number, self.data = [], [], 0, data
        kernel, bound = case.plan().launches[0]
        reads = {value for (kind, value), p in zip(bound, kernel.params) if kind == "tensor" and p[1] == "read"}
        inputs = {index: self.allocate(case.tensors[index], index) for index in case.order if index in reads}
        stream = check(driver.cuStreamCreate(1))
        for _ in range(sets):
            values = [inputs.get(i) or self.allocate(case.tensors[i]) for i in case.order]
            self.sets.append([*values, stream])
        self.outputs = [(i, value) for i, value in zip(case.order, values) if i not in reads]

    def allocate(self, tensor, index=None):
        dtype, *shape = tensor
        size = dtype[1]
        for extent in shape:
            size *= extent
        self.memory.append(int(check(driver.cuMemAlloc(size))))
        check(driver.cuMemsetD8(self.memory[-1], 0, size))
        if self.data and index is not None:
            check(driver.cuMemcpyHtoD(self.memory[-1], self.data[index], size))
        return tiki.cute._Address(self.memory[-1])

    def run(self):
        self.compiled(*self.sets[self.number])
        self.number = (self.number + 1) % len(self.sets)

    def run_all(self, count):
        for _ in range(count):
            self.run()

    def wait(self):
        check(driver.cuCtxSynchronize())

    def results(self, case):
        """What one launch writes, by the number of the tensor."""
        self.run()
        self.wait()
        found = {}
        for index, address in self.outputs:
            dtype, *shape = case.tensors[index]
            found[index] = numpy.zeros(shape, dtype[0])
            check(driver.cuMemcpyDtoH(found[index].ctypes.data, address.memory.value, found[index].nbytes))
        return found

    def free(self):
        self.wait()
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


def own_time(side):
    """Of one launch on the card."""
    ends = []
    for count in (FEW, MANY):
        side.wait()
        begin = time.perf_counter()
        kept = []
        for _ in range(0, count, TENS):
            side.run_all(TENS)
            kept.append(getattr(side, "made", None))
        side.wait()
        ends.append(time.perf_counter() - begin)
    return (ends[1] - ends[0]) / (MANY - FEW)


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
    """Launches of a small case, and the time of a large one; both sides are built before."""
    short = small(case)
    our_short, their_short = Tiki(short), Dsl(short)
    for _ in range(2):
        seconds(our_short, 200, True), seconds(their_short, 200, True)
    each = [seconds(our_short, 200)[0] for _ in range(ROUNDS)]
    launches = [(seconds(our_short, 200, True)[0], seconds(their_short, 200, True)[0]) for _ in range(ROUNDS)]
    their_short.free()
    sides = Tiki(case), Dsl(case, MANY), Tiki(case, "ptx")
    for _ in range(2):
        for side in sides:
            side.run()
            own_time(side)
    times = [[own_time(side) for side in sides] for _ in range(ROUNDS)]
    sides[1].free()
    launch = [1e6 * statistics.median(pair[i] for pair in launches) for i in (0, 1)]
    device = [1e6 * statistics.median(row[i] for row in times) for i in (0, 1, 2)]
    return {
        "kernel": case.function.__name__,
        "launch_us": launch,
        "launch_ratio": launch[0] / launch[1],
        "launch_each_us": 1e6 * statistics.median(each),
        "device_us": device[:2],
        "device_by_ptx_us": device[2],
        "device_ratio": device[0] / device[1],
        "device_least_us": [1e6 * min(row[i] for row in times) for i in (0, 1)],
    }


def load(cases):
    """In a process of its own: milliseconds of each case's first launch, after one of another kernel by each side."""
    start_driver()
    other = small(cases[0])
    other.tensors, other.schedule = [(t[0], 512) for t in other.tensors], {**other.schedule, "per_thread": 2}
    for case in [other, *cases]:
        ours, theirs = Tiki(case), Dsl(case)
        theirs.wait()
        tk.eval([tk.zeros(like.shape, like.dtype).to_device(tk.gpu) for like in ours.tensors])  # memory for results
        print(json.dumps([case.function.__name__, 1e3 * first(ours), 1e3 * first(theirs)]), flush=True)
        theirs.free()


def loads(path):
    """Medians over some processes, of rows as `measure` gives them."""
    found = {}
    for _ in range(PROCESSES):
        done = subprocess.run([sys.executable, path, "--card-load"], capture_output=True, text=True, env=os.environ)
        if done.returncode != 0:
            raise RuntimeError(done.stderr[-600:])
        for line in done.stdout.splitlines()[1:]:
            name, ours, theirs = json.loads(line)
            found.setdefault(name, []).append((ours, theirs))
    for name, pairs in found.items():
        middle = [statistics.median(pair[i] for pair in pairs) for i in (0, 1)]
        yield {"kernel": name, "load_ms": middle, "load_ratio": middle[0] / middle[1]}


def module_time(binary):
    begin = time.perf_counter()
    module = check(driver.cuModuleLoadData(binary))
    for function in check(driver.cuModuleEnumerateFunctions(check(driver.cuModuleGetFunctionCount(module)), module)):
        check(driver.cuFuncLoad(function))
    taken = time.perf_counter() - begin
    check(driver.cuModuleUnload(module))
    return taken


def modules(case):
    """In turns."""
    ours = case.plan().kernels[0].build("cute", "sm_90a", True)["binary"]
    theirs = case.by_dsl(stages=True)[1].cubin
    times = [[module_time(ours), module_time(theirs)] for _ in range(1 + ROUNDS)][1:]
    middle = [1e3 * statistics.median(side) for side in zip(*times)]
    return {
        "kernel": case.function.__name__,
        "module_ms": middle,
        "module_ratio": middle[0] / middle[1],
        "binary_bytes": [len(ours), len(theirs)],
    }


def compare(case):
    """Whether both targets give the same bits, and how far the DSL's numbers are from them, of the largest."""
    sides = [Tiki(case, "ptx"), Tiki(case, "cute")]
    with tk.stream(tk.cpu):
        keys = tk.random.split(tk.random.key(7), len(case.tensors))
        drawn = [tk.random.normal(tuple(t[1:]), key=k).astype(getattr(tk, t[0][0])) for t, k in zip(case.tensors, keys)]
    bound = case.plan().launches[0][1]
    results = []
    for side in sides:
        side.tensors = [array.to_device(tk.gpu) for array in drawn]
        side.arguments = [side.argument(*pair) for pair in zip(bound, side.kernel.params)]
        made = side.launch()
        tk.eval(made)
        results.append([numpy.array(a.to_device(tk.cpu)) for a in (made if isinstance(made, tuple) else (made,))])
    theirs = Dsl(case, data=[bytes(memoryview(array)) for array in drawn])
    found = theirs.results(case)
    theirs.free()
    written = [value for (kind, value), p in zip(bound, sides[0].kernel.params) if kind == "tensor" and p[1] != "read"]
    far = [
        float(numpy.abs(ours.astype("f8") - found[i].reshape(ours.shape)).max() / numpy.abs(ours.astype("f8")).max())
        for i, ours in zip(written, results[1])
    ]
    return {
        "kernel": case.function.__name__,
        "same_bits_as_ptx": all(x.tobytes() == y.tobytes() for x, y in zip(*results)),
        "dsl_differs": far,
    }


def start_driver():
    check(driver.cuInit(0))
    check(driver.cuCtxSetCurrent(check(driver.cuDevicePrimaryCtxRetain(0))))


def run(cases, path, bench):
    start_driver()
    info = tk.device_info(tk.gpu)
    rows = [{"bench": "cute_card", "device": info.get("device_name", "?")}]

    def add(what, *arguments):
        try:
            made = what(*arguments)
            for row in [made] if isinstance(made, dict) else made:
                rows.append(row)
                print(json.dumps(row), flush=True)
        except Exception as error:  # the others are measured all the same
            rows.append({"error": f"{what.__name__}: {type(error).__name__}: {error}"[:900]})
            print(json.dumps(rows[-1]), flush=True)

    for case in cases:
        add(compare, small(case))
    for case in cases:
        add(measure, case)
    for case in cases:
        add(modules, case)
    add(loads, bench)
    with open(path, "w") as file:
        for row in rows:
            file.write(json.dumps(row) + "\n")
