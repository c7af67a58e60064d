"""How a rise ended: all of it came back, at least half of it, or less. What spikes and divergence are graded by.

Half of the lost ones never come back, and a loss that settles between its old level and the peak has lost progress
though it looks like a spike that is over. Levels are in judged units (rising is bad).

Source: the kinds of spikes in stas00/ml-engineering, "Understanding training loss patterns" (fast recovering, slowly
recovering, not fully recovering); half as the border is ours.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from trainmon_rules.findings import Recovery
from trainmon_rules.points import FloatArray
from trainmon_rules.series.robust import median

PART = 0.5  # share of the rise that must have come back to call it partly recovered
SETTLED = 20  # reports whose median is the level at which it stands


def share_back(before: float, peak: float, now: float) -> float:
    """Return which share of the rise from `before` to `peak` has come back, given the level now: 0 to 1."""
    rise = peak - before
    if not (math.isfinite(rise) and rise > 0):
        return 0.0
    return min(1.0, max(0.0, (peak - now) / rise))


def grade(share: float) -> Recovery:
    """Return how a rise that isn't back is graded, given the share of it that came back."""
    return Recovery.PARTLY if share >= PART else Recovery.NOT


def settled(judged: FloatArray) -> float:
    """Return the level at which a series stands: the median of its last finite reports; NaN of none."""
    last = judged[-SETTLED:]
    return median(last[np.isfinite(last)])


def graded(before: float, peak: float, now: float, start: float) -> dict[str, Any]:
    """Return the evidence for a rise that isn't back: its grade, the share that is, and the share of progress lost.

    Parameters
    ----------
    before, peak, now : float
        Level before the rise, its peak and the level now.
    start : float
        Level at the run's beginning, NaN where it isn't known.
    """
    share = share_back(before, peak, now)
    evidence: dict[str, Any] = {"recovery": str(grade(share)), "share of the rise back": share}
    made, lost = start - before, now - before
    return evidence | {"share of progress lost": lost / made} if made > 0 and 0 < lost <= made else evidence
