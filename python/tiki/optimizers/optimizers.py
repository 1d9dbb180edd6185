"""Optimizers: what holds the state and walks trees. The update rules are the C library's.

The state is a tree of the parameters' form with a dictionary of arrays in the place of each, beside
"step" and "learning_rate"; it may be read, replaced, saved, and be an input and output of a compiled
function. A step hands all parameters to C in one call. A subclass that defines `apply_single` is
called for each parameter instead.
"""

from typing import Any, Callable

import tiki as tk
from tiki import _core
from tiki.nn import Module
from tiki.utils import tree_flatten, tree_map, tree_map_with_path, tree_merge, tree_unflatten


def _fitted(parameters: Any, state: Any) -> Any:
    """The state with a dictionary for each parameter; those that it has are kept."""
    if isinstance(parameters, dict):
        state = {} if state is None else state
        for key, below in parameters.items():
            state[key] = _fitted(below, state.get(key))
        return state
    if isinstance(parameters, (list, tuple)):
        old = list(state or [])
        old += [None] * (len(parameters) - len(old))
        children = [_fitted(below, own) for below, own in zip(parameters, old)]
        return type(parameters)(*children) if hasattr(parameters, "_fields") else type(parameters)(children)
    return {} if state is None else state


class Optimizer:
    """The base of optimizers. `schedulers` maps names in the state to functions of the step."""

    def __init__(self, schedulers: dict[str, Any] | None = None) -> None:
        self._initialized = False
        self._state: Any = {"step": tk.array(0, tk.uint64)}
        self._schedulers = dict(schedulers or {})

    def update(self, model: Module, gradients: dict[str, Any]) -> None:
        """Replace the model's parameters by the next ones."""
        model.update(self.apply_gradients(gradients, model))

    def init(self, parameters: dict[str, Any]) -> None:
        """Make the states of parameters that have none yet."""
        _fitted(parameters, self._state)

        def start(parameter: tk.array, state: dict[str, Any]) -> None:
            if not state:
                self.init_single(parameter, state)

        tree_map(start, parameters, self._state)
        self._initialized = True

    def init_single(self, parameter: tk.array, state: dict[str, Any]) -> None:
        """Put a parameter's first states into `state`."""
        raise NotImplementedError(f"{type(self).__name__} does not define init_single")

    def apply_single(self, gradient: tk.array, parameter: tk.array, state: dict[str, Any]) -> tk.array:
        """The next value of a parameter; `state` gets its next states."""
        raise NotImplementedError(f"{type(self).__name__} does not define apply_single")

    def apply_gradients(self, gradients: dict[str, Any], parameters: dict[str, Any]) -> dict[str, Any]:
        """The next values of the parameters that have gradients, as a tree."""
        if not self._initialized:
            self.init(gradients)
        for name, schedule in self._schedulers.items():
            self.state[name] = schedule(self.step)
        before = self.step
        self.state["step"] = before + 1
        return self._apply_tree(gradients, parameters, before)

    def _apply_tree(self, gradients: dict[str, Any], parameters: dict[str, Any], before: tk.array) -> dict[str, Any]:
        return tree_map(self.apply_single, gradients, parameters, self.state)

    @property
    def state(self) -> Any:
        """The state's tree."""
        return self._state

    @state.setter
    def state(self, state: Any) -> None:
        self._initialized = False
        self._state = state

    @property
    def step(self) -> tk.array:
        """Steps done so far."""
        return self.state["step"]

    @property
    def learning_rate(self) -> tk.array:
        """The learning rate of the next step, or of the last one where it follows a schedule."""
        return self.state["learning_rate"]

    @learning_rate.setter
    def learning_rate(self, learning_rate: Any) -> None:
        self.state["learning_rate"] = tk.array(learning_rate)

    def _maybe_schedule(self, name: str, value: Any) -> None:
        """Keep a number in the state, or a function of the step as its schedule."""
        if callable(value):
            self._schedulers[name] = value
            self.state[name] = value(self.step)
        else:
            self.state[name] = tk.array(value)


class _Rule(Optimizer):
    """An optimizer whose rule is in C. `_options` names what the rule is told."""

    _kind = ""

    def __init__(self, learning_rate: Any) -> None:
        super().__init__()
        if learning_rate is not None:
            self._maybe_schedule("learning_rate", learning_rate)

    def _options(self) -> dict[str, Any]:
        raise NotImplementedError

    def init_single(self, parameter: tk.array, state: dict[str, Any]) -> None:
        _core._optimizer_init(self._kind, self._options(), parameter, state)

    def _step(self, before: tk.array, names: list[Any], parameters: list[Any], gradients: list[Any], states: list[Any]) -> list[Any]:
        rate = self.state.get("learning_rate")
        rate = rate if isinstance(rate, tk.array) else tk.array(0.0 if rate is None else rate, tk.float32)
        return _core._optimizer_step(
            self._kind, self._options(), before, rate, names, parameters, gradients, states
        )

    def apply_single(self, gradient: tk.array, parameter: tk.array, state: dict[str, Any]) -> tk.array:
        return self._step(self.step - 1, ["parameter"], [parameter], [gradient], [state])[0]

    def _apply_tree(self, gradients: dict[str, Any], parameters: dict[str, Any], before: tk.array) -> dict[str, Any]:
        if type(self).apply_single is not _Rule.apply_single:
            return super()._apply_tree(gradients, parameters, before)
        leaves: list[Any] = []
        tree_map_with_path(lambda *leaf: leaves.append(leaf), gradients, parameters, self.state)
        if not leaves:
            return tree_map(lambda g: g, gradients)
        names, given, current, states = map(list, zip(*leaves))
        names = [name or "parameter" for name in names]
        following = iter(self._step(before, names, current, given, states))
        return tree_map(lambda _: next(following), gradients)


def _check_least(name: str, value: float, least: float, may_equal: bool) -> None:
    if value > least or (may_equal and value == least):
        return
    raise ValueError(f"{name} is {value}, expected {'at least' if may_equal else 'more than'} {least}")


def _check_betas(betas: Any) -> None:
    for i, beta in enumerate(betas):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"betas[{i}] is {beta}, expected one in [0, 1)")


class SGD(_Rule):
    """Gradient descent with momentum, Nesterov's if asked for (Sutskever et al. 2013)."""

    _kind = "sgd"

    def __init__(
        self,
        learning_rate: float | Callable[..., Any],
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        dampening: float = 0.0,
        nesterov: bool = False,
    ) -> None:
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("nesterov needs a momentum above 0 and no dampening")
        super().__init__(learning_rate)
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.dampening = dampening
        self.nesterov = nesterov

    def _options(self) -> dict[str, Any]:
        return {
            "momentum": self.momentum,
            "weight_decay": self.weight_decay,
            "dampening": self.dampening,
            "nesterov": self.nesterov,
        }

    def init_single(self, parameter: tk.array, state: dict[str, Any]) -> None:
        # Kept without momentum too, so that a momentum may be set later.
        state["v"] = tk.zeros_like(parameter)


class RMSprop(_Rule):
    """Gradients over the root of their running mean square (Hinton 2012)."""

    _kind = "rmsprop"

    def __init__(self, learning_rate: float | Callable[..., Any], alpha: float = 0.99, eps: float = 1e-8) -> None:
        super().__init__(learning_rate)
        _check_least("alpha", alpha, 0, True)
        _check_least("eps", eps, 0, False)
        self.alpha = alpha
        self.eps = eps

    def _options(self) -> dict[str, Any]:
        return {"decay": self.alpha, "epsilon": self.eps}


class Adagrad(_Rule):
    """Gradients over the root of the sum of their squares (Duchi et al. 2011)."""

    _kind = "adagrad"

    def __init__(self, learning_rate: float | Callable[..., Any], eps: float = 1e-8) -> None:
        super().__init__(learning_rate)
        _check_least("eps", eps, 0, False)
        self.eps = eps

    def _options(self) -> dict[str, Any]:
        return {"epsilon": self.eps}


class AdaDelta(_Rule):
    """Adagrad with running means, scaled by earlier updates (Zeiler 2012)."""

    _kind = "adadelta"

    def __init__(self, learning_rate: float | Callable[..., Any], rho: float = 0.9, eps: float = 1e-6) -> None:
        super().__init__(learning_rate)
        _check_least("rho", rho, 0, True)
        _check_least("eps", eps, 0, False)
        self.rho = rho
        self.eps = eps

    def _options(self) -> dict[str, Any]:
        return {"decay": self.rho, "epsilon": self.eps}


class Adam(_Rule):
    """Running means of gradients and of their squares (Kingma and Ba 2015)."""

    _kind = "adam"

    def __init__(
        self,
        learning_rate: float | Callable[..., Any],
        betas: list[float] = [0.9, 0.999],
        eps: float = 1e-8,
        bias_correction: bool = False,
    ) -> None:
        _check_betas(betas)
        _check_least("eps", eps, 0, True)
        super().__init__(learning_rate)
        self.betas = betas
        self.eps = eps
        self.bias_correction = bias_correction

    def _options(self) -> dict[str, Any]:
        return {
            "beta1": self.betas[0],
            "beta2": self.betas[1],
            "epsilon": self.eps,
            "bias_correction": self.bias_correction,
        }


class AdamW(Adam):
    """Adam with weight decay apart from the gradient (Loshchilov and Hutter 2019)."""

    _kind = "adamw"

    def __init__(
        self,
        learning_rate: float | Callable[..., Any],
        betas: list[float] = [0.9, 0.999],
        eps: float = 1e-8,
        weight_decay: float = 0.01,
        bias_correction: bool = False,
    ) -> None:
        super().__init__(learning_rate, betas, eps, bias_correction)
        self.weight_decay = weight_decay

    def _options(self) -> dict[str, Any]:
        return {**super()._options(), "weight_decay": self.weight_decay}


class Adamax(Adam):
    """Adam with the largest gradient in the place of the mean square (Kingma and Ba 2015)."""

    _kind = "adamax"

    def __init__(self, learning_rate: float | Callable[..., Any], betas: list[float] = [0.9, 0.999], eps: float = 1e-8) -> None:
        super().__init__(learning_rate, betas, eps)


class Lion(_Rule):
    """The sign of a running mean (Chen et al. 2023)."""

    _kind = "lion"

    def __init__(self, learning_rate: float | Callable[..., Any], betas: list[float] = [0.9, 0.99], weight_decay: float = 0.0) -> None:
        _check_betas(betas)
        super().__init__(learning_rate)
        self.betas = betas
        self.weight_decay = weight_decay

    def _options(self) -> dict[str, Any]:
        return {"beta1": self.betas[0], "beta2": self.betas[1], "weight_decay": self.weight_decay}


class Adafactor(_Rule):
    """Mean squares of matrices by their rows and columns (Shazeer and Stern 2018)."""

    _kind = "adafactor"

    def __init__(
        self,
        learning_rate: float | Callable[..., Any] | None = None,
        eps: tuple[float, float] = (1e-30, 1e-3),
        clip_threshold: float = 1.0,
        decay_rate: float = -0.8,
        beta_1: float | None = None,
        weight_decay: float = 0.0,
        scale_parameter: bool = True,
        relative_step: bool = True,
        warmup_init: bool = False,
    ) -> None:
        super().__init__(learning_rate)
        self.eps = eps
        self.clip_threshold = clip_threshold
        self.decay_rate = decay_rate
        self.beta_1 = beta_1
        self.weight_decay = weight_decay
        self.scale_parameter = scale_parameter
        self.relative_step = relative_step
        self.warmup_init = warmup_init

    def _options(self) -> dict[str, Any]:
        return {
            "epsilon_square": self.eps[0],
            "epsilon_scale": self.eps[1],
            "clip_threshold": self.clip_threshold,
            "decay": self.decay_rate,
            "beta1": 0.0 if self.beta_1 is None else self.beta_1,
            "weight_decay": self.weight_decay,
            "scale_parameter": self.scale_parameter,
            "relative_step": self.relative_step,
            "warmup_init": self.warmup_init,
        }


class Muon(_Rule):
    """Updates of matrices made orthogonal by Newton-Schulz iterations (Jordan 2024)."""

    _kind = "muon"

    def __init__(
        self,
        learning_rate: float | Callable[..., Any],
        momentum: float = 0.95,
        weight_decay: float = 0.01,
        nesterov: bool = True,
        ns_steps: int = 5,
    ) -> None:
        super().__init__(learning_rate)
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.nesterov = nesterov
        self.ns_steps = ns_steps

    def _options(self) -> dict[str, Any]:
        return {
            "momentum": self.momentum,
            "weight_decay": self.weight_decay,
            "nesterov": self.nesterov,
            "newton_steps": self.ns_steps,
        }


class MultiOptimizer(Optimizer):
    """Several optimizers: each parameter belongs to the first whose filter takes its name and gradient,
    or to the last optimizer, which has no filter."""

    def __init__(self, optimizers: list[Any], filters: list[Any] = []) -> None:
        super().__init__()
        if len(filters) != len(optimizers) - 1:
            raise ValueError(f"{len(optimizers)} optimizers need {len(optimizers) - 1} filters, not {len(filters)}")
        self.optimizers = optimizers
        self.filters = [*filters, lambda *_: True]

    def _parts(self, gradients: dict[str, Any]) -> list[Any]:
        """The tree's part of each optimizer."""
        if len(self.optimizers) == 1:
            return [gradients]
        parts: list[Any] = [[] for _ in self.optimizers]
        for name, gradient in tree_flatten(gradients):
            first = next(i for i, takes in enumerate(self.filters) if takes(name, gradient))
            parts[first].append((name, gradient))
        return [tree_unflatten(part) if part else {} for part in parts]

    def init(self, parameters: dict[str, Any]) -> None:
        for optimizer, part in zip(self.optimizers, self._parts(parameters)):
            optimizer.init(part)

    def apply_gradients(self, gradients: dict[str, Any], parameters: dict[str, Any]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for optimizer, part in zip(self.optimizers, self._parts(gradients)):
            result = tree_merge(result, optimizer.apply_gradients(part, parameters))
        return result

    @property
    def state(self) -> dict[str, Any]:
        """The states of all optimizers."""
        return {"states": [optimizer.state for optimizer in self.optimizers]}

    @state.setter
    def state(self, state: dict[str, Any]) -> None:
        states = state.get("states", ())
        if len(states) != len(self.optimizers):
            raise ValueError(f"a state of {len(states)} optimizers was given, expected {len(self.optimizers)}")
        for optimizer, own in zip(self.optimizers, states):
            optimizer.state = own

    @property
    def learning_rate(self) -> tk.array:
        """The first optimizer's learning rate; setting it sets that of all."""
        return self.optimizers[0].learning_rate

    @learning_rate.setter
    def learning_rate(self, learning_rate: Any) -> None:
        for optimizer in self.optimizers:
            optimizer.learning_rate = learning_rate


def clip_grad_norm(grads: Any, max_norm: float) -> tuple[Any, tk.array]:
    """Gradients scaled so that their norm, all together, is at most max_norm; and their norm before."""
    flat = [gradient for _, gradient in tree_flatten(grads)]
    clipped, norm = _core._clip_global_norm(flat, max_norm)
    following = iter(clipped)
    return tree_map(lambda _: next(following), grads), norm
