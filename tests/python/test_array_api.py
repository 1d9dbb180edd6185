"""The array API standard, version 2024.12: names and parameters are those of array-api-strict, and what MLX does
not have gives its values."""

import inspect

import array_api_strict as strict
import numpy as np
import pytest

import tiki as tk

xp = tk.ones(1).__array_namespace__()
NAMESPACES = {"": (strict, xp), "linalg.": (strict.linalg, xp.linalg), "fft.": (strict.fft, xp.fft)}
ABSENT = object()
MISSING = {"complex128"}  # docs/differences.md


@pytest.fixture(scope="module", autouse=True)
def version():
    strict.set_array_api_strict_flags(api_version="2024.12")
    yield
    strict.reset_array_api_strict_flags()


def names(module):
    return [name for name in module.__all__ if not name.startswith("_") and "strict_flags" not in name.lower()]


def pairs():
    for prefix, (reference, ours) in NAMESPACES.items():
        for name in names(reference):
            if name != "ArrayAPIStrictFlags":
                yield prefix + name, getattr(reference, name), getattr(ours, name, ABSENT)


def misses(reference, ours):
    """What a call that the standard allows would trip over."""
    kinds = inspect.Parameter
    have = inspect.signature(ours).parameters
    by_place = [p for p in have.values() if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
    any_place = any(p.kind == kinds.VAR_POSITIONAL for p in have.values())
    place = 0
    for wanted in inspect.signature(reference).parameters.values():
        if wanted.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD):
            if place >= len(by_place) and not any_place:
                yield f"place {place}"
            place += 1
        named = have.get(wanted.name)
        if wanted.kind in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY):
            if named is None or named.kind == kinds.POSITIONAL_ONLY:
                yield f"'{wanted.name}' by name"
            elif wanted.default is not kinds.empty and named.default is kinds.empty:
                yield f"'{wanted.name}' left out"


def test_every_name_is_there():
    absent = {name for name, _, ours in pairs() if ours is ABSENT}
    assert absent == MISSING
    assert len(list(pairs())) > 190
    assert hasattr(xp, "__array_namespace_info__") and xp.__array_api_version__ == "2024.12"


def test_every_function_takes_the_parameters():
    wrong = {}
    for name, reference, ours in pairs():
        if inspect.isfunction(reference) and ours is not ABSENT:
            found = list(misses(reference, ours))
            if found:
                wrong[name] = found
    assert not wrong


def test_arrays_have_the_attributes():
    x = tk.ones((2, 2))
    wanted = [name for name in dir(strict.ones((2, 2))) if not name.startswith("_") or name.endswith("__")]
    absent = {name for name in wanted if not hasattr(x, name)}
    assert absent <= {"__annotations__", "__buffer__", "__slots__", "__weakref__"}, absent
    assert x.device == tk.cpu and x.to_device(x.device) is x
    with pytest.raises(ValueError):
        x.to_device("moon")
    for version in ("2023.12", "2024.12", None):
        assert x.__array_namespace__(api_version=version) is xp
    with pytest.raises(ValueError, match="1999"):
        x.__array_namespace__(api_version="1999.12")


def test_what_the_namespace_says_about_itself():
    info, other = xp.__array_namespace_info__(), strict.__array_namespace_info__()
    assert info.capabilities()["data-dependent shapes"] and info.default_device() in info.devices()
    assert set(other.dtypes()) - set(info.dtypes()) == MISSING
    for kind in ("bool", "signed integer", "integral", "real floating", "complex floating", ("bool", "numeric")):
        assert set(other.dtypes(kind=kind)) - set(info.dtypes(kind=kind)) <= MISSING
    for device in info.devices():
        assert xp.ones((2,), device=device).device == device
    assert info.default_dtypes()["indexing"] == tk.int64


# ---- values, against the reference ----

F = np.array([[3.0, -1.5, 0.0, 2.5], [1.0, -0.0, 7.0, -4.0], [2.0, 2.0, -3.0, 0.5]], np.float32)
G = np.array([[1.0, 2.0, -0.0, 2.5], [-3.0, 0.0, 1e30, 4.0], [np.inf, -2.0, 3.0, np.nan]], np.float32)
I = np.array([[3, 1, 2], [1, 1, 3]], np.int32)
SQUARE = (F @ F.T + 4 * np.eye(3, dtype=np.float32)).astype(np.float32)


def same(reference, ours):
    if isinstance(reference, tuple):
        assert len(reference) == len(ours)
        for one, other in zip(reference, ours):
            same(one, other)
        return
    wanted, got = np.asarray(reference), np.asarray(ours)
    assert wanted.shape == got.shape
    assert wanted.dtype.kind == got.dtype.kind, (wanted.dtype, got.dtype)
    np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=2e-5)


CASES = {
    "arange": lambda m, a: (m.arange(5), m.arange(1, 7, 2), m.arange(0, 1, 0.25), m.arange(4, dtype=m.int8)),
    "creation": lambda m, a: (m.eye(2, 3, k=1), m.full((2, 2), 7), m.full_like(a(I), 2.0), m.linspace(0, 1, num=5)),
    "empty": lambda m, a: (m.zeros((2, 0)), m.ones_like(a(I), dtype=m.float32), m.zeros_like(a(F))),
    "astype": lambda m, a: (m.astype(a(I), m.float32), m.reshape(a(F), (4, 3)), m.roll(a(F), 1, axis=0)),
    "clip": lambda m, a: (m.clip(a(F), -1, 2), m.clip(a(F), min=0.0), m.clip(a(F), max=a(F) * 0), m.clip(a(F))),
    "signbit": lambda m, a: (m.signbit(a(F)), m.signbit(a(G))),
    "copysign": lambda m, a: (m.copysign(a(F), a(G)), m.copysign(a(F), -1.0)),
    "hypot": lambda m, a: (m.hypot(a(F), a(G)), m.hypot(a(F), 1e30)),
    "nextafter": lambda m, a: (m.nextafter(a(F), a(G)), m.nextafter(a(F), -a(F))),
    "sums": lambda m, a: (m.sum(a(F), axis=0, dtype=m.float64), m.prod(a(F), axis=1), m.sum(a(F), keepdims=True)),
    "cumulative_sum": lambda m, a: (
        m.cumulative_sum(a(F), axis=1, include_initial=True),
        m.cumulative_sum(a(F)[0, :]),
        m.cumulative_prod(a(F), axis=0, include_initial=True),
    ),
    "count_nonzero": lambda m, a: (m.count_nonzero(a(F)), m.count_nonzero(a(F), axis=1, keepdims=True)),
    "diff": lambda m, a: (m.diff(a(F)), m.diff(a(F), axis=0, n=2), m.diff(a(F), prepend=a(F), append=a(F))),
    "argmax": lambda m, a: (m.argmax(a(F), axis=1), m.argmin(a(F)), m.argmax(a(F), axis=0, keepdims=True)),
    "sort": lambda m, a: (m.sort(a(F), descending=True), m.sort(a(F), axis=0)),
    "argsort": lambda m, a: (m.argsort(a(I), descending=True), m.argsort(a(I)), m.argsort(a(I), axis=0)),
    "searchsorted": lambda m, a: (m.searchsorted(m.sort(a(F)[0, :]), a(G)[0, :], side="right"),),
    "nonzero": lambda m, a: m.nonzero(a(F)),
    "unique": lambda m, a: (*m.unique_all(a(I)), m.unique_values(a(F)), *m.unique_counts(a(I)), *m.unique_inverse(a(I))),
    "linalg.diagonal": lambda m, a: (m.linalg.diagonal(a(F), offset=1), m.linalg.trace(a(F), offset=-1)),
    "linalg.vector_norm": lambda m, a: tuple(
        m.linalg.vector_norm(a(F), axis=axis, ord=order, keepdims=keep)
        for axis, order, keep in ((None, 2, False), (0, 1, True), (1, np.inf, False), (1, -np.inf, False), (0, 3, False), (0, 0, False))
    ),
    "linalg.matrix_norm": lambda m, a: tuple(
        m.linalg.matrix_norm(a(F), ord=order) for order in ("fro", "nuc", 1, 2, np.inf, -1, -2, -np.inf)
    ),
    "linalg.matrix_power": lambda m, a: tuple(m.linalg.matrix_power(a(SQUARE), n) for n in (0, 1, 3)),
    "linalg.matrix_rank": lambda m, a: (m.linalg.matrix_rank(a(SQUARE)), m.linalg.matrix_rank(a(SQUARE * 0 + 1))),
    "linalg.svdvals": lambda m, a: (m.linalg.svdvals(a(F)), m.linalg.svd(a(F), full_matrices=False).S),
    "linalg.pinv": lambda m, a: (m.linalg.pinv(a(F)), m.linalg.pinv(a(F), rtol=0.3)),
    "linalg.eigh": lambda m, a: (m.linalg.eigh(a(SQUARE)).eigenvalues, m.linalg.eigvalsh(a(SQUARE))),
    "linalg.slogdet": lambda m, a: tuple(m.linalg.slogdet(a(SQUARE))),
    "linalg.cholesky": lambda m, a: (m.linalg.cholesky(a(SQUARE)), m.linalg.cholesky(a(SQUARE), upper=True)),
    "fft.hfft": lambda m, a: (
        m.fft.hfft(m.fft.rfft(a(F))),
        m.fft.hfft(m.fft.rfft(a(F)), n=5, norm="ortho"),
        m.fft.ihfft(a(F), norm="forward"),
        m.fft.fftfreq(5, d=0.5),
        m.fft.rfftfreq(6),
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore")
def test_values(name):
    same(CASES[name](strict, strict.asarray), CASES[name](xp, tk.array))


def test_factors_multiply_back():
    for shape in ((3, 4), (4, 3), (2, 4, 3)):
        x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
        for full in (True, False):
            u, s, vh = (np.asarray(part) for part in xp.linalg.svd(tk.array(x), full_matrices=full))
            wanted = strict.linalg.svd(strict.asarray(x), full_matrices=full)
            assert (u.shape, s.shape, vh.shape) == (wanted.U.shape, wanted.S.shape, wanted.Vh.shape)
            count = s.shape[-1]
            np.testing.assert_allclose((u[..., :count] * s[..., None, :]) @ vh[..., :count, :], x, atol=1e-5)
        for mode in ("reduced", "complete"):
            q, r = (np.asarray(part) for part in xp.linalg.qr(tk.array(x), mode=mode))
            wanted = strict.linalg.qr(strict.asarray(x), mode=mode)
            assert (q.shape, r.shape) == (wanted.Q.shape, wanted.R.shape)
            np.testing.assert_allclose(q @ r, x, atol=1e-5)
            identity = np.broadcast_to(np.eye(q.shape[-1]), (*shape[:-2], q.shape[-1], q.shape[-1]))
            np.testing.assert_allclose(np.swapaxes(q, -1, -2) @ q, identity, atol=1e-5)
    with pytest.raises(ValueError):
        xp.linalg.qr(tk.ones((2, 2)), mode="raw")


def test_isin():  # of the version after
    few = tk.array(I)[0, :2]
    np.testing.assert_array_equal(np.asarray(xp.isin(tk.array(I), few)), np.isin(I, I[0, :2]))
    np.testing.assert_array_equal(np.asarray(xp.isin(tk.array(I), few, invert=True)), ~np.isin(I, I[0, :2]))


def test_wrong_arguments():
    for call in (
        lambda: xp.zeros(2, device="gpu"),
        lambda: xp.astype(tk.ones(2), tk.int8, device="moon"),
        lambda: xp.cumulative_sum(tk.ones((2, 2))),
        lambda: xp.nonzero(tk.array(1)),
        lambda: xp.asarray([1.0], copy=False),
    ):
        with pytest.raises(ValueError):
            call()
    assert xp.linalg.matrix_power(tk.array(SQUARE), -1).shape == (3, 3)
    assert xp.unique_values(tk.zeros((0,))).shape == (0,)
