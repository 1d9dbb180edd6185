"""Linear algebra on stacks of matrices."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import tiki as tk
from tiki import Dtype, array, matmul as matmul, matrix_transpose as matrix_transpose
from tiki import outer as outer, tensordot as tensordot, vecdot as vecdot
from tiki.linalg import (
    cross as cross,
    det as det,
    eigvalsh as eigvalsh,
    inv as inv,
    solve as solve,
)


class EighResult(NamedTuple):
    """What `eigh` gives."""

    eigenvalues: array
    eigenvectors: array


class QRResult(NamedTuple):
    """What `qr` gives."""

    Q: array
    R: array


class SlogdetResult(NamedTuple):
    """What `slogdet` gives."""

    sign: array
    logabsdet: array


class SVDResult(NamedTuple):
    """What `svd` gives."""

    U: array
    S: array
    Vh: array


def cholesky(x: array, /, *, upper: bool = False) -> array:
    """The triangle whose product with its conjugate transpose is x."""
    return tk.linalg.cholesky(x, upper=upper)


def diagonal(x: array, /, *, offset: int = 0) -> array:
    """Diagonals of the last two axes."""
    return tk.diagonal(x, offset, -2, -1)


def trace(x: array, /, *, offset: int = 0, dtype: Dtype | None = None) -> array:
    """Sums of the diagonals of the last two axes."""
    parts = diagonal(x, offset=offset)
    return tk.sum(parts if dtype is None else parts.astype(dtype), axis=-1)


def eigh(x: array, /) -> EighResult:
    """Rising eigenvalues and vectors of symmetric matrices."""
    return EighResult(*tk.linalg.eigh(x))


def qr(x: array, /, *, mode: str = "reduced") -> QRResult:
    """Orthonormal columns and an upper triangle; `complete` makes the columns a whole basis."""
    if mode not in ("reduced", "complete"):
        raise ValueError(f"qr: mode is '{mode}', expected 'reduced' or 'complete'")
    rows, columns = x.shape[-2:]
    if mode == "reduced" or rows <= columns:
        return QRResult(*tk.linalg.qr(x))
    wide = tk.concatenate([x, tk.broadcast_to(tk.eye(rows, dtype=x.dtype), (*x.shape[:-1], rows))], axis=-1)
    q, r = tk.linalg.qr(wide)
    return QRResult(q, r[..., :columns])


def slogdet(x: array, /) -> SlogdetResult:
    """Sign and logarithm of the absolute value of determinants."""
    return SlogdetResult(*tk.linalg.slogdet(x))


def svd(x: array, /, *, full_matrices: bool = True) -> SVDResult:
    """Left vectors, falling singular values, right vectors."""
    u, s, vh = tk.linalg.svd(x)
    if full_matrices:
        return SVDResult(u, s, vh)
    count = s.shape[-1]
    return SVDResult(u[..., :count], s, vh[..., :count, :])


def svdvals(x: array, /) -> array:
    """Falling singular values."""
    values = tk.linalg.svd(x, compute_uv=False)
    return values if isinstance(values, array) else values[0]


def _kept(values: array, rtol: float | array | None, shape: Sequence[int], factor: float) -> array:
    """Which singular values count."""
    limit = factor * tk.finfo(values.dtype).eps * max(shape[-2:]) if rtol is None else rtol
    return values > tk.asarray(limit)[..., None] * tk.max(values, axis=-1, keepdims=True)


def matrix_rank(x: array, /, *, rtol: float | array | None = None) -> array:
    """How many singular values are not negligible."""
    return tk.sum(_kept(svdvals(x), rtol, x.shape, 1).astype(tk.int64), axis=-1)


def pinv(x: array, /, *, rtol: float | array | None = None) -> array:
    """The pseudo-inverse; what is below `rtol` of the largest singular value counts as 0."""
    if rtol is None:
        return tk.linalg.pinv(x)
    u, s, vh = svd(x, full_matrices=False)
    kept = _kept(s, rtol, x.shape, 1)
    inverse = tk.where(kept, 1 / tk.where(kept, s, 1), 0)
    return tk.conjugate(matrix_transpose(vh)) @ (inverse[..., None] * tk.conjugate(matrix_transpose(u)))


def matrix_norm(x: array, /, *, keepdims: bool = False, ord: Any = "fro") -> array:
    """Norms of matrices in the last two axes."""
    if ord in (2, -2, "nuc"):
        values = svdvals(x)
        reduced = tk.sum(values, -1) if ord == "nuc" else (tk.max if ord == 2 else tk.min)(values, -1)
    else:
        reduced = tk.linalg.norm(x, ord=ord, axis=(-2, -1))
    return reduced[..., None, None] if keepdims else reduced


def matrix_power(x: array, n: int, /) -> array:
    """Square matrices multiplied n times; of the inverse where n is negative."""
    if n < 0:
        return matrix_power(tk.linalg.inv(x), -n)
    result, square = tk.broadcast_to(tk.eye(x.shape[-1], dtype=x.dtype), x.shape), x
    while n:
        if n & 1:
            result = result @ square
        square, n = square @ square, n >> 1
    return result


def vector_norm(
    x: array, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False, ord: int | float = 2
) -> array:
    """Norms of vectors along axes, all by default."""
    size = tk.abs(x)
    if ord == 0:
        return tk.sum((x != 0).astype(size.dtype), axis, keepdims)
    if ord in (float("inf"), float("-inf")):
        return (tk.max if ord > 0 else tk.min)(size, axis, keepdims)
    if ord == 2:
        return tk.sqrt(tk.sum(size * size, axis, keepdims))
    return tk.power(tk.sum(tk.power(size, ord), axis, keepdims), 1 / ord)
