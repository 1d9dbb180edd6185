"""Functions of modules: gradients of their parameters, recomputation, averages over processes."""

from functools import wraps
from typing import Any, Callable, ParamSpec, TypeVar

import tiki as tk
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


def average_gradients(
    gradients: Any, group: Any = None, all_reduce_size: int = 32 * 1024**2, communication_stream: Any = None
) -> Any:
    """The mean of gradients over the processes of a group. There is one process: they are their mean."""
    if group is not None:
        raise NotImplementedError("average_gradients: there are no process groups yet; expected None")
    return gradients


__all__ = [
    "average_gradients",
    "checkpoint",
    "tree_flatten",
    "tree_map",
    "tree_reduce",
    "tree_unflatten",
    "value_and_grad",
]
