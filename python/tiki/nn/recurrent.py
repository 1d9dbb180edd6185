"""Recurrent layers over sequences [..., length, features]; hidden states of all positions come out."""

import math
from typing import Any, Callable

import tiki as tk
from tiki import _core
from tiki.nn.activations import tanh
from tiki.nn.linear import uniform_within
from tiki.nn.module import Module

_linear = _core._nn.linear


class RNN(Module):
    """hidden = nonlinearity(Wxh x + Whh hidden + bias)"""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: Callable[..., Any] | None = None) -> None:
        super().__init__()
        self.nonlinearity = nonlinearity or tanh
        if not callable(self.nonlinearity):
            raise ValueError(f"nonlinearity is {nonlinearity!r}, expected a function")
        limit = 1.0 / math.sqrt(hidden_size)
        self.hidden_size = hidden_size
        self.Wxh = uniform_within(limit, hidden_size, input_size)
        self.Whh = uniform_within(limit, hidden_size, hidden_size)
        self.bias = uniform_within(limit, hidden_size) if bias else None

    def _extra_repr(self) -> str:
        return (
            f"input_dims={self.Wxh.shape[1]}, hidden_size={self.hidden_size}, "
            f"nonlinearity={self.nonlinearity}, bias={self.bias is not None}"
        )

    def __call__(self, x: tk.array, hidden: tk.array | None = None) -> tk.array:
        inputs = _linear(x, self.Wxh, self.bias)
        states = []
        for i in range(x.shape[-2]):
            now = inputs[..., i, :]
            hidden = self.nonlinearity(now if hidden is None else now + _linear(hidden, self.Whh))
            states.append(hidden)
        return tk.stack(states, axis=-2)


class GRU(Module):
    """Gated recurrent unit (Cho et al. 2014): reset and update gates, then the new state."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True) -> None:
        super().__init__()
        limit = 1.0 / math.sqrt(hidden_size)
        self.hidden_size = hidden_size
        self.Wx = uniform_within(limit, 3 * hidden_size, input_size)
        self.Wh = uniform_within(limit, 3 * hidden_size, hidden_size)
        self.b = uniform_within(limit, 3 * hidden_size) if bias else None
        self.bhn = uniform_within(limit, hidden_size) if bias else None

    def _extra_repr(self) -> str:
        return f"input_dims={self.Wx.shape[1]}, hidden_size={self.hidden_size}, bias={self.b is not None}"

    def _step(self, now: tk.array, hidden: tk.array | None) -> tk.array:
        gates, fresh = now[..., : -self.hidden_size], now[..., -self.hidden_size :]
        kept = self.bhn
        if hidden is not None:
            projected = _linear(hidden, self.Wh)
            gates = gates + projected[..., : -self.hidden_size]
            kept = projected[..., -self.hidden_size :]
            kept = kept if self.bhn is None else kept + self.bhn
        reset, update = tk.split(tk.sigmoid(gates), 2, axis=-1)
        new = tk.tanh(fresh if kept is None else fresh + reset * kept)
        return (1 - update) * new if hidden is None else (1 - update) * new + update * hidden

    def __call__(self, x: tk.array, hidden: tk.array | None = None) -> tk.array:
        inputs = _linear(x, self.Wx, self.b)
        states = []
        for i in range(x.shape[-2]):
            hidden = self._step(inputs[..., i, :], hidden)
            states.append(hidden)
        return tk.stack(states, axis=-2)


class LSTM(Module):
    """Long short-term memory (Hochreiter and Schmidhuber 1997): hidden states and cells come out."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True) -> None:
        super().__init__()
        limit = 1.0 / math.sqrt(hidden_size)
        self.hidden_size = hidden_size
        self.Wx = uniform_within(limit, 4 * hidden_size, input_size)
        self.Wh = uniform_within(limit, 4 * hidden_size, hidden_size)
        self.bias = uniform_within(limit, 4 * hidden_size) if bias else None

    def _extra_repr(self) -> str:
        return f"input_dims={self.Wx.shape[1]}, hidden_size={self.hidden_size}, bias={self.bias is not None}"

    def __call__(
        self, x: tk.array, hidden: tk.array | None = None, cell: tk.array | None = None
    ) -> tuple[tk.array, tk.array]:
        inputs = _linear(x, self.Wx, self.bias)
        states, cells = [], []
        for i in range(x.shape[-2]):
            gates = inputs[..., i, :]
            if hidden is not None:
                gates = gates + _linear(hidden, self.Wh)
            add, forget, value, show = tk.split(gates, 4, axis=-1)
            fresh = tk.sigmoid(add) * tk.tanh(value)
            cell = fresh if cell is None else tk.sigmoid(forget) * cell + fresh
            hidden = tk.sigmoid(show) * tk.tanh(cell)
            states.append(hidden)
            cells.append(cell)
        return tk.stack(states, axis=-2), tk.stack(cells, axis=-2)
