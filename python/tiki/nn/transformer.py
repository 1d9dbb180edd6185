"""Attention and transformers (Vaswani et al. 2017)."""

import math
from typing import Any, Callable

import tiki as tk
from tiki.nn.activations import relu
from tiki.nn.dropout import Dropout
from tiki.nn.linear import Linear
from tiki.nn.module import Module
from tiki.nn.normalization import LayerNorm
from tiki.nn.utils import checkpoint as _recomputed


class MultiHeadAttention(Module):
    """Attention of several heads between projected queries, keys and values [batch, length, dims]."""

    def __init__(
        self,
        dims: int,
        num_heads: int,
        query_input_dims: int | None = None,
        key_input_dims: int | None = None,
        value_input_dims: int | None = None,
        value_dims: int | None = None,
        value_output_dims: int | None = None,
        bias: bool = False,
    ) -> None:
        super().__init__()
        if dims % num_heads != 0:
            raise ValueError(f"{dims} features do not divide into {num_heads} heads")
        key_input_dims = key_input_dims or dims
        value_dims = value_dims or dims
        self.num_heads = num_heads
        self.query_proj = Linear(query_input_dims or dims, dims, bias=bias)
        self.key_proj = Linear(key_input_dims, dims, bias=bias)
        self.value_proj = Linear(value_input_dims or key_input_dims, value_dims, bias=bias)
        self.out_proj = Linear(value_dims, value_output_dims or dims, bias=bias)

    def _heads(self, x: tk.array) -> tk.array:
        return tk.unflatten(x, -1, (self.num_heads, -1)).transpose(0, 2, 1, 3)

    def __call__(
        self, queries: tk.array, keys: tk.array, values: tk.array, mask: tk.array | None = None
    ) -> tk.array:
        q = self._heads(self.query_proj(queries))
        k = self._heads(self.key_proj(keys))
        v = self._heads(self.value_proj(values))
        scale = math.sqrt(1 / q.shape[-1])
        y = tk.fast.scaled_dot_product_attention(q, k, v, scale=scale, mask=mask)
        return self.out_proj(y.transpose(0, 2, 1, 3).flatten(-2, -1))

    @staticmethod
    def create_additive_causal_mask(N: int, dtype: tk.Dtype = tk.float32) -> tk.array:
        """0 where a position may look, the least number of the dtype where it may not."""
        positions = tk.arange(N)
        return (positions[:, None] < positions[None]).astype(dtype) * tk.finfo(dtype).min


class _Layer(Module):
    """The part of encoder and decoder layers that comes last: two linear layers."""

    def _feed_forward(self, x: tk.array, dropout: Module) -> tk.array:
        return self.linear2(dropout(self.activation(self.linear1(x))))

    def _around(self, x: tk.array, norm: Module, block: Callable[..., Any]) -> tk.array:
        """x + block(x), normalised before the block or after the sum."""
        return x + block(norm(x)) if self.norm_first else norm(x + block(x))


class TransformerEncoderLayer(_Layer):
    """Self-attention and a feed-forward block."""

    def __init__(
        self,
        dims: int,
        num_heads: int,
        mlp_dims: int | None = None,
        dropout: float = 0.0,
        activation: Callable[[Any], Any] = relu,
        norm_first: bool = True,
    ) -> None:
        super().__init__()
        mlp_dims = mlp_dims or dims * 4
        self.attention = MultiHeadAttention(dims, num_heads)
        self.ln1 = LayerNorm(dims)
        self.ln2 = LayerNorm(dims)
        self.linear1 = Linear(dims, mlp_dims)
        self.linear2 = Linear(mlp_dims, dims)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.activation = activation
        self.norm_first = norm_first

    def __call__(self, x: tk.array, mask: tk.array | None) -> tk.array:
        x = self._around(x, self.ln1, lambda y: self.dropout1(self.attention(y, y, y, mask)))
        return self._around(x, self.ln2, lambda y: self._feed_forward(y, self.dropout2))


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to a memory and a feed-forward block."""

    def __init__(
        self,
        dims: int,
        num_heads: int,
        mlp_dims: int | None = None,
        dropout: float = 0.0,
        activation: Callable[[Any], Any] = relu,
        norm_first: bool = True,
    ) -> None:
        super().__init__()
        mlp_dims = mlp_dims or dims * 4
        self.self_attention = MultiHeadAttention(dims, num_heads)
        self.cross_attention = MultiHeadAttention(dims, num_heads)
        self.ln1 = LayerNorm(dims)
        self.ln2 = LayerNorm(dims)
        self.ln3 = LayerNorm(dims)
        self.linear1 = Linear(dims, mlp_dims)
        self.linear2 = Linear(mlp_dims, dims)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.activation = activation
        self.norm_first = norm_first

    def __call__(
        self, x: tk.array, memory: tk.array, x_mask: tk.array | None, memory_mask: tk.array | None
    ) -> tk.array:
        def look_back(y: tk.array) -> tk.array:
            return self.dropout2(self.cross_attention(y, memory, memory, memory_mask))

        x = self._around(x, self.ln1, lambda y: self.dropout1(self.self_attention(y, y, y, x_mask)))
        x = self._around(x, self.ln2, look_back)
        return self._around(x, self.ln3, lambda y: self._feed_forward(y, self.dropout3))


class _Stack(Module):
    """Layers one after the other and a norm; where `checkpoint`, layers are recomputed in the backward pass."""

    def __init__(
        self,
        layer: Callable[..., Module],
        num_layers: int,
        dims: int,
        num_heads: int,
        mlp_dims: int | None,
        dropout: float,
        activation: Callable[[tk.array], tk.array],
        norm_first: bool,
        checkpoint: bool,
    ) -> None:
        super().__init__()
        self.layers = [layer(dims, num_heads, mlp_dims, dropout, activation, norm_first) for _ in range(num_layers)]
        self.ln = LayerNorm(dims)
        self.checkpoint = checkpoint

    def _run(self, x: tk.array, *others: Any) -> tk.array:
        for layer in self.layers:
            x = (_recomputed(layer) if self.checkpoint else layer)(x, *others)
        return self.ln(x)


class TransformerEncoder(_Stack):
    """Encoder layers and a norm."""

    def __init__(
        self,
        num_layers: int,
        dims: int,
        num_heads: int,
        mlp_dims: int | None = None,
        dropout: float = 0.0,
        activation: Callable[[Any], Any] = relu,
        norm_first: bool = True,
        checkpoint: bool = False,
    ) -> None:
        super().__init__(
            TransformerEncoderLayer,
            num_layers,
            dims,
            num_heads,
            mlp_dims,
            dropout,
            activation,
            norm_first,
            checkpoint,
        )

    def __call__(self, x: tk.array, mask: tk.array | None) -> tk.array:
        return self._run(x, mask)


class TransformerDecoder(_Stack):
    """Decoder layers and a norm."""

    def __init__(
        self,
        num_layers: int,
        dims: int,
        num_heads: int,
        mlp_dims: int | None = None,
        dropout: float = 0.0,
        activation: Callable[[Any], Any] = relu,
        norm_first: bool = True,
        checkpoint: bool = False,
    ) -> None:
        super().__init__(
            TransformerDecoderLayer,
            num_layers,
            dims,
            num_heads,
            mlp_dims,
            dropout,
            activation,
            norm_first,
            checkpoint,
        )

    def __call__(
        self, x: tk.array, memory: tk.array, x_mask: tk.array | None, memory_mask: tk.array | None
    ) -> tk.array:
        return self._run(x, memory, x_mask, memory_mask)


class Transformer(Module):
    """An encoder whose output a decoder looks at."""

    def __init__(
        self,
        dims: int = 512,
        num_heads: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        mlp_dims: int | None = None,
        dropout: float = 0.0,
        activation: Callable[[Any], Any] = relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        norm_first: bool = True,
        checkpoint: bool = False,
    ) -> None:
        super().__init__()
        shared = (dims, num_heads, mlp_dims, dropout, activation, norm_first, checkpoint)
        self.encoder = custom_encoder
        if custom_encoder is None:
            self.encoder = TransformerEncoder(num_encoder_layers, *shared)
        self.decoder = custom_decoder
        if custom_decoder is None:
            self.decoder = TransformerDecoder(num_decoder_layers, *shared)

    def __call__(
        self,
        src: tk.array,
        tgt: tk.array,
        src_mask: tk.array | None,
        tgt_mask: tk.array | None,
        memory_mask: tk.array | None,
    ) -> tk.array:
        return self.decoder(tgt, self.encoder(src, src_mask), tgt_mask, memory_mask)
