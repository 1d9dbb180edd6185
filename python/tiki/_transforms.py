"""Transforms of functions: what remembers the arguments; the work is in C."""

import functools

from tiki import _core


def _positions(argnums, argnames):
    """What to differentiate for, as a list of positions and names, and whether argnums was one number."""
    names = [argnames] if isinstance(argnames, str) else list(argnames)
    if argnums is None:
        argnums = 0 if not names else ()
    single = isinstance(argnums, int)
    numbers = [argnums] if single else list(argnums)
    if len(set(numbers)) != len(numbers):
        raise ValueError(f"argnums {tuple(numbers)} has a number twice")
    if len(set(names)) != len(names):
        raise ValueError(f"argnames {names} has a name twice")
    if any(number < 0 for number in numbers):
        raise ValueError(f"argnums {tuple(numbers)} must not be negative")
    return numbers, names, single


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

    @functools.wraps(fun)
    def wrapped(*args):
        return _core._vmap(fun, in_axes, out_axes, args)

    return wrapped
