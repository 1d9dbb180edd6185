"""The layers of tiki.nn where MLX has them."""

from tiki.nn import *  # noqa: F403
