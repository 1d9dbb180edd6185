"""Layers over several processes where MLX has them."""

from tiki.nn.distributed import *  # noqa: F403
from tiki.nn.linear import Linear as Linear
from tiki.nn.module import Module as Module
from tiki.utils import (
    tree_flatten as tree_flatten,
    tree_map_with_path as tree_map_with_path,
    tree_unflatten as tree_unflatten,
)
