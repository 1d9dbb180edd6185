"""Modules one after the other."""

from typing import Any, Callable

from tiki.nn.module import Module


class Sequential(Module):
    """Calls modules, or functions, one after the other."""

    def __init__(self, *modules: Callable[..., Any]) -> None:
        super().__init__()
        self.layers = list(modules)

    def __call__(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x
