"""Learning-rate schedules: functions of the step, an array, so that compiled steps can hold them."""

import math
from typing import Any, Callable

import tiki as tk


def exponential_decay(init: float, decay_rate: float) -> Callable[..., Any]:
    """init decay_rate^step"""
    return lambda step: init * decay_rate**step


def step_decay(init: float, decay_rate: float, step_size: int) -> Callable[..., Any]:
    """init decay_rate^(step / step_size), whole numbers only."""
    if step_size < 1:
        raise ValueError(f"step_size is {step_size}, expected 1 or more")
    return lambda step: init * decay_rate ** (step // step_size)


def cosine_decay(init: float, decay_steps: int, end: float = 0.0) -> Callable[..., Any]:
    """Half a cosine from init to end over decay_steps, then end."""
    if decay_steps < 1:
        raise ValueError(f"decay_steps is {decay_steps}, expected 1 or more")

    def schedule(step: tk.array) -> tk.array:
        angle = (math.pi / decay_steps) * tk.minimum(step, decay_steps)
        return end + 0.5 * (1.0 + tk.cos(angle)) * (init - end)

    return schedule


def linear_schedule(init: float, end: float, steps: int) -> Callable[..., Any]:
    """A line from init to end over steps, then end."""
    if steps < 1:
        raise ValueError(f"steps is {steps}, expected 1 or more")
    slope = (end - init) / steps
    return lambda step: tk.minimum(step, steps) * slope + init


def join_schedules(schedules: list[Callable[..., Any]], boundaries: list[int]) -> Callable[..., Any]:
    """One schedule after the other; each counts from the boundary where it begins."""
    if not schedules or len(schedules) != len(boundaries) + 1:
        raise ValueError(f"{len(schedules)} schedules and {len(boundaries)} boundaries: expected one boundary less")

    def schedule(step: tk.array) -> tk.array:
        rate = schedules[0](step)
        for boundary, later in zip(boundaries, schedules[1:]):
            rate = tk.where(step < boundary, rate, later(step - boundary))
        return rate

    return schedule
