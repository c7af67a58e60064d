"""How uncertain a median of recent points is: the yardstick of level shifts."""

from __future__ import annotations

import math

import numpy as np

from trainmon_rules.points import FloatArray
from trainmon_rules.robust import mad_sigma, median, quantile


def median_error(past: FloatArray, m: int) -> float:
    """Return the standard error of a median of `m` points that go on like `past`.

    The larger of two: from the residuals about a line (1.25 sigma / sqrt m), and from the jumps between medians of
    consecutive `m` points, which is what keeps autocorrelated series (smoothed rewards) quiet. A drift for the better
    is no noise and is taken out; one for the worse stays in.

    Parameters
    ----------
    past : float64 array, shape (n,)
        Finite points in judged units (rising is bad), oldest first.
    m : int
        Points behind the median in question.
    """
    if len(past) < max(m, 5):
        return math.inf if len(past) < 5 else 2.0 * float(np.std(past))
    half = len(past) // 2
    slope = min(0.0, (median(past[half:]) - median(past[:half])) / (len(past) - half))
    level = past - slope * np.arange(len(past))
    spread = max(mad_sigma(level), (quantile(level, 0.9) - median(level)) / 1.2816)
    error = 1.25 * spread / math.sqrt(m)
    blocks = len(past) // m
    if blocks > 2:
        jumps = np.diff(np.median(past[len(past) - blocks * m :].reshape(blocks, m), axis=1))
        error = max(error, 1.05 * median(np.abs(jumps - min(0.0, median(jumps)))))
    return error
