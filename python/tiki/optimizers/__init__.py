"""Optimizers, learning-rate schedules and gradient clipping, by MLX's names."""

from tiki.nn import Module
from tiki.optimizers.optimizers import (
    AdaDelta,
    Adafactor,
    Adagrad,
    Adam,
    Adamax,
    AdamW,
    Lion,
    MultiOptimizer,
    Muon,
    Optimizer,
    RMSprop,
    SGD,
    clip_grad_norm,
)
from tiki.optimizers.schedulers import (
    cosine_decay,
    exponential_decay,
    join_schedules,
    linear_schedule,
    step_decay,
)
from tiki.utils import tree_flatten, tree_map, tree_merge, tree_reduce, tree_unflatten
