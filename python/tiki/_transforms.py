"""Transforms of functions: what remembers the arguments; the work is in C."""

import functools

from tiki import _core


def _positions(argnums, argnames):
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


def _arrange(gradients, numbers, names, single):
    """As MLX gives them: one, a tuple, or a pair of those and a dictionary by name."""
    first = gradients[0] if single else tuple(gradients[: len(numbers)])
    if not names:
        return first
    return (first if numbers else None), dict(zip(names, gradients[len(numbers) :]))


def value_and_grad(fun, argnums=None, argnames=()):
    """A function that gives the value of `fun` and its gradient."""
    numbers, names, single = _positions(argnums, argnames)
    traced = numbers + names

    @functools.wraps(fun)
    def wrapped(*args, **kwargs):
        value, gradients = _core._value_and_grad(fun, traced, args, kwargs or None)
        return value, _arrange(gradients, numbers, names, single)

    return wrapped


def grad(fun, argnums=None, argnames=()):
    """A function that gives the gradient of `fun`."""
    both = value_and_grad(fun, argnums, argnames)

    @functools.wraps(fun)
    def wrapped(*args, **kwargs):
        return both(*args, **kwargs)[1]

    return wrapped


def vjp(fun, primals, cotangents):
    """Values of `fun`, and products of cotangents with its Jacobian transposed."""
    return _core._vjp(fun, tuple(primals), list(cotangents))


def jvp(fun, primals, tangents):
    """Values of `fun`, and products of its Jacobian with tangents."""
    return _core._jvp(fun, tuple(primals), list(tangents))


def vmap(fun, in_axes=0, out_axes=0):
    """A function over a batch: `fun` for every element along axes of its arguments."""

    if isinstance(in_axes, dict):
        in_axes = (in_axes,)

    @functools.wraps(fun)
    def wrapped(*args):
        return _core._vmap(fun, in_axes, out_axes, args)

    return wrapped


def checkpoint(fun):
    """`fun`, with its intermediate values computed again for the gradient instead of kept."""

    @functools.wraps(fun)
    def wrapped(*args, **kwargs):
        return _core._checkpoint(fun, args, kwargs or None)

    return wrapped


class custom_function:
    """A function with derivatives or a batching rule of its own.

    `f.vjp(primals, cotangents, outputs)`, `f.jvp(primals, tangents)` and `f.vmap(inputs, axes)` are
    decorators; what is not given is derived from the function.
    """

    def __init__(self, f):
        self._function = f
        self._vjp = self._jvp = self._vmap = None
        functools.update_wrapper(self, f)

    def __call__(self, *args):
        return _core._custom(self._function, self._vjp, self._jvp, self._vmap, args)

    def vjp(self, f):
        """Set the reverse rule."""
        self._vjp = f
        return self

    def jvp(self, f):
        """Set the forward rule."""
        self._jvp = f
        return self

    def vmap(self, f):
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


def compile(fun, inputs=None, outputs=None, shapeless: bool = False):
    """`fun`, recorded once for each form of its arguments and then replayed.

    `inputs` and `outputs` are trees of lists and dictionaries that the function reads and changes.
    Every shape is recorded by itself, `shapeless` or not.
    """
    recorded = _core._Compiled(fun, inputs, outputs)

    @functools.wraps(fun)
    def wrapped(*args, **kwargs):
        return recorded(*args, **kwargs) if _compile_is_on else fun(*args, **kwargs)

    return wrapped
