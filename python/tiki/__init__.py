"""Tiki: arrays, automatic differentiation and neural networks on one library in C.

The names follow MLX's `mlx.core`: code written for it runs with the import changed.
"""

import atexit as _atexit

from tiki import _core
from tiki._core import *  # noqa: F403
from tiki._core import (
    AxisError,
    DtypeError,
    FileError,
    array,
    float32,
)
from tiki._device import (
    Device,
    DeviceType,
    Stream,
    StreamContext,
    ThreadLocalStream,
    clear_cache,
    clear_streams,
    cpu,
    default_device,
    default_stream,
    device_count,
    device_info,
    get_active_memory,
    get_cache_memory,
    get_memory_limit,
    get_peak_memory,
    gpu,
    is_available,
    new_stream,
    new_thread_local_stream,
    new_thread_unsafe_stream,
    reset_peak_memory,
    set_cache_limit,
    set_default_device,
    set_default_stream,
    set_memory_limit,
    set_wired_limit,
    stream,
    synchronize,
)
from tiki._dtypes import (
    DtypeCategory,
    can_cast,
    complexfloating,
    finfo,
    floating,
    generic,
    iinfo,
    inexact,
    integer,
    isdtype,
    issubdtype,
    number,
    result_type,
    signedinteger,
    unsignedinteger,
)
from tiki._files import load, save, save_safetensors, savez, savez_compressed
from tiki._functions import (
    ArrayLike,
    asarray,
    broadcast_shapes,
    depends,
    einsum_path,
    get_array_buffer_size,
)
from tiki._printing import PrintOptions, get_printoptions, printoptions, set_printoptions
from tiki._transforms import (
    checkpoint,
    compile,
    custom_function,
    disable_compile,
    enable_compile,
    grad,
    jvp,
    value_and_grad,
    vjp,
    vmap,
)
from tiki import cuda, fast, fft, linalg, metal, random
from tiki._version import __version__

Dtype = type(float32)
ArrayAt = _core.ArrayAt
matrix_norm = linalg.norm
ArrayIterator = _core.ArrayIterator
newaxis = None
pi = 3.141592653589793
e = 2.718281828459045
euler_gamma = 0.5772156649015329
inf = float("inf")
nan = float("nan")



def as_layout(a, layout):
    """The elements of `a` through a layout: see tiki.layout.as_layout."""
    from tiki import layout as algebra  # only those who use layouts pay for importing them

    return algebra.as_layout(a, layout)


def _layout_of(a):
    """The layout of the array's memory, in elements (evaluates it)."""
    from tiki import layout as algebra

    return algebra.layout_of(a)


array.layout = property(_layout_of)
array.as_layout = as_layout

_atexit.register(_core._finish)
