"""What hypothesis draws for a call: arrays of random shape, dtype and memory order, axes, flags.

An Operand is the same array on both sides: values that every dtype of its kind holds exactly, seen through steps
(reversed, every second) and a permutation of axes. Elements come from one drawn seed, not one by one: shapes and
dtypes are what shrinking should work on. See draw_ops.py for the calls.
"""

import math

import numpy as np
from hypothesis import strategies as st

from op_values import Value, wide

KINDS = {
    "b": ["bool"],
    "u": ["uint8", "uint16", "uint32", "uint64"],
    "i": ["int8", "int16", "int32", "int64"],
    "f": ["float32", "float16", "bfloat16"],
    "F": ["float32"],
    "c": ["complex64"],
}
SIDES = [2, 3, 1, 0, 4]


class Operand:
    def __init__(self, dtype, base, steps=None, order=None):
        self.dtype, self.base, self.steps, self.order = dtype, base, steps, order

    def on(self, m):
        a = m.array(self.base).astype(getattr(m, "bool_" if self.dtype == "bool" else self.dtype))
        return a[self.steps].transpose(self.order) if self.order else a

    @property
    def data(self):
        return self.base[self.steps].transpose(self.order) if self.order else self.base

    def value(self):
        return Value(self.dtype, self.data.astype(wide(self.dtype)))

    @property
    def shape(self):
        return self.data.shape

    @property
    def rank(self):
        return self.data.ndim

    def __repr__(self):
        return f"{self.dtype}{self.shape}{'' if self.order is None else f' of {self.base.shape}{self.steps}{self.order}'}"


class Draw:
    """The random choices of one example."""

    def __init__(self, data):
        self.data = data

    def of(self, strategy):
        return self.data.draw(strategy)

    def pick(self, *choices):
        return self.of(st.sampled_from(choices))

    def flag(self):
        return self.of(st.booleans())

    def whole(self, low, high):
        return self.of(st.integers(low, high))

    def shape(self, low=0, high=4, least=0):
        rank = self.whole(low, high)
        return tuple(self.of(st.sampled_from([s for s in SIDES if s >= least])) for _ in range(rank))

    def dtype(self, kinds):
        return self.of(st.sampled_from([d for k in kinds for d in KINDS[k]]))

    def array(self, shape=None, kinds="buifc", low=-4.0, high=4.0, views=True, **sizes):
        """Multiples of 1/8, whole numbers or truth values from low to high."""
        shape = self.shape(**sizes) if shape is None else tuple(shape)
        dtype = kinds if kinds in np.sctypeDict or kinds == "bfloat16" else self.dtype(kinds)
        steps = order = None
        whole = shape
        if views and shape and self.flag():
            by = [self.of(st.sampled_from([1, -1, 2, -2])) for _ in shape]
            order = self.of(st.permutations(range(len(shape))))
            whole = [0] * len(shape)
            for at, axis in enumerate(order):
                whole[axis] = shape[at] * abs(by[axis])
            steps = tuple(slice(None, None, step) for step in by)
            order = tuple(order)
        return Operand(dtype, self.elements(tuple(whole), dtype, low, high), steps, order)

    def elements(self, shape, dtype, low, high):
        random = np.random.default_rng(self.whole(0, 2**20))
        if dtype == "bool":
            return random.integers(0, 2, shape).astype(bool)
        if "int" in dtype:
            low = max(low, 0) if dtype.startswith("u") else low
            return random.integers(math.ceil(low), math.floor(high) + 1, shape).astype(dtype)
        reals = random.integers(math.ceil(8 * low), math.floor(8 * high) + 1, shape) / 8
        if dtype == "complex64":
            return (reals + 1j * random.integers(-16, 17, shape) / 8).astype(np.complex64)
        return reals.astype(np.float32)

    def axis(self, rank, none=False):
        """In range as a rule; None where it may be."""
        choices = list(range(-rank, rank)) or [0]
        return self.of(st.sampled_from(([None] if none else []) + choices))

    def axes(self, rank):
        """None, one, or several different ones."""
        kind = self.whole(0, 3)
        if kind == 0 or rank == 0:
            return None
        if kind == 1:
            return self.axis(rank)
        some = self.of(st.lists(st.integers(0, rank - 1), unique=True, min_size=1, max_size=rank))
        return tuple(a - rank if self.flag() else a for a in some)

    def narrower(self, shape):
        """A shape that broadcasts to this one."""
        shape = tuple(1 if self.whole(0, 3) == 0 else n for n in shape)
        return shape[self.whole(0, len(shape)):] if self.flag() else shape
