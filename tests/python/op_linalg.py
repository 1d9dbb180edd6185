"""References of linear algebra. Factors are not unique (signs, bases): what must hold of each is checked.
See compare_ops.py."""
import numpy as np

from op_values import EPS, OPS, Refuse, Value, cast, kind, norm_axes, norm_axis, op, promote, result_dtype, wrap


def matrix(a, square=True, complex_too=False):
    if a.dtype not in ("float32", "float64") + (("complex64",) if complex_too else ()) or a.rank < 2:
        raise Refuse("matrix")
    if square and a.shape[-1] != a.shape[-2]:
        raise Refuse("square")
    return a.data


def mirror(data, upper):
    across = np.conj(np.swapaxes(data, -1, -2))
    return np.triu(data) + np.tril(across, -1) if upper else np.tril(data) + np.triu(across, 1)


def value(dtype, data, factor=64):
    """Values of well-conditioned problems: errors grow with the largest element."""
    size = np.full(np.shape(data), np.max(np.abs(data), initial=0) + 1)
    return Value(dtype, data, magnitude=("absolute", size, factor))


def holds(dtype, shape, check):
    """An array of a shape of which something holds within 1000 eps."""
    return Value(dtype, np.zeros(shape), magnitude=("holds", lambda got: check(got, 1000 * EPS[dtype])))


def factor_of(data, dtype, shape, check):
    """A factor of each matrix of a stack; those with infinities, NaN or numbers whose squares are infinite have none."""
    size = np.abs(data)
    sound = np.max(np.where(np.isfinite(size), size, np.inf), axis=(-2, -1), initial=0) < 1e15
    return holds(dtype, shape, lambda got, e: check(got[sound], data[sound], e))


def conditioned(a, limit=1e3):
    return a.size == 0 or not np.all(np.isfinite(a)) or np.all(np.linalg.cond(a) < limit)


def transposed(a):
    return np.conj(np.swapaxes(a, -1, -2))


def near(a, b, bound):
    """Within a share of the largest element; where there is none, as there is with infinities, the same."""
    with np.errstate(all="ignore"):
        a, b = np.broadcast_arrays(a, b)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        return bool(np.all(same | (np.abs(a - b) <= bound * (1 + np.max(np.abs(b), initial=0)))))


def orthonormal(q, bound):
    return near(transposed(q) @ q, np.eye(q.shape[-1]), bound)


@op("inv")
def inv(a):
    data = matrix(a)
    return value(a.dtype, np.linalg.inv(data)) if conditioned(data) else None


def triangle_of(data, upper):
    return np.triu(data) if upper else np.tril(data)


@op("tri_inv")
def tri_inv(a, upper):
    data = triangle_of(matrix(a), upper)
    return value(a.dtype, np.linalg.inv(data)) if conditioned(data) else None


def system(a, b, pick):
    if b.rank < 1:
        raise Refuse("rank")
    a, b = promote([a, b])
    data = pick(matrix(a))
    right = b.data[:, None] if b.rank == 1 else b.data
    if not np.all(np.isfinite(right)) or not conditioned(data):
        np.linalg.solve(np.broadcast_to(np.eye(data.shape[-1]), data.shape), np.zeros_like(right))
        return None
    result = np.linalg.solve(data, right)
    result = result[..., 0] if b.rank == 1 else result
    return value(a.dtype, result)


OPS["solve"] = lambda a, b: system(a, b, lambda x: x)
OPS["solve_triangular"] = lambda a, b, upper: system(a, b, lambda x: triangle_of(x, upper))


@op("cholesky")
def cholesky(a, upper):
    result = np.linalg.cholesky(mirror(matrix(a), upper))
    return value(a.dtype, transposed(result) if upper else result)


@op("cholesky_inv")
def cholesky_inv(a, upper):
    data = triangle_of(matrix(a), upper)
    return value(a.dtype, np.linalg.inv(transposed(data) @ data if upper else data @ transposed(data)))


@op("qr")
def qr(a):
    data = matrix(a, square=False)
    *lead, m, n = data.shape
    k = min(m, n)
    return [factor_of(data, a.dtype, (*lead, m, k), lambda q, x, e: orthonormal(q, e) and near(
                q @ (transposed(q) @ x), x, e)),
            factor_of(data, a.dtype, (*lead, k, n), lambda r, x, e: near(np.triu(r), r, 0)
                      and near(transposed(r) @ r, transposed(x) @ x, e))]


@op("svd")
def svd(a, compute_uv):
    data = matrix(a, square=False, complex_too=True)
    *lead, m, n = data.shape
    values = np.linalg.svd(data, compute_uv=False)
    real = "float64" if a.dtype == "float64" else "float32"
    if not compute_uv:
        return value(real, values)
    squares = [np.concatenate([values**2, np.zeros((*lead, max(s - min(m, n), 0)))], axis=-1)[..., None, :]
               for s in (m, n)]
    return [holds(a.dtype, (*lead, m, m), lambda u, e: orthonormal(u, e)
                  and near((u * squares[0]) @ transposed(u), data @ transposed(data), e)),
            value(real, values),
            holds(a.dtype, (*lead, n, n), lambda v, e: orthonormal(v, e)
                  and near((transposed(v) * squares[1]) @ v, transposed(data) @ data, e))]


@op("eigh")
def eigh(a, upper):
    data = mirror(matrix(a, complex_too=True), upper)
    values = np.linalg.eigvalsh(data)
    real = "float64" if a.dtype == "float64" else "float32"
    return [value(real, values),
            holds(a.dtype, data.shape, lambda v, e: orthonormal(v, e)
                  and near((v * values[..., None, :]) @ transposed(v), data, e))]


OPS["eigvalsh"] = lambda a, upper: eigh(a, upper)[0]


def same_values(data):
    expected = np.linalg.eigvals(data)
    return holds("complex64", expected.shape, lambda got, e: near(np.sort_complex(np.round(got, 3)),
                                                                  np.sort_complex(np.round(expected, 3)), 5e-3))


@op("eigvals")
def eigvals(a):
    return same_values(matrix(a, complex_too=True))


@op("eig")
def eig(a):
    data = matrix(a, complex_too=True)

    def are_vectors(v, e):
        image = data @ v
        values = np.sum(np.conj(v) * image, axis=-2, keepdims=True)
        return near(image, v * values, e) and near(np.sum(np.abs(v)**2, axis=-2), 1, e)

    return [same_values(data), holds("complex64", data.shape, are_vectors)]


def is_upper(u, a, e):
    """u with l u = some rows of a: a u^-1 has unit maxima where it is square."""
    square = a.shape[-1] == a.shape[-2]
    return near(np.triu(u), u, 0) and (not square or near(np.abs(np.linalg.det(u)), np.abs(np.linalg.det(a)), 10 * e))


@op("lu")
def lu(a):
    data = matrix(a, square=False)
    *lead, m, n = data.shape
    k = min(m, n)
    return [Value("uint32", np.zeros((*lead, m)), magnitude=("holds", lambda p: bool(
                np.all(np.sort(p, axis=-1) == np.arange(m))))),
            factor_of(data, a.dtype, (*lead, m, k), lambda l, x, e: near(np.tril(l), l, 0) and near(
                np.diagonal(l, axis1=-2, axis2=-1), 1, 0) and bool(np.all(np.abs(l) <= 1))),
            factor_of(data, a.dtype, (*lead, k, n), is_upper)]


@op("lu_factor")
def lu_factor(a):
    data = matrix(a, square=False)
    *lead, m, n = data.shape
    return [factor_of(data, a.dtype, data.shape, lambda u, x, e: is_upper(np.triu(u[..., :min(m, n), :]), x, e)),
            Value("uint32", np.zeros((*lead, min(m, n))), magnitude=("holds", lambda p: bool(
                np.all((p >= np.arange(min(m, n))) & (p < m)))))]


@op("pinv")
def pinv(a):
    data = matrix(a, square=False)
    return value(a.dtype, np.linalg.pinv(data)) if conditioned(data) else None


def determinant_operand(a):
    if kind(a.dtype) == 4 or a.rank < 2 or a.shape[-1] != a.shape[-2]:
        raise Refuse("matrix")
    wide = a.dtype if a.dtype == "float64" else "float32"
    return cast(a, wide).data, a.dtype if kind(a.dtype) == 3 else "float32"


@op("det")
def det(a):
    data, dtype = determinant_operand(a)
    return value(dtype, np.linalg.det(data)) if conditioned(data) else None


@op("slogdet")
def slogdet(a):
    data, dtype = determinant_operand(a)
    sign, logarithm = np.linalg.slogdet(data)
    return [Value(dtype, sign), value(dtype, logarithm)] if conditioned(data) else None


@op("cross")
def cross(a, b, axis):
    dtype = result_dtype([a, b])
    for v in (a, b):
        if v.shape[norm_axis(axis, v.rank)] not in (2, 3):
            raise Refuse("length")
    if dtype == "bool":
        raise Refuse("bool")

    def three(v):
        at = norm_axis(axis, v.rank)
        x = cast(v, dtype).data
        return np.pad(x, [(0, 3 - x.shape[i] if i == at else 0) for i in range(v.rank)])

    x, y = np.broadcast_arrays(three(a), three(b))
    at = norm_axis(axis, x.ndim)
    if x.shape[at] != 3:
        raise Refuse("axis")
    if kind(dtype) < 3:
        x, y = x.astype(object), y.astype(object)
    with np.errstate(all="ignore"):
        one, two = (np.roll(x, -i, at) * np.roll(y, i - 3, at) for i in (1, 2))
        if kind(dtype) < 3:
            return Value(dtype, wrap(one - two, dtype))
        if not np.all(np.isfinite(one)) or not np.all(np.isfinite(two)):
            return None
        return Value(dtype, one - two, magnitude=("absolute", np.abs(one) + np.abs(two), 4))


def norm_operand(a):
    wide = a if kind(a.dtype) >= 3 else cast(a, "float32")
    if not np.all(np.isfinite(wide.data)) or np.max(np.abs(wide.data), initial=0) > (
            100 if wide.dtype == "float16" else 1e8) or np.any((np.abs(wide.data) < 1e-8) & (wide.data != 0)):
        return None, None
    return wide, "float32" if wide.dtype == "complex64" else wide.dtype


@op("norm")
def norm(a, ord, axes, keepdims):
    normal = norm_axes(axes, a.rank, ordered=True)
    if np.isnan(ord) and axes is None:
        pass
    elif np.isnan(ord):
        if len(normal) > 2:
            raise Refuse("axes")
    elif len(normal) not in (1, 2) or len(normal) == 2 and abs(ord) not in (1, 2, np.inf):
        raise Refuse("ord")
    wide, dtype = norm_operand(a)
    if wide is None or len(normal) == 1 and ord < 0 and np.any(wide.data == 0):
        return None
    data = wide.data
    if np.isnan(ord):
        return value(dtype, np.sqrt(np.sum(np.abs(data)**2, axis=normal, keepdims=keepdims)))
    slack = 256 * max(1, 1 / abs(ord)) if ord != 0 else 256  # a small power is undone by a large one
    return value(dtype, np.linalg.norm(data, ord, normal[0] if len(normal) == 1 else normal, keepdims), slack)


@op("norm_nuclear")
def norm_nuclear(a, axes, keepdims):
    normal = norm_axes(axes, a.rank, ordered=True)
    if len(normal) != 2:
        raise Refuse("axes")
    wide, dtype = norm_operand(a)
    return None if wide is None else value(dtype, np.linalg.norm(wide.data, "nuc", normal, keepdims), 256)


def hadamard_matrix(m):
    """MLX's matrices; found by what they do to the unit vectors."""
    import mlx.core as mx

    return np.array(mx.hadamard_transform(mx.eye(m), scale=1.0), np.float64) if m > 1 else np.ones((1, 1))


@op("hadamard_transform")
def hadamard_transform(a, scale):
    n = a.shape[-1] if a.rank else 1
    m, k = n, 0
    while m and m % 2 == 0:
        m, k = m // 2, k + 1
    if m in (3, 5, 7):
        m, k = 4 * m, k - 2
    if a.data.size == 0 or m not in (1, 12, 20, 28) or k < 0:
        raise Refuse("length")
    wide = a if kind(a.dtype) >= 3 else cast(a, "float32")
    if not np.all(np.isfinite(wide.data)) or not np.isfinite(scale) and not np.isnan(scale):
        return None
    whole = hadamard_matrix(m)
    for _ in range(k):
        whole = np.kron(whole, [[1, 1], [1, -1]])
    scale = n**-0.5 if np.isnan(scale) else scale
    with np.errstate(all="ignore"):
        data = wide.data.reshape(*a.shape[:-1], n) if a.rank else wide.data.reshape(1)
        size = np.abs(data).sum(axis=-1, keepdims=True) * max(1, abs(scale)) + 0 * data
        return Value(wide.dtype, (data @ whole * scale).reshape(a.shape),
                     magnitude=("absolute", size.reshape(a.shape), 16))


@op("random_multivariate_normal")
def multivariate_normal(mean, cov, shape, dtype, key):
    if key is None or key.dtype != "uint32" or key.shape != (2,):
        if key is not None:
            raise Refuse("key")
    if dtype not in ("float32", "float64") or mean.rank < 1 or cov.rank < 2 or shape in (None, "too many") \
            or cov.shape[-2:] != mean.shape[-1:] * 2 or cov.dtype == "complex64":
        raise Refuse("mean or cov")
    lead = np.broadcast_shapes(tuple(shape), mean.shape[:-1], cov.shape[:-2])
    return Value(dtype, np.zeros((*lead, mean.shape[-1])), magnitude=("holds", lambda got: True))
