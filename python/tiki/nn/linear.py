"""Layers that are products: linear, bilinear, embedding; and the identity."""

import math
from typing import Any, Optional

import tiki as tk
from tiki import _core
from tiki.nn.module import Module

_linear = _core._nn.linear
_embedding = _core._nn.embedding


def uniform_within(limit: float, *shape: int) -> tk.array:
    """Uniform values in [-limit, limit)."""
    return tk.random.uniform(low=-limit, high=limit, shape=shape)


class Identity(Module):
    """Gives its input back; arguments are ignored."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def __call__(self, x: tk.array) -> tk.array:
        return x


class Linear(Module):
    """x weight' + bias."""

    def __init__(self, input_dims: int, output_dims: int, bias: bool = True) -> None:
        super().__init__()
        limit = math.sqrt(1.0 / input_dims)
        self.weight = uniform_within(limit, output_dims, input_dims)
        if bias:
            self.bias = uniform_within(limit, output_dims)

    def _extra_repr(self) -> str:
        outputs, inputs = self.weight.shape
        return f"input_dims={inputs}, output_dims={outputs}, bias={'bias' in self}"

    def __call__(self, x: tk.array) -> tk.array:
        return _linear(x, self["weight"], self.get("bias"))

    def to_quantized(
        self,
        group_size: Optional[int] = None,
        bits: Optional[int] = None,
        mode: str = "affine",
        quantize_input: bool = False,
    ) -> Module:
        """The layer with a quantised weight, or with a quantised input as well."""
        from tiki.nn.quantized import QQLinear, QuantizedLinear

        if not quantize_input:
            return QuantizedLinear.from_linear(self, group_size, bits, mode)
        if mode not in ("nvfp4", "mxfp8"):
            raise ValueError(f"quantize_input: mode is '{mode}', expected nvfp4 or mxfp8")
        return QQLinear.from_linear(self, group_size, bits, mode)


class Bilinear(Module):
    """x1 weight[o] x2' + bias[o] for each output o."""

    def __init__(self, input1_dims: int, input2_dims: int, output_dims: int, bias: bool = True) -> None:
        super().__init__()
        limit = math.sqrt(1.0 / input1_dims)
        self.weight = uniform_within(limit, output_dims, input2_dims, input1_dims)
        if bias:
            self.bias = uniform_within(limit, output_dims)

    def _extra_repr(self) -> str:
        outputs, second, first = self.weight.shape
        return f"input1_dims={first}, input2_dims={second}, output_dims={outputs}, bias={'bias' in self}"

    def __call__(self, x1: tk.array, x2: tk.array) -> tk.array:
        outputs, second, first = self.weight.shape
        rows = x1.shape[:-1]
        along_first = x1.reshape(-1, first) @ self.weight.reshape(outputs * second, first).T
        by_output = along_first.reshape(-1, outputs, second).swapaxes(-2, -1)
        y = (x2.reshape(-1, 1, second) @ by_output).reshape(*rows, outputs)
        return y + self.bias if "bias" in self else y


class Embedding(Module):
    """Rows of a matrix, looked up by integers."""

    def __init__(self, num_embeddings: int, dims: int) -> None:
        super().__init__()
        self.weight = tk.random.normal(shape=(num_embeddings, dims), scale=math.sqrt(1 / dims))

    def _extra_repr(self) -> str:
        return f"{self.weight.shape[0]}, {self.weight.shape[1]}"

    def __call__(self, x: tk.array) -> tk.array:
        return _embedding(self["weight"], x)

    def as_linear(self, x: tk.array) -> tk.array:
        """x weight': the embedding as the output layer of a language model."""
        return _linear(x, self["weight"])

    def to_quantized(
        self,
        group_size: Optional[int] = None,
        bits: Optional[int] = None,
        mode: str = "affine",
        quantize_input: bool = False,
    ) -> Module:
        """The layer with a quantised weight."""
        from tiki.nn.quantized import QuantizedEmbedding

        if quantize_input:
            raise ValueError("quantize_input: an embedding has no input to quantise")
        return QuantizedEmbedding.from_embedding(self, group_size, bits, mode)
