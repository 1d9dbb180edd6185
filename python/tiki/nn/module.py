"""The module system: a module is a dictionary of its arrays, modules and containers of them.

Arrays, dictionaries, lists and tuples that are set as attributes become items of the dictionary, all
else stays an attribute; so parameters are found by walking items, and a module is itself a tree that
transforms, optimizers and files can take. Names that begin with "_" are no parameters.
"""

import textwrap
from typing import Any, Callable

import tiki as tk
from tiki.utils import tree_flatten, tree_unflatten


class Module(dict[str, Any]):
    """The base of layers and models."""

    __call__: Callable[..., Any]

    def __init__(self) -> None:
        self._no_grad: set[str] = set()
        self._training = True

    @property
    def training(self) -> bool:
        """Whether the module is being trained: what dropout and batch norm ask."""
        return self._training

    @property
    def state(self) -> "Module":
        """The module itself, as the tree of everything it holds."""
        return self

    def _extra_repr(self) -> str:
        return ""

    def __repr__(self) -> str:
        children = tree_flatten(self.children(), is_leaf=self.is_module)
        lines = [textwrap.indent(f"({name}): {child!r}", "  ") for name, child in children]
        inside = "".join("\n" + line for line in lines) + ("\n" if lines else "")
        return f"{type(self).__name__}({self._extra_repr()}{inside})"

    # ---- attributes ----

    def __getattr__(self, key: str) -> Any:
        value = self.get(key)
        if value is None:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{key}'")
        return value

    def __setattr__(self, key: str, value: Any) -> None:
        if not isinstance(value, (tk.array, dict, list, tuple)):
            super().__setattr__(key, value)
            self.pop(key, None)
            return
        if key in self.__dict__:
            super().__delattr__(key)
        self[key] = value

    def __delattr__(self, key: str) -> None:
        if self.get(key) is not None:
            del self[key]
        else:
            super().__delattr__(key)

    # ---- what is a parameter ----

    @staticmethod
    def is_module(value: Any) -> bool:
        """Whether a value is a module."""
        return isinstance(value, Module)

    @staticmethod
    def valid_child_filter(module: "Module", key: str, value: Any) -> bool:
        """Whether an item may hold modules."""
        return isinstance(value, (dict, list))

    @staticmethod
    def valid_parameter_filter(module: "Module", key: str, value: Any) -> bool:
        """Whether an item is, or may hold, parameters."""
        return isinstance(value, (dict, list, tk.array)) and not key.startswith("_")

    @staticmethod
    def trainable_parameter_filter(module: "Module", key: str, value: Any) -> bool:
        """Whether an item is, or may hold, parameters that are not frozen."""
        return Module.valid_parameter_filter(module, key, value) and key not in module._no_grad

    # ---- walking ----

    def filter_and_map(
        self,
        filter_fn: Callable[..., Any],
        map_fn: Callable[..., Any] | None = None,
        is_leaf_fn: Callable[..., Any] | None = None,
    ) -> dict[str, Any]:
        """The tree of items for which `filter_fn(module, key, value)` holds, with `map_fn` applied to
        leaves: to what `is_leaf_fn(module, key, value)` says, or to all that is no container."""
        walk = _Walk(filter_fn, map_fn or (lambda value: value), is_leaf_fn or _is_no_container)
        return walk.module(self)

    def parameters(self) -> dict[str, Any]:
        """All parameters, as a tree."""
        return self.filter_and_map(self.valid_parameter_filter)

    def trainable_parameters(self) -> dict[str, Any]:
        """All parameters that are not frozen, as a tree."""
        return self.filter_and_map(self.trainable_parameter_filter)

    def children(self) -> dict[str, Any]:
        """The modules directly below this one, as a tree."""
        return self.filter_and_map(self.valid_child_filter, is_leaf_fn=lambda m, k, v: isinstance(v, Module))

    def leaf_modules(self) -> dict[str, Any]:
        """The modules below this one that have none below them, as a tree."""

        def is_leaf(module: Module, key: str, value: Any) -> bool:
            return isinstance(value, Module) and not tree_flatten(value.children())

        return self.filter_and_map(self.valid_child_filter, is_leaf_fn=is_leaf)

    def apply_to_modules(self, apply_fn: Callable[..., Any]) -> "Module":
        """Call `apply_fn(name, module)` for this module and all below it."""
        pending = [("", self)]
        while pending:
            name, module = pending.pop()
            apply_fn(name, module)
            prefix = f".{name}" if name else ""
            pending.extend(tree_flatten(module.children(), prefix=prefix, is_leaf=self.is_module))
        return self

    def named_modules(self) -> list[Any]:
        """Names and modules: this one, named "", and all below it."""
        found: list[Any] = []
        self.apply_to_modules(lambda name, module: found.append((name, module)))
        return found

    def modules(self) -> list[Any]:
        """This module and all below it."""
        return [module for _, module in self.named_modules()]

    # ---- changing ----

    def update(self, parameters: dict[str, Any], strict: bool = True) -> "Module":  # type: ignore[override]
        """Replace the parameters that a tree has; where `strict`, it may have no others."""
        _replace(self, parameters, strict, _put_parameter)
        return self

    def update_modules(self, modules: dict[str, Any], strict: bool = True) -> "Module":
        """Replace the modules that a tree has; where `strict`, it may have no others."""
        _replace(self, modules, strict, _put_module)
        return self

    def apply(self, map_fn: Callable[..., Any], filter_fn: Callable[..., Any] | None = None) -> "Module":
        """Replace each parameter by `map_fn` of it."""
        return self.update(self.filter_and_map(filter_fn or Module.valid_parameter_filter, map_fn))

    def set_dtype(
        self, dtype: Any, predicate: Callable[..., Any] | None = lambda dtype: tk.issubdtype(dtype, tk.floating)
    ) -> None:
        """Cast the parameters for whose dtype `predicate` holds."""
        self.apply(lambda a: a.astype(dtype) if predicate is None or predicate(a.dtype) else a)

    # ---- freezing and modes ----

    def _check_keys(self, keys: Any, recurse: bool, strict: bool) -> list[Any] | None:
        """The keys as a list. Where `strict`, each must be in this module, or in one below it."""
        if keys is None:
            return None
        keys = keys if isinstance(keys, list) else [keys]
        holders = self.modules() if recurse else [self]
        for key in keys if strict else ():
            if not any(key in module for module in holders):
                raise KeyError(f"there is no '{key}' in the module")
        return keys

    def _own_parameters(self) -> list[Any]:
        """Dotted names of the parameters that are in no module below."""
        own = self.filter_and_map(lambda m, k, v: not isinstance(v, Module) and m.valid_parameter_filter(m, k, v))
        return [name for name, _ in tree_flatten(own)]

    def freeze(self, *, recurse: bool = True, keys: Any = None, strict: bool = False) -> "Module":
        """Take parameters, all or those named, out of the trainable ones."""
        names = self._check_keys(keys, recurse, strict)
        for module in self.modules() if recurse else [self]:
            module._no_grad.update(module._own_parameters() if names is None else names)
        return self

    def unfreeze(self, *, recurse: bool = True, keys: Any = None, strict: bool = False) -> "Module":
        """Make parameters, all or those named, trainable again."""
        names = self._check_keys(keys, recurse, strict)
        for module in self.modules() if recurse else [self]:
            module._unfreeze_own(names)
        return self

    def _unfreeze_own(self, names: list[Any] | None) -> None:
        if names is None:
            self._no_grad.clear()
        else:
            self._no_grad.difference_update(names)

    def _set_training_mode(self, mode: bool) -> None:
        self._training = mode

    def train(self, mode: bool = True) -> "Module":
        """Set training mode in this module and all below it."""
        return self.apply_to_modules(lambda _, module: module._set_training_mode(mode))

    def eval(self) -> "Module":
        """Set evaluation mode in this module and all below it."""
        return self.train(False)

    # ---- files ----

    def load_weights(self, file_or_weights: Any, strict: bool = True) -> "Module":
        """Take parameters from a file (npz, safetensors) or from pairs of names and arrays. Where
        `strict`, names and shapes must be the model's."""
        weights = file_or_weights
        if isinstance(weights, str):
            weights = list(tk.load(weights).items())
        if strict:
            _check_weights(tree_flatten(self.parameters(), destination={}), dict(weights))
        if weights:
            self.update(tree_unflatten(weights), strict=False)
        return self

    def save_weights(self, file: str) -> None:
        """Save the parameters as npz or safetensors, by the file's extension."""
        parameters = tree_flatten(self.parameters(), destination={})
        if file.endswith(".npz"):
            tk.savez(file, **parameters)
        elif file.endswith(".safetensors"):
            tk.save_safetensors(file, parameters)
        else:
            raise ValueError(f"the file '{file}' has another extension than .npz or .safetensors")


def _is_no_container(module: Module, key: str, value: Any) -> bool:
    return not isinstance(value, (dict, list))


class _Walk:
    """What `filter_and_map` does at each place. Inside containers a key is the dotted one."""

    def __init__(self, filter_fn: Callable[..., Any], map_fn: Callable[..., Any], is_leaf_fn: Callable[..., Any]) -> None:
        self.filter, self.map, self.is_leaf = filter_fn, map_fn, is_leaf_fn

    def module(self, module: Module) -> dict[str, Any]:
        return {k: self.value(module, k, v) for k, v in module.items() if self.filter(module, k, v)}

    def inside(self, module: Module, key: str, value: Any) -> Any:
        return self.value(module, key, value) if self.filter(module, key, value) else {}

    def value(self, module: Module, key: str, value: Any) -> Any:
        if self.is_leaf(module, key, value):
            return self.map(value)
        if isinstance(value, Module):
            return self.module(value)
        if isinstance(value, dict):
            return {k: self.inside(module, f"{key}.{k}", v) for k, v in value.items()}
        if isinstance(value, list):
            return [self.inside(module, f"{key}.{i}", v) for i, v in enumerate(value)]
        raise RuntimeError(f"'{key}' is a {type(value).__name__}, which is neither a leaf nor a container")


def _replace(target: Any, tree: Any, strict: bool, put: Callable[..., Any]) -> None:
    """Walk `tree` along `target`; `put(target, key, new, strict)` is true where it has dealt with a
    place, otherwise the walk goes on below it."""
    if not isinstance(tree, (dict, list)):
        if strict:
            raise ValueError(f"a {type(tree).__name__} was given where the module has a {type(target).__name__}")
        return
    for key in tree if isinstance(tree, dict) else range(len(tree)):
        there = key in target if isinstance(tree, dict) else key < len(target)
        if there:
            if not put(target, key, tree[key], strict):
                _replace(target[key], tree[key], strict, put)
        elif strict:
            raise ValueError(f"the module has no '{key}'")


def _put_parameter(target: Any, key: Any, new: Any, strict: bool) -> bool:
    if not isinstance(target[key], tk.array):
        return False
    if strict and not isinstance(new, tk.array):
        raise ValueError(f"'{key}' is a {type(new).__name__}, expected an array")
    target[key] = new
    return True


def _put_module(target: Any, key: Any, new: Any, strict: bool) -> bool:
    current = target[key]
    if isinstance(current, Module) and isinstance(new, Module):
        target[key] = new
        return True
    if isinstance(current, (dict, list)):
        return False
    if strict and new != {}:
        raise ValueError(f"'{key}' is a {type(new).__name__}, expected a module")
    return True


def _check_weights(own: dict[str, Any], given: dict[str, Any]) -> None:
    for what, names in (
        ("names that the model does not have", given.keys() - own.keys()),
        ("parameters that are missing", own.keys() - given.keys()),
    ):
        if names:
            raise ValueError(f"{len(names)} {what}: {', '.join(sorted(names))}")
    for name, current in own.items():
        new = given[name]
        if not isinstance(new, tk.array):
            raise ValueError(f"'{name}' is a {type(new).__name__}, expected an array")
        if new.shape != current.shape:
            raise ValueError(f"'{name}' has the shape {new.shape}, expected {current.shape}")
