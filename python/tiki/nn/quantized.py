"""Layers with quantised weights: codes, scales and biases in place of a matrix (see `tiki.quantize`)."""

import math
from typing import Any, Callable, Optional, Union

import tiki as tk
from tiki.nn.linear import uniform_within
from tiki.nn.module import Module
from tiki.utils import tree_map_with_path

_DEFAULTS = {"affine": (64, 4), "mxfp4": (32, 4), "mxfp8": (32, 8), "nvfp4": (16, 4)}


class _Coded(Module):
    """What layers with codes share: the format, and how a matrix becomes parameters."""

    def __init__(self, mode: str, group_size: Optional[int], bits: Optional[int]) -> None:
        super().__init__()
        if mode not in _DEFAULTS:
            raise ValueError(f"mode is '{mode}', expected one of {', '.join(_DEFAULTS)}")
        size, width = _DEFAULTS[mode]
        self.group_size = group_size or size
        self.bits = bits or width
        self.mode = mode

    def _format(self) -> dict[str, Any]:
        return {"group_size": self.group_size, "bits": self.bits, "mode": self.mode}

    def _take(self, weight: tk.array) -> None:
        parts = tk.quantize(weight, **self._format())
        self.weight, self.scales = parts[:2]
        self.biases = parts[2] if len(parts) > 2 else None

    def _columns(self) -> int:
        width = self.weight.shape[-1]
        return width * 32 // self.bits if self.weight.dtype == tk.uint32 else width

    def _describe(self) -> str:
        return f"group_size={self.group_size}, bits={self.bits}, mode={self.mode}"

    def _times(self, x: tk.array) -> tk.array:
        return tk.quantized_matmul(x, self["weight"], self["scales"], self.get("biases"), **self._format())


class QuantizedEmbedding(_Coded):
    """An embedding with codes for a matrix; its parameters are frozen."""

    def __init__(
        self,
        num_embeddings: int,
        dims: int,
        group_size: Optional[int] = None,
        bits: Optional[int] = None,
        mode: str = "affine",
    ) -> None:
        super().__init__(mode, group_size, bits)
        self._take(tk.random.normal(shape=(num_embeddings, dims), scale=math.sqrt(1 / dims)))
        self.num_embeddings = num_embeddings
        self.dims = dims
        self.freeze()

    def _extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.dims}, {self._describe()}"

    def __call__(self, x: tk.array) -> tk.array:
        biases = self.get("biases")
        rows = biases[x] if biases is not None else None
        return tk.dequantize(self["weight"][x], self["scales"][x], rows, **self._format())

    def as_linear(self, x: tk.array) -> tk.array:
        """x weight': the embedding as the output layer of a language model."""
        return self._times(x)

    @classmethod
    def from_embedding(
        cls,
        embedding_layer: Module,
        group_size: Optional[int] = None,
        bits: Optional[int] = None,
        mode: str = "affine",
    ) -> "QuantizedEmbedding":
        """The layer with the codes of an Embedding's weight."""
        count, dims = embedding_layer.weight.shape
        layer = cls(count, dims, group_size, bits, mode)
        layer._take(embedding_layer.weight)
        return layer


class QuantizedLinear(_Coded):
    """A linear layer with codes for a matrix; its parameters are frozen."""

    def __init__(
        self,
        input_dims: int,
        output_dims: int,
        bias: bool = True,
        group_size: Optional[int] = None,
        bits: Optional[int] = None,
        mode: str = "affine",
    ) -> None:
        super().__init__(mode, group_size, bits)
        self._take(uniform_within(math.sqrt(1 / input_dims), output_dims, input_dims))
        if bias:
            self.bias = tk.zeros((output_dims,))
        self.freeze()

    def _extra_repr(self) -> str:
        rows = self.weight.shape[0]
        return f"input_dims={self._columns()}, output_dims={rows}, bias={'bias' in self}, {self._describe()}"

    def __call__(self, x: tk.array) -> tk.array:
        y = self._times(x)
        return y + self["bias"] if "bias" in self else y

    @classmethod
    def from_linear(
        cls,
        linear_layer: Module,
        group_size: Optional[int] = None,
        bits: Optional[int] = None,
        mode: str = "affine",
    ) -> "QuantizedLinear":
        """The layer with the codes of a Linear's weight, and its bias."""
        rows, columns = linear_layer.weight.shape
        layer = cls(columns, rows, False, group_size, bits, mode)
        layer._take(linear_layer.weight)
        if "bias" in linear_layer:
            layer.bias = linear_layer.bias
        return layer


class QQLinear(_Coded):
    """A linear layer that quantises its input too; without a bias.

    In training the weight is kept as it is and goes through its codes in each call, so it has
    gradients. `eval()` keeps the codes only, and `train()` makes a weight of them again.
    """

    def __init__(
        self,
        input_dims: int,
        output_dims: int,
        group_size: Optional[int] = None,
        bits: Optional[int] = None,
        mode: str = "nvfp4",
    ) -> None:
        super().__init__(mode, group_size, bits)
        self.weight = uniform_within(math.sqrt(1 / input_dims), output_dims, input_dims)
        self._quantized = False

    def _extra_repr(self) -> str:
        return f"input_dims={self._columns()}, output_dims={self.weight.shape[0]}, {self._describe()}"

    def quantize(self) -> None:
        """Keep the codes of the weight in its place."""
        if not self._quantized:
            self.weight, self.scales = tk.quantize(self.weight, **self._format())
            self._quantized = True

    def dequantize(self) -> None:
        """Make a weight of the codes."""
        if self._quantized:
            self.weight = tk.dequantize(self.weight, self.scales, **self._format())
            del self.scales
            self._quantized = False

    def _set_training_mode(self, mode: bool) -> None:
        super()._set_training_mode(mode)
        if mode:
            self.dequantize()
        else:
            self.quantize()

    def __call__(self, x: tk.array) -> tk.array:
        return tk.qqmm(x, self["weight"], self.get("scales"), **self._format())

    @classmethod
    def from_linear(
        cls,
        linear_layer: Module,
        group_size: Optional[int] = None,
        bits: Optional[int] = None,
        mode: str = "nvfp4",
    ) -> "QQLinear":
        """The layer with a Linear's weight, which must have no bias."""
        if linear_layer.get("bias") is not None:
            raise NotImplementedError("QQLinear has no bias, and the linear layer has one")
        rows, columns = linear_layer.weight.shape
        layer = cls(columns, rows, group_size, bits, mode)
        layer.weight = linear_layer.weight
        layer.train(linear_layer.training)
        return layer


def quantize(
    model: Module,
    group_size: Optional[int] = None,
    bits: Optional[int] = None,
    *,
    mode: str = "affine",
    quantize_input: bool = False,
    class_predicate: Optional[Callable[[str, Module], Union[bool, dict[str, Any]]]] = None,
) -> None:
    """Replace the layers of a model that have `to_quantized`, in place.

    `class_predicate(path, module)` picks them: true, false, or the arguments for `to_quantized`.
    """

    def replaced(path: str, layer: Module) -> Module:
        chosen = class_predicate(path, layer) if class_predicate else hasattr(layer, "to_quantized")
        if not chosen:
            return layer
        if not hasattr(layer, "to_quantized"):
            raise ValueError(f"{path}: a layer of {type(layer)} cannot be quantised")
        if isinstance(chosen, bool):
            chosen = {"group_size": group_size, "bits": bits, "mode": mode, "quantize_input": quantize_input}
        elif not isinstance(chosen, dict):
            raise ValueError(f"class_predicate gave {chosen!r} for {path}, expected a bool or a dictionary")
        return layer.to_quantized(**{k: v for k, v in chosen.items() if k != "quantize_input" or v})

    model.update_modules(tree_map_with_path(replaced, model.leaf_modules(), is_leaf=Module.is_module))
