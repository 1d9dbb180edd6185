"""Convolutions over [batch, ..., channels], plain and transposed."""

import math
from typing import Any

import tiki as tk
from tiki.nn.linear import uniform_within
from tiki.nn.module import Module


class _Convolution(Module):
    _rank = 1

    def _per_axis(self, value: Any) -> Any:
        return (value,) * self._rank if self._rank > 1 and isinstance(value, int) else value

    def _fill(self, in_channels: int, out_channels: int, kernel_size: Any, groups: int, bias: bool) -> None:
        if in_channels % groups:
            raise ValueError(f"{in_channels} input channels do not divide into {groups} groups")
        sizes = (kernel_size,) if isinstance(kernel_size, int) else tuple(kernel_size)
        each = in_channels // groups
        limit = math.sqrt(1 / (each * math.prod(sizes)))
        self.weight = uniform_within(limit, out_channels, *sizes, each)
        if bias:
            self.bias = tk.zeros((out_channels,))

    def _extra_repr(self) -> str:
        size = self.weight.shape[1:-1]
        names = ["stride", "padding", "dilation"] + [n for n in ("groups", "output_padding") if hasattr(self, n)]
        return ", ".join(
            [f"{self.weight.shape[-1] * getattr(self, 'groups', 1)}, {self.weight.shape[0]}"]
            + [f"kernel_size={size[0] if self._rank == 1 else size}"]
            + [f"{name}={getattr(self, name)}" for name in names]
            + [f"bias={'bias' in self}"]
        )

    def _biased(self, y: tk.array) -> tk.array:
        return y + self.bias if "bias" in self else y


class Conv1d(_Convolution):
    """Windows of sequences [N, L, C] times weight, plus bias."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        padding: int = 0,
        dilation: int = 1,
        groups: int = 1,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self._fill(in_channels, out_channels, kernel_size, groups, bias)
        self.padding = padding
        self.dilation = dilation
        self.stride = stride
        self.groups = groups

    def __call__(self, x: tk.array) -> tk.array:
        return self._biased(tk.conv1d(x, self.weight, self.stride, self.padding, self.dilation, self.groups))


class Conv2d(_Convolution):
    """Windows of images [N, H, W, C] times weight, plus bias."""

    _rank = 2

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[Any, ...],
        stride: int | tuple[Any, ...] = 1,
        padding: int | tuple[Any, ...] = 0,
        dilation: int | tuple[Any, ...] = 1,
        groups: int = 1,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self._fill(in_channels, out_channels, self._per_axis(kernel_size), groups, bias)
        self.padding = self._per_axis(padding)
        self.stride = self._per_axis(stride)
        self.dilation = dilation
        self.groups = groups

    def __call__(self, x: tk.array) -> tk.array:
        return self._biased(tk.conv2d(x, self.weight, self.stride, self.padding, self.dilation, self.groups))


class Conv3d(_Convolution):
    """Windows of volumes [N, D, H, W, C] times weight, plus bias."""

    _rank = 3

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[Any, ...],
        stride: int | tuple[Any, ...] = 1,
        padding: int | tuple[Any, ...] = 0,
        dilation: int | tuple[Any, ...] = 1,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self._fill(in_channels, out_channels, self._per_axis(kernel_size), 1, bias)
        self.padding = self._per_axis(padding)
        self.stride = self._per_axis(stride)
        self.dilation = dilation

    def __call__(self, x: tk.array) -> tk.array:
        return self._biased(tk.conv3d(x, self.weight, self.stride, self.padding, self.dilation))


class _Transposed(_Convolution):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[Any, ...],
        stride: int | tuple[Any, ...] = 1,
        padding: int | tuple[Any, ...] = 0,
        dilation: int | tuple[Any, ...] = 1,
        output_padding: int | tuple[Any, ...] = 0,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self._fill(in_channels, out_channels, self._per_axis(kernel_size), 1, bias)
        self.padding = self._per_axis(padding)
        self.dilation = dilation
        self.stride = self._per_axis(stride)
        self.output_padding = self._per_axis(output_padding)

    def __call__(self, x: tk.array) -> tk.array:
        op = (tk.conv_transpose1d, tk.conv_transpose2d, tk.conv_transpose3d)[self._rank - 1]
        placed: Any = (self.stride, self.padding, self.dilation, self.output_padding)
        return self._biased(op(x, self.weight, *placed))


class ConvTranspose1d(_Transposed):
    """weight added up where the elements of sequences [N, L, C] put it, plus bias."""


class ConvTranspose2d(_Transposed):
    """weight added up where the elements of images [N, H, W, C] put it, plus bias."""

    _rank = 2


class ConvTranspose3d(_Transposed):
    """weight added up where the elements of volumes [N, D, H, W, C] put it, plus bias."""

    _rank = 3
