"""Groups of processes and what they do together.

There is one process: groups have one member, sums over a group are the array itself, and sending is
refused. Code for several processes runs unchanged on one.
"""

from collections.abc import Callable, Sequence
from typing import Any, Optional

from tiki import _core
from tiki._core import Dtype, array

__all__ = [
    "Group",
    "all_gather",
    "all_max",
    "all_min",
    "all_sum",
    "init",
    "is_available",
    "recv",
    "recv_like",
    "send",
    "sum_scatter",
]

_BACKENDS = ("any", "mpi", "nccl", "jaccl", "ring")


class Group:
    """Processes that can work together; `init` gives the one of all of them."""

    _key = object()

    def __init__(self, key: object = None) -> None:
        if key is not Group._key:
            raise TypeError("groups are made by tiki.distributed.init and Group.split")

    def rank(self) -> int:
        """Which member of the group this process is."""
        return 0

    def size(self) -> int:
        """How many members the group has."""
        return 1

    def split(self, color: int, key: int = -1) -> "Group":
        """The group of those members that give the same color; one member cannot be split."""
        raise RuntimeError("a group of one process cannot be split")


_alone = Group(Group._key)


def is_available(backend: str = "any") -> bool:
    """Whether a backend that connects processes is part of this build; none is."""
    return False


def init(
    strict: bool = False,
    backend: str = "any",
    *,
    all_gather_factory: Optional[Callable[[int, int], Callable[[bytes, int], bytes]]] = None,
) -> Group:
    """The group of all processes: this one. `strict` raises where no backend connects them."""
    if backend not in _BACKENDS:
        raise ValueError(f"backend is '{backend}', expected one of {', '.join(_BACKENDS)}")
    if strict:
        raise RuntimeError(f"no backend connects processes ('{backend}' was asked for)")
    return _alone


def _check(group: Optional[Group]) -> Group:
    if group is not None and not isinstance(group, Group):
        raise TypeError(f"group is a {type(group).__name__}, expected a Group or None")
    if group is not None and group.size() != 1:
        raise NotImplementedError(f"no backend connects the {group.size()} members of the group")
    return group or _alone


def _same(x: Any, group: Optional[Group], stream: Any) -> array:
    """What a reduction over one member gives: its array."""
    _check(group)
    given = x if isinstance(x, array) else _core.array(x) if not isinstance(x, (list, tuple)) else None
    if given is None:
        raise ValueError(f"an array or a number is expected, not {type(x).__name__}")
    return _core.reshape(given, given.shape, stream=stream)


def all_sum(x: Any, *, group: Optional[Group] = None, stream: Any = None) -> array:
    """The sum of the members' arrays."""
    return _same(x, group, stream)


def all_max(x: Any, *, group: Optional[Group] = None, stream: Any = None) -> array:
    """The elementwise maximum of the members' arrays."""
    return _same(x, group, stream)


def all_min(x: Any, *, group: Optional[Group] = None, stream: Any = None) -> array:
    """The elementwise minimum of the members' arrays."""
    return _same(x, group, stream)


def all_gather(x: Any, *, group: Optional[Group] = None, stream: Any = None) -> array:
    """The members' arrays one after the other along the first axis."""
    return _same(x, group, stream)


def sum_scatter(x: Any, *, group: Optional[Group] = None, stream: Any = None) -> array:
    """This member's part, along the first axis, of the sum of the members' arrays."""
    return _same(x, group, stream)


def send(x: Any, dst: int, *, group: Optional[Group] = None, stream: Any = None) -> array:
    """Send an array to another member: a group of one has none."""
    _check(group)
    raise ValueError(f"send to member {dst}: the group has no member but this one")


def recv(shape: Sequence[int], dtype: Dtype, src: int, *, group: Optional[Group] = None, stream: Any = None) -> array:
    """Receive an array from another member: a group of one has none."""
    _check(group)
    raise ValueError(f"recv from member {src}: the group has no member but this one")


def recv_like(x: Any, src: int, *, group: Optional[Group] = None, stream: Any = None) -> array:
    """Receive an array of the shape and dtype of `x`."""
    return recv(x.shape, x.dtype, src, group=group, stream=stream)
