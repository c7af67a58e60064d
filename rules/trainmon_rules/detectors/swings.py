"""How far a stretch of a series is thrown: what the rules for oscillation measure."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from trainmon_rules.points import FloatArray
from trainmon_rules.series import Series
from trainmon_rules.series.robust import median

OF_SIGMA = 2.563  # standard deviations of a normal distribution that the span is


@dataclass(frozen=True, slots=True)
class Swings:
    """A stretch in numbers: its span (what 80 % of it lie in), level, turns, and the correlation of neighbours."""

    span: float
    level: float
    turns: int
    neighbours: float

    def error(self, n: int) -> float:
        """Return twice the standard error of the level, a median of `n` values."""
        return 2 * 1.25 * self.span / OF_SIGMA / math.sqrt(n)


def swings_of(y: FloatArray, span: float) -> Swings:
    """Return the swings of a stretch whose span is known."""
    return Swings(span, median(y), turns(y, 0.5 * span), neighbours(y))


def spans(y: FloatArray, width: int) -> tuple[FloatArray, FloatArray]:
    """Return level and span of the stretches of `width` values that end with the last one.

    The span is the range of the middle 80 % about the stretch's own slope: no single outlier widens it.
    """
    k = len(y) // width
    parts = y[len(y) - k * width :].reshape(k, width)
    half = width // 2
    slope = (np.median(parts[:, half:], axis=1) - np.median(parts[:, :half], axis=1)) / half
    low, high = np.quantile(parts - slope[:, None] * np.arange(width), [0.1, 0.9], axis=1)
    return np.median(parts, axis=1), high - low


def turns(y: FloatArray, least: float) -> int:
    """Return how often the series turns back by at least `least` from its last extreme."""
    count, low, high, rising = 0, math.inf, -math.inf, 0
    for v in y.tolist():
        low, high = min(low, v), max(high, v)
        if rising >= 0 and v <= high - least:
            count, rising, low = count + 1, -1, v
        elif rising <= 0 and v >= low + least:
            count, rising, high = count + 1, 1, v
    return count


def neighbours(y: FloatArray) -> float:
    """Return the correlation of one value with the next about a straight line; 0 of a constant."""
    t = np.arange(len(y)) - (len(y) - 1) / 2
    r = y - y.mean()
    r = r - t * (r @ t) / max(float(t @ t), 1e-300)
    total = float(r @ r)
    return float(r[1:] @ r[:-1]) / total if total > 0 else 0.0


def first_level(series: Series) -> float:
    """Return the level at which the run began, in judged units: the median of its first five values.

    A resumed attempt began where the first one did; NaN where the log doesn't hold that.
    """
    while series.attempt > 0 and series.older is not None:
        series = series.older
    first = series.judged_of(series.first[:5])
    first = first[np.isfinite(first)]
    return median(first) if len(first) and series.attempt == 0 else math.nan
