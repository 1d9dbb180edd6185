"""Functions of shapes and of things that are no arrays yet."""

import operator
from collections.abc import Sequence
from typing import Any

from tiki import _core


def asarray(a: Any, dtype: _core.Dtype | None = None, *, copy: bool | None = None) -> _core.array:
    """An array from anything that can become one.

    Where `copy` is None memory is shared if it can be, and then must not be written by others; True makes a
    copy, False raises where one is needed. `array` always copies.
    """
    if isinstance(a, _core.array):
        result = a if dtype is None or a.dtype == dtype else a.astype(dtype)
        if copy is False and result is not a:
            raise ValueError("asarray: another dtype needs a copy, and copy is False")
        return result
    shared = None if copy else _shared(a)
    if shared is not None:
        wanted = dtype or (_core.float32 if shared.dtype == _core.float64 else shared.dtype)
        if shared.dtype == wanted:
            return shared
    if copy is False:
        raise ValueError(f"asarray: {type(a)} needs a copy, and copy is False")
    return _core.array(a, dtype)


def _shared(a: Any) -> _core.array | None:
    """An array on the memory of an object; None where there is no such memory."""
    kind = getattr(getattr(a, "dtype", None), "name", None)
    if kind == "bfloat16" and hasattr(a, "view"):  # NumPy's, by ml_dtypes, has no buffer format
        bits = _core._share(a.view("uint16"))
        return None if bits is None else _core.view(bits, _core.bfloat16)
    shared = _core._share(a)
    if shared is None and hasattr(a, "__dlpack__") and kind is None:
        return _core.from_dlpack(a, copy=False)
    return shared


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that arrays of these shapes broadcast to."""
    result: list[int] = []
    for shape in shapes:
        if isinstance(shape, str):
            raise TypeError(f"broadcast_shapes: {shape!r} is no shape")
        shape = [operator.index(n) for n in shape]
        width = max(len(result), len(shape))
        result = [1] * (width - len(result)) + result
        shape = [1] * (width - len(shape)) + shape
        for axis, (a, b) in enumerate(zip(result, shape)):
            if a != b and 1 not in (a, b):
                raise ValueError(f"broadcast_shapes: the shapes {shapes} differ on axis {axis}: {a} and {b}")
            result[axis] = b if a == 1 else a
    return tuple(result)


def einsum_path(subscripts: str, *operands: Any) -> tuple[list[tuple[int, ...]], str]:
    """The order in which einsum contracts: pairs from the left."""
    _core.einsum(subscripts, *operands)  # raises where they do not fit
    count = len(operands)
    path: list[tuple[int, ...]] = [(0, 1)] * max(count - 1, 1) if count > 1 else [(0,)]
    return path, f"{subscripts}: {count} operands, contracted from the left"


def get_array_buffer_size(*args: Any) -> int:
    """Bytes of all arrays in trees of lists, tuples and dictionaries."""

    def walk(tree: Any) -> int:
        if isinstance(tree, _core.array):
            return tree.nbytes
        if isinstance(tree, dict):
            tree = tree.values()
        elif not isinstance(tree, (list, tuple)):
            return 0
        return sum(walk(child) for child in tree)

    return walk(args)


class ArrayLike:
    """An object with a method `__mlx_array__` that gives an array: it stands wherever an array can."""

    def __init__(self, arg: Any, /) -> None:
        self._object = arg

    def __mlx_array__(self) -> _core.array:
        return asarray(self._object)


def depends(
    inputs: _core.array | Sequence[_core.array], dependencies: _core.array | Sequence[_core.array]
) -> Any:
    """The inputs (an array or several), computed after the dependencies."""
    after = [dependencies] if isinstance(dependencies, _core.array) else list(dependencies)

    def behind(array: _core.array) -> _core.array:
        return _core._depends(array, after) if after else array

    return behind(inputs) if isinstance(inputs, _core.array) else [behind(array) for array in inputs]
