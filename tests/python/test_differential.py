"""Each function on random arguments beside MLX and NumPy: shapes without axes, without elements, of one element, up to
four axes; all dtypes; reversed, stepped and permuted views; axes and keepdims. draw_ops.py says what is drawn.

MLX decides dtypes, shapes, integers and whether a call is an error. Float values are those of NumPy in float64, within
the tolerance of the op (op_values.py), where there is a reference, else MLX's.
"""

import os
import warnings

import mlx.core as mx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import draw_ops
import tiki as tk
from draw_calls import Draw
from op_values import EPS, Refuse, Value, agrees
from test_names import NAMES, as_numpy, name_of

# Of each function; more of them find more: TIKI_EXAMPLES=500.
EXAMPLES = int(os.environ.get("TIKI_EXAMPLES", "10"))
# What Tiki gives where MLX refuses: rows of docs/differences.md.
GIVES_MORE = {
    "sigmoid",  # of complex numbers
    "conv3d", "conv_transpose3d",  # in groups
    "gather_mm",  # of half types
    "fft.stft",  # of views
}  # fmt: skip
# Functions that are no ops of arrays: what they do is tested by name, not by random arguments.
NOT_OPS = set("""
async_eval broadcast_shapes can_cast checkpoint clear_cache clear_streams compile custom_function default_device
default_stream device_count device_info disable_compile einsum_path enable_compile eval export_function export_to_dot
exporter finfo from_dlpack get_active_memory get_array_buffer_size get_cache_memory get_memory_limit get_peak_memory
get_printoptions grad iinfo import_function is_available isdtype issubdtype jvp load new_stream new_thread_local_stream
new_thread_unsafe_stream printoptions reset_peak_memory result_type save save_gguf save_safetensors savez
savez_compressed set_cache_limit set_default_device set_default_stream set_memory_limit set_printoptions
set_wired_limit stream synchronize value_and_grad vjp vmap random.seed fast.metal_kernel fast.cuda_kernel
fast.precompiled_cuda_kernel
""".split())
# MLX's CPU package does not compute them: test_quant.py compares them with the products of their values.
ELSEWHERE = {"qqmm", "gather_qqmm"}
LOOSE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 3e-5, "complex64": 3e-5, "float64": 1e-12}
KNOWN = (ValueError, TypeError, IndexError, OverflowError, NotImplementedError)


def function_of(module, name):
    for part in name.split("."):
        module = getattr(module, part)
    return module


def on(module, value):
    if isinstance(value, list):
        return [on(module, v) for v in value]
    return value.on(module) if hasattr(value, "on") else value


def run(module, name, arguments, keywords):
    """A list of arrays and numbers, or the exception."""
    try:
        keywords = {key: on(module, value) for key, value in keywords.items()}
        result = function_of(module, name)(*[on(module, a) for a in arguments], **keywords)
        results = list(result) if isinstance(result, (list, tuple)) else [result]
        module.eval([r for r in results if isinstance(r, module.array)])
        return results
    except (*KNOWN, RuntimeError) as error:
        return error


def compare(name, own, theirs, expected, arguments, keywords):
    assert len(own) == len(theirs)
    for at, (a, b) in enumerate(zip(own, theirs)):
        assert isinstance(b, mx.array) == isinstance(a, tk.array)
        if not isinstance(b, mx.array):
            assert a == b
            continue
        dtype = name_of(b.dtype)
        assert (name_of(a.dtype), a.shape) == (dtype, b.shape), (name_of(a.dtype), a.shape, dtype, b.shape)
        a, b = as_numpy(a), as_numpy(b)
        if name in UNORDERED:
            a, b = partitioned(name, a, b, arguments[0], keywords)
        wanted = None if expected is None or isinstance(expected, Refuse) else expected[at]
        if wanted is not None and dtype in EPS:
            raw = a.astype(np.complex128 if dtype == "complex64" else np.float64)
            wrong = agrees(Value(dtype, raw), wanted, name)
            assert wrong is None, wrong
        elif dtype in LOOSE:
            with np.errstate(all="ignore"):
                size = np.abs(b[np.isfinite(b)]).max(initial=1.0)
                np.testing.assert_allclose(a, b, rtol=LOOSE[dtype], atol=LOOSE[dtype] * size)
        else:
            np.testing.assert_array_equal(a, b)


def partitioned(name, own, theirs, a, keywords):
    """Elements in place of positions; each side of the k-th in order."""
    axis, kth = keywords["axis"], keywords.get("kth", 0)
    sides = []
    for part in (own, theirs):
        part = np.take_along_axis(a.data, part.astype(np.int64), axis) if name == "argpartition" else part
        below, above = np.split(np.moveaxis(part, axis, -1), [kth], axis=-1)
        sides.append(np.concatenate([np.sort(below, axis=-1), above[..., :1], np.sort(above[..., 1:], axis=-1)], axis=-1))
    return sides if name != "topk" else [np.sort(side, axis=-1) for side in sides]


UNORDERED = {"partition", "argpartition", "topk"}


@pytest.mark.parametrize("name", draw_ops.CALLS)
@settings(max_examples=EXAMPLES)
@given(st.data())
def test_call(name, data):
    draw, reference = draw_ops.CALLS[name]
    arguments, keywords = draw(Draw(data), name)
    check(name, arguments, keywords, reference)


def check(name, arguments, keywords, reference):
    own = run(tk, name, arguments, keywords)
    with mx.stream(mx.cpu):
        theirs = run(mx, name, arguments, keywords)
    text = f"{name}({arguments}, {keywords})"
    if isinstance(theirs, Exception):
        assert isinstance(own, KNOWN) or name in GIVES_MORE, f"{text}: MLX refuses ({theirs}), Tiki gives {own}"
        return
    assert not isinstance(own, Exception), f"{text}: {type(own).__name__}: {own}"
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected = reference(name, arguments, keywords) if reference else None
    expected = expected if expected is None or isinstance(expected, list) else [expected]
    try:
        compare(name, own, theirs, expected, arguments, keywords)
    except AssertionError as error:
        raise AssertionError(f"{text}: {error}") from None


def test_every_function_is_drawn():
    functions = {n for n in NAMES if callable(value_of(n)) and not isinstance(value_of(n), type)}
    parts = {n for n in functions if n.split(".")[0] in ("random", "linalg", "fft", "fast") or "." not in n}
    assert parts - set(draw_ops.CALLS) - NOT_OPS - ELSEWHERE == set()


def value_of(name):
    try:
        return function_of(mx, name)
    except AttributeError:
        return None
