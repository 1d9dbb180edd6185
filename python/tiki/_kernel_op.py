"""Kernels as ops: launches in the graph, and functions of launches with derivatives of their own.

    @tk.kernel_op(hidden=1)
    def square(x):
        y, residual = tk.launch(kernel, x, tk.output(x.shape, x.dtype), tk.output(x.shape, x.dtype), x.size)
        return y, residual

    @square.vjp
    def square_vjp(primals, cotangents, outputs):
        return cotangents * outputs[1]

A rule that is not declared refuses by its name. `hidden` results at the end are residuals for the vjp.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

from tiki import _core


launch: Callable[..., Any] = _core._device["launch"]
output: Callable[..., Any] = _core._device["output"]


@contextlib.contextmanager
def _by(name: str | None) -> Iterator[None]:
    """While inside, this thread's launches are built by the target."""
    before = _core._device["target"](name)
    try:
        yield
    finally:
        _core._device["target"](before)


class kernel_op:
    """A function of launches with derivatives and a batching rule of its own.

    `hidden`: how many results at the end are residuals, which only the vjp gets. `batching`: "loop" calls the function
    for each element of a batch, "leading" calls it once on more leading axes; else `f.vmap` declares a rule. `target`: who
    builds the launches of the function and of its rules, "ptx" or "cute".
    `f.vjp(primals, cotangents, outputs)` and `f.jvp(primals, tangents)` declare the others."""

    def __init__(
        self, function: Any = None, *, hidden: int = 0, batching: str | None = None, target: str | None = None
    ) -> None:
        if batching not in (None, "loop", "leading"):
            raise ValueError(f'batching is {batching!r}, expected "loop", "leading" or None')
        if hidden < 0:
            raise ValueError(f"hidden is {hidden}, expected a number of results")
        self._hidden, self._batching, self._target = hidden, batching, target
        self._function: Any = None
        self._rules: dict[str, Any] = {}
        if function is not None:
            self._take(function)

    def _take(self, function: Any) -> None:
        self._function = function
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any) -> Any:
        if self._function is None:  # used as @kernel_op(hidden=1)
            if len(args) != 1 or not callable(args[0]):
                raise TypeError("kernel_op decorates one function")
            self._take(args[0])
            return self
        if not _core._transforming():  # nobody can ask for a rule
            return self._plain(args)
        hidden: list[Any] = []  # types of this call's residuals

        def forward(*given: Any) -> tuple[Any, ...]:
            results = self._forward(*given)
            hidden[:] = [(r.shape, r.dtype) for r in results[len(results) - self._hidden :]]
            return results

        def jvp(primals: Any, tangents: Any) -> Any:
            return self._jvp(primals, tangents, hidden)

        rules: list[Callable[..., Any]] = [forward, self._vjp, jvp, self._vmap]
        if self._target is not None:
            rules = [self._targeted(rule) for rule in rules]
        return self._visible(_core._custom(rules[0], rules[1], rules[2], rules[3], args))

    def _plain(self, args: tuple[Any, ...]) -> Any:
        if self._target is None:
            results = self._function(*args)
        else:
            with _by(self._target):
                results = self._function(*args)
        if self._hidden == 0 and not isinstance(results, (tuple, list)):
            return results
        return self._visible(self._checked(results))

    def _targeted(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        def by_target(*args: Any) -> Any:
            with _by(self._target):
                return rule(*args)

        return by_target

    def _visible(self, results: tuple[Any, ...]) -> Any:
        shown = results[: len(results) - self._hidden]
        return shown[0] if len(shown) == 1 else tuple(shown)

    def _forward(self, *args: Any) -> tuple[Any, ...]:
        return self._checked(self._function(*args))

    def _checked(self, results: Any) -> tuple[Any, ...]:
        results = tuple(results) if isinstance(results, (tuple, list)) else (results,)
        if len(results) <= self._hidden:
            raise ValueError(f"{self._name} gave {len(results)} results, {self._hidden} of them hidden")
        return results

    @property
    def _name(self) -> str:
        return str(getattr(self._function, "__name__", "a kernel op"))

    def _rule(self, rule: str, use: str) -> Callable[..., Any]:
        declared = self._rules.get(rule)
        if declared is None:
            raise NotImplementedError(f"{self._name} has no {rule}, which {use} needs: declare it with the kernel")
        return declared

    def _vjp(self, primals: Any, cotangents: Any, outputs: Any) -> Any:
        rule = self._rule("vjp", "reverse mode")
        return rule(primals, self._visible(tuple(cotangents)), outputs if len(outputs) > 1 else outputs[0])

    def _jvp(self, primals: Any, tangents: Any, hidden: list[Any]) -> Any:
        import tiki

        given = self._rule("jvp", "forward mode")(primals, tangents)
        given = tuple(given) if isinstance(given, (tuple, list)) else (given,)
        if self._hidden == 0:
            return given
        with tiki.stream(given[0].device):
            return given + tuple(tiki.zeros(shape, dtype) for shape, dtype in hidden)

    def _vmap(self, inputs: Any, axes: Any) -> Any:
        arguments = inputs if isinstance(inputs, tuple) else (inputs,)
        if "vmap" in self._rules:
            return self._rules["vmap"](inputs, axes)
        if self._batching == "leading":
            return self._forward(*arguments), 0
        if self._batching == "loop":
            return self._loop(arguments), 0
        return self._rule("vmap", "vmap")

    def _loop(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        import tiki

        each = [self._forward(*(a[i] for a in arguments)) for i in range(arguments[0].shape[0])]
        if not each:
            raise NotImplementedError(f"{self._name}: a batch of 0 elements cannot be looped over")
        return tuple(tiki.stack(list(column)) for column in zip(*each))

    def vjp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Declare the reverse rule: cotangents of the visible results, all outputs."""
        self._rules["vjp"] = rule
        return rule

    def jvp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Declare the forward rule."""
        self._rules["jvp"] = rule
        return rule

    def vmap(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Declare the batching rule: rule(inputs, axes) gives all results and their axes."""
        self._rules["vmap"] = rule
        return rule
