"""Functions of shapes and of things that are no arrays yet."""

from tiki import _core


def asarray(a, dtype=None, *, copy=None):
    """An array from anything that can become one; `copy=False` raises where a copy is needed."""
    if isinstance(a, _core.array):
        result = a if dtype is None or a.dtype == dtype else a.astype(dtype)
        if copy is False and result is not a:
            raise ValueError("asarray: another dtype needs a copy, and copy is False")
        return result
    if copy is False:
        if hasattr(a, "__dlpack__") and dtype is None:
            return _core.from_dlpack(a, copy=False)
        raise ValueError(f"asarray: {type(a)} needs a copy, and copy is False")
    return _core.array(a, dtype)


def broadcast_shapes(*shapes):
    """The shape that arrays of these shapes broadcast to."""
    result = []
    for shape in shapes:
        shape = list(shape)
        width = max(len(result), len(shape))
        result = [1] * (width - len(result)) + result
        shape = [1] * (width - len(shape)) + shape
        for axis, (a, b) in enumerate(zip(result, shape)):
            if a != b and 1 not in (a, b):
                raise ValueError(f"broadcast_shapes: the shapes {shapes} differ on axis {axis}: {a} and {b}")
            result[axis] = b if a == 1 else a
    return tuple(result)


def einsum_path(subscripts: str, *operands):
    """The order in which einsum contracts: pairs from the left."""
    count = len(operands)
    path = [(0, 1)] * max(count - 1, 1) if count > 1 else [(0,)]
    return path, f"{subscripts}: {count} operands, contracted from the left"


def get_array_buffer_size(*args) -> int:
    """Bytes of all arrays in trees of lists, tuples and dictionaries."""

    def walk(tree) -> int:
        if isinstance(tree, _core.array):
            return tree.nbytes
        if isinstance(tree, dict):
            tree = tree.values()
        elif not isinstance(tree, (list, tuple)):
            return 0
        return sum(walk(child) for child in tree)

    return walk(args)
