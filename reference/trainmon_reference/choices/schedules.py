"""Schedules by name: the rate of an update. The shapes are those of `trainmon_rules.schedules`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from trainmon_reference.config import RunConfig
from trainmon_rules.errors import BadConfig

Shape = Callable[[int, RunConfig], float]


def _progress(step: int, c: RunConfig) -> float:
    return min(1.0, max(0, step - c.warmup_steps) / max(1, c.total_steps - c.warmup_steps))


def _cosine(step: int, c: RunConfig) -> float:
    return 0.5 * (1.0 + math.cos(math.pi * _progress(step, c)))


SCHEDULES: Mapping[str, Shape] = {
    "constant": lambda step, c: 1.0,
    "linear": lambda step, c: 1.0 - _progress(step, c),
    "cosine": _cosine,
}


def build_schedule(config: RunConfig) -> Callable[[int], float]:
    """Return the function from an update's number (from 0) to its rate.

    Raises
    ------
    BadConfig
        If the name isn't known.
    """
    if config.lr_schedule not in SCHEDULES:
        raise BadConfig(f"lr_schedule: unknown {config.lr_schedule!r}; known: {', '.join(SCHEDULES)}")
    shape = SCHEDULES[config.lr_schedule]

    def rate(step: int) -> float:
        if step < config.warmup_steps:
            return config.learning_rate * (step + 1) / config.warmup_steps
        return config.min_learning_rate + (config.learning_rate - config.min_learning_rate) * shape(step, config)

    return rate
