"""Evaluations as `overfit` compares them: in groups, with the training loss beside them; and their statistics."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from trainmon_rules.points import FloatArray
from trainmon_rules.series import Block
from trainmon_rules.series.trend import FAR_BELOW

FEW = 12  # evaluations (or groups) below which noise and best are uncertain
SHIFT = 8  # evaluations on either side of a shift
FAR_ABOVE = 1000.0  # times the baseline's threshold


@dataclass(slots=True)
class Group:
    """Consecutive evaluations: their mean, the last one's step, and the training loss beside them."""

    value: float
    step: int
    time: float
    train: float
    error: float  # standard error of `train`


@dataclass(slots=True)
class Part:
    """A group that is being filled: sums, so that it stays small however many evaluations it will hold."""

    count: int = 0
    value: float = 0.0
    step: int = 0
    beside: int = 0
    train: float = 0.0
    error: float = 0.0

    def add(self, value: float, step: int) -> None:
        """Take one evaluation."""
        self.count += 1
        self.value += value
        self.step = step

    def add_train(self, level: float, error: float) -> None:
        """Take the training loss beside it, with its standard error; NaN where none is logged."""
        if math.isfinite(level) and math.isfinite(error):
            self.beside += 1
            self.train += level
            self.error += error

    def mean(self, time: float) -> Group:
        """Return the group that ends at that time; its training loss is that of the evaluations that had one."""
        n = self.beside
        train, error = (self.train / n, self.error / n / math.sqrt(n)) if n else (math.nan, math.nan)
        return Group(self.value / self.count, self.step, time, train, error)


def absurd(block: Block, value: float) -> bool:
    """Whether it is no evaluation but a number like ±1e300, which would be the best, or the noise, for ever."""
    b = block.baseline
    return b is not None and not -FAR_BELOW * b.threshold < value - b.level < FAR_ABOVE * b.threshold


def merged(a: Group, b: Group) -> Group:
    """Return two neighbouring groups as one."""
    both = Part()
    for g in (a, b):
        both.add(g.value, g.step)
        both.add_train(g.train, g.error)
    return both.mean(b.time)


def lowest(past: FloatArray) -> tuple[int, float]:
    """Return place and level of the best: of three neighbours' mean, as one of many is luck; of one among few."""
    if len(past) < FEW:
        at = int(past.argmin())
        return at, float(past[at])
    means = (past[:-2] + past[1:-1] + past[2:]) / 3
    at = int(means.argmin())
    return at + int(past[at : at + 3].argmin()), float(means[at])


def noise(values: FloatArray) -> float:
    """Standard deviation of an evaluation about a smooth curve: 1.4826 median |second difference| / √6."""
    second = np.abs(values[2:] - 2 * values[1:-1] + values[:-2])
    return 1.4826 * float(np.median(second)) / math.sqrt(6.0) if len(second) else 0.0


def has_shifted(values: FloatArray, at: int) -> bool:
    """Whether the last eight evaluations lie above the eight around the best, too noisily for each to show it.

    Welch's t of 3.5 and 10 % of the level: with white noise of 6 % beside a falling training loss that errs once in
    300 runs of 60 evaluations, with noise of 15 % once in 25 (the price of choosing the best among many).
    """
    start = max(0, at - SHIFT // 2)
    early, late = values[start : start + SHIFT], values[-SHIFT:]
    if start + SHIFT > len(values) - SHIFT:
        return False
    with np.errstate(over="ignore", invalid="ignore"):  # ±1e300 end in infinity, which says nothing
        error = math.sqrt((float(early.var(ddof=1)) + float(late.var(ddof=1))) / SHIFT)
        rise = float(late.mean() - early.mean())
    return rise > max(3.5 * error, 0.1 * abs(float(early.mean())))


def row_noise(values: FloatArray) -> float:
    """Standard deviation of a report, from the mean difference of neighbours."""
    d = np.abs(np.diff(values))
    return 0.886 * float(d.mean()) if len(d) else 0.0
