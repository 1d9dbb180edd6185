"""`@cute.jit` and `@cute.kernel`: functions that are captured, specialised once per kind of arguments, and lowered.

A kernel is specialised by element types, static sizes, alignments and constants, and by the plain values that its
function closes over. Each specialisation is built once, also when many threads ask at the same time; building
different ones runs side by side, since a trace belongs to its thread.
"""

from __future__ import annotations

import functools
import inspect
import struct
import threading
import types
from collections.abc import Callable
from typing import Any, overload

from tiki import _core
from tiki.kernels.cute.lib import _contract as contract
from tiki.kernels.cute.lib import _host, _memory, _tape
from tiki.kernels.cute.lib import _numeric as numeric
from tiki.kernels.cute.lib._capture import capture
from tiki.kernels.cute.lib._contract import Dim, Parameter
from tiki.kernels.cute.lib._host import HostNumber, HostTensor, plain
from tiki.kernels.cute.lib._numeric import BFloat16, Int32, Numeric, NumericMeta, as_dtype
from tiki.kernels.cute.lib._specs import (
    Constexpr,
    TensorSpec,
    element_strides,
    hashable,
    is_array,
    name_of,
    number_of,
    row_major,
    spec_of,
)
from tiki.kernels.cute.lib._tape import KernelError, Trace, active, fail, tracing

AT_LAUNCH = "at launch"  # a grid that the launch gives


# ---- parameters ----


class ContractTensor:
    """A tensor as the launch sees it: shapes as sizes of the contract."""

    def __init__(self, dtype: Any, shape: tuple[Any, ...], stride: tuple[Any, ...]) -> None:
        self.element_type = dtype
        self.shape = shape
        self.stride = stride

    @property
    def rows(self) -> Any:
        return self.shape[0]

    @property
    def cols(self) -> Any:
        return self.shape[-1]


class Binding:
    """Where a launch finds the value of a parameter: the argument and what of it."""

    __slots__ = ("param", "argument", "part", "mode")

    def __init__(self, param: Any, argument: str, part: str, mode: int = 0) -> None:
        self.param = param
        self.argument = argument
        self.part = part
        self.mode = mode


class Builder:
    """Turns the arguments of a specialisation into parameters of the kernel and values of the function."""

    def __init__(self, trace: Trace, names: tuple[str, ...] = ()) -> None:
        self.trace = trace
        self.bindings: list[Binding] = []
        self.named: dict[str, Dim] = {}
        self.taken = set(names)

    def parameter(self, name: str, dtype: Any, argument: str, part: str, mode: int = 0, **more: Any) -> Parameter:
        param = Parameter(name, dtype, **more)
        self.trace.params.append(param)
        self.bindings.append(Binding(param, argument, part, mode))
        return param

    def extent(self, extent: Any, argument: str, part: str, mode: int) -> Any:
        """A static extent, or a parameter of the launch."""
        if isinstance(extent, (int, tuple)):
            return extent
        if isinstance(extent, str) and extent in self.named:
            return self.named[extent]
        name = extent if isinstance(extent, str) and extent not in self.taken else f"{argument}_{part}{mode}"
        dim = Dim("param", self.parameter(name, Int32, argument, part, mode, pointer=False, nonneg=True))
        self.trace.require(dim, ">=", 0)
        if isinstance(extent, str):
            self.named[extent] = dim
        return dim

    def tensor(self, name: str, spec: TensorSpec) -> tuple[_memory.RawTensor, ContractTensor]:
        shape = tuple(self.extent(extent, name, "shape", i) for i, extent in enumerate(spec.shape))
        if spec.stride is None:
            stride, size = _compact(shape)
        else:
            stride = tuple(self.extent(step, name, "stride", i) for i, step in enumerate(spec.stride))
            size = contract.combine("add", _span(shape, stride), spec.offset)
        param = self.parameter(name, spec.dtype, name, "data", pointer=True, align=spec.align)
        param.size = size
        param.extents = (shape, stride)
        for reach in (size,) if spec.stride is None else (size, _count(shape, stride)):
            if isinstance(reach, int) and reach > 1 << 31:
                raise fail(f"{name} spans {reach} elements; kernels of this front index with Int32")
            if not isinstance(reach, int):
                self.trace.require(reach, "<", 1 << 31)
        pointer = _memory.Pointer(param.var, spec.dtype, "global", param)
        raw = _memory.RawTensor(pointer, _on_device(shape), _on_device(stride), spec.offset)
        return raw, ContractTensor(spec.dtype, shape, stride)

    def grid(self) -> tuple[Any, ...]:
        """A grid that is given at the launch: three parameters."""
        dims = []
        for mode, axis in enumerate("xyz"):
            name = f"grid_{axis}"
            while name in self.taken or name in self.named:
                name += "_"
            dims.append(Dim("param", self.parameter(name, Int32, "", "grid", mode, pointer=False, nonneg=True)))
            self.trace.require(dims[-1], ">=", 0)
        return tuple(dims)

    def scalar(self, name: str, dtype: Any) -> tuple[Any, Any]:
        param = self.parameter(name, dtype, name, "scalar", pointer=False)
        return numeric.wrap(dtype, param.var), Dim("param", param) if not dtype.is_float else None


def _compact(shape: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
    strides: list[Any] = []
    step: Any = 1
    for extent in reversed(shape):
        strides.insert(0, step)
        step = contract.combine("mul", step, extent)
    return tuple(strides), step


def _span(shape: tuple[Any, ...], stride: tuple[Any, ...]) -> Any:
    size: Any = 1
    for extent, step in zip(_memory.flat(shape), _memory.flat(stride)):
        size = contract.combine("add", size, contract.combine("mul", contract.combine("sub", extent, 1), step))
    return size


def _count(shape: tuple[Any, ...], stride: tuple[Any, ...]) -> Any:
    """How many elements there are, where strides of 0 may make them more than the tensor spans."""
    if all(isinstance(step, int) and step > 0 for step in _memory.flat(stride)) or len(_memory.flat(shape)) < 2:
        return 0
    return functools.reduce(lambda a, b: contract.combine("mul", a, b), _memory.flat(shape), 1)


def _on_device(sizes: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(size.on_device() if isinstance(size, Dim) else size for size in sizes)


# ---- functions ----


def _annotations(function: Any) -> dict[str, Any]:
    try:
        return inspect.get_annotations(function, eval_str=True)
    except Exception:
        return dict(inspect.get_annotations(function))


class Once:
    """A value that the first of many threads makes."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.made = False
        self.value: Any = None

    def get(self, make: Callable[[], Any]) -> Any:
        with self.lock:
            if not self.made:
                self.value = make()
                self.made = True
        return self.value


def _plain_names(function: Any) -> tuple[str, ...]:
    """The names of parameters that are all given by place, else none."""
    code = function.__code__
    variadic = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    if code.co_flags & variadic or code.co_kwonlyargcount:
        return ()
    return tuple(code.co_varnames[: code.co_argcount])


class JitFunction:
    """A function of kernels, captured: calling it inside a kernel builds its body there."""

    def __init__(self, function: Any) -> None:
        if not isinstance(function, types.FunctionType):
            raise KernelError(f"{function!r} is no function that can be captured")
        self.function = function
        self.__name__ = function.__name__
        self.__qualname__ = function.__qualname__
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__
        self.__wrapped__ = function
        self.captured = Once()
        self.prepared = Once()
        self.named = Once()
        self.plans = _host.Plans()

    def body(self) -> Any:
        return self.captured.get(lambda: capture(self.function))

    def signature(self) -> tuple[inspect.Signature, dict[str, Any]]:
        return self.prepared.get(lambda: (inspect.signature(self.function), _annotations(self.function)))

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments of a call by name, defaults included."""
        names = self.named.get(lambda: _plain_names(self.function))
        if not kwargs and len(args) == len(names):
            return dict(zip(names, args))
        bound = self.signature()[0].bind(*args, **kwargs)
        bound.apply_defaults()
        return dict(bound.arguments)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Inside a kernel: its body, built there. In a host function: as plain Python. Elsewhere: as a host function,
        whose launches run on the arrays that it is given."""
        if active() is None:
            if _host.current_host() is not None:
                return self.function(*args, **kwargs)
            return _host.call(self, args, kwargs)
        signature, annotations = self.signature()
        bound = signature.bind(*args, **kwargs)
        for name, value in bound.arguments.items():
            dtype = annotations.get(name)
            if isinstance(dtype, NumericMeta) and (numeric.is_number(value) or isinstance(value, Numeric)):
                bound.arguments[name] = dtype(value)
        return self.body()(*bound.args, **bound.kwargs)

    def surroundings(self) -> Any:
        """The plain values that the function reads from outside, those of functions that it may call included: other
        values are another kernel."""
        found: list[Any] = []
        self.read_outside(found, [])
        return tuple(found)

    def read_outside(self, found: list[Any], seen: list[Any]) -> None:
        seen.append(self)
        function = self.function
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            try:
                value = cell.cell_contents
            except ValueError:
                continue
            self.note(name, value, found, seen, True)
        for name in function.__code__.co_names:
            self.note(name, function.__globals__.get(name), found, seen, False)

    def note(self, name: str, value: Any, found: list[Any], seen: list[Any], closure: bool) -> None:
        if isinstance(value, JitFunction):
            if value not in seen:
                found.append((name, id(value)))
                value.read_outside(found, seen)
        elif closure or isinstance(value, (bool, int, float, str, tuple)):
            found.append((name, hashable(value)))

    def __repr__(self) -> str:
        return f"<cute.jit {self.__qualname__}>"


class Artifact(types.SimpleNamespace):
    """A kernel that a target has built: `text`, `binary` (None without one), `log`, `arch`, `identity`, `lowered` and `ptx`
    (stages of the target "cute", None where they were not asked for), `report`
    (registers, spills, shared memory, occupancy; -1 where nothing was assembled) and `contract`, as JSON."""

    def __repr__(self) -> str:
        size = "no binary" if self.binary is None else f"a binary of {len(self.binary)} bytes"
        return f"<artifact for {self.arch}, {len(self.text)} characters of text, {size}>"


class Report(types.SimpleNamespace):
    """What the emulator says of a run: `findings` (a list, empty for a kernel without fault), `text`, which says them
    a line each, `counts` of each operation, `lane_operations`, `read_bytes`, `written_bytes` and `flops`."""

    def __repr__(self) -> str:
        said = self.text.rstrip() or "nothing found"
        return f"<{said}; {self.lane_operations} lane operations, {self.flops} FLOPs>"


class Lowered:
    """A kernel that is built: `.raw` is the kernel IR, `.text` its text."""

    def __init__(
        self,
        raw: Any,
        bindings: list[Binding],
        signature: inspect.Signature,
        specs: dict[str, TensorSpec],
        block: tuple[int, ...],
    ) -> None:
        self.raw = raw
        self.bindings = bindings
        self.signature = signature
        self.specs = specs
        self.block = block
        self.expanded = Once()

    @property
    def program(self) -> Any:
        """The kernel IR that runs: exp, log, tanh, erf, sin and cos are written out."""
        return self.expanded.get(lambda: self.raw.lower("thread"))

    @property
    def text(self) -> str:
        """The kernel as `.tk` text."""
        return str(self.raw.text)

    def build(
        self, arch: str = "sm_90a", target: str = "ptx", binary: bool = False, lines: bool = False, stages: bool = False
    ) -> Artifact:
        """What a target makes of the kernel: "ptx" or "cute"; with `binary` a cubin too, which needs its assembler; with
        `stages` also what lies between text and binary."""
        return Artifact(**self.program.build(target, arch, binary, lines, stages))

    def __repr__(self) -> str:
        return f"<lowered {self.raw.name}>"

    def values(self, *args: Any, grid: Any = None, **kwargs: Any) -> list[Any]:
        """The arguments of a launch in the order of the kernel's parameters: arrays for pointers, else numbers."""
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        self.check(bound.arguments)
        return [
            grid[binding.mode]
            if binding.part == "grid"
            else 0
            if binding.part == "map"
            else _value_of(binding, bound.arguments[binding.argument])
            for binding in self.bindings
        ]

    def check(self, arguments: dict[str, Any]) -> None:
        """Arrays have the element types and extents that the kernel was made for."""
        named: dict[str, int] = {}
        for name, spec in self.specs.items():
            argument = arguments[name]
            if not hasattr(argument, "shape") or not hasattr(argument, "dtype"):
                raise fail(f"{name} is a {type(argument).__name__}, kernel {self.raw.name} expects an array")
            if not _may_stand_for(as_dtype(argument.dtype), spec.dtype):
                given, made = name_of(as_dtype(argument.dtype)), name_of(spec.dtype)
                raise fail(f"{name} is an array of {given}, kernel {self.raw.name} was made for {made}")
            shape = argument.shape
            if len(shape) != len(spec.shape):
                raise fail(f"{name} has {len(shape)} axes, kernel {self.raw.name} was made for {len(spec.shape)}")
            for extent, given in zip(spec.shape, shape):
                expected = named.setdefault(extent, given) if isinstance(extent, str) else extent
                if expected is not None and given != expected:
                    what = f"{extent} = {expected}" if isinstance(extent, str) else f"{expected}"
                    raise fail(f"{name} has an extent of {given}, kernel {self.raw.name} expects {what} there")

    def launch(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Grid, cluster, block and dynamic shared memory for arguments, preconditions checked; pointers count as
        aligned."""
        values = self.values(*args, **kwargs)
        bits = (0 if b.part == "data" else _bits(b, v) for b, v in zip(self.bindings, values))
        return dict(self.raw.launch(tuple(bits)))

    def emulate(self, *args: Any, seed: int = 0, resident: int = 0, **kwargs: Any) -> Report:
        """Runs the kernel on the CPU and judges it. Arrays that it writes are NumPy arrays, written in place."""
        return self.run(self.values(*args, **kwargs), seed, resident)

    def run(self, values: list[Any], seed: int, resident: int) -> Report:
        for binding, value in zip(self.bindings, values):
            if binding.part == "data" and binding.param.access & 2 and isinstance(value, _core.array):
                raise fail(
                    f"{binding.argument} is written by kernel {self.raw.name}, and Tiki's arrays are values: "
                    f"emulate takes a NumPy array there, a launch in a @cute.jit function takes both"
                )
        taken = tuple(_memory_of(v) if b.part == "data" else _bits(b, v) for b, v in zip(self.bindings, values))
        return Report(**self.program.emulate(taken, seed, resident))


def _may_stand_for(given: Any, made: Any) -> bool:
    """The type itself, or integers of its width, as whose bits NumPy holds bfloat16 and the like."""
    return given is made or (given.bytes == made.bytes and not given.is_float)


def _value_of(binding: Binding, argument: Any) -> Any:
    if binding.part == "data":
        return argument
    if binding.part == "shape":
        return int(argument.shape[binding.mode])
    if binding.part == "stride":
        return int(_strides_of(argument)[binding.mode])
    return argument.ir.value if isinstance(argument, Numeric) else argument


def _strides_of(argument: Any) -> Any:
    if isinstance(argument, HostTensor):
        return argument.stride
    return element_strides(argument) or row_major(tuple(argument.shape))


def _bits(binding: Binding, value: Any) -> int:
    """A number as the bits of its parameter; tensor maps are made from others."""
    if binding.part == "map":
        return 0
    dtype = binding.param.dtype
    if not dtype.is_float:
        return int(value) & ((1 << max(dtype.width, 8)) - 1)
    if dtype is BFloat16:
        word = struct.unpack("<I", struct.pack("<f", value))[0]
        return int((word + 0x7FFF + (word >> 16 & 1)) >> 16)
    code = {16: "<e", 32: "<f", 64: "<d"}[dtype.width]
    return int.from_bytes(struct.pack(code, value), "little")


def _memory_of(array: Any) -> Any:
    """The bytes of an array, in one piece: from its first element to its last."""
    if isinstance(array, _core.array):
        whole = _core.contiguous(array)  # it counts as contiguous rows
        return whole.view(_core.uint16) if whole.dtype == _core.bfloat16 else whole
    if not hasattr(array, "flags") or not hasattr(array, "view"):
        return array
    if array.flags.c_contiguous:
        return array.reshape(-1).view("u1")
    import numpy

    steps = [stride // array.itemsize for stride in array.strides]
    if any(stride % array.itemsize for stride in array.strides) or min(steps) < 0:
        raise fail("an array with negative or odd strides; the emulator takes those from 0 on")
    span = 1 + sum((extent - 1) * step for extent, step in zip(array.shape, steps))
    return numpy.lib.stride_tricks.as_strided(array, (span,), (array.itemsize,)).view("u1")


class Config:
    """How a kernel is launched: extents, or functions of the kernel's parameters that give them."""

    __slots__ = ("grid", "block", "cluster", "smem", "cooperative", "min_blocks")

    def __init__(
        self,
        grid: Any = None,
        block: Any = None,
        cluster: Any = None,
        smem: int = 0,
        cooperative: bool = False,
        min_blocks: int = 0,
    ) -> None:
        self.grid = grid
        self.block = block
        self.cluster = cluster
        self.smem = smem
        self.cooperative = cooperative
        self.min_blocks = min_blocks

    def replaced(self, **given: Any) -> Config:
        """With what is given instead of its own."""
        return Config(**{name: given.get(name) or getattr(self, name) for name in Config.__slots__})

    def key(self) -> Any:
        return tuple(hashable(getattr(self, name)) for name in Config.__slots__)


class KernelFunction(JitFunction):
    """A function that is a kernel. `lower` gives the kernel for arguments, made once for each kind of them."""

    def __init__(self, function: Any, config: Config) -> None:
        super().__init__(function)
        self.config = config
        self.lock = threading.Lock()
        self.kernels: dict[Any, Once] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """In a host function: the kernel with its arguments, to be launched by `.launch(...)`."""
        if active() is not None:
            raise fail(f"kernel {self.__name__} is called inside a kernel; make it a @cute.jit function")
        host = _host.current_host()
        if host is None:
            raise fail(
                f"kernel {self.__name__} is called; launch it from a @cute.jit function, or use "
                f"{self.__name__}.lower(...)"
            )
        call = _host.KernelCall(self, args, kwargs)
        host.calls.append(call)
        return call

    def lower(self, *args: Any, grid: Any = None, block: Any = None, **kwargs: Any) -> Lowered:
        """The kernel for these arguments: arrays or TensorSpecs, numbers for parameters that are annotated with an
        element type, and anything else as a constant. `grid` and `block` replace those of the decorator."""
        bound = self.signature()[0].bind(*args, **kwargs)
        bound.apply_defaults()
        return self.specialised(bound.arguments, self.config.replaced(grid=grid, block=block))

    def for_launch(self, args: tuple[Any, ...], kwargs: dict[str, Any], **given: Any) -> tuple[Lowered, list[Any]]:
        """The kernel that a host function launches, and what its parameters are bound to. Where extents or integers
        are left to the launch, so is the grid: one kernel serves all."""
        bound = self.signature()[0].bind(*args, **kwargs)
        bound.apply_defaults()
        for name, value in bound.arguments.items():
            if is_array(value) and not isinstance(value, HostTensor):
                raise fail(
                    f"argument {name} of kernel {self.__name__} is an array that is no argument of the host function"
                )
        grid = given["grid"]
        config = self.config.replaced(**given)
        if grid is not None and self.is_open(bound.arguments):
            config.grid = AT_LAUNCH
        kernel = self.specialised(bound.arguments, config)
        return kernel, kernel.values(*bound.args, grid=grid, **bound.kwargs)

    def is_open(self, arguments: dict[str, Any]) -> bool:
        """Whether extents or integers are left to the launch."""
        annotations = self.signature()[1]
        for name, value in arguments.items():
            kind, _, more = _kind(name, value, annotations.get(name))
            if kind == "tensor" and not more.is_static or kind == "scalar" and not more.is_float:
                return True
        return False

    def specialised(self, arguments: dict[str, Any], config: Config) -> Lowered:
        annotations = self.signature()[1]
        kinds = {name: _kind(name, value, annotations.get(name)) for name, value in arguments.items()}
        key = (tuple(kinds[name][1] for name in kinds), config.key(), self.surroundings())
        with self.lock:
            once = self.kernels.setdefault(key, Once())
        return once.get(lambda: self.build(kinds, config))

    def build(self, kinds: dict[str, Any], config: Config) -> Lowered:
        signature, annotations = self.signature()
        trace = Trace(self.__name__)
        with tracing(trace):
            builder = Builder(trace, tuple(kinds))
            inside: dict[str, Any] = {}
            outside: dict[str, Any] = {}
            for name, (kind, _, value) in kinds.items():
                if kind == "tensor":
                    raw, outside[name] = builder.tensor(name, value)
                    inside[name] = _as_annotated(raw, annotations.get(name))
                elif kind == "scalar":
                    inside[name], outside[name] = builder.scalar(name, value)
                else:
                    inside[name] = outside[name] = value
            grid = builder.grid() if config.grid is AT_LAUNCH else None
            bound = signature.bind_partial()
            bound.arguments.update(inside)
            result = self.traced(bound)
            if result is not None:
                raise KernelError(
                    f"{self.place()}: kernel {self.__name__} returns a {type(result).__name__}; results are stored "
                    f"to tensors"
                )
            extents = grid if grid is not None else self.extents(config.grid, outside, "grid")
            threads = self.extents(config.block, outside, "block")
            cluster = None if config.cluster is None else self.extents(config.cluster, outside, "cluster")
            raw_kernel = self.finish(trace, extents, threads, cluster, config)
        builder.bindings.extend(Binding(None, "", "map") for _ in trace.maps)
        specs = {name: value.alone() for name, (kind, _, value) in kinds.items() if kind == "tensor"}
        return Lowered(raw_kernel, builder.bindings, signature, specs, threads)

    def traced(self, bound: inspect.BoundArguments) -> Any:
        """Runs the captured function. Errors that are Python's own keep their type and get the place as a note."""
        try:
            return self.body()(*bound.args, **bound.kwargs)
        except KernelError:
            raise
        except RecursionError as error:
            raise KernelError(
                f"{_tape.place_of(error)}: functions call each other without end: what ends them is decided on the "
                f"device, or too far away"
            ) from None
        except Exception as error:
            error.add_note(f"{_tape.place_of(error)}: while kernel {self.__name__} was built")
            raise

    def place(self) -> str:
        code = self.function.__code__
        return f"{code.co_filename}:{code.co_firstlineno}"

    def extents(self, given: Any, outside: dict[str, Any], what: str) -> tuple[Any, ...]:
        if callable(given):
            given = given(*outside.values())
        if given is None:
            raise KernelError(
                f"{self.place()}: kernel {self.__name__} has no {what}: give it to @cute.kernel, lower or launch"
            )
        given = tuple(given) if isinstance(given, (tuple, list)) else (given,)
        if not 1 <= len(given) <= 3:
            raise KernelError(f"{self.place()}: a {what} of {len(given)} extents, expected 1 to 3")
        if what == "block" and not all(isinstance(extent, int) for extent in given):
            raise KernelError(f"{self.place()}: a block of {given}, expected integers")
        return (*given, 1, 1)[:3]

    def finish(self, trace: Trace, grid: tuple[Any, ...], block: tuple[Any, ...], cluster: Any, config: Config) -> Any:
        try:
            return _tape.lower(trace, lambda low: contract.declare(low, trace, grid, block, cluster, config))
        except KernelError:
            raise
        except (ValueError, IndexError, RuntimeError) as error:
            raise KernelError(str(error)) from error

    def __repr__(self) -> str:
        return f"<cute.kernel {self.__qualname__}>"


def _kind(name: str, value: Any, annotation: Any) -> tuple[str, Any, Any]:
    """What an argument is, the part of it that decides the specialisation, and what the builder needs."""
    if isinstance(value, HostTensor):
        return "tensor", value.spec.key(), value.spec
    if isinstance(annotation, NumericMeta):
        value = number_of(value)
    if isinstance(value, TensorSpec):
        return "tensor", value.key(), value
    if is_array(value) and annotation is not Constexpr:
        spec = spec_of(value)
        return "tensor", spec.key(), spec
    if isinstance(annotation, NumericMeta):
        if not (numeric.is_number(value) or isinstance(value, (Numeric, NumericMeta, HostNumber))):
            raise fail(f"argument {name} is a {type(value).__name__}, expected a number for {annotation.__name__}")
        return "scalar", ("scalar", annotation), annotation
    if isinstance(value, Numeric):
        return "scalar", ("scalar", type(value)), type(value)
    if isinstance(value, HostNumber) and annotation is not Constexpr:
        return "scalar", ("scalar", value.dtype), value.dtype
    return "constant", ("constant", hashable(plain(value))), plain(value)


def _as_annotated(raw: _memory.RawTensor, annotation: Any) -> Any:
    make = getattr(annotation, "_of_parameter", None)
    return make(raw) if make else raw


def jit(function: Any) -> JitFunction:
    """Captures a function: control flow on device values becomes control flow of the kernel that calls it."""
    return JitFunction(function)


@overload
def kernel(function: Callable[..., Any], /) -> KernelFunction: ...


@overload
def kernel(
    *,
    grid: Any = None,
    block: Any = None,
    cluster: Any = None,
    smem: int = 0,
    cooperative: bool = False,
    min_blocks: int = 0,
) -> Callable[[Callable[..., Any]], KernelFunction]: ...


def kernel(
    function: Any = None,
    *,
    grid: Any = None,
    block: Any = None,
    cluster: Any = None,
    smem: int = 0,
    cooperative: bool = False,
    min_blocks: int = 0,
) -> Any:
    """Makes a function a kernel.

    `grid` is up to three extents, or a function of the kernel's parameters that gives them from shapes and integer
    parameters; `block` and `cluster` are up to three integers, or such a function of constants; `smem` is bytes of
    dynamic shared memory. A launch from a host function may give each of them instead."""
    config = Config(grid, block, cluster, smem, cooperative, min_blocks)
    if function is None:
        return lambda inner: KernelFunction(inner, config)
    return KernelFunction(function, config)
