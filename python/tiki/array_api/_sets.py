"""Distinct elements. NaNs are all distinct, as the standard has it."""

from typing import NamedTuple

import tiki as tk
from tiki import array


class UniqueAll(NamedTuple):
    """What `unique_all` gives."""

    values: array
    indices: array
    inverse_indices: array
    counts: array


class UniqueCounts(NamedTuple):
    """What `unique_counts` gives."""

    values: array
    counts: array


class UniqueInverse(NamedTuple):
    """What `unique_inverse` gives."""

    values: array
    inverse_indices: array


def unique_all(x: array, /) -> UniqueAll:
    """Distinct elements in order, where each is first, which each element is, how often each is there."""
    flat = x.reshape(-1)
    if flat.size == 0:
        none = tk.zeros((0,), tk.int64)
        return UniqueAll(flat, none, none.reshape(x.shape), none)
    order = tk.argsort(flat).astype(tk.int64)
    ordered = flat[order]
    begins = tk.concatenate([tk.ones((1,), tk.bool_), ordered[1:] != ordered[:-1]])
    starts: array = tk.arange(flat.size, dtype=tk.int64)[begins]
    counts = tk.diff(tk.concatenate([starts, tk.array([flat.size], tk.int64)]))
    group = tk.cumsum(begins.astype(tk.int64)) - 1
    inverse = tk.zeros((flat.size,), tk.int64)
    inverse[order] = group
    return UniqueAll(ordered[starts], order[starts], inverse.reshape(x.shape), counts)


def unique_counts(x: array, /) -> UniqueCounts:
    """Distinct elements in order, and how often each is there."""
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: array, /) -> UniqueInverse:
    """Distinct elements in order, and which of them each element is."""
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: array, /) -> array:
    """Distinct elements in order."""
    return unique_all(x).values
