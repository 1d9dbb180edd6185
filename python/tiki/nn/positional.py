"""Positions: rotary, sinusoidal, and linear biases of attention."""

from typing import Any

import math

import tiki as tk
from tiki.nn.module import Module


class RoPE(Module):
    """Rotary positions (Su et al. 2021)."""

    def __init__(self, dims: int, traditional: bool = False, base: float = 10000, scale: float = 1.0) -> None:
        super().__init__()
        self.dims = dims
        self.traditional = traditional
        self.base = base
        self.scale = scale

    def _extra_repr(self) -> str:
        return f"{self.dims}, traditional={self.traditional}"

    def __call__(self, x: tk.array, offset: int = 0) -> tk.array:
        return tk.fast.rope(
            x, self.dims, traditional=self.traditional, base=self.base, scale=self.scale, offset=offset
        )


class SinusoidalPositionalEncoding(Module):
    """Sines and cosines of positions at frequencies in a geometric series (Vaswani et al. 2017)."""

    def __init__(
        self,
        dims: int,
        min_freq: float = 0.0001,
        max_freq: float = 1,
        scale: float | None = None,
        cos_first: bool = False,
        full_turns: bool = False,
    ) -> None:
        super().__init__()
        if dims <= 0 or dims % 2 != 0:
            raise ValueError(f"dims is {dims}, expected a positive even number")
        count = dims // 2
        down = tk.array([1.0]) if count == 1 else 1 - tk.arange(0, count) / (count - 1)
        low, high = math.log(min_freq), math.log(max_freq)
        frequencies = tk.exp(down * (high - low) + low)
        self._sigmas = frequencies * (2 * math.pi) if full_turns else frequencies
        self.scale = (2 / dims) ** 0.5 if scale is None else scale
        self.cos_first = cos_first

    def __call__(self, x: tk.array) -> tk.array:
        angles = x[..., None] * self._sigmas
        parts = [tk.cos(angles), tk.sin(angles)]
        y = tk.concatenate(parts if self.cos_first else parts[::-1], axis=-1)
        return y * self.scale if self.scale != 1 else y


class ALiBi(Module):
    """Attention scores lowered by distance, with a slope for each head (Press et al. 2022)."""

    @staticmethod
    def create_alibi_slope(num_heads: int, dtype: tk.Dtype = tk.float32) -> tk.array:
        """Slopes [heads, 1, 1]: powers of 2^(-8 / n), every other one of twice as many beyond a power of 2."""

        def powers(count: int) -> list[Any]:
            first = 2 ** (-8 / count)
            return [first ** (i + 1) for i in range(count)]

        whole = 2 ** math.floor(math.log2(num_heads))
        slopes = powers(whole) + powers(2 * whole)[::2][: num_heads - whole]
        return tk.array(slopes, dtype=dtype).reshape(num_heads, 1, 1)

    @staticmethod
    def create_alibi_matrix(
        q_sequence_length: int, k_sequence_length: int, num_heads: int, offset: int = 0, dtype: tk.Dtype = tk.float32
    ) -> tk.array:
        """What is added to scores: [1, heads, queries, keys]."""
        queries = tk.arange(offset, q_sequence_length)[:, None]
        keys = tk.arange(0, k_sequence_length)[None, :]
        distances = -tk.abs(queries - keys)[None, None]
        return (distances * ALiBi.create_alibi_slope(num_heads, dtype)).astype(dtype)

    def __call__(self, attention_scores: tk.array, offset: int = 0, mask: tk.array | None = None) -> tk.array:
        _, heads, queries, keys = attention_scores.shape
        bias = self.create_alibi_matrix(queries + offset, keys, heads, offset, attention_scores.dtype)
        return attention_scores + (bias if mask is None else bias + mask)
