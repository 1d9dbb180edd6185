"""Optimizers, learning-rate schedules and gradient clipping, by MLX's names."""

from tiki.nn import Module as Module
from tiki.optimizers.optimizers import (
    AdaDelta as AdaDelta,
    Adafactor as Adafactor,
    Adagrad as Adagrad,
    Adam as Adam,
    Adamax as Adamax,
    AdamW as AdamW,
    Lion as Lion,
    MultiOptimizer as MultiOptimizer,
    Muon as Muon,
    Optimizer as Optimizer,
    RMSprop as RMSprop,
    SGD as SGD,
    clip_grad_norm as clip_grad_norm,
)
from tiki.optimizers.schedulers import (
    cosine_decay as cosine_decay,
    exponential_decay as exponential_decay,
    join_schedules as join_schedules,
    linear_schedule as linear_schedule,
    step_decay as step_decay,
)
from tiki.utils import tree_flatten as tree_flatten, tree_map as tree_map, tree_merge as tree_merge, tree_reduce as tree_reduce, tree_unflatten as tree_unflatten
