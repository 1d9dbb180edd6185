"""`@cute.jit` and `@cute.kernel`: functions that are captured, specialised once per kind of arguments, and lowered.

A kernel is specialised by element types, static sizes, alignments and constants, and by the plain values that its
function closes over. Each specialisation is built once, also when many threads ask at the same time; building
different ones runs side by side, since a trace belongs to its thread.
"""

from __future__ import annotations

import inspect
import struct
import threading
import types
from collections.abc import Callable
from typing import Any

from tiki.kernels.cute.lib import _contract as contract
from tiki.kernels.cute.lib import _memory, _tape
from tiki.kernels.cute.lib import _numeric as numeric
from tiki.kernels.cute.lib._capture import capture
from tiki.kernels.cute.lib._contract import Dim, Parameter
from tiki.kernels.cute.lib._numeric import BFloat16, Int32, Numeric, NumericMeta, as_dtype
from tiki.kernels.cute.lib._tape import KernelError, Trace, active, fail, tracing


class Constexpr:
    """The annotation of a parameter that is known while the kernel is built."""

    def __class_getitem__(cls, item: Any) -> Any:
        return cls


class TensorSpec:
    """What is known of a tensor before a launch: element type, shape, strides and alignment.

    An extent is an integer, a name ("n": known at launch, the same wherever the name is used) or None (known at
    launch). Without strides the last mode is contiguous. `align` is in bytes; the launch checks it."""

    __slots__ = ("dtype", "shape", "stride", "align")

    def __init__(self, dtype: Any, shape: Any, stride: Any = None, align: int = 0) -> None:
        self.dtype = as_dtype(dtype)
        self.shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
        self.stride = None if stride is None else tuple(stride) if isinstance(stride, (tuple, list)) else (stride,)
        self.align = align or self.dtype.bytes
        for extent in [*self.shape, *(self.stride or ())]:
            if not (extent is None or isinstance(extent, (int, str))):
                raise fail(f"an extent {extent!r} of a tensor, expected an integer, a name or None")
        if self.stride is not None and len(self.stride) != len(self.shape):
            raise fail(f"{len(self.stride)} strides for {len(self.shape)} modes")

    def key(self) -> Any:
        return ("tensor", self.dtype, self.shape, self.stride, self.align)

    def __repr__(self) -> str:
        return f"TensorSpec({self.dtype.__name__}, {self.shape}, stride={self.stride}, align={self.align})"


def dynamic(array: Any, modes: Any = None, align: int = 0) -> TensorSpec:
    """What is known of an array when some of its extents (all, without `modes`) are left to the launch."""
    shape = tuple(array.shape)
    chosen = range(len(shape)) if modes is None else [mode % len(shape) for mode in modes]
    return TensorSpec(
        array.dtype, tuple(None if i in chosen else extent for i, extent in enumerate(shape)), None, align
    )


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, (Numeric, _memory.RawTensor))


def _element_strides(array: Any) -> tuple[int, ...] | None:
    """The strides of an array in elements, None for one whose last mode is contiguous."""
    strides = getattr(array, "strides", None)
    if strides is None or callable(strides):
        return None
    size = array.itemsize
    elements = tuple(stride // size for stride in strides)
    expected, step = [], 1
    for extent in reversed(array.shape):
        expected.append(step)
        step *= extent
    plain = all(a == b or n == 1 for a, b, n in zip(elements, reversed(expected), array.shape))
    return None if plain else elements


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

    def __init__(self, param: Parameter, argument: str, part: str, mode: int = 0) -> None:
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
        if isinstance(extent, int):
            return extent
        if isinstance(extent, str) and extent in self.named:
            return self.named[extent]
        name = extent if isinstance(extent, str) and extent not in self.taken else f"{argument}_{part}{mode}"
        dim = Dim("param", self.parameter(name, Int32, argument, part, mode, pointer=False, nonneg=True))
        self.require(dim, ">=", 0)
        if isinstance(extent, str):
            self.named[extent] = dim
        return dim

    def require(self, left: Any, relation: str, right: Any) -> None:
        """A precondition of the launch, once."""
        if repr((left, relation, right)) not in map(repr, self.trace.requires):
            self.trace.requires.append((left, relation, right))

    def tensor(self, name: str, spec: TensorSpec) -> tuple[_memory.RawTensor, ContractTensor]:
        shape = tuple(self.extent(extent, name, "shape", i) for i, extent in enumerate(spec.shape))
        if spec.stride is None:
            stride, size = _compact(shape)
        else:
            stride = tuple(self.extent(step, name, "stride", i) for i, step in enumerate(spec.stride))
            size = _span(shape, stride)
        param = self.parameter(name, spec.dtype, name, "data", pointer=True, align=spec.align)
        param.size = size
        if isinstance(size, int) and size > 1 << 31:
            raise fail(f"{name} spans {size} elements; kernels of this front index with Int32")
        if not isinstance(size, int):
            self.require(size, "<", 1 << 31)
        pointer = _memory.Pointer(param.var, spec.dtype, "global", param)
        raw = _memory.RawTensor(pointer, _on_device(shape), _on_device(stride))
        return raw, ContractTensor(spec.dtype, shape, stride)

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
    for extent, step in zip(shape, stride):
        size = contract.combine("add", size, contract.combine("mul", contract.combine("sub", extent, 1), step))
    return size


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

    def body(self) -> Any:
        return self.captured.get(lambda: capture(self.function))

    def signature(self) -> tuple[inspect.Signature, dict[str, Any]]:
        return self.prepared.get(lambda: (inspect.signature(self.function), _annotations(self.function)))

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if active() is None:
            raise fail(f"{self.__name__} is called outside of a kernel; call it from a @cute.kernel function")
        signature, annotations = self.signature()
        bound = signature.bind(*args, **kwargs)
        for name, value in bound.arguments.items():
            dtype = annotations.get(name)
            if isinstance(dtype, NumericMeta) and (numeric.is_number(value) or isinstance(value, Numeric)):
                bound.arguments[name] = dtype(value)
        return self.body()(*bound.args, **bound.kwargs)

    def __repr__(self) -> str:
        return f"<cute.jit {self.__qualname__}>"


class Lowered:
    """A kernel that is built: `.raw` is the kernel IR, `.text` its text."""

    def __init__(self, raw: Any, bindings: list[Binding], signature: inspect.Signature) -> None:
        self.raw = raw
        self.bindings = bindings
        self.signature = signature

    @property
    def text(self) -> str:
        """The kernel as `.tk` text."""
        return str(self.raw.text)

    def __repr__(self) -> str:
        return f"<lowered {self.raw.name}>"

    def values(self, *args: Any, **kwargs: Any) -> list[Any]:
        """The arguments of a launch in the order of the kernel's parameters: arrays for pointers, else numbers."""
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return [_value_of(binding, bound.arguments[binding.argument]) for binding in self.bindings]

    def launch(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Grid, cluster, block and dynamic shared memory for arguments, preconditions checked; pointers count as
        aligned."""
        values = self.values(*args, **kwargs)
        bits = (0 if b.part == "data" else _bits(b, v) for b, v in zip(self.bindings, values))
        return dict(self.raw.launch(tuple(bits)))

    def emulate(self, *args: Any, seed: int = 0, resident: int = 0, **kwargs: Any) -> Any:
        """Runs the kernel on the CPU and judges it. Arrays that it writes are NumPy arrays, written in place; the
        result has `findings` (a list, empty for a kernel without fault), `text`, `counts` and totals."""
        values = self.values(*args, **kwargs)
        taken = tuple(_memory_of(v) if b.part == "data" else _bits(b, v) for b, v in zip(self.bindings, values))
        return types.SimpleNamespace(**self.raw.emulate(taken, seed, resident))


def _value_of(binding: Binding, argument: Any) -> Any:
    if binding.part == "data":
        return argument
    if binding.part == "shape":
        return int(argument.shape[binding.mode])
    if binding.part == "stride":
        return int(argument.strides[binding.mode] // argument.itemsize)
    return argument.ir.value if isinstance(argument, Numeric) else argument


def _bits(binding: Binding, value: Any) -> int:
    """A number as the bits of its parameter."""
    dtype = binding.param.dtype
    if not dtype.is_float:
        return int(value) & ((1 << max(dtype.width, 8)) - 1)
    if dtype is BFloat16:
        word = struct.unpack("<I", struct.pack("<f", value))[0]
        return int((word + 0x7FFF + (word >> 16 & 1)) >> 16)
    code = {16: "<e", 32: "<f", 64: "<d"}[dtype.width]
    return int.from_bytes(struct.pack(code, value), "little")


def _memory_of(array: Any) -> Any:
    """The bytes of an array, in one piece."""
    if hasattr(array, "flags") and hasattr(array, "view"):
        if not array.flags.c_contiguous:
            raise fail("an array in several pieces; the emulator takes contiguous ones")
        return array.reshape(-1).view("u1")
    return array


_PLAIN = (bool, int, float, str, bytes, type(None), NumericMeta)


class KernelFunction(JitFunction):
    """A function that is a kernel. `lower` gives the kernel for arguments, made once for each kind of them."""

    def __init__(self, function: Any, grid: Any = None, block: Any = None, min_blocks: int = 0) -> None:
        super().__init__(function)
        self.grid = grid
        self.block = block
        self.min_blocks = min_blocks
        self.lock = threading.Lock()
        self.kernels: dict[Any, Once] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if active() is None:
            raise fail(f"kernel {self.__name__} is called; use {self.__name__}.lower(...)")
        raise fail(f"kernel {self.__name__} is called inside a kernel; make it a @cute.jit function")

    def lower(self, *args: Any, grid: Any = None, block: Any = None, **kwargs: Any) -> Lowered:
        """The kernel for these arguments: arrays or TensorSpecs, numbers for parameters that are annotated with an
        element type, and anything else as a constant. `grid` and `block` replace those of the decorator."""
        signature, annotations = self.signature()
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        grid = self.grid if grid is None else grid
        block = self.block if block is None else block
        kinds = {name: _kind(name, value, annotations.get(name)) for name, value in bound.arguments.items()}
        key = (tuple(kinds[name][1] for name in kinds), _hashable(grid), _hashable(block), self.surroundings())
        with self.lock:
            once = self.kernels.setdefault(key, Once())
        return once.get(lambda: self.build(kinds, annotations, signature, grid, block))

    def surroundings(self) -> Any:
        """The plain values that the function reads from outside: other values are another kernel."""
        function = self.function
        found: list[Any] = []
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            try:
                value = cell.cell_contents
            except ValueError:
                continue
            found.append((name, _hashable(value)))
        for name in function.__code__.co_names:
            value = function.__globals__.get(name)
            if isinstance(value, (bool, int, float, str)):
                found.append((name, _hashable(value)))
        return tuple(found)

    def build(
        self, kinds: dict[str, Any], annotations: dict[str, Any], signature: inspect.Signature, grid: Any, block: Any
    ) -> Lowered:
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
            bound = signature.bind_partial()
            bound.arguments.update(inside)
            result = self.body()(*bound.args, **bound.kwargs)
            if result is not None:
                raise KernelError(
                    f"{self.place()}: kernel {self.__name__} returns a {type(result).__name__}; results are stored "
                    f"to tensors"
                )
            extents = self.extents(grid, outside, "grid")
            threads = self.extents(block, outside, "block")
            raw_kernel = self.finish(trace, extents, threads)
        return Lowered(raw_kernel, builder.bindings, signature)

    def place(self) -> str:
        code = self.function.__code__
        return f"{code.co_filename}:{code.co_firstlineno}"

    def extents(self, given: Any, outside: dict[str, Any], what: str) -> tuple[Any, ...]:
        if callable(given):
            given = given(*outside.values())
        if given is None:
            raise KernelError(
                f"{self.place()}: kernel {self.__name__} has no {what}: give it to @cute.kernel or to lower"
            )
        given = tuple(given) if isinstance(given, (tuple, list)) else (given,)
        if not 1 <= len(given) <= 3:
            raise KernelError(f"{self.place()}: a {what} of {len(given)} extents, expected 1 to 3")
        if what == "block" and not all(isinstance(extent, int) for extent in given):
            raise KernelError(f"{self.place()}: a block of {given}, expected integers")
        return (*given, 1, 1)[:3]

    def finish(self, trace: Trace, grid: tuple[Any, ...], block: tuple[Any, ...]) -> Any:
        try:
            return _tape.lower(trace, lambda lowering: contract.declare(lowering, trace, grid, block, self.min_blocks))
        except KernelError:
            raise
        except (ValueError, IndexError, RuntimeError) as error:
            raise KernelError(str(error)) from error

    def __repr__(self) -> str:
        return f"<cute.kernel {self.__qualname__}>"


def _kind(name: str, value: Any, annotation: Any) -> tuple[str, Any, Any]:
    """What an argument is, the part of it that decides the specialisation, and what the builder needs."""
    if isinstance(value, TensorSpec):
        return "tensor", value.key(), value
    if _is_array(value) and annotation is not Constexpr:
        spec = TensorSpec(value.dtype, tuple(value.shape), _element_strides(value))
        return "tensor", spec.key(), spec
    if isinstance(annotation, NumericMeta):
        if not (numeric.is_number(value) or isinstance(value, Numeric) or isinstance(value, NumericMeta)):
            raise fail(f"argument {name} is a {type(value).__name__}, expected a number for {annotation.__name__}")
        return "scalar", ("scalar", annotation), annotation
    if isinstance(value, Numeric):
        return "scalar", ("scalar", type(value)), type(value)
    return "constant", ("constant", _hashable(value)), value


class _Identity:
    """A value that cannot be compared: equal to itself only."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def _hashable(value: Any) -> Any:
    if isinstance(value, float):
        return ("float", repr(value))
    if isinstance(value, _PLAIN):
        return (type(value), value)
    if isinstance(value, (tuple, list)):
        return (type(value), tuple(_hashable(item) for item in value))
    if isinstance(value, dict):
        return (dict, tuple((key, _hashable(item)) for key, item in value.items()))
    return _Identity(value)


def _as_annotated(raw: _memory.RawTensor, annotation: Any) -> Any:
    make = getattr(annotation, "_of_parameter", None)
    return make(raw) if make else raw


def jit(function: Any) -> JitFunction:
    """Captures a function: control flow on device values becomes control flow of the kernel that calls it."""
    return JitFunction(function)


def kernel(function: Any = None, *, grid: Any = None, block: Any = None, min_blocks: int = 0) -> Any:
    """Makes a function a kernel.

    `grid` is up to three extents, or a function of the kernel's parameters that gives them from shapes and integer
    parameters; `block` is up to three integers, or such a function of constants."""
    if function is None:
        return lambda inner: KernelFunction(inner, grid, block, min_blocks)
    return KernelFunction(function, grid, block, min_blocks)
