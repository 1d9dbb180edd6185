"""The module class where MLX has it."""

from tiki.nn.module import Module as Module
