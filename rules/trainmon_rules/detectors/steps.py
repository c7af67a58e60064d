"""Steps: levels that change within a few reports and then go on as before."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from trainmon_rules.detectors.levels import median_error
from trainmon_rules.detectors.swings import neighbours
from trainmon_rules.points import FloatArray
from trainmon_rules.series import RELATIVE_FLOOR
from trainmon_rules.series.robust import mad_sigma, median, medians, quantile

HOLD, HOLD_SHORT = 24, 12  # reports at the new level; in a log of fewer than 128
PAST = 200  # reports before the step that say how far the level wanders anyway
LEVEL = 60  # and those that say what level and noise were, if the level was there already
WANDERS = 1.5  # times as far as the level has wandered
ERRORS = 6.0  # standard errors
NOISES = 2.5  # standard deviations of a report: less can't be seen to be quick
EDGE = 5  # reports on either side within which the level has changed
LEFT = 0.3  # of the step that may happen before, at its edges or afterwards
ALIKE = 2.5  # times as noisy, or as quiet, at most
LEAST = 8  # reports whose median is compared where a step is searched


@dataclass(frozen=True, slots=True)
class Step:
    """A step in judged units (rising is bad): the levels on both sides, and the noise of a report before it."""

    before: float
    after: float
    noise: float

    @property
    def size(self) -> float:
        """The change of level; positive is for the worse."""
        return self.after - self.before


def hold_of(end: int) -> int:
    """Return how many reports must have passed at the new level in a log of that length."""
    return HOLD_SHORT if end < 128 else HOLD


def is_step(before: FloatArray, after: FloatArray) -> Step | None:
    """Return the step between two stretches if it was quick and both are level and equally noisy; None otherwise.

    Parameters
    ----------
    before, after : float64 array, shape (n,)
        Finite values in judged units, oldest first: up to the step, and from it on.
    """
    m = min(HOLD_SHORT, len(before) // 2, len(after))
    if m < EDGE:
        return None
    low, high = median(before[-m:]), median(after[:m])
    size = high - low
    past = before if size > 0 else -before  # what went that way before is no surprise
    young = abs(median(before[-LEVEL : -LEVEL // 2]) - low) > LEFT * abs(size) if len(before) >= LEVEL else True
    n = 2 * m if young else LEVEL  # else a young curve is taken for noise
    before, recent = before[-n:], past[-n:]
    noise, now = _noise(before), _noise(after)
    error = median_error(recent, m)
    least = max(
        ERRORS * max(error, min(error * _inertia(recent), noise)), WANDERS * _wander(past, m),
        NOISES * max(noise, now), RELATIVE_FLOOR * abs(low),
    )  # fmt: skip
    if abs(size) < least:
        return None
    left = (
        median(before[-2 * m : -m]) - low,  # it drifted there before
        median(before[-EDGE:]) - low,
        high - median(after[:EDGE]),
        median(after[-m:]) - high,  # it goes on drifting
    )
    slack = 0.05 * abs(size)
    if max(map(abs, left)) > LEFT * abs(size) or not 1 / ALIKE <= (now + slack) / (noise + slack) <= ALIKE:
        return None
    return Step(low, high, noise)


def place(y: FloatArray, hold: int, slack: int) -> int:
    """Return where in the last `hold + slack` values the level changes most, at least `hold` from the end.

    Parameters
    ----------
    y : float64 array, shape (n,)
        At least `hold + slack + LEAST` finite values.
    hold, slack : int
        See above; `slack` is at least 1.
    """
    part = y[len(y) - hold - slack - LEAST :]
    medians = np.median(np.lib.stride_tricks.sliding_window_view(part, LEAST), axis=1)
    change = np.abs(medians[LEAST : LEAST + slack] - medians[:slack])
    at = len(y) - hold - slack + int(change.argmax())
    low, high = median(y[max(0, at - HOLD_SHORT) : at]), median(y[at : at + HOLD_SHORT])
    around = y[at - LEAST : at + LEAST]
    nearer = np.abs(around - low) - np.abs(around - high)  # positive: it belongs to the new level
    return at - LEAST + int(np.append(0.0, np.cumsum(nearer)).argmin())


def _wander(y: FloatArray, m: int) -> float:
    """Return how far the level rises anyway: from one median of `m` reports to any later one, or from five to five."""
    y = y[-PAST:]
    levels, edges = medians(y, m), medians(y, EDGE)
    slowly = float((levels - np.minimum.accumulate(levels)).max()) if len(levels) > 2 else 0.0
    return max(slowly, float(np.diff(edges).max(initial=0.0)))


def _inertia(y: FloatArray) -> float:
    """Return how much less is known of a level whose noise is autocorrelated: sqrt((1 + r) / (1 - r))."""
    r = min(0.99, max(0.0, neighbours(y)))
    return math.sqrt((1 + r) / (1 - r))


def _noise(y: FloatArray) -> float:
    """Return the standard deviation of a report about a straight line, tails included."""
    half = len(y) // 2
    slope = (median(y[half:]) - median(y[:half])) / (len(y) - half)
    rest = y - slope * np.arange(len(y))
    return max(mad_sigma(rest), (quantile(rest, 0.9) - quantile(rest, 0.1)) / 2.563)
