"""Host functions: `@cute.jit` functions that are called with arrays, and launch kernels.

A host function is ordinary Python that runs once for each kind of arguments: dtypes, shapes, constants. What it
launches is kept as a plan, and later calls with arguments of that kind bind their arrays to the plan's launches
without running it. Numbers that are annotated with an element type stay open in a plan, unless the function
looks at them: then a plan is for the values that it saw.

Rejected: capturing host functions as kernels are. Their work is choosing tiles, grids and the number of launches
from sizes, which plain Python does, and a plan has nothing left to decide.
"""

from __future__ import annotations

import contextlib
import operator
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from tiki import _core
from tiki import layout as tl
from tiki.kernels.cute.lib import _numeric as numeric
from tiki.kernels.cute.lib import _specs as specs
from tiki.kernels.cute.lib._memory import flat, size_of
from tiki.kernels.cute.lib._numeric import Numeric, NumericMeta, as_dtype
from tiki.kernels.cute.lib._specs import TensorSpec, hashable
from tiki.kernels.cute.lib._tape import active, fail, where

_DTYPES: dict[Any, Any] = {}  # element types of Tiki's dtypes, as they are met
_MOST_PLANS = 256  # of one host function; the one used longest ago goes


# ---- what a host function sees of its arguments ----


class HostTensor:
    """An array inside a host function: shape, strides and element type; its elements are the kernels'."""

    __slots__ = ("slot", "element_type", "shape", "stride", "offset", "spec")

    def __init__(
        self, slot: int, dtype: Any, shape: Any, stride: Any, offset: int = 0, spec: TensorSpec | None = None
    ) -> None:
        self.slot = slot
        self.element_type = dtype
        self.shape = shape
        self.stride = stride
        self.offset = offset
        self.spec = spec if spec is not None else TensorSpec(dtype, shape, stride, offset=offset)

    @property
    def dtype(self) -> Any:
        return self.element_type

    @property
    def rows(self) -> Any:
        return self.shape[0]

    @property
    def cols(self) -> Any:
        return self.shape[-1]

    @property
    def layout(self) -> Any:
        return tl.Layout(self.shape, self.stride)

    @property
    def rank(self) -> int:
        return len(self.shape)

    ndim = rank

    @property
    def size(self) -> int:
        return int(size_of(self.shape))

    @property
    def itemsize(self) -> int:
        return int(self.element_type.bytes)

    @property
    def iterator(self) -> HostTensor:
        """What cute.make_tensor takes: where the array begins."""
        return self

    def rebased(self, shape: Any, stride: Any, moved: Any) -> HostTensor:
        """Another window on the same memory, `moved` elements on."""
        return HostTensor(self.slot, self.element_type, shape, stride, self.offset + operator.index(plain(moved)))

    @property
    def T(self) -> HostTensor:
        """The modes in reverse order."""
        return HostTensor(self.slot, self.element_type, self.shape[::-1], self.stride[::-1], self.offset)

    def relaid(self, layout: Any) -> HostTensor:
        """The same memory seen through another layout."""
        return HostTensor(self.slot, self.element_type, _tuple(layout.shape), _tuple(layout.stride), self.offset)

    def __getitem__(self, *_: Any) -> Any:
        raise fail("an element of an array in a host function: elements are read and written by kernels")

    def _no_arithmetic(self, *_: Any) -> Any:
        raise fail("arithmetic with an array in a host function: kernels compute, it launches them")

    __setitem__: Any = __getitem__
    __add__: Any = _no_arithmetic
    __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __add__
    __matmul__ = __rmatmul__ = __pow__ = __rpow__ = __neg__ = __lt__ = __le__ = __gt__ = __ge__ = __add__

    def __repr__(self) -> str:
        return f"<array of {self.element_type.__name__} {self.shape}:{self.stride} of a host function>"


def _tuple(value: Any) -> Any:
    return value if isinstance(value, tuple) else (value,)


class HostNumber:
    """A number that a plan leaves open, until the host function looks at its value."""

    __slots__ = ("value", "dtype", "slot", "trace")

    def __init__(self, value: Any, dtype: Any, slot: int, trace: HostTrace) -> None:
        self.value = value
        self.dtype = dtype
        self.slot = slot
        self.trace = trace

    def seen(self) -> Any:
        """The value; the plan is for it from now on."""
        self.trace.observed.add(self.slot)
        return self.value

    def __index__(self) -> int:
        return operator.index(self.seen())

    def __int__(self) -> int:
        return int(self.seen())

    def __float__(self) -> float:
        return float(self.seen())

    def __bool__(self) -> bool:
        return bool(self.seen())

    def __hash__(self) -> int:
        return hash(self.seen())

    def __repr__(self) -> str:
        return repr(self.seen())


def plain(value: Any) -> Any:
    return value.seen() if isinstance(value, HostNumber) else value


def _operators() -> None:
    """The operators of Python numbers: they give plain numbers."""
    for word in "add sub mul truediv floordiv mod pow lshift rshift and_ or_ xor".split():
        function = getattr(operator, word)
        name = word.rstrip("_")
        setattr(HostNumber, f"__{name}__", lambda a, b, f=function: f(a.seen(), plain(b)))
        setattr(HostNumber, f"__r{name}__", lambda a, b, f=function: f(plain(b), a.seen()))
    for name in "eq ne lt le gt ge".split():
        function = getattr(operator, name)
        setattr(HostNumber, f"__{name}__", lambda a, b, f=function: f(a.seen(), plain(b)))
    for name in "neg pos abs".split():
        function = getattr(operator, name)
        setattr(HostNumber, f"__{name}__", lambda a, f=function: f(a.seen()))


_operators()

# ---- the trace of a host function ----


class Launch:
    """A launch of a plan: `kernel` is the lowered kernel, `values` what its parameters are bound to."""

    __slots__ = ("kernel", "grid", "block", "cluster", "values", "stream", "target", "site")

    def __init__(
        self,
        kernel: Any,
        grid: Any,
        block: Any,
        cluster: Any,
        values: list[Any],
        stream: Any,
        target: str | None,
        site: str,
    ) -> None:
        self.kernel = kernel
        self.grid = grid
        self.block = block
        self.cluster = cluster
        self.values = values
        self.stream = stream
        self.target = target
        self.site = site

    def __repr__(self) -> str:
        return f"<launch of {self.kernel.raw.name}, grid {self.grid}, block {self.block}>"


class HostTrace:
    """A host function that is running."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.launches: list[Launch] = []
        self.calls: list[KernelCall] = []
        self.observed: set[int] = set()
        self.made: list[HostTensor] = []  # arrays of `empty`, slots behind those of the arguments
        self.arguments = 0


_local = threading.local()


def current_host() -> HostTrace | None:
    trace: HostTrace | None = getattr(_local, "trace", None)
    return trace if active() is None else None


class KernelCall:
    """A kernel with its arguments, to be launched."""

    def __init__(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.launched = False
        self.place = where()

    def launch(
        self,
        *,
        grid: Any = None,
        block: Any = None,
        cluster: Any = None,
        smem: int = 0,
        stream: Any = None,
        target: str | None = None,
        cooperative: bool = False,
        min_blocks_per_mp: int = 0,
    ) -> None:
        """Launches it: up to three extents of grid, block and cluster, `smem` bytes of dynamic shared memory. A grid
        or block that is not given is the decorator's. `target` is who builds the kernel for a GPU, "ptx" or "cute"."""
        trace = current_host()
        if trace is None:
            raise fail(f"kernel {self.function.__name__} is launched outside of a host function")
        self.launched = True
        extents = None if grid is None else _extents(grid, "grid")
        shared = int(plain(smem))
        threads = None if block is None else _extents(block, "block")
        clusters = None if cluster is None else _extents(cluster, "cluster")
        kernel, values = self.function.for_launch(
            self.args,
            self.kwargs,
            grid=extents,
            block=threads,
            cluster=clusters,
            smem=shared,
            cooperative=cooperative,
            min_blocks=min_blocks_per_mp,
        )
        file, line = where()
        site = f"{file.rsplit('/', 1)[-1]}:{line}"
        trace.launches.append(Launch(kernel, extents, kernel.block, clusters, values, stream, target, site))


def _extents(given: Any, what: str) -> tuple[int, ...]:
    given = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    if not 1 <= len(given) <= 3:
        raise fail(f"a {what} of {len(given)} extents, expected 1 to 3")
    numbers = [plain(extent) for extent in given]
    for number in numbers:
        if isinstance(number, bool) or not hasattr(number, "__index__"):
            raise fail(f"{number!r} in a {what}, expected an integer")
        if not (0 if what == "grid" else 1) <= number < 2**31:
            raise fail(f"a {what} of {tuple(numbers)}")
    return tuple(operator.index(number) for number in (*numbers, 1, 1)[:3])


def empty(shape: Any, dtype: Any) -> Any:
    """A new array inside a host function, not set; kernels write it, and the function may return it."""
    trace = current_host()
    if trace is None:
        raise fail("cute.empty makes an array of a host function, and none is running")
    extents = tuple(operator.index(plain(extent)) for extent in _tuple(shape))
    stride = specs.row_major(extents)
    spec = TensorSpec(dtype, extents)
    made = HostTensor(trace.arguments + len(trace.made), spec.dtype, extents, stride, 0, spec)
    trace.made.append(made)
    return made


def empty_like(tensor: Any) -> Any:
    """A new array with the shape and element type of another."""
    return empty(tuple(size_of(mode) for mode in tensor.shape), tensor.element_type)


# ---- plans ----


class Compiled:
    """A host function for one kind of arguments: `launches`, each with `.kernel.raw` and so on; call it with arrays."""

    def __init__(self, function: Any, kind: Any, trace: HostTrace, result: Any) -> None:
        self.function = function
        self.kind = kind
        self.launches = tuple(trace.launches)
        self.made = [(one.element_type, one.shape) for one in trace.made]
        self.arguments = trace.arguments
        self.result = result
        self.steps = [_Step(one) for one in self.launches]
        self.written = {slot for step in self.steps for _, slot in step.writes}
        _map(result, self.check_result)

    def check_result(self, one: Any) -> None:
        """An array that nothing writes has no elements to return."""
        if isinstance(one, HostTensor) and one.slot >= self.arguments and one.slot not in self.written:
            raise fail(f"{self.function.__name__} returns an array of cute.empty that no kernel writes")

    @property
    def kernels(self) -> list[Any]:
        """The lowered kernels, each once."""
        return list({id(one.kernel): one.kernel for one in self.launches}.values())

    def __repr__(self) -> str:
        return f"<compiled {self.function.__qualname__}: {len(self.launches)} launches>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the launches on arrays of the kind that it was compiled for."""
        return self.matching(args, kwargs).run(self)

    def emulate(self, *args: Any, seed: int = 0, resident: int = 0, **kwargs: Any) -> list[Any]:
        """Runs the launches on the CPU and gives what the emulator says of each; see Lowered.emulate."""
        return self.matching(args, kwargs).emulate(self, seed, resident)[0]

    def matching(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        given = Arguments(self.function, args, kwargs)
        if given.key() != self.kind:
            raise fail(f"{self.function.__name__} was compiled for other arguments; call the function itself")
        return given

    def results(self, arrays: list[Any]) -> Any:
        return _map(self.result, lambda one: arrays[one.slot] if isinstance(one, HostTensor) else plain(one))


class _Step:
    """A launch as what to bind: done once, since replaying should do little."""

    __slots__ = ("launch", "raw", "site", "values", "reads", "writes", "open")

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.raw = launch.kernel.program
        self.site = launch.site
        self.values: list[Any] = []  # one a parameter; what follows replaces some
        self.reads: list[tuple[int, int]] = []  # place and slot
        self.writes: list[tuple[int, int]] = []
        self.open: list[tuple[int, int]] = []  # numbers of the call
        for binding, value in zip(launch.kernel.bindings, launch.values):
            if binding.part != "map":  # which is made from what it shows
                self.bind(binding, value)

    def bind(self, binding: Any, value: Any) -> None:
        place = len(self.values)
        self.values.append(None)
        if isinstance(value, HostTensor):
            written = binding.param.access & 2
            if written and any(slot == value.slot for _, slot in self.writes):
                raise fail(f"one array is bound to two parameters that kernel {self.raw.name} writes")
            (self.writes if written else self.reads).append((place, value.slot))
        elif isinstance(value, HostNumber):
            self.open.append((place, value.slot))
        else:
            self.values[place] = float(value) if binding.param.dtype.is_float else int(value)

    def run(self, arrays: list[Any], numbers: dict[int, Any]) -> None:
        values = list(self.values)
        for place, slot in self.open:
            values[place] = numbers[slot]
        for place, slot in self.reads:
            values[place] = arrays[slot]
            if isinstance(arrays[slot], _Fresh):
                raise RuntimeError(
                    f"kernel launched at {self.site}: an array of cute.empty is read before a kernel wrote it"
                )
        for place, slot in self.writes:
            array = arrays[slot]
            fresh = isinstance(array, _Fresh)
            values[place] = _OUTPUT(array.shape, array.dtype) if fresh else _OUTPUT(in_place=array)
        made = _LAUNCH(self.site, self.raw, *values)
        for (_, slot), array in zip(self.writes, made if isinstance(made, tuple) else (made,)):
            arrays[slot] = array


_LAUNCH: Any = _core._device["launch_at"]
_OUTPUT: Any = _core._device["output"]


class _Fresh:
    """An array that nothing has written yet."""

    __slots__ = ("shape", "dtype")

    def __init__(self, shape: Any, dtype: Any) -> None:
        self.shape = shape
        self.dtype = dtype


# ---- a call ----


def _map(tree: Any, function: Callable[[Any], Any]) -> Any:
    if type(tree) in (tuple, list):
        return type(tree)(_map(item, function) for item in tree)
    if type(tree) is dict:
        return {key: _map(item, function) for key, item in tree.items()}
    return function(tree)


class Arguments:
    """The arguments of a call of a host function: arrays, open numbers, constants."""

    def __init__(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.function = function
        self.arrays: list[Any] = []
        self.tensors: list[TensorSpec] = []
        self.numbers: dict[int, Any] = {}
        self.dtypes: dict[int, Any] = {}
        annotations = function.signature()[1]
        self.parts: list[Any] = []
        self.inside = {
            name: self.take(name, value, annotations.get(name))
            for name, value in function.arguments(args, kwargs).items()
        }

    def take(self, name: str, value: Any, annotation: Any) -> Any:
        """A part of the call as something to hash; trees of arrays are walked."""
        if isinstance(annotation, NumericMeta) or isinstance(value, Numeric):
            return self.number(name, value, annotation)
        if annotation is not specs.Constexpr:
            if isinstance(value, _core.array):
                return self.own(value)
            if specs.is_array(value) or isinstance(value, TensorSpec):
                return self.array(value)
        if type(value) in (tuple, list):
            self.parts.append((type(value), len(value)))
            return ("tree", type(value), [self.take(name, item, None) for item in value])
        if type(value) is dict:
            self.parts.append((dict, tuple(value)))
            return ("dict", list(value), [self.take(name, item, None) for item in value.values()])
        self.parts.append(hashable(value))
        return ("constant", value)

    def number(self, name: str, value: Any, annotation: Any) -> Any:
        dtype = annotation if isinstance(annotation, NumericMeta) else type(value)
        if isinstance(value, Numeric):
            if not value.is_constant:
                raise fail(f"argument {name} of {self.function.__name__} is a value of the device")
            value = value.ir.value
        value = specs.number_of(value)
        if not numeric.is_number(value):
            raise fail(
                f"argument {name} of {self.function.__name__} is a {type(value).__name__}, expected a number for "
                f"{dtype.__name__}"
            )
        if not dtype.is_float and dtype.width > 1:
            least = -(1 << dtype.width - 1) if dtype.signed else 0
            if value != value or not least <= value < least + (1 << dtype.width) or int(value) != value:
                raise fail(f"argument {name} of {self.function.__name__} is {value}, which {dtype.__name__} cannot hold")
        slot = len(self.numbers)
        self.numbers[slot] = float(value) if dtype.is_float else int(value)
        self.dtypes[slot] = dtype
        self.parts.append(("number", dtype))
        return ("number", slot)

    def own(self, array: Any) -> Any:
        """An array of Tiki: its spec is made only where a plan is."""
        slot = self.slot_of(array)
        shape = array.shape
        dtype = array.dtype
        kind = _DTYPES.get(dtype)
        if kind is None:
            kind = _DTYPES[dtype] = as_dtype(dtype)
        self.parts.append((slot, kind, shape, None))
        return ("array", slot, None, shape)

    def slot_of(self, array: Any) -> int:
        for slot, one in enumerate(self.arrays):
            if one is array and array is not None:
                return slot
        self.arrays.append(array)
        return len(self.arrays) - 1

    def array(self, value: Any) -> Any:
        spec = value if isinstance(value, TensorSpec) else specs.spec_of(value)
        array = value.array if isinstance(value, TensorSpec) else value
        shape = spec.shape if array is None else tuple(array.shape)
        if not all(isinstance(extent, int) for extent in flat(shape)):
            raise fail(f"{spec!r} as argument of host function {self.function.__name__}, which needs the extents")
        slot = self.slot_of(array)
        usual = spec.is_static and spec.stride is None and spec.align == spec.dtype.bytes
        self.parts.append((slot, spec.dtype, shape, None if usual else (spec.key(), specs.element_strides(array))))
        return ("array", slot, spec.alone(), shape)

    # ---- the plan ----

    def key(self) -> Any:
        return (tuple(self.parts), self.function.surroundings())

    def plan(self) -> Compiled:
        """The plan for these arguments, made by the first of many threads that ask."""
        key = self.key()
        entry = self.function.plans.entry(key)
        with entry.lock:
            seen = tuple(self.numbers[slot] for slot in entry.observed)
            found = entry.plans.get(repr(seen))
            if found is None:
                found, observed = self.trace(key)
                if not observed <= set(entry.observed):
                    entry.observed = tuple(sorted(observed | set(entry.observed)))
                    entry.plans.clear()
                entry.plans[repr(tuple(self.numbers[slot] for slot in entry.observed))] = found
                while len(entry.plans) > _MOST_PLANS:
                    entry.plans.popitem(last=False)
            else:
                entry.plans.move_to_end(repr(seen))
        return found

    def trace(self, key: Any) -> tuple[Compiled, set[int]]:
        """Runs the function."""
        trace = HostTrace(self.function.__name__)
        trace.arguments = len(self.arrays)
        bound = self.function.signature()[0].bind_partial()
        bound.arguments.update({name: self.shown(part, trace) for name, part in self.inside.items()})
        before = getattr(_local, "trace", None)
        _local.trace = trace
        try:
            result = self.function.function(*bound.args, **bound.kwargs)
            for call in trace.calls:
                if not call.launched:
                    file, line = call.place
                    raise specs.KernelError(
                        f"{file}:{line}: kernel {call.function.__name__} is called and not launched: write "
                        f".launch(grid=..., block=...) behind the call"
                    )
            compiled = Compiled(self.function, key, trace, result)
        finally:
            _local.trace = before
        return compiled, trace.observed

    def shown(self, part: Any, trace: HostTrace) -> Any:
        if part[0] == "tree":
            return part[1](self.shown(item, trace) for item in part[2])
        if part[0] == "dict":
            return dict(zip(part[1], (self.shown(item, trace) for item in part[2])))
        if part[0] == "number":
            return HostNumber(self.numbers[part[1]], self.dtypes[part[1]], part[1], trace)
        if part[0] == "array":
            _, slot, spec, shape = part
            if spec is None:
                spec = specs.spec_of(self.arrays[slot])
            stride = spec.stride if spec.stride is not None else specs.row_major(shape)
            if not all(isinstance(step, int) for step in flat(stride)):
                stride = specs.element_strides(self.arrays[slot]) or specs.row_major(shape)
            return HostTensor(slot, spec.dtype, shape, stride, spec.offset, spec)
        return part[1]

    # ---- running ----

    def run(self, plan: Compiled) -> Any:
        if any(array is None for array in self.arrays):
            raise fail(f"host function {self.function.__name__} is called with a TensorSpec, which has no elements")
        ours = [isinstance(array, _core.array) for array in self.arrays]
        if ours and not any(ours):
            reports, arrays = self.emulate(plan, 0, 0)
            for launch, report in zip(plan.launches, reports):
                if report.findings:
                    raise RuntimeError(f"kernel {launch.kernel.raw.name} launched at {launch.site}: {report.text}")
            return plan.results(arrays)
        if not all(ours):
            raise fail(f"host function {self.function.__name__} is called with arrays of Tiki and others")
        return self.run_arrays(plan)

    def run_arrays(self, plan: Compiled) -> Any:
        import tiki
        from tiki._kernel_op import _by

        name = _core._device["name"]
        names = {name(array) for array in self.arrays} or {str(tiki.default_device())}
        if len(names) > 1:
            raise fail(f"arrays on {' and '.join(sorted(names))}: move one of them with to_device")
        on_cpu = next(iter(names)).startswith(("cpu", "Device(cpu"))
        arrays = [array.to_device(tiki.emulator) for array in self.arrays] if on_cpu else list(self.arrays)
        arrays += [_Fresh(shape, _dtype_of(dtype)) for dtype, shape in plan.made]
        before = list(arrays)
        for step in plan.steps:
            if (
                step.launch.stream is None and step.launch.target is None and self.arrays
            ):  # a launch is where its arrays are
                step.run(arrays, self.numbers)
                continue
            place = tiki.emulator if on_cpu else tiki.default_device()
            by = _by(step.launch.target) if step.launch.target else contextlib.nullcontext()
            with tiki.stream(step.launch.stream or place), by:
                step.run(arrays, self.numbers)
        back = [
            array.to_device(tiki.cpu) if on_cpu and array is not old else array for array, old in zip(arrays, before)
        ]
        for i, (array, old) in enumerate(zip(back, before)):
            if i < len(self.arrays) and array is not old:
                _core._device["replace"](self.arrays[i], array)
                back[i] = self.arrays[i]
        return plan.results([self.arrays[i] if i < len(self.arrays) else one for i, one in enumerate(back)])

    def emulate(self, plan: Compiled, seed: int, resident: int) -> tuple[list[Any], list[Any]]:
        """Runs every launch now, on NumPy memory: that of NumPy arrays itself, copies of other arrays."""
        import numpy

        memory = [_bits_of(array) if isinstance(array, _core.array) else array for array in self.arrays]
        memory += [numpy.zeros(shape, _numpy_name(dtype)) for dtype, shape in plan.made]
        reports = []
        for launch in plan.launches:
            values = [
                memory[one.slot]
                if isinstance(one, HostTensor)
                else self.numbers[one.slot]
                if isinstance(one, HostNumber)
                else one
                for one in launch.values
            ]
            reports.append(launch.kernel.run(values, seed, resident))
        given = [self.arrays[slot] for slot in plan.written if slot < len(self.arrays)]  # the others were made
        for array, bits in zip(self.arrays, memory):
            if isinstance(array, _core.array) and any(array is one for one in given):
                new = _core.array(bits).view(array.dtype)
                _core._device["replace"](array, new.to_device(array.device))
        return reports, memory


def _dtype_of(dtype: Any) -> Any:
    import tiki

    name = specs.name_of(dtype)
    return getattr(tiki, "bool_" if name == "bool" else name)


def _numpy_name(dtype: Any) -> str:
    """NumPy has no bfloat16: its bits."""
    name = specs.name_of(dtype)
    return "uint16" if name == "bfloat16" else name


def _bits_of(array: Any) -> Any:
    import numpy

    import tiki

    plain_array = array.view(tiki.uint16) if array.dtype == tiki.bfloat16 else array
    return numpy.array(plain_array)


class _Entry:
    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.observed: tuple[int, ...] = ()
        self.plans: OrderedDict[str, Compiled] = OrderedDict()


class Plans:
    """The plans of a host function."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.entries: OrderedDict[Any, _Entry] = OrderedDict()

    def entry(self, key: Any) -> _Entry:
        with self.lock:
            found = self.entries.get(key)
            if found is None:
                found = self.entries[key] = _Entry()
                while len(self.entries) > _MOST_PLANS:
                    self.entries.popitem(last=False)
            else:
                self.entries.move_to_end(key)
            return found


def call(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call from outside of kernels and host functions."""
    given = Arguments(function, args, kwargs)
    return given.run(given.plan())


def compile(function: Any, *args: Any, **kwargs: Any) -> Compiled:
    """The plan of a host function for arguments, arrays or TensorSpecs; nothing is launched."""
    if not hasattr(function, "plans"):
        raise fail(f"{function!r} is no host function; @cute.jit makes one")
    return Arguments(function, args, kwargs).plan()
