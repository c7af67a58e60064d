"""What a series was like up to a step: exact from its ring, else from the cells of its history.

Only what is guaranteed to be there is used (the last 512 points, the full cells), so the answers are a
function of the points alone, however they were cut.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainmon_rules.points import FloatArray, IntArray
from trainmon_rules.series import RING, Series
from trainmon_rules.state import Attempt


@dataclass(frozen=True, slots=True, eq=False)
class Past:
    """The values of a series up to a step, oldest first; `exact` if they are points, not means of cells."""

    step: IntArray
    value: FloatArray
    exact: bool

    @property
    def finite(self) -> FloatArray:
        """The finite values."""
        return self.value[np.isfinite(self.value)]

    def before(self, step: int) -> Past:
        """Return only what lies before `step`."""
        keep = self.step < step
        return Past(self.step[keep], self.value[keep], self.exact)


def until(series: Series, step: int, enough: int = 16) -> Past:
    """Return the points at or before `step`; the history's cells where the ring holds fewer than `enough`."""
    ring = series.tail(RING)
    keep = ring.step <= step
    held_all = series.count <= RING
    if held_all or int(keep.sum()) >= enough:
        return Past(ring.step[keep], ring.value[keep], True)
    h = series.history
    cell = (h.first_step <= step) & (h.count > 0)
    return Past(np.minimum(h.last_step[cell], step), h.mean[cell], h.width == 1)


def extremes(series: Series, step: int) -> tuple[float, float] | None:
    """Return the lowest and highest finite value up to `step`, over the whole attempt; None if there is none."""
    h = series.history
    cell = (h.last_step <= step) & (h.count > 0)
    past = until(series, step, 1).finite
    low = np.concatenate([h.low[cell], past])
    high = np.concatenate([h.high[cell], past])
    return (float(low.min()), float(high.max())) if len(low) else None


def report_number(series: Series, index: int, step: int) -> int:
    """Return which report of its series (from 1) lies at `step`, given that the point `index` is at or after it."""
    ring = series.tail(RING)
    at = int(np.searchsorted(ring.step, step, "left"))
    if at < len(ring) and (ring.start == 0 or at > 0):
        return ring.start + at + 1
    h = series.history
    return min(index + 1, int((h.last_step < step).sum()) * h.width + 1)


def series_of_role(attempt: Attempt, role: str, source: str) -> Series | None:
    """Return the role's series, of the finding's own source if it has one there."""
    found = attempt.of_role(role, source) or attempt.of_role(role)
    return found[0] if found else None
