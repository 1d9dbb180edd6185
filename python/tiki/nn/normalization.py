"""Layers that normalise: over features, groups, positions or the batch."""

from typing import Any

import tiki as tk
from tiki.nn.module import Module


def _check_eps(eps: float) -> None:
    if not eps > 0:
        raise ValueError(f"eps is {eps}, expected more than 0")


class _Affine(Module):
    """Scales and shifts where it has a weight."""

    def _scaled(self, x: tk.array) -> tk.array:
        return self.weight * x + self.bias if "weight" in self else x


class LayerNorm(Module):
    """Zero mean and unit variance over the last axis, then weight and bias."""

    def __init__(self, dims: int, eps: float = 1e-5, affine: bool = True, bias: bool = True) -> None:
        super().__init__()
        _check_eps(eps)
        if affine:
            self.weight = tk.ones((dims,))
            if bias:
                self.bias = tk.zeros((dims,))
        self.eps = eps
        self.dims = dims

    def _extra_repr(self) -> str:
        return f"{self.dims}, eps={self.eps}, affine={'weight' in self}"

    def __call__(self, x: tk.array) -> tk.array:
        return tk.fast.layer_norm(x, self.get("weight"), self.get("bias"), self.eps)


class RMSNorm(Module):
    """Unit mean square over the last axis, then a weight."""

    def __init__(self, dims: int, eps: float = 1e-5) -> None:
        super().__init__()
        _check_eps(eps)
        self.weight = tk.ones((dims,))
        self.eps = eps

    def _extra_repr(self) -> str:
        return f"{self.weight.shape[0]}, eps={self.eps}"

    def __call__(self, x: tk.array) -> tk.array:
        return tk.fast.rms_norm(x, self["weight"], self.eps)


class InstanceNorm(_Affine):
    """Zero mean and unit variance over the positions of each channel of [batch, ..., channels]."""

    def __init__(self, dims: int, eps: float = 1e-5, affine: bool = False) -> None:
        super().__init__()
        _check_eps(eps)
        if affine:
            self.weight = tk.ones((dims,))
            self.bias = tk.zeros((dims,))
        self.dims = dims
        self.eps = eps

    def _extra_repr(self) -> str:
        return f"{self.dims}, eps={self.eps}, affine={'weight' in self}"

    def __call__(self, x: tk.array) -> tk.array:
        if x.ndim < 3:
            raise ValueError(f"the input has {x.ndim} axes, expected 3 or more: batch, positions, channels")
        channels_first = tk.moveaxis(x, -1, 1)
        flat = channels_first.reshape(x.shape[0], x.shape[-1], -1)
        normal = tk.fast.layer_norm(flat, None, None, self.eps).reshape(channels_first.shape)
        return self._scaled(tk.moveaxis(normal, 1, -1))


class GroupNorm(_Affine):
    """Zero mean and unit variance over groups of channels of [batch, ..., channels].

    A group takes every num_groups-th channel; where `pytorch_compatible`, neighbours.
    """

    def __init__(
        self, num_groups: int, dims: int, eps: float = 1e-5, affine: bool = True, pytorch_compatible: bool = False
    ) -> None:
        super().__init__()
        _check_eps(eps)
        if num_groups <= 0 or dims <= 0 or dims % num_groups != 0:
            raise ValueError(f"{dims} features do not divide into {num_groups} groups")
        if affine:
            self.bias = tk.zeros((dims,))
            self.weight = tk.ones((dims,))
        self.num_groups = num_groups
        self.dims = dims
        self.eps = eps
        self.pytorch_compatible = pytorch_compatible

    def _extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.dims}, eps={self.eps}, affine={'weight' in self}, "
            f"pytorch_compatible={self.pytorch_compatible}"
        )

    def _neighbours(self, x: tk.array) -> tk.array:
        batch, channels = x.shape[0], x.shape[-1]
        apart = x.reshape(batch, -1, self.num_groups, channels // self.num_groups).transpose(0, 2, 1, 3)
        normal = tk.fast.layer_norm(apart.reshape(batch, self.num_groups, -1), None, None, self.eps)
        return normal.reshape(apart.shape).transpose(0, 2, 1, 3).reshape(x.shape)

    def _interleaved(self, x: tk.array) -> tk.array:
        groups = x.reshape(x.shape[0], -1, self.num_groups)
        centred = groups - tk.mean(groups, axis=1, keepdims=True)
        scale = tk.rsqrt(tk.var(groups, axis=1, keepdims=True) + self.eps)
        return (centred * scale).reshape(x.shape)

    def __call__(self, x: tk.array) -> tk.array:
        return self._scaled(self._neighbours(x) if self.pytorch_compatible else self._interleaved(x))


class BatchNorm(_Affine):
    """Zero mean and unit variance of each channel over the batch; running statistics in evaluation."""

    _statistics = ["running_mean", "running_var"]

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
    ) -> None:
        super().__init__()
        _check_eps(eps)
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = tk.ones((num_features,))
            self.bias = tk.zeros((num_features,))
        if track_running_stats:
            self.running_mean = tk.zeros((num_features,))
            self.running_var = tk.ones((num_features,))
            self.freeze(keys=self._statistics, recurse=False)

    def _unfreeze_own(self, names: list[Any] | None) -> None:
        """The running statistics stay frozen, whoever unfreezes."""
        super()._unfreeze_own(names)
        self._no_grad.update(self._statistics)

    def _extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={'weight' in self}, "
            f"track_running_stats={self.track_running_stats}"
        )

    def _track(self, x: tk.array, axes: tuple[Any, ...], mean: tk.array) -> None:
        rate = self.momentum
        var = tk.var(x, axis=axes, ddof=1)
        self.running_mean = (1 - rate) * self.running_mean + rate * mean
        self.running_var = (1 - rate) * self.running_var + rate * var

    def __call__(self, x: tk.array) -> tk.array:
        if not 2 <= x.ndim <= 4:
            raise ValueError(f"the input has {x.ndim} axes, expected 2, 3 or 4")
        axes = tuple(range(x.ndim - 1))
        if self.training and x.size == x.shape[-1]:
            raise ValueError("the input has one value for each channel, training needs more")
        if self.training or not self.track_running_stats:
            mean, var = tk.mean(x, axis=axes), tk.var(x, axis=axes)
        else:
            mean, var = self.running_mean, self.running_var
        if self.training and self.track_running_stats:
            self._track(x, axes, mean)
        return self._scaled((x - mean) * tk.rsqrt(var + self.eps))
