"""What the array type calls for NumPy and pickle. NumPy is imported by the first use only."""

from typing import Any

from tiki import _core


def to_numpy(array: _core.array, dtype: Any = None, copy: bool | None = None) -> Any:
    """`array.__array__`: a read-only view where no copy is needed; bfloat16 by ml_dtypes."""
    import numpy as np

    if array.dtype == _core.bfloat16:
        try:
            import ml_dtypes
        except ImportError as error:
            raise TypeError(
                "NumPy has no bfloat16: install ml_dtypes, or cast with astype(tiki.float32)"
            ) from error
        bits = np.asarray(memoryview(_core.view(array, _core.uint16)))
        result = bits.view(ml_dtypes.bfloat16)
    else:
        result = np.asarray(memoryview(array))
    if dtype is not None and result.dtype != dtype:
        if copy is False:
            raise ValueError("another dtype needs a copy, and copy is False")
        return result.astype(dtype)
    return result.copy() if copy else result


def rebuild(data: bytes, shape: tuple[int, ...], dtype: str) -> _core.array:
    """The array that `reduce` took apart."""
    bits = _core.array(memoryview(data)) if data else _core.zeros((0,), _core.uint8)
    target = _core.bool_ if dtype == "bool" else getattr(_core, dtype)
    if target == _core.bool_:
        return (bits != 0).reshape(shape)
    return _core.view(bits, target).reshape(shape)


def to_bytes(array: _core.array) -> bytes:
    """`array.__bytes__`: the values in row-major order."""
    flat = _core.flatten(_core.contiguous(array))
    if flat.dtype == _core.bool_:
        flat = flat.astype(_core.uint8)
    return bytes(memoryview(_core.view(flat, _core.uint8))) if flat.size else b""


def reduce(array: _core.array) -> tuple[Any, ...]:
    """`array.__reduce__`: bytes in row-major order, shape and dtype's name."""
    return rebuild, (to_bytes(array), array.shape, array.dtype.name)


# In the order of MLX's numbers, which its pickles hold.
_NUMBERED = (
    "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 float32 float64 bfloat16 complex64"
).split()


def get_state(array: _core.array) -> tuple[Any, int]:
    """`array.__getstate__`: as in MLX, NumPy's array (bfloat16 as its bits) and the dtype's number."""
    dtype = array.dtype
    if dtype == _core.bfloat16:
        array = _core.view(array, _core.uint16)
    return to_numpy(array), _NUMBERED.index(dtype.name)


def from_state(state: Any) -> _core.array:
    """The array that `get_state` took apart."""
    if not isinstance(state, tuple) or len(state) != 2:
        raise ValueError("the state of an array is a pair of values and a dtype's number")
    values, number = state
    if not isinstance(number, int) or not 0 <= number < len(_NUMBERED):
        raise ValueError(f"the dtype's number is {number!r}, expected 0 to {len(_NUMBERED) - 1}")
    name = _NUMBERED[number]
    if name == "bfloat16":
        return _core.view(_core.array(values, _core.uint16), _core.bfloat16)
    return _core.array(values, _core.bool_ if name == "bool" else getattr(_core, name))
