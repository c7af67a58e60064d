"""Schedules by name: the rate of each update.

The shapes are those of `trainmon_rules.schedules`, so that what a run's settings announce is what is applied: the
update that brings a run to step s has the share of the peak that `Schedule.share` expects at s.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from trainmon_reference.choices.named import chosen
from trainmon_reference.config import RunConfig

STAIR = 0.1  # factor of a stair, and of a reduction on a plateau
PATIENCE = 2  # evaluations without improvement that a plateau may have
THRESHOLD = 1e-4  # relative improvement that counts, as in torch
EXPONENTIAL = 0.01  # where an exponential ends, of the peak, if there is no min_learning_rate
ONE_CYCLE_RISE, ONE_CYCLE_START, ONE_CYCLE_END = 0.3, 1.0 / 25.0, 1e-4 / 25.0
"""torch's OneCycleLR: part of the steps that rises, and where it starts and ends, of the peak."""


class Plan:
    """What a shape has to know, from a config.

    Attributes
    ----------
    start, end : int
        Steps at which the warm-up ends and the decay does.
    phase : int
        `phase_steps`; 0 is the shape's own.
    floor : float
        The lowest rate as a share of the peak.
    """

    def __init__(self, config: RunConfig) -> None:
        self.start = config.warmup_steps
        self.end = max(self.start + 1, config.decay_steps or config.total_steps)
        self.phase = config.phase_steps
        self.floor = config.min_learning_rate / config.learning_rate if config.learning_rate else 0.0

    def done(self, step: int) -> float:
        """Return the part of the decay that is done at a step, 0 to 1."""
        return min(1.0, max(0.0, (step - self.start) / (self.end - self.start)))

    def down(self, left: float) -> float:
        """Return the share of the peak where this part, 1 to 0, of the way to the floor is left."""
        return self.floor + (1.0 - self.floor) * left


Shape = Callable[[int, Plan], float]


def _half_cosine(done: float) -> float:
    return 0.5 * (1.0 + math.cos(math.pi * done))


def _step(step: int, plan: Plan) -> float:
    stairs = max(0, step - plan.start) // (plan.phase or math.ceil((plan.end - plan.start) / 3))
    return max(plan.floor, STAIR**stairs)


def _wsd(step: int, plan: Plan) -> float:
    decay = plan.phase or max(1, plan.end // 5)
    return plan.down(1.0 - min(1.0, max(0.0, (step - plan.end + decay) / decay)))


def _restarts(step: int, plan: Plan) -> float:
    """Each cycle is twice as long as the one before (Loshchilov & Hutter, arXiv 1608.03983); three, if not said.

    Its first update has the peak, so that a run whose last cycle is done doesn't end with a peak.
    """
    since, length = max(0, step - 1 - plan.start), plan.phase or math.ceil((plan.end - plan.start) / 7)
    while since >= length:
        since, length = since - length, 2 * length
    return plan.down(_half_cosine(since / length))


def _one_cycle(step: int, plan: Plan) -> float:
    rise = plan.start or max(1, round(ONE_CYCLE_RISE * plan.end))
    if step < rise:
        return 1.0 + (ONE_CYCLE_START - 1.0) * _half_cosine(step / rise)
    floor = plan.floor or ONE_CYCLE_END
    return floor + (1.0 - floor) * _half_cosine(min(1.0, (step - rise) / max(1, plan.end - rise)))


SCHEDULES: Mapping[str, Shape] = {
    "constant": lambda step, plan: 1.0,
    "linear": lambda step, plan: plan.down(1.0 - plan.done(step)),
    "cosine": lambda step, plan: plan.down(_half_cosine(plan.done(step))),
    "exponential": lambda step, plan: (plan.floor or EXPONENTIAL) ** plan.done(step),
    "step": _step,
    "one-cycle": _one_cycle,
    "wsd": _wsd,
    "restarts": _restarts,
    "reduce-on-plateau": lambda step, plan: 1.0,  # times the factor that `observe` lowers
}
"""Shares of the peak at a step from the warm-up's end on (`one-cycle`: from 0 on)."""


class RateSchedule:
    """The rate of each update, by the config's `lr_schedule`.

    Parameters
    ----------
    config : RunConfig
        Of the run; BadConfig if its schedule isn't known.

    Attributes
    ----------
    factor : float
        On the rate; lowered by `reduce-on-plateau` alone.
    """

    def __init__(self, config: RunConfig) -> None:
        self.config, self.plan = config, Plan(config)
        self._shape = chosen("lr_schedule", config.lr_schedule, SCHEDULES)
        self.factor, self._best, self._worse = 1.0, math.inf, 0

    def __call__(self, made: int) -> float:
        """Return the rate of the update after so many have been made."""
        step, name = made + 1, self.config.lr_schedule
        warming = step < self.plan.start and name != "one-cycle"
        share = step / self.plan.start if warming else self._shape(step, self.plan)
        return self.config.learning_rate * max(share * self.factor, 0.0 if warming else self.plan.floor)

    def observe(self, val_loss: float) -> None:
        """Hear an evaluation's loss: what `reduce-on-plateau` goes by. Without evaluations its rate stays."""
        if self.config.lr_schedule != "reduce-on-plateau":
            return
        if val_loss < self._best * (1.0 - THRESHOLD):
            self._best, self._worse = val_loss, 0
            return
        self._worse += 1
        if self._worse > PATIENCE:
            self.factor, self._worse = self.factor * STAIR, 0

    def state_dict(self) -> dict[str, Any]:
        """Return what isn't a function of the step."""
        return {"factor": self.factor, "best": self._best, "worse": self._worse}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        self.factor, self._best, self._worse = state["factor"], state["best"], state["worse"]
