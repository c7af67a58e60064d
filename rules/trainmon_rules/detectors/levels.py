"""Levels and how uncertain they are: what divergence is measured by. All values in judged units (rising is bad)."""

from __future__ import annotations

import math

import numpy as np

from trainmon_rules.points import FloatArray
from trainmon_rules.series import RELATIVE_FLOOR
from trainmon_rules.series.robust import jump_sigma, mad_sigma, median, medians, quantile

SMOOTH = 3.0  # times the noise between neighbours: more about a line is its bend
BENT = 2.0  # the same of levels: a random walk's are not cut by it
FEW = 4  # jumps that tell
RANGE_OF_EIGHT = 2.85  # standard deviations that eight normal values span on average


def median_error(past: FloatArray, m: int) -> float:
    """Return the standard error of a median of `m` points that go on like `past`.

    The larger of two: from the residuals about a line (1.25 sigma / sqrt m), and from the jumps between medians of
    consecutive `m` points, which is what keeps autocorrelated series (smoothed rewards) quiet. A drift for the better
    is no noise and is taken out; one for the worse stays in. Nor is the bend of a young curve noise: neither is larger
    than what the differences between neighbours, which a smooth curve leaves small, make likely.

    Parameters
    ----------
    past : float64 array, shape (n,)
        Finite points in judged units (rising is bad), oldest first.
    m : int
        Points behind the median in question.
    """
    if len(past) < max(m, 5):
        return math.inf if len(past) < 5 else float(past.max()) - float(past.min())
    half = len(past) // 2
    slope = min(0.0, (median(past[half:]) - median(past[:half])) / (len(past) - half))
    level = past - slope * np.arange(len(past))
    spread = max(mad_sigma(level), (quantile(level, 0.9) - median(level)) / 1.2816)
    error = 1.25 * min(spread, SMOOTH * jump_sigma(np.diff(past))) / math.sqrt(m)
    if len(past) // m > 2:
        error = max(error, _error_of_jumps(np.diff(medians(past, m))))
    return error


def _error_of_jumps(jumps: FloatArray) -> float:
    """Return the standard error of a level by the jumps from each to the next (1.05) or by theirs in turn (0.6)."""
    error = 1.05 * median(np.abs(jumps - min(0.0, median(jumps))))
    return error if len(jumps) < FEW else min(error, BENT * 0.6 * median(np.abs(np.diff(jumps))))


def highest_median(y: FloatArray, n: int) -> float:
    """Return the highest median of `n` consecutive finite points; minus infinity of fewer."""
    y = y[np.isfinite(y)]
    if len(y) < n:
        return -math.inf
    return float(np.median(np.lib.stride_tricks.sliding_window_view(y, n), axis=1).max())


def is_saturated(value: float) -> bool:
    """Whether a loss is −log of the smallest float: softmax has put nothing on the right class (Caffe)."""
    return abs(value - 87.3365) < 2e-4


def doubled(y: FloatArray) -> float | None:
    """Return the level of the first reports if two of the last three are at twice of it; None otherwise.

    The level must be steady: the last ones also lie three ranges of the first ones above them.
    """
    before, last = y[:-3], y[-3:]
    if len(before) < 3 or before.min() <= 0:
        return None
    level, spread = median(before), float(before.max() - before.min())
    over = last > max(2 * level, float(before.max()) + 3 * spread)
    return level if over.sum() >= 2 and over[-1] else None


def far_from_start(y: FloatArray, errors: float) -> float | None:
    """Return the level of the last eight reports if all of them are far worse than the first five; None otherwise.

    Where a single one of the first five is better, which noise does as well, the difference must be twice as sure.
    """
    if len(y) < 12:
        return None
    early, late = y[:5], y[5:][-8:]
    first = median(early[:2])
    spread = max(mad_sigma(late), float(late.max() - late.min()) / RANGE_OF_EIGHT, RELATIVE_FLOOR * abs(first))
    rise = float(late.min()) - float(early.min())
    alone = (early < float(early.min()) + 0.5 * rise).sum() < 2
    return median(late) if rise >= max((2 if alone else 1) * errors * spread, 0.25 * abs(first)) > 0 else None
