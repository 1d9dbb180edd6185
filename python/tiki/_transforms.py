"""Transforms of functions: what remembers the arguments; the work is in C."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from tiki import _core

_P = ParamSpec("_P")
_R = TypeVar("_R")


def _positions(argnums: Any, argnames: Any) -> tuple[list[int], list[str], bool]:
    """What to differentiate for, as a list of positions and names, and whether argnums is one number."""
    names = [argnames] if isinstance(argnames, str) else list(argnames)
    if argnums is None:
        argnums = 0 if not names else ()
    numbers = [argnums] if isinstance(argnums, int) else sorted(argnums)  # in order, as in MLX
    if len(set(numbers)) != len(numbers):
        raise ValueError(f"argnums {tuple(numbers)} has a number twice")
    if len(set(names)) != len(names):
        raise ValueError(f"argnames {names} has a name twice")
    if any(number < 0 for number in numbers):
        raise ValueError(f"argnums {tuple(numbers)} must not be negative")
    return numbers, names, len(numbers) == 1


def _arrange(gradients: list[Any], numbers: list[int], names: list[str], single: bool) -> Any:
    """As MLX gives them: one, a tuple, or a pair of those and a dictionary by name."""
    first = gradients[0] if single else tuple(gradients[: len(numbers)])
    if not names:
        return first
    return (first if numbers else None), dict(zip(names, gradients[len(numbers) :]))


def value_and_grad(
    fun: Callable[_P, _R], argnums: int | Sequence[int] | None = None, argnames: str | Sequence[str] = ()
) -> Callable[_P, tuple[_R, Any]]:
    """A function that gives the value of `fun` and its gradient."""
    numbers, names, single = _positions(argnums, argnames)
    traced: list[int | str] = [*numbers, *names]

    @functools.wraps(fun)
    def wrapped(*args: _P.args, **kwargs: _P.kwargs) -> tuple[_R, Any]:
        value, gradients = _core._value_and_grad(fun, traced, args, kwargs or None)
        return value, _arrange(gradients, numbers, names, single)

    return wrapped


def grad(
    fun: Callable[_P, _R], argnums: int | Sequence[int] | None = None, argnames: str | Sequence[str] = ()
) -> Callable[_P, Any]:
    """A function that gives the gradient of `fun`."""
    both = value_and_grad(fun, argnums, argnames)

    @functools.wraps(fun)
    def wrapped(*args: _P.args, **kwargs: _P.kwargs) -> Any:
        return both(*args, **kwargs)[1]

    return wrapped


def vjp(
    fun: Callable[..., Any], primals: Sequence[_core.array], cotangents: Sequence[_core.array]
) -> tuple[list[_core.array], list[_core.array]]:
    """Values of `fun`, and products of cotangents with its Jacobian transposed."""
    return _core._vjp(fun, tuple(primals), list(cotangents))


def jvp(
    fun: Callable[..., Any], primals: Sequence[_core.array], tangents: Sequence[_core.array]
) -> tuple[list[_core.array], list[_core.array]]:
    """Values of `fun`, and products of its Jacobian with tangents."""
    return _core._jvp(fun, tuple(primals), list(tangents))


def vmap(fun: Callable[..., _R], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., _R]:
    """A function over a batch: `fun` for every element along axes of its arguments."""

    if isinstance(in_axes, dict):
        in_axes = (in_axes,)

    @functools.wraps(fun)
    def wrapped(*args: Any) -> Any:
        return _core._vmap(fun, in_axes, out_axes, args)

    return wrapped


def checkpoint(fun: Callable[_P, _R]) -> Callable[_P, _R]:
    """`fun`, with its intermediate values computed again for the gradient instead of kept."""

    @functools.wraps(fun)
    def wrapped(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        return _core._checkpoint(fun, args, kwargs or None)

    return wrapped


class custom_function:
    """A function with derivatives or a batching rule of its own.

    `f.vjp(primals, cotangents, outputs)`, `f.jvp(primals, tangents)` and `f.vmap(inputs, axes)` are
    decorators; what is not given is derived from the function.
    """

    def __init__(self, f: Callable[..., Any]) -> None:
        self._function = f
        self._vjp: Callable[..., Any] | None = None
        self._jvp: Callable[..., Any] | None = None
        self._vmap: Callable[..., Any] | None = None
        functools.update_wrapper(self, f)

    def __call__(self, *args: Any) -> Any:
        return _core._custom(self._function, self._vjp, self._jvp, self._vmap, args)

    def vjp(self, f: Callable[..., Any]) -> "custom_function":
        """Set the reverse rule."""
        self._vjp = f
        return self

    def jvp(self, f: Callable[..., Any]) -> "custom_function":
        """Set the forward rule."""
        self._jvp = f
        return self

    def vmap(self, f: Callable[..., Any]) -> "custom_function":
        """Set the batching rule."""
        self._vmap = f
        return self


_compile_is_on = True


def disable_compile() -> None:
    """Make compiled functions call the original ones."""
    global _compile_is_on
    _compile_is_on = False


def enable_compile() -> None:
    """Undo `disable_compile`."""
    global _compile_is_on
    _compile_is_on = True


def compile(
    fun: Callable[_P, _R], inputs: Any = None, outputs: Any = None, shapeless: bool = False
) -> Callable[_P, _R]:
    """`fun`, recorded once for each form of its arguments and then replayed.

    `inputs` and `outputs` are trees of lists and dictionaries that the function reads and changes.
    A shapeless function is recorded once more when a second shape comes, for all shapes of the same
    ranks: what it derives from shapes is followed (lengths, their products, means). Where that is
    impossible each shape is recorded by itself.
    """
    recorded = _core._Compiled(fun, inputs, outputs, shapeless)

    @functools.wraps(fun)
    def wrapped(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        return recorded(*args, **kwargs) if _compile_is_on else fun(*args, **kwargs)

    return wrapped
