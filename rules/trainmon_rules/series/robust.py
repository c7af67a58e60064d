"""Median and quantiles of small arrays: what numpy gives, without its overhead of 20–50 µs a call."""

from __future__ import annotations

import numpy as np

from trainmon_rules.points import FloatArray

MAD_TO_SIGMA = 1.4826  # of a normal distribution


def median(values: FloatArray) -> float:
    """Return the median of finite values; NaN of none."""
    n = len(values)
    if n == 0:
        return float("nan")
    s = np.sort(values)
    half = n // 2
    return float(s[half]) if n % 2 else 0.5 * (float(s[half - 1]) + float(s[half]))


def medians(values: FloatArray, m: int) -> FloatArray:
    """Return the medians of consecutive `m` values, up to the last; what is over at the beginning is left out."""
    blocks = len(values) // m
    found: FloatArray = np.median(values[len(values) - blocks * m :].reshape(blocks, m), axis=1)
    return found


def quantile(values: FloatArray, q: float) -> float:
    """Return the quantile `q` of finite values by linear interpolation; NaN of none."""
    n = len(values)
    if n == 0:
        return float("nan")
    s = np.sort(values)
    at = q * (n - 1)
    low = int(at)
    high = min(low + 1, n - 1)
    return float(s[low]) + (at - low) * (float(s[high]) - float(s[low]))


def jump_sigma(jumps: FloatArray) -> float:
    """Return the standard deviation of values whose differences these are; 0 of none.

    The larger of the median form and the mean form with its top 15 % cut: the first is blind where most values
    tie, the second alone is not robust.
    """
    d = np.sort(np.abs(jumps))
    if not len(d):
        return 0.0
    cut = np.minimum(d, d[int(0.85 * (len(d) - 1))])
    return max(1.048 * median(d), 0.886 * float(cut.mean()))


def mad_sigma(values: FloatArray) -> float:
    """Return the standard deviation that the median absolute deviation suggests."""
    return MAD_TO_SIGMA * median(np.abs(values - median(values)))
