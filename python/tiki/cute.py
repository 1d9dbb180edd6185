"""Functions of NVIDIA's CuTe DSL as ops.

    import cutlass, cutlass.cute as cute
    from cuda.bindings.driver import CUstream

    @tiki.cute.wrap(outputs={"y": "x"})
    @cute.jit
    def scale(x: cute.Tensor, y: cute.Tensor, factor: cutlass.Float32, stream: CUstream):
        scale_kernel(x, y, factor).launch(grid=..., block=..., stream=stream)

    y = scale(x, 2.0)                          # x on a GPU; y is an array like any other

    @scale.vjp
    def scale_vjp(primals, cotangents, outputs):
        return scale(cotangents, primals[1])

The package compiles, once for each set of dtypes, shapes and compile-time values; its host function launches on Tiki's
stream and on Tiki's buffers when the result is evaluated. Arrays are described to it as row-major tensors of global memory,
aligned to 16 bytes; operands that do not lie so are copied first. The package is the user's own copy (see docs/cute.md); it
is imported when a function is compiled, and nothing else is: no PyTorch.
"""

from __future__ import annotations

import contextlib
import ctypes
import glob
import importlib
import inspect
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from typing import Any

from tiki import _core
from tiki._kernel_op import kernel_op, output

_INSTALL = "python3 -m pip install 'nvidia-cutlass-dsl==4.8.*'"
_DTYPES = {
    "bool": "Uint8",
    "uint8": "Uint8",
    "uint16": "Uint16",
    "uint32": "Uint32",
    "uint64": "Uint64",
    "int8": "Int8",
    "int16": "Int16",
    "int32": "Int32",
    "int64": "Int64",
    "float16": "Float16",
    "bfloat16": "BFloat16",
    "float32": "Float32",
    "float64": "Float64",
}
_ALIGN = 16
_Output: Any = type(output((1,), _core.float32))
_lock = threading.Lock()  # of the package, which keeps state while it compiles
_site = threading.local()  # .text: where this thread called a function last


def _place() -> str:
    frame = sys._getframe(2)
    return f"{frame.f_code.co_filename.rsplit('/', 1)[-1]}:{frame.f_lineno}"


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise NotImplementedError(f"no CuTe DSL: {error} (install it with `{_INSTALL}`)") from error


def _name(dtype: Any) -> str:
    return str(dtype).rsplit(".", 1)[-1]


class _Described:
    """What the package is told of an array: dtype, shape, and strides of row-major memory."""

    __slots__ = ("dtype", "shape")

    def __init__(self, dtype: Any, shape: Any) -> None:
        self.dtype = _name(dtype)
        if self.dtype not in _DTYPES:
            raise NotImplementedError(f"the CuTe DSL has no tensors of {self.dtype}")
        self.shape: tuple[int, ...] = tuple(shape) or (1,)

    def key(self) -> Any:
        return (self.dtype, self.shape)

    def tensor(self) -> Any:
        stride = [1] * len(self.shape)
        for axis in reversed(range(len(self.shape) - 1)):
            stride[axis] = stride[axis + 1] * self.shape[axis + 1]
        dtype = getattr(_package("cutlass"), _DTYPES[self.dtype])
        fake = _package("cutlass.cute.runtime").make_fake_tensor
        return fake(dtype, self.shape, tuple(stride), assumed_align=_ALIGN)


class _Address:
    """An argument of a compiled function: what a tensor with a static layout is at run time."""

    __slots__ = ("memory", "pointers")

    def __init__(self, address: int) -> None:
        self.memory = ctypes.c_void_p(address)
        self.pointers = [ctypes.addressof(self.memory)]

    def __c_pointers__(self) -> list[int]:
        return self.pointers


class Compiled:
    """A function that the package has compiled for one set of types: `.raw` is the package's own object; `.cubin`, `.ptx`
    and `.mlir` are there where they were asked for."""

    def __init__(self, raw: Any, cubin: bytes | None, ptx: str | None, mlir: str | None) -> None:
        self.raw, self.cubin, self.ptx, self.mlir = raw, cubin, ptx, mlir

    def __call__(self, stream: int, values: list[Any]) -> None:
        """Hands the work to a stream, with addresses and numbers in the order of the function's parameters."""
        self.raw(*values, _package("cuda.bindings.driver").CUstream(stream))


def _read_one(folder: str, suffix: str, mode: str) -> Any:
    for path in glob.glob(os.path.join(folder, "*." + suffix)):
        with open(path, mode) as file:
            return file.read()
    return None


def _compile(function: Any, values: list[Any], arch: str, stages: bool) -> Compiled:
    """The package's compiler on values, where arrays are `_Described`; with `stages` what it makes on the way is kept."""
    cute, driver = _package("cutlass.cute"), _package("cuda.bindings.driver")
    with _lock, contextlib.ExitStack() as stack:
        options = f"--gpu-arch {arch}"
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="tiki-cute-")) if stages else ""
        if stages:
            options += f" --keep-cubin --keep-ptx --dump-dir={folder}"
        given = [value.tensor() if isinstance(value, _Described) else value for value in values]
        raw = cute.compile(function, *given, driver.CUstream(0), options=options)
        if not stages:
            return Compiled(raw, None, None, None)
        kept = getattr(raw, "artifacts", None)
        cubin = getattr(kept, "CUBIN", None) or _read_one(folder, "cubin", "rb")
        ptx = getattr(kept, "PTX", None) or _read_one(folder, "ptx", "r")
        return Compiled(raw, cubin, ptx, str(getattr(raw, "ir_module", "") or "") or None)


def _arch_of(device: Any) -> str:
    capability = int(_core._device["gpu_info"](device.index)["compute_capability"])
    return f"sm_{capability}a" if capability >= 90 else f"sm_{capability}"


class _Parameter:
    """A parameter of the function: an output, the stream, a compile-time value, or any other argument."""

    def __init__(self, parameter: inspect.Parameter, outputs: Mapping[str, Any]) -> None:
        words = str(parameter.annotation)
        self.name = parameter.name
        self.is_output = parameter.name in outputs
        self.is_stream = parameter.name == "stream" or "CUstream" in words
        self.is_constant = "Constexpr" in words
        self.parameter = parameter


class Wrapped:
    """A function of the CuTe DSL as an op: see `wrap`. `.raw` is the package's own function."""

    def __init__(
        self, raw: Any, outputs: Mapping[str, Any], hidden: int, batching: str | None
    ) -> None:
        self.raw = raw
        self.__name__ = str(getattr(raw, "__name__", "a CuTe function"))
        self.__doc__ = getattr(raw, "__doc__", None)
        parameters = inspect.signature(raw).parameters
        self._parameters = [_Parameter(parameter, outputs) for parameter in parameters.values()]
        self._outputs = outputs
        self._check(parameters)
        self._signature = inspect.Signature(
            [p.parameter for p in self._parameters if not p.is_output and not p.is_stream]
        )
        self._compiled: dict[Any, Compiled] = {}
        self._op = kernel_op(self._named(), hidden=hidden, batching=batching)

    def _check(self, parameters: Any) -> None:
        unknown = [name for name in self._outputs if name not in parameters]
        if unknown or not self._outputs:
            raise ValueError(f"{self.__name__}: outputs are {list(self._outputs)}, parameters {list(parameters)}")
        streams = [p.name for p in self._parameters if p.is_stream]
        if len(streams) != 1 or not self._parameters[-1].is_stream:
            raise ValueError(f"{self.__name__}: its last parameter is to be the stream that it launches on")

    def _named(self) -> Callable[..., Any]:
        def forward(*args: Any) -> Any:
            return self._forward(*args)

        forward.__name__, forward.__doc__ = self.__name__, self.__doc__
        return forward

    # ---- calling ----

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Gives the outputs: the function's parameters without outputs and stream are its arguments."""
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        _site.text = _place()
        return self._op(*bound.arguments.values())

    def _out(self, name: str, arguments: Mapping[str, Any]) -> Any:
        how = self._outputs[name]
        if isinstance(how, str):
            return output(arguments[how].shape, arguments[how].dtype)
        made = how(*arguments.values()) if callable(how) else how
        if isinstance(made, _Output) and made.source is not None:
            raise NotImplementedError(f"{self.__name__}: output {name} is in place of an array, give shape and dtype")
        if isinstance(made, _Output):
            return made
        raise TypeError(f"{self.__name__}: output {name} is described by {made!r}, expected tiki.output(shape, dtype)")

    def _values(self, args: tuple[Any, ...]) -> tuple[list[Any], dict[str, Any], list[Any]]:
        """The function's arguments without its stream, arrays described; those of the call by name; the outputs."""
        arguments = dict(zip(self._signature.parameters, args))
        outputs = {name: self._out(name, arguments) for name in self._outputs}
        values: list[Any] = []
        for parameter in self._parameters[:-1]:
            value = outputs[parameter.name] if parameter.is_output else arguments[parameter.name]
            is_array = isinstance(value, (_core.array, _Output))
            values.append(_Described(value.dtype, value.shape) if is_array else value)
        return values, arguments, list(outputs.values())

    def _key(self, values: list[Any], arch: str) -> Any:
        parts: list[Any] = [arch]
        for parameter, value in zip(self._parameters, values):
            if isinstance(value, _Described):
                parts.append(value.key())
            elif parameter.is_constant or not isinstance(value, (int, float)):
                parts.append((type(value), value))
            else:
                parts.append(type(value))
        return tuple(parts)

    def _find(self, values: list[Any], arch: str) -> Compiled:
        key = self._key(values, arch)
        if key not in self._compiled:
            self._compiled[key] = _compile(self.raw, values, arch, False)
        return self._compiled[key]

    def _device(self, arguments: Mapping[str, Any]) -> Any:
        arrays = {name: value for name, value in arguments.items() if isinstance(value, _core.array)}
        if not arrays:
            raise TypeError(f"{self.__name__} is called without an array, which would say where it runs")
        for name, value in arrays.items():
            device: Any = value.device
            if device.type.name != "gpu":
                raise NotImplementedError(f"{self.__name__} runs on GPUs, {name} is on {device!r}")
        return device

    def _forward(self, *args: Any) -> tuple[Any, ...]:
        values, arguments, outputs = self._values(args)
        arch = _arch_of(self._device(arguments))
        inputs = [value for value in args if isinstance(value, _core.array)]
        described = [value for value in values if isinstance(value, _Described)]
        compiled = None if any(0 in value.shape for value in described) else self._find(values, arch)
        made: tuple[Any, ...] = _core._device["foreign"](
            self._launcher(compiled, values),
            self.__name__,
            inputs,
            outputs,
            getattr(_site, "text", ""),
        )
        return made

    def _launcher(self, compiled: Compiled | None, values: list[Any]) -> Callable[..., None]:
        parameters = [p for p in self._parameters[:-1]]
        order = list(self._outputs)
        name = self.__name__

        def launch(stream: int, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> None:
            if compiled is None:
                raise NotImplementedError(f"{name}: the CuTe DSL has no tensors without elements")
            given, rest = [], iter(inputs)
            for parameter, value in zip(parameters, values):
                if parameter.is_output:
                    given.append(_Address(outputs[order.index(parameter.name)]))
                elif isinstance(value, _Described):
                    given.append(_Address(next(rest)))
                elif not parameter.is_constant:
                    given.append(value)
            compiled(stream, given)

        return launch

    def compile(self, *args: Any, arch: str = "sm_90a", **kwargs: Any) -> Compiled:
        """Compiles for arguments without running, which needs no GPU: an array, or `tiki.output(shape, dtype)` in its place."""
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return _compile(self.raw, self._values(tuple(bound.arguments.values()))[0], arch, True)

    # ---- rules ----

    def vjp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Declare the reverse rule: rule(primals, cotangents, outputs) gives a gradient for each array of the call."""
        return self._op.vjp(rule)

    def jvp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Declare the forward rule: rule(primals, tangents)."""
        return self._op.jvp(rule)

    def vmap(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Declare the batching rule: rule(inputs, axes) gives all results and their axes."""
        return self._op.vmap(rule)

    def __repr__(self) -> str:
        return f"<tiki.cute.wrap of {self.__name__}>"


def wrap(
    function: Any = None, *, outputs: Mapping[str, Any], hidden: int = 0, batching: str | None = None
) -> Any:
    """A `@cute.jit` function that launches kernels, as an op on arrays.

    `outputs` names the parameters that it writes, in the order of the results; each is the name of an argument that it has
    the shape and dtype of, or a function of the call's arguments that gives `tiki.output(shape, dtype)`. The last parameter
    is the stream. `hidden` results at the end are residuals for the vjp; `batching` is as in `tiki.kernel_op`."""
    if function is None:
        return lambda given: Wrapped(given, outputs, hidden, batching)
    return Wrapped(function, outputs, hidden, batching)


__all__ = ["Compiled", "Wrapped", "wrap"]
