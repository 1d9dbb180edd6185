"""Initial values: each function makes one that takes an array and gives another of its shape."""

import math
from typing import Any, Callable

import tiki as tk
from tiki import _core

_nn = _core._nn


def constant(value: float, dtype: tk.Dtype = tk.float32) -> Callable[..., Any]:
    """The same value everywhere."""
    return lambda a: tk.full(a.shape, value, dtype=dtype)


def normal(mean: float = 0.0, std: float = 1.0, dtype: tk.Dtype = tk.float32) -> Callable[..., Any]:
    """Normal values."""
    return lambda a: _nn.init_normal(a.shape, dtype, mean, std)


def uniform(low: float = 0.0, high: float = 1.0, dtype: tk.Dtype = tk.float32) -> Callable[..., Any]:
    """Uniform values in [low, high)."""
    return lambda a: _nn.init_uniform(a.shape, dtype, low, high)


def identity(dtype: tk.Dtype = tk.float32) -> Callable[..., Any]:
    """The identity matrix."""

    def initializer(a: tk.array) -> tk.array:
        if a.ndim != 2 or a.shape[0] != a.shape[1]:
            raise ValueError(f"identity: the shape is {a.shape}, expected a square matrix")
        return tk.eye(a.shape[0], dtype=dtype)

    return initializer


def glorot_normal(dtype: tk.Dtype = tk.float32) -> Callable[..., Any]:
    """Normal values with deviation gain sqrt(2 / (fan_in + fan_out)) (Glorot and Bengio 2010)."""
    return lambda a, gain=1.0: _nn.init_glorot_normal(a.shape, dtype, gain)


def glorot_uniform(dtype: tk.Dtype = tk.float32) -> Callable[..., Any]:
    """Uniform values up to gain sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010)."""
    return lambda a, gain=1.0: _nn.init_glorot_uniform(a.shape, dtype, gain)


def _by_fan_out(mode: str) -> bool:
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"mode is '{mode}', expected 'fan_in' or 'fan_out'")
    return mode == "fan_out"


def he_normal(dtype: tk.Dtype = tk.float32) -> Callable[..., Any]:
    """Normal values with deviation gain / sqrt(fan) (He et al. 2015)."""
    return lambda a, mode="fan_in", gain=1.0: _nn.init_he_normal(a.shape, dtype, _by_fan_out(mode), gain)


def he_uniform(dtype: tk.Dtype = tk.float32) -> Callable[..., Any]:
    """Uniform values up to gain sqrt(3 / fan) (He et al. 2015)."""
    return lambda a, mode="fan_in", gain=1.0: _nn.init_he_uniform(a.shape, dtype, _by_fan_out(mode), gain)


def sparse(sparsity: float, mean: float = 0.0, std: float = 1.0, dtype: tk.Dtype = tk.float32) -> Callable[..., Any]:
    """Normal values of which a share in each row is zero (Martens 2010)."""

    def initializer(a: tk.array) -> tk.array:
        if a.ndim != 2:
            raise ValueError(f"sparse: the shape is {a.shape}, expected a matrix")
        rows, columns = a.shape
        order = tk.argsort(tk.random.uniform(shape=a.shape), axis=1)
        values = _nn.init_normal(a.shape, dtype, mean, std)
        zeroed = order[:, : math.ceil(sparsity * columns)]
        return tk.put_along_axis(values, zeroed, tk.array(0, dtype), axis=1)

    return initializer


def orthogonal(gain: float = 1.0, dtype: tk.Dtype = tk.float32) -> Callable[..., Any]:
    """Rows or columns of a random orthogonal matrix, times gain (Saxe et al. 2014)."""

    def initializer(a: tk.array) -> tk.array:
        if a.ndim != 2:
            raise ValueError(f"orthogonal: the shape is {a.shape}, expected a matrix")
        rows, columns = a.shape
        size = max(rows, columns)
        q, r = tk.linalg.qr(tk.random.normal((size, size)))
        q = q * tk.sign(tk.diag(r))
        return (q[:rows, :columns] * gain).astype(dtype)

    return initializer
