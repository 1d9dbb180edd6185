"""Layers over several processes where MLX has them."""

from tiki.nn.distributed import *  # noqa: F403
