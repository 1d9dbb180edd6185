"""Lists, dictionaries and other Python objects that code of a region changes.

A region of the device is traced once, so what it does to Python objects would be done whatever the device decides.
Containers that the statement's names hold are carried: their contents are put back before the other branch, and
merged in place, so every name for them sees the result. Any other object that a region changes, through a second name,
a closure, an attribute or a function, is found by comparing what the function can reach before and after: an error.
"""

from __future__ import annotations

import sys
import types
from collections import deque
from typing import Any

from tiki.kernels.cute.lib._tape import _HERE, fail

_MOST = 20000  # objects that are looked at


def is_container(value: Any) -> bool:
    """Whether a value is carried by what is in it."""
    return type(value) in (list, dict)


def contents(value: Any) -> list[Any]:
    return list(value) if type(value) is list else list(value.items())


def put(target: Any, items: list[Any]) -> None:
    """Gives a list or dictionary other contents."""
    target.clear()
    target.extend(items) if type(target) is list else target.update(items)


def settle(target: Any, source: Any) -> None:
    """The contents of one container in another, those inside it included."""
    if type(target) is list:
        for i, item in enumerate(source):
            if i < len(target) and is_container(target[i]) and type(target[i]) is type(item):
                settle(target[i], item)
            else:
                target[i : i + 1] = [item]
        del target[len(source) :]
        return
    for key in [key for key in target if key not in source]:
        del target[key]
    for key, item in source.items():
        if key in target and is_container(target[key]) and type(target[key]) is type(item):
            settle(target[key], item)
        else:
            target[key] = item


class Copies:
    """Copies of containers, one of each, and whose they are."""

    def __init__(self) -> None:
        self.made: dict[int, Any] = {}
        self.originals: dict[int, Any] = {}

    def of(self, value: Any) -> Any:
        if type(value) is tuple:
            return tuple(self.of(item) for item in value)
        if not is_container(value):
            return value
        found = self.made.get(id(value))
        if found is None:
            found = self.made[id(value)] = type(value)()
            self.originals[id(found)] = value
            if type(value) is list:
                found.extend(self.of(item) for item in value)
            else:
                found.update((key, self.of(item)) for key, item in value.items())
        return found

    def original(self, copy: Any) -> Any:
        return self.originals.get(id(copy), copy)


class Saved:
    """The contents of containers, to be put back."""

    def __init__(self, values: Any) -> None:
        self.held: dict[int, tuple[Any, list[Any]]] = {}
        for value in values:
            self.keep(value)

    def keep(self, value: Any) -> None:
        if type(value) is tuple:
            for item in value:
                self.keep(item)
        elif is_container(value) and id(value) not in self.held:
            self.held[id(value)] = (value, contents(value))
            for item in value if type(value) is list else value.values():
                self.keep(item)

    def restore(self) -> None:
        for value, items in self.held.values():
            put(value, items)

    def changed(self) -> bool:
        return any(not _same(items, contents(value)) for value, items in self.held.values())


def _same(before: list[Any], after: list[Any]) -> bool:
    if len(before) != len(after):
        return False
    return all(x is y or (type(x) is type(y) is tuple and _same(list(x), list(y))) for x, y in zip(before, after))


# ---- everything else ----


def _state(value: Any) -> list[Any] | None:
    """What may change in an object, None for one that is not looked at."""
    if type(value) in (list, deque):
        return list(value)
    if type(value) is dict:
        return list(value.items())
    if type(value) is set:
        return sorted(value, key=id)
    if type(value) is bytearray:
        return [bytes(value)]
    attributes = getattr(value, "__dict__", None)
    return list(attributes.items()) if type(attributes) is dict and _is_users(value) else None


def _is_users(value: Any) -> bool:
    if isinstance(value, (type, types.ModuleType, types.FunctionType, types.MethodType)):
        return False
    return not type(value).__module__.startswith(("tiki.", "numpy", "builtins"))


def _inner(value: Any) -> list[Any]:
    """The objects that an object leads to."""
    kind = type(value)
    if kind in (list, tuple, deque, set, frozenset):
        return list(value)
    if kind is dict:
        return list(value.values())
    if kind is types.MethodType:
        return [value.__self__, value.__func__]
    function = getattr(value, "function", None) if kind.__module__.startswith("tiki.kernels") else value
    if type(function) is types.FunctionType:
        return _of_function(function)
    attributes = getattr(value, "__dict__", None)
    return list(attributes.values()) if type(attributes) is dict and _is_users(value) else []


def _of_function(function: types.FunctionType) -> list[Any]:
    if function.__code__.co_filename.startswith(_HERE):
        return []
    found = []
    for cell in function.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:
            continue
    return found + [function.__globals__[name] for name in function.__code__.co_names if name in function.__globals__]


def users_frame() -> Any:
    """The innermost frame outside of this package."""
    frame: Any = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return frame


def reached_but_by(names: tuple[str, ...]) -> set[int]:
    """The objects that the function can reach without these of its names."""
    watch = Watch(set(), names)
    return {id(value) for _, value, _ in watch.states}


class Watch:
    """What the innermost function outside of this package can reach, and how it is now."""

    def __init__(self, carried: set[int], without: tuple[str, ...] = ()) -> None:
        frame = users_frame()
        self.seen: set[int] = set(carried)
        self.states: list[tuple[str, Any, list[Any]]] = []
        reached = dict(frame.f_locals)
        for name in frame.f_code.co_names:
            if name in frame.f_globals:
                reached.setdefault(name, frame.f_globals[name])
        for name, value in reached.items():
            if name not in without:
                self.add(name, value)

    def add(self, name: str, value: Any) -> None:
        todo = [value]
        while todo and len(self.seen) < _MOST:
            one = todo.pop()
            if id(one) in self.seen or isinstance(one, (bool, int, float, str, bytes, type(None))):
                continue
            self.seen.add(id(one))
            state = _state(one)
            if state is not None:
                self.states.append((name, one, state))
            todo.extend(_inner(one))

    def check(self, word: str, line: int) -> None:
        """Raises when something has changed."""
        for name, value, before in self.states:
            after = _state(value)
            if after is None or not _same(before, after):
                raise fail(
                    f"{name} (a {type(value).__name__}) is changed inside the {word} on line {line}, which the device "
                    f"decides, where that cannot be carried: change a list or dictionary by its own name, in the "
                    f"statement itself"
                )
