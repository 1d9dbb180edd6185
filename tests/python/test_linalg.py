"""Linear algebra beside MLX and NumPy: dtypes, shapes and errors, values, factors by what they must give,
gradients of functions that do not depend on a basis, vmap against a loop."""

import mlx.core as mx
import mlx.nn as mxnn
import numpy as np
import pytest

import tiki as tk
import tiki.nn as nn

RNG = np.random.default_rng(11)
CPU = {"stream": mx.cpu}


def values(*shape):
    return RNG.uniform(-1, 1, shape).astype(np.float32)


def symmetric(*lead, n=4):
    a = values(*lead, n, n)
    return (a + np.swapaxes(a, -1, -2)) / 2 + 3 * np.eye(n, dtype=np.float32)


def close(own, theirs, tolerance=2e-5):
    if isinstance(theirs, (list, tuple)):
        assert len(own) == len(theirs)
        for a, b in zip(own, theirs):
            close(a, b, tolerance)
        return
    own, theirs = np.array(own), np.array(theirs)
    assert own.shape == theirs.shape and own.dtype == theirs.dtype
    np.testing.assert_allclose(own, theirs, rtol=tolerance, atol=tolerance * max(1, np.abs(theirs).max(initial=0)))


A, B, S = values(2, 4, 4) + 2 * np.eye(4, dtype=np.float32), values(2, 4, 3), symmetric(2)
SAME = """
l.inv(a) | l.inv(a[0]) | l.tri_inv(a) | l.tri_inv(a, upper=True) | l.solve(a, b) | l.solve(a[0], b[0]) | l.solve(a[0], b[0, :, 0])
l.solve_triangular(a, b) | l.solve_triangular(a, b, upper=True) | l.cholesky(s) | l.cholesky_inv(l.cholesky(s))
l.cholesky_inv(s, upper=True) | l.eigvalsh(s) | l.eigvalsh(a, UPLO='U') | l.eigvalsh(a, 'L') | l.lu(a) | l.lu(b) | l.lu(b[0].T) | l.lu_factor(a)
l.lu_factor(b) | l.svd(b, compute_uv=False) | l.svd(a)[1] | l.pinv(b) | l.pinv(b[0].T) | l.pinv(a) | l.det(a) | l.slogdet(a)
l.cross(b, b[..., ::-1]) | l.cross(b[:, :2], b[:, 1:3], axis=1) | l.cross(b[..., :2], b[..., 1:]) | l.cross(b[..., :2], b) | l.cross(b[0, 0], b)
l.cross(m.array([1, 2, 3]), m.array([4, 5, 6]).astype(m.int8))
l.norm(b) | l.norm(b[0]) | l.norm(b[0, 0]) | l.norm(m.array([3, 4])) | l.norm(b[0], 'fro') | l.norm(b[0], 'nuc') | l.norm(b[0], 2) | l.norm(b[0], -2)
l.norm(b[0], 1) | l.norm(b[0], -1) | l.norm(b[0], float('inf')) | l.norm(b[0], -float('inf')) | l.norm(b[0, 0], 0) | l.norm(b[0, 0], 3) | l.norm(b[0, 0], -1)
l.norm(b[0, 0], float('inf')) | l.norm(b[0, 0], -float('inf')) | l.norm(b, axis=0) | l.norm(b, 3.5, axis=1) | l.norm(b, 'fro', axis=(0, 2), keepdims=True)
l.norm(b, 2, axis=(2, 0)) | l.norm(b, 1, axis=(2, 0), keepdims=True) | l.norm(b, 'nuc', axis=(1, 2)) | l.norm(b[0].astype(m.complex64)) | l.norm(b, axis=())
m.hadamard_transform(a) | m.hadamard_transform(m.arange(24.0).reshape(2, 12)) | m.hadamard_transform(m.arange(40.0), scale=1.0)
m.hadamard_transform(m.arange(56.0).reshape(1, 56), 0.25) | m.hadamard_transform(m.arange(32).astype(m.float16)) | m.hadamard_transform(m.arange(8))
"""


@pytest.mark.parametrize("case", [c.strip() for line in SAME.strip().splitlines() for c in line.split(" | ")])
def test_case(case):
    with mx.stream(mx.cpu):
        own, theirs = (eval(case, {"m": m, "l": m.linalg, "a": m.array(A), "b": m.array(B), "s": m.array(S)}) for m in (tk, mx))
        mx.eval(theirs)
    close(own, theirs, 2e-3 if "float16" in case else 2e-5)


ERRORS = """
l.inv(b) | l.inv(b[0, 0]) | l.inv(m.eye(3).astype(m.int32)) | l.solve(b, b) | l.solve(a, b[:, :3]) | l.cholesky(b) | l.qr(b[0, 0]) | l.eig(b)
l.det(b) | l.cross(a, a) | l.cross(b, b, axis=7) | l.norm(b, 2) | l.norm(b[0], 3) | l.norm(b[0], 'x') | l.norm(b, axis=(0, 1, 2)) | l.norm(b, 'fro', axis=0)
m.hadamard_transform(m.ones((3,))) | m.hadamard_transform(m.ones((0, 8))) | l.svd(m.eye(3).astype(m.float16))
m.random.multivariate_normal(b[0, 0], a[0]) | m.random.multivariate_normal(b[0, :, 0], a[0], dtype=m.float16)
"""


@pytest.mark.parametrize("case", [c.strip() for line in ERRORS.strip().splitlines() for c in line.split(" | ")])
def test_errors(case):
    for m in (tk, mx):
        with pytest.raises((ValueError, IndexError)), mx.stream(mx.cpu):
            m.eval(eval(case, {"m": m, "l": m.linalg, "a": m.array(A), "b": m.array(B)}))


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 4, 3), (1, 1), (40, 30)])
def test_factors(shape):
    a = values(*shape)
    rows, columns = shape[-2:]
    q, r = map(np.array, tk.linalg.qr(tk.array(a)))
    np.testing.assert_allclose(q @ r, a, atol=1e-5)
    np.testing.assert_allclose(np.swapaxes(q, -1, -2) @ q, np.broadcast_to(np.eye(q.shape[-1]), (*shape[:-2], *(q.shape[-1],) * 2)), atol=1e-5)
    assert (np.tril(r, -1) == 0).all()
    u, s, vt = map(np.array, tk.linalg.svd(tk.array(a)))
    assert [x.shape for x in (u, s, vt)] == [tuple(x.shape) for x in mx.linalg.svd(mx.array(a), **CPU)]
    k = min(rows, columns)
    np.testing.assert_allclose((u[..., :k] * s[..., None, :]) @ vt[..., :k, :], a, atol=1e-5)
    for x in (u, vt):
        np.testing.assert_allclose(x @ np.swapaxes(x, -1, -2), np.broadcast_to(np.eye(x.shape[-1]), x.shape), atol=1e-5)
    p, l, up = map(np.array, tk.linalg.lu(tk.array(a)))
    np.testing.assert_allclose(np.take_along_axis(l, p[..., None].astype(np.int64), -2) @ up, a, atol=1e-5)


@pytest.mark.parametrize("lead", [(), (3,)])
def test_eigenvectors(lead):
    s, a = symmetric(*lead), values(*lead, 4, 4)
    for uplo in "LU":
        w, v = map(np.array, tk.linalg.eigh(tk.array(s), uplo))
        np.testing.assert_allclose(w, np.linalg.eigvalsh(s), rtol=1e-5)
        np.testing.assert_allclose(s @ v, v * w[..., None, :], atol=2e-5)
    for x in (a, a.astype(np.complex64) * (1 + 2j)):
        w, v = map(np.array, tk.linalg.eig(tk.array(x)))
        np.testing.assert_allclose(x @ v, v * w[..., None, :], atol=5e-5)
        np.testing.assert_allclose(np.sort_complex(tk.linalg.eigvals(tk.array(x))), np.sort_complex(w), atol=1e-5)
    h = s + 1j * (a - np.swapaxes(a, -1, -2))
    w, v = map(np.array, tk.linalg.eigh(tk.array(h.astype(np.complex64))))
    np.testing.assert_allclose(h @ v, v * w[..., None, :], atol=5e-5)
    u, s, vt = map(np.array, tk.linalg.svd(tk.array(h.astype(np.complex64)[..., :3])))
    np.testing.assert_allclose((u[..., :3] * s[..., None, :]) @ vt, h[..., :3], atol=5e-5)
    np.testing.assert_allclose(np.conj(np.swapaxes(u, -1, -2)) @ u, np.broadcast_to(np.eye(4), u.shape), atol=1e-5)


FUNCTIONS = {
    "inv": (lambda x: tk.linalg.inv(x), A),
    "solve": (lambda x: tk.linalg.solve(x, x[..., :2] * 2), A),
    "cholesky": (lambda x: tk.linalg.cholesky(x), S),
    "cholesky upper": (lambda x: tk.linalg.cholesky(x, upper=True), S),
    "cholesky_inv": (lambda x: tk.linalg.cholesky_inv(tk.linalg.cholesky(x)), S),
    "qr": (lambda x: tk.concatenate(tk.linalg.qr(x), axis=-2), A),
    "svd values": (lambda x: tk.linalg.svd(x, compute_uv=False), B),
    "svd projection": (lambda x: (lambda u, s, v: u[..., 3:] @ u[..., 3:].swapaxes(-1, -2) + u[..., :1] @ v[..., :1, :] @ x.swapaxes(-1, -2))(*tk.linalg.svd(x)), B),
    "eigvalsh": (lambda x: tk.linalg.eigvalsh(x), S),
    "eigh projection": (lambda x: (lambda w, v: v[..., :1] @ v[..., :1].swapaxes(-1, -2))(*tk.linalg.eigh(x, "U")), S),
    "pinv": (lambda x: tk.linalg.pinv(x), B),
    "det": (lambda x: tk.linalg.det(x), A),
    "slogdet": (lambda x: tk.linalg.slogdet(x)[1], A),
    "norm nuclear": (lambda x: tk.linalg.norm(x, "nuc", axis=(-2, -1)), B),
    "hadamard": (lambda x: tk.hadamard_transform(x), A),
    "cross": (lambda x: tk.linalg.cross(x, x[..., ::-1] * x), B),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_and_batches(name):
    """Directional differences in float32, along symmetric directions of symmetric matrices; forward mode; vmap."""
    function, x = FUNCTIONS[name]
    direction = values(*x.shape)
    if x is S:
        direction = direction + np.swapaxes(direction, -1, -2)
    weights = values(*function(tk.array(x)).shape)

    def loss(x):
        return (function(x) * tk.array(weights)).sum()

    grad = np.array(tk.grad(loss)(tk.array(x)))
    if x is S:
        np.testing.assert_allclose(grad, np.swapaxes(grad, -1, -2), atol=1e-5 * np.abs(grad).max())
    step = 2e-3
    slope = (loss(tk.array(x + step * direction)).item() - loss(tk.array(x - step * direction)).item()) / (2 * step)
    assert abs((grad * direction).sum() - slope) <= 2e-2 * max(1, np.abs(grad).max())
    _, (tangent,) = tk.jvp(loss, [tk.array(x)], [tk.array(direction)])
    assert abs(tangent.item() - (grad * direction).sum()) <= 1e-4 * max(1, np.abs(grad).max())
    close(tk.vmap(function)(tk.array(x)), tk.stack([function(tk.array(row)) for row in x]), 1e-4)


def test_refusals_of_derivatives():
    for function in (lambda x: tk.abs(tk.linalg.eigvals(x)).sum(), lambda x: tk.linalg.lu(x)[2].sum()):
        with pytest.raises(Exception, match="no derivative"):
            tk.grad(function)(tk.array(A))


def test_matrices_without_a_result():
    """Where MLX gives numbers that are none (cholesky) or stops (svd of NaN), an error or NaN."""
    with pytest.raises(ValueError, match="not positive definite"):
        tk.eval(tk.linalg.cholesky(-tk.eye(3)))
    with pytest.raises(ValueError, match="singular"):
        tk.eval(tk.linalg.inv(tk.zeros((2, 2))))
    bad = tk.array([[1.0, 2.0], [float("nan"), 3.0]])
    for result in (tk.linalg.svd(bad), tk.linalg.eigh(bad), [tk.linalg.cholesky(bad)]):
        assert all(np.isnan(np.array(x)).all() for x in result)


def test_broadcasting_systems():
    """MLX refuses leading axes that differ; NumPy broadcasts them."""
    for a, b in ((A, B[0]), (A[0], B), (A[:, None], B[None, :])):
        np.testing.assert_allclose(np.array(tk.linalg.solve(tk.array(a), tk.array(b))), np.linalg.solve(a, b), rtol=2e-4, atol=2e-4)


def test_empty_matrices():
    """MLX stops the process at some of these, and never ends at the trace."""
    assert tk.trace(tk.ones((1, 3, 2)), -1).tolist() == [0, 0]
    assert tk.linalg.det(tk.zeros((0, 0))).item() == 1
    assert tk.linalg.inv(tk.zeros((0, 3, 3))).shape == (0, 3, 3)
    assert [x.shape for x in tk.linalg.qr(tk.zeros((0, 3)))] == [(0, 0), (0, 3)]
    assert [x.shape for x in tk.linalg.svd(tk.zeros((3, 0)))] == [(3, 3), (0,), (0, 0)]


@pytest.mark.parametrize("shape", [[], [4], [5, 2]])
def test_multivariate_normal(shape):
    mean, cov = values(3), symmetric(n=3)
    key = tk.random.key(3)
    close(tk.random.multivariate_normal(tk.array(mean), tk.array(cov), shape, key=key),
          mx.random.multivariate_normal(mx.array(mean), mx.array(cov), shape, key=mx.random.key(3), **CPU), 1e-4)


def test_multivariate_normal_has_its_covariance():
    cov = symmetric(n=3)
    tk.random.seed(0)
    drawn = np.array(tk.random.multivariate_normal(tk.array([1.0, 2.0, 3.0]), tk.array(cov), [20000]))
    np.testing.assert_allclose(drawn.mean(0), [1, 2, 3], atol=0.06)
    np.testing.assert_allclose(np.cov(drawn.T), cov, atol=0.15)


@pytest.mark.parametrize("shape", [(4, 4), (3, 6), (6, 3)])
def test_orthogonal_initial_values(shape):
    w = np.array(nn.init.orthogonal(gain=2.0)(tk.zeros(shape)))
    short = w if shape[0] <= shape[1] else w.T
    np.testing.assert_allclose(short @ short.T, 4 * np.eye(min(shape)), atol=1e-5)
    tk.random.seed(4)
    mx.random.seed(4)
    own = np.array(nn.init.orthogonal()(tk.zeros(shape)))
    with mx.stream(mx.cpu):
        theirs = np.array(mxnn.init.orthogonal()(mx.zeros(shape)))
    np.testing.assert_allclose(own, theirs, atol=1e-4)
