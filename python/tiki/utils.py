"""Trees of lists, tuples and dictionaries: flattening to dotted names and back, mapping, reducing."""

from itertools import zip_longest
from typing import Any, Callable


def _same_type(tree: Any, children: list[Any]) -> Any:
    """A list, tuple or named tuple of the type of `tree`."""
    return type(tree)(*children) if hasattr(tree, "_fields") else type(tree)(children)


def tree_map(fn: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Callable[..., Any] | None = None) -> Any:
    """The tree with `fn` applied to each leaf, and to what `rest` have in the same place."""
    return tree_map_with_path(lambda _, *leaves: fn(*leaves), tree, *rest, is_leaf=is_leaf)


def tree_map_with_path(
    fn: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Callable[..., Any] | None = None, path: Any = None
) -> Any:
    """As `tree_map`; `fn` gets the leaf's dotted name first."""
    is_container = isinstance(tree, (list, tuple, dict))
    if not is_container or (is_leaf is not None and is_leaf(tree)):
        return fn(path, tree, *rest)

    def below(key: Any, child: Any) -> Any:
        name = f"{path}.{key}" if path else str(key)
        return tree_map_with_path(fn, child, *(other[key] for other in rest), is_leaf=is_leaf, path=name)

    if isinstance(tree, dict):
        return {key: below(key, child) for key, child in tree.items()}
    return _same_type(tree, [below(i, child) for i, child in enumerate(tree)])


def tree_flatten(tree: Any, prefix: str = "", is_leaf: Callable[..., Any] | None = None, destination: Any = None) -> Any:
    """Pairs of dotted names and leaves, added to `destination` (a list, or a dictionary)."""
    if destination is None:
        destination = []
    if not isinstance(destination, (list, dict)):
        raise ValueError(f"destination must be a list or a dictionary, not {type(destination).__name__}")
    is_container = isinstance(tree, (list, tuple, dict))
    if not is_container or (is_leaf is not None and is_leaf(tree)):
        if isinstance(destination, dict):
            destination[prefix[1:]] = tree
        else:
            destination.append((prefix[1:], tree))
        return destination
    for key, child in tree.items() if isinstance(tree, dict) else enumerate(tree):
        tree_flatten(child, f"{prefix}.{key}", is_leaf, destination)
    return destination


def _as_indices(keys: Any) -> dict[int, Any] | None:
    """Keys by the numbers they are, or None where they are no distinct numbers."""
    try:
        numbers = {int(key): key for key in keys}
    except ValueError:
        return None
    return numbers if len(numbers) == len(keys) else None


def tree_unflatten(tree: Any) -> Any:
    """The tree of pairs of dotted names and leaves; names that are all numbers make a list."""
    items = list(tree.items() if isinstance(tree, dict) else tree)
    if len(items) == 1 and items[0][0] == "":
        return items[0][1]
    groups: dict[str, list[Any]] = {}
    for name, value in items:
        first, _, remainder = name.partition(".")
        groups.setdefault(first, []).append((remainder, value))
    numbers = _as_indices(groups)
    if numbers is None:
        return {key: tree_unflatten(group) for key, group in groups.items()}
    result: list[Any] = []
    for number in sorted(numbers):
        result.extend({} for _ in range(number - len(result)))
        result.append(tree_unflatten(groups[numbers[number]]))
    return result


def tree_reduce(fn: Callable[..., Any], tree: Any, initializer: Any = None, is_leaf: Callable[..., Any] | None = None) -> Any:
    """Leaves combined one after the other by `fn(so_far, leaf)`."""
    result = initializer
    for _, leaf in tree_flatten(tree, is_leaf=is_leaf):
        result = leaf if result is None else fn(result, leaf)
    return result


def _is_nothing(tree: Any) -> bool:
    return tree is None or (isinstance(tree, (dict, list, tuple)) and not tree)


def tree_merge(tree_a: Any, tree_b: Any, merge_fn: Callable[..., Any] | None = None) -> Any:
    """One tree with the leaves of both; where both have one, `merge_fn` makes one of them."""
    if _is_nothing(tree_a) and _is_nothing(tree_b) and tree_a is not None and tree_b is not None:
        if type(tree_a) is not type(tree_b):
            raise ValueError(f"an empty {type(tree_a).__name__} and an empty {type(tree_b).__name__} do not merge")
        return type(tree_a)()
    if _is_nothing(tree_b):
        return tree_a if not _is_nothing(tree_a) else None
    if _is_nothing(tree_a):
        return tree_b
    if isinstance(tree_a, (list, tuple)) and isinstance(tree_b, (list, tuple)):
        return _same_type(tree_a, [tree_merge(a, b, merge_fn) for a, b in zip_longest(tree_a, tree_b)])
    if isinstance(tree_a, dict) and isinstance(tree_b, dict):
        keys = list(tree_a) + [key for key in tree_b if key not in tree_a]
        return {key: tree_merge(tree_a.get(key), tree_b.get(key), merge_fn) for key in keys}
    if merge_fn is None:
        raise ValueError("both trees have a leaf in the same place and merge_fn is not given")
    return merge_fn(tree_a, tree_b)
