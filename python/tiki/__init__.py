"""Tiki: arrays, automatic differentiation and neural networks on one library in C.

The names follow MLX's `mlx.core`: code written for it runs with the import changed.
"""

import atexit as _atexit
from typing import Any as _Any

from tiki import _core
from tiki._core import *  # noqa: F403
from tiki._core import array
from tiki._device import _named as _named_device
from tiki._device import (
    Device as Device,
    DeviceType as DeviceType,
    Stream as Stream,
    StreamContext as StreamContext,
    ThreadLocalStream as ThreadLocalStream,
    clear_cache as clear_cache,
    clear_streams as clear_streams,
    cpu as cpu,
    default_device as default_device,
    default_stream as default_stream,
    device_count as device_count,
    device_info as device_info,
    emulator as emulator,
    get_active_memory as get_active_memory,
    get_cache_memory as get_cache_memory,
    get_memory_limit as get_memory_limit,
    get_peak_memory as get_peak_memory,
    gpu as gpu,
    is_available as is_available,
    new_stream as new_stream,
    new_thread_local_stream as new_thread_local_stream,
    new_thread_unsafe_stream as new_thread_unsafe_stream,
    reset_peak_memory as reset_peak_memory,
    set_cache_limit as set_cache_limit,
    set_default_device as set_default_device,
    set_default_stream as set_default_stream,
    set_memory_limit as set_memory_limit,
    set_wired_limit as set_wired_limit,
    stream as stream,
    synchronize as synchronize,
)
from tiki._dtypes import (
    DtypeCategory as DtypeCategory,
    can_cast as can_cast,
    complexfloating as complexfloating,
    finfo as finfo,
    floating as floating,
    generic as generic,
    iinfo as iinfo,
    inexact as inexact,
    integer as integer,
    isdtype as isdtype,
    issubdtype as issubdtype,
    number as number,
    result_type as result_type,
    signedinteger as signedinteger,
    unsignedinteger as unsignedinteger,
)
from tiki._export import (
    FunctionExporter as FunctionExporter,
    export_function as export_function,
    export_to_dot as export_to_dot,
    exporter as exporter,
    import_function as import_function,
)
from tiki._files import (
    load as load,
    save as save,
    save_gguf as save_gguf,
    save_safetensors as save_safetensors,
    savez as savez,
    savez_compressed as savez_compressed,
)
from tiki._functions import (
    ArrayLike as ArrayLike,
    asarray as asarray,
    broadcast_shapes as broadcast_shapes,
    depends as depends,
    einsum_path as einsum_path,
    get_array_buffer_size as get_array_buffer_size,
)
from tiki._printing import (
    PrintOptions as PrintOptions,
    get_printoptions as get_printoptions,
    printoptions as printoptions,
    set_printoptions as set_printoptions,
)
from tiki._kernel_op import kernel_op as kernel_op, launch as launch, output as output
from tiki._transforms import (
    checkpoint as checkpoint,
    compile as compile,
    custom_function as custom_function,
    disable_compile as disable_compile,
    enable_compile as enable_compile,
    grad as grad,
    jvp as jvp,
    value_and_grad as value_and_grad,
    vjp as vjp,
    vmap as vmap,
)
from tiki import cuda as cuda, distributed as distributed, fast as fast, fft as fft, linalg as linalg, metal as metal, random as random
from tiki._version import __version__ as __version__

matrix_norm = linalg.norm
newaxis = None
pi = 3.141592653589793
e = 2.718281828459045
euler_gamma = 0.5772156649015329
inf = float("inf")
nan = float("nan")


def as_layout(a: array, layout: _Any) -> array:
    """The elements of `a` through a layout: see tiki.layout.as_layout."""
    from tiki import layout as algebra  # only those who use layouts pay for importing them

    return algebra.as_layout(a, layout)


def _layout_of(a: array) -> _Any:
    """The layout of the array's memory, in elements (evaluates it)."""
    from tiki import layout as algebra

    return algebra.layout_of(a)


def _to_device(self: array, device: _Any, /, *, stream: _Any = None) -> array:
    """The array's values on a device (or stream): the array itself if they are there. Lazy and differentiable."""
    if not hasattr(device, "_stream"):
        expected = "tiki.cpu, tiki.emulator, tiki.gpu or a tiki.Device"
        raise ValueError(f"to_device: {device!r} is no device: expected {expected}")
    moved: array = _core._device["move"](self, device._stream)
    return self if _core._device["name"](moved) == _core._device["name"](self) else moved


def _device_of(self: array) -> Device:
    return _named_device(_core._device["name"](self))


setattr(array, "layout", property(_layout_of))
setattr(array, "as_layout", as_layout)
setattr(array, "device", property(_device_of, doc="The device that has the values."))
setattr(array, "to_device", _to_device)

_atexit.register(_core._finish)
