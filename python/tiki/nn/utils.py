"""Functions of modules: gradients of their parameters, recomputation, averages over processes."""

from functools import wraps
from typing import Any, Callable, Optional, ParamSpec, TypeVar

import tiki as tk
from tiki.distributed import Group, all_sum, init
from tiki.nn.module import Module
from tiki.utils import tree_flatten, tree_map, tree_reduce, tree_unflatten

_P = ParamSpec("_P")
_R = TypeVar("_R")


def value_and_grad(model: Module, fn: Callable[_P, _R]) -> Callable[_P, tuple[_R, Any]]:
    """A function that gives the value of `fn` and its gradient for the model's trainable parameters."""

    def of_parameters(parameters: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        model.update(parameters)
        return fn(*args, **kwargs)

    both = tk.value_and_grad(of_parameters)

    @wraps(fn)
    def wrapped(*args: _P.args, **kwargs: _P.kwargs) -> tuple[_R, Any]:
        return both(model.trainable_parameters(), *args, **kwargs)

    return wrapped


def checkpoint(module: Module, fn: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """`fn`, or the module itself, computed again in the backward pass instead of being kept."""
    function = module if fn is None else fn

    def of_parameters(parameters: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        module.update(parameters)
        return function(*args, **kwargs)

    recomputed = tk.checkpoint(of_parameters)

    @wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return recomputed(module.trainable_parameters(), *args, **kwargs)

    return wrapped


def _batches(leaves: list[tuple[str, tk.array]], size: int) -> list[list[tuple[str, tk.array]]]:
    """Gradients in their order, collected until they have `size` bytes."""
    batches: list[list[tuple[str, tk.array]]] = [[]]
    collected = 0
    for leaf in leaves:
        batches[-1].append(leaf)
        collected += leaf[1].nbytes
        if collected >= size:
            batches.append([])
            collected = 0
    return [batch for batch in batches if batch]


def average_gradients(
    gradients: Any,
    group: Optional[Group] = None,
    all_reduce_size: int = 32 * 1024**2,
    communication_stream: Any = None,
) -> Any:
    """The mean of gradients over the members of a group; small ones travel together, up to a size in bytes."""
    members = group or init()
    if members.size() == 1:
        return gradients

    def mean(gradient: tk.array) -> tk.array:
        return all_sum(gradient, group=members, stream=communication_stream) / members.size()

    leaves = tree_flatten(gradients)
    if all_reduce_size <= 0 or len({gradient.dtype.name for _, gradient in leaves}) != 1:
        return tree_map(mean, gradients)
    averaged = []
    for batch in _batches(leaves, all_reduce_size):
        sizes = [gradient.size for _, gradient in batch]
        joined = mean(tk.concatenate([gradient.reshape(-1) for _, gradient in batch]))
        parts = tk.split(joined, [sum(sizes[: i + 1]) for i in range(len(sizes) - 1)])
        averaged += [(name, part.reshape(gradient.shape)) for (name, gradient), part in zip(batch, parts)]
    return tree_unflatten(averaged)


def clip_grad_norm_sharded(
    gradients: Any, max_norm: float, group: Optional[Group] = None
) -> tuple[Any, tk.array]:
    """As `tiki.optimizers.clip_grad_norm` for gradients of which each member of a group has a part."""
    local = tree_reduce(lambda total, gradient: total + gradient.square().sum(), gradients, 0.0)
    norm = tk.sqrt(all_sum(local, group=group))
    factor = tk.minimum(max_norm / (norm + 1e-6), 1.0)
    return tree_map(lambda gradient: gradient * factor, gradients), norm


__all__ = [
    "average_gradients",
    "checkpoint",
    "clip_grad_norm_sharded",
    "tree_flatten",
    "tree_map",
    "tree_reduce",
    "tree_unflatten",
    "value_and_grad",
]
