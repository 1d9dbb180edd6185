"""Layers whose parameters are spread over the members of a group, and how they are spread.

A matrix [outputs, inputs] is cut along one of its axes. Cut along the outputs, each member computes
a part of the result from the whole input; cut along the inputs, each computes a summand of the whole
result from a part of the input. `segments` says that a matrix is several matrices on top of each
other, each of which is cut: a number of equal ones, or the places where they begin, as indices or as
shares of the whole.
"""

import math
from functools import lru_cache
from typing import Any, Callable, Optional, Union

import tiki as tk
from tiki.distributed import Group, all_gather, all_sum, init, sum_scatter
from tiki.nn.linear import Linear, uniform_within
from tiki.nn.module import Module
from tiki.nn.quantized import _Coded
from tiki.utils import tree_flatten, tree_map_with_path, tree_unflatten

Segments = Union[int, list[int], list[float]]
Sharding = Callable[[str, tk.array], Any]

_linear = tk._core._nn.linear

__all__ = [
    "AllToShardedLinear",
    "FullyShardedModule",
    "QuantizedAllToShardedLinear",
    "QuantizedShardedToAllLinear",
    "ShardedToAllLinear",
    "fully_shard",
    "shard_inplace",
    "shard_linear",
    "sum_gradients",
]


@lru_cache
def sum_gradients(group: Group) -> Callable[[tk.array], tk.array]:
    """The identity, whose gradient is the sum of the members' gradients."""
    if group.size() == 1:
        return lambda x: x

    @tk.custom_function
    def same(x: tk.array) -> tk.array:
        return x

    @same.vjp
    def summed(x: tk.array, cotangent: tk.array, _: tk.array) -> tk.array:
        return all_sum(cotangent, group=group)

    return same


# ---- cutting ----


def _segments_of(weight: tk.array, segments: Segments, axis: int) -> list[tk.array]:
    if isinstance(segments, int) or isinstance(segments[0], int):
        return tk.split(weight, [int(at) for at in segments] if not isinstance(segments, int) else segments, axis=axis)
    return tk.split(weight, [int(share * weight.shape[axis]) for share in segments], axis=axis)


def _part_of(weight: tk.array, cut: Any, group: Group) -> tk.array:
    """This member's part of every segment; `cut` is an axis, or an axis and segments."""
    if not isinstance(cut, (int, tuple)):
        raise ValueError(f"a sharding gives an axis, or an axis and segments, not {cut!r}")
    axis, segments = (cut, 1) if isinstance(cut, int) else cut
    parts = [
        tk.split(segment, group.size(), axis=axis)[group.rank()] for segment in _segments_of(weight, segments, axis)
    ]
    return tk.contiguous(tk.concatenate(parts, axis=axis))


def _shard(parameters: Any, sharding: Sharding, group: Optional[Group]) -> Any:
    """The tree with each array replaced by this member's part; where `sharding` gives None, by itself."""
    members = group or init()

    def part(path: str, weight: Any) -> Any:
        cut = sharding(path, weight) if isinstance(weight, tk.array) else None
        return weight if cut is None else _part_of(weight, cut, members)

    return tree_map_with_path(part, parameters)


def _named_sharding(name: str, segments: Segments) -> Sharding:
    if name == "all-to-sharded":
        return lambda path, weight: (-1 if path.endswith("bias") else max(weight.ndim - 2, 0), segments)
    if name == "sharded-to-all":
        return lambda path, weight: None if path.endswith("bias") else (-1, segments)
    raise ValueError(f"sharding is '{name}', expected 'all-to-sharded' or 'sharded-to-all'")


def shard_inplace(
    module: Module, sharding: Union[str, Sharding], *, segments: Segments = 1, group: Optional[Group] = None
) -> None:
    """Replace the module's parameters by this member's parts.

    `sharding` is "all-to-sharded", "sharded-to-all", or a function of name and array that gives an axis,
    an axis and segments, or None for what stays whole. What the module computes does not change.
    """
    cut = _named_sharding(sharding, segments) if isinstance(sharding, str) else sharding
    module.update(_shard(module.parameters(), cut, group))


def shard_linear(
    module: Module, sharding: str, *, segments: Segments = 1, group: Optional[Group] = None
) -> Module:
    """A layer with this member's part of a linear layer, quantised or not; the layer itself stays whole."""
    _named_sharding(sharding, segments)
    to_sharded = sharding == "all-to-sharded"
    if isinstance(module, Linear):
        layer: Any = AllToShardedLinear if to_sharded else ShardedToAllLinear
        return layer.from_linear(module, segments=segments, group=group)
    coded: Any = QuantizedAllToShardedLinear if to_sharded else QuantizedShardedToAllLinear
    return coded.from_quantized_linear(module, segments=segments, group=group)


# ---- linear layers ----


def _share(what: str, dims: int, group: Group) -> int:
    if dims % group.size():
        raise ValueError(f"{what} {dims} cannot be spread over {group.size()} members of a group")
    return dims // group.size()


class AllToShardedLinear(Module):
    """A linear layer each member of a group has a part of the outputs of; gradients of the input are summed."""

    def __init__(self, input_dims: int, output_dims: int, bias: bool = True, group: Optional[Group] = None) -> None:
        super().__init__()
        self.group = group or init()
        rows = _share("output_dims", output_dims, self.group)
        limit = math.sqrt(1.0 / input_dims)
        self.weight = uniform_within(limit, rows, input_dims)
        if bias:
            self.bias = uniform_within(limit, rows)

    def _extra_repr(self) -> str:
        rows, columns = self.weight.shape
        return f"input_dims={columns}, output_dims={rows * self.group.size()}, bias={'bias' in self}"

    def __call__(self, x: tk.array) -> tk.array:
        return _linear(sum_gradients(self.group)(x), self["weight"], self.get("bias"))

    @classmethod
    def from_linear(
        cls, linear_layer: Module, *, segments: Segments = 1, group: Optional[Group] = None
    ) -> "AllToShardedLinear":
        """The layer with this member's part of a linear layer."""
        rows, columns = linear_layer.weight.shape
        layer = cls(columns, rows, hasattr(linear_layer, "bias"), group)
        layer.update(_shard(linear_layer.parameters(), _named_sharding("all-to-sharded", segments), layer.group))
        return layer


class ShardedToAllLinear(Module):
    """A linear layer each member of a group has a part of the inputs of; all get the sum of their results."""

    def __init__(self, input_dims: int, output_dims: int, bias: bool = True, group: Optional[Group] = None) -> None:
        super().__init__()
        self.group = group or init()
        columns = _share("input_dims", input_dims, self.group)
        limit = math.sqrt(1.0 / input_dims)
        self.weight = uniform_within(limit, output_dims, columns)
        if bias:
            self.bias = uniform_within(limit, output_dims)

    def _extra_repr(self) -> str:
        rows, columns = self.weight.shape
        return f"input_dims={columns * self.group.size()}, output_dims={rows}, bias={'bias' in self}"

    def __call__(self, x: tk.array) -> tk.array:
        y = all_sum(x @ self["weight"].T, group=self.group)
        return y + self["bias"] if "bias" in self else y

    @classmethod
    def from_linear(
        cls, linear_layer: Module, *, segments: Segments = 1, group: Optional[Group] = None
    ) -> "ShardedToAllLinear":
        """The layer with this member's part of a linear layer."""
        rows, columns = linear_layer.weight.shape
        layer = cls(columns, rows, hasattr(linear_layer, "bias"), group)
        layer.update(_shard(linear_layer.parameters(), _named_sharding("sharded-to-all", segments), layer.group))
        return layer


class _CodedShard(_Coded):
    """What both quantised layers share: codes of this member's matrix, frozen."""

    _sharding = ""

    def __init__(
        self,
        input_dims: int,
        rows: int,
        columns: int,
        bias: bool,
        group_size: int,
        bits: int,
        mode: str,
        group: Optional[Group],
    ) -> None:
        super().__init__(mode, group_size, bits)
        self.group = group or init()
        self._take(uniform_within(math.sqrt(1.0 / input_dims), rows, columns))
        if bias:
            self.bias = tk.zeros((rows,))
        self.freeze()

    def unfreeze(self, *args: Any, **kwargs: Any) -> Any:
        """Layers below may be unfrozen; codes stay as they are."""
        super().unfreeze(*args, **kwargs)
        return self.freeze(recurse=False)

    def _extra_repr(self) -> str:
        rows, columns = self.weight.shape[0], self._columns()
        if self._sharding == "all-to-sharded":
            rows *= self.group.size()
        else:
            columns *= self.group.size()
        return f"input_dims={columns}, output_dims={rows}, bias={'bias' in self}, {self._describe()}"

    @classmethod
    def from_quantized_linear(
        cls, quantized_linear_layer: Module, *, segments: Segments = 1, group: Optional[Group] = None
    ) -> Any:
        """The layer with this member's part of a quantised linear layer."""
        rows, columns = quantized_linear_layer.weight.shape
        layer = cls(  # type: ignore[call-arg]
            columns * 32 // quantized_linear_layer.bits,
            rows,
            hasattr(quantized_linear_layer, "bias"),
            group_size=quantized_linear_layer.group_size,
            bits=quantized_linear_layer.bits,
            mode=getattr(quantized_linear_layer, "mode", "affine"),
            group=group,
        )
        cut = _named_sharding(cls._sharding, segments)
        layer.update(_shard(quantized_linear_layer.parameters(), cut, layer.group))
        return layer


class QuantizedAllToShardedLinear(_CodedShard):
    """AllToShardedLinear with codes for a matrix; its parameters are frozen."""

    _sharding = "all-to-sharded"

    def __init__(
        self,
        input_dims: int,
        output_dims: int,
        bias: bool = True,
        group_size: int = 64,
        bits: int = 4,
        mode: str = "affine",
        group: Optional[Group] = None,
    ) -> None:
        members = group or init()
        rows = _share("output_dims", output_dims, members)
        super().__init__(input_dims, rows, input_dims, bias, group_size, bits, mode, members)

    def __call__(self, x: tk.array) -> tk.array:
        y = self._times(sum_gradients(self.group)(x))
        return y + self["bias"] if "bias" in self else y


class QuantizedShardedToAllLinear(_CodedShard):
    """ShardedToAllLinear with codes for a matrix; its parameters are frozen."""

    _sharding = "sharded-to-all"

    def __init__(
        self,
        input_dims: int,
        output_dims: int,
        bias: bool = True,
        group_size: int = 64,
        bits: int = 4,
        mode: str = "affine",
        group: Optional[Group] = None,
    ) -> None:
        members = group or init()
        columns = _share("input_dims", input_dims, members)
        super().__init__(input_dims, output_dims, columns, bias, group_size, bits, mode, members)

    def __call__(self, x: tk.array) -> tk.array:
        y = all_sum(self._times(x), group=self.group)
        return y + self["bias"] if "bias" in self else y


# ---- whole modules ----


def _is_own(module: Module, key: str, value: Any) -> bool:
    """Parameters, but those of a module that is spread by itself."""
    return not isinstance(value, FullyShardedModule) and Module.valid_parameter_filter(module, key, value)


def _gathering(
    group: Group, shapes: list[tuple[int, ...]], dtype: Optional[tk.Dtype]
) -> Callable[[list[tk.array]], list[tk.array]]:
    """A function from this member's parts to whole parameters, all in one message; gradients become parts, averaged."""
    members = group.size()
    sizes = [math.prod(shape) // members for shape in shapes]
    ends = [sum(sizes[: i + 1]) for i in range(len(sizes) - 1)]

    def as_row(part: tk.array) -> tk.array:
        row = part.reshape(1, -1)
        return row if dtype is None else row.astype(dtype)

    @tk.custom_function
    def gather(parts: list[tk.array]) -> list[tk.array]:
        rows = all_gather(tk.concatenate([as_row(part) for part in parts], axis=1), group=group)
        return [whole.reshape(shape) for whole, shape in zip(tk.split(rows, ends, axis=1), shapes)]

    @gather.vjp
    def scatter(parts: list[tk.array], cotangents: list[tk.array], _: list[tk.array]) -> list[tk.array]:
        rows = tk.concatenate([cotangent.reshape(members, -1) for cotangent in cotangents], axis=1)
        mean = sum_scatter(rows, group=group) / members
        return [
            own.reshape(part.shape).astype(part.dtype) for own, part in zip(tk.split(mean, ends, axis=1), parts)
        ]

    return gather


class FullyShardedModule(Module):
    """A module of whose parameters each member of a group keeps a part, cut along the first axis.

    The whole parameters exist during a call only, in `compute_dtype` if it is given; their gradients are
    averaged over the group and cut in the same way.
    """

    def __init__(
        self, module: Module, group: Optional[Group] = None, compute_dtype: Optional[tk.Dtype] = None
    ) -> None:
        super().__init__()
        members = group or init()
        whole = module.filter_and_map(_is_own)
        flat = tree_flatten(whole)
        for path, weight in flat:
            if weight.ndim == 0:
                raise ValueError(f"parameter '{path}' is a scalar, which has no axis to be cut along")
            _share(f"the first axis of parameter '{path}',", weight.shape[0], members)
        object.__setattr__(self, "_paths", [path for path, _ in flat])
        gather = _gathering(members, [weight.shape for _, weight in flat], compute_dtype)
        object.__setattr__(self, "_gather", gather)
        module.update(_shard(whole, lambda path, weight: 0, members))
        self.module = module

    def _extra_repr(self) -> str:
        return f"num_sharded_params={len(self._paths)}"

    def _call_whole(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        parts = self.module.filter_and_map(_is_own)
        whole = self._gather([part for _, part in tree_flatten(parts)]) if self._paths else []
        self.module.update(tree_unflatten(list(zip(self._paths, whole))) if self._paths else {})
        try:
            return function(*args, **kwargs)
        finally:
            self.module.update(parts)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call_whole(self.module, *args, **kwargs)

    def as_linear(self, *args: Any, **kwargs: Any) -> Any:
        """The module's `as_linear`, with whole parameters."""
        return self._call_whole(self.module.as_linear, *args, **kwargs)


def fully_shard(
    module: Module, *, group: Optional[Group] = None, compute_dtype: Optional[tk.Dtype] = None
) -> Module:
    """The module spread over a group; the module itself where there is nothing to spread."""
    members = group or init()
    if members.size() == 1 or isinstance(module, FullyShardedModule):
        return module
    wrapped = FullyShardedModule(module, members, compute_dtype)
    return wrapped if wrapped._paths else module
