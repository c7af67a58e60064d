"""What a tag was like before a resume: the path that a resumed attempt goes on, told by the attempts before it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from trainmon_rules.detectors.evaluations import row_noise
from trainmon_rules.detectors.levels import median_error
from trainmon_rules.points import BoolArray, FloatArray, IntArray
from trainmon_rules.series import RING, Series
from trainmon_rules.series.robust import median

LINKS = 8  # attempts looked back at
BELOW = 16  # reports below the resume step that make the level
LEAST = 6  # of them without which there is no level
NOISE = 64  # reports that its noise is read from


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """A tag's values by step, oldest first: points where they are remembered, else cells of some points each.

    Attributes
    ----------
    step : int64 array, shape (n,)
        Step of the point, or the first of the cell.
    low, mean, high : float64 arrays, shape (n,)
        Of a point all three are its value. Only finite ones are held.
    """

    step: IntArray
    low: FloatArray
    mean: FloatArray
    high: FloatArray

    def __len__(self) -> int:
        return len(self.step)

    def where(self, mask: BoolArray) -> Told:
        """Return the points picked by a mask."""
        return Told(self.step[mask], self.low[mask], self.mean[mask], self.high[mask])

    def around(self, step: int) -> tuple[float, float] | None:
        """Return the lowest and highest value beside a step: of the point before it and the one after.

        None before the first; beyond the last it is that one's value, however far.
        """
        at = int(np.searchsorted(self.step, step, "right")) - 1
        if at < 0:
            return None
        near = slice(at, at + 1 if self.step[at] == step else at + 2)
        return float(self.low[near].min()), float(self.high[near].max())


def is_resume(series: Series, index: int) -> bool:
    """Whether the attempt goes on from another one, as known at its point `index`.

    One that begins within its own logging interval of zero is a run from the start, reported less often than the one
    before: of that the first record alone can't tell.
    """
    first = int(series.history.first_step[0])
    return series.older is not None and first > series.interval_at(index)


def earlier(series: Series) -> Iterator[Series]:
    """Yield the same tag's series in the attempts before, the last one first."""
    older = series.older
    for _ in range(LINKS):
        if older is None:
            return
        yield older
        older = older.older


def told_before(series: Series) -> Told:
    """Return what the attempts before have told of a tag: of each step the last that was told."""
    parts: list[Told] = []
    first: int | None = None
    for older in earlier(series):
        part = _told(older)
        if first is not None:
            part = part.where(part.step < first)
        if len(part):
            first = int(part.step[0])
            parts.append(part)
    parts.reverse()
    columns = [np.concatenate([getattr(p, name) for p in parts] or [np.zeros(0)]) for name in ("low", "mean", "high")]
    return Told(np.concatenate([p.step for p in parts] or [np.zeros(0, np.int64)]), *columns)


def _told(series: Series) -> Told:
    """Return a series that grows no more: its ring, and before it the cells of its history."""
    ring = series.tail(RING)
    step, low, mean, high, _ = series.history.whole()
    ends = np.append(step[1:], np.iinfo(np.int64).max)
    cell = (ends <= ring.step[0]) & np.isfinite(low) if ring.start else np.zeros(len(step), np.bool_)
    ok = np.isfinite(ring.value)
    values = ring.value[ok]
    return Told(
        np.concatenate([step[cell], ring.step[ok]]),
        np.concatenate([low[cell], values]),
        np.concatenate([mean[cell], values]),
        np.concatenate([high[cell], values]),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Left:
    """What the attempts before left of a level, in judged units (rising is bad).

    Attributes
    ----------
    level : float
        Median of the last reports below the resume step.
    start : float
        Median of the run's first five.
    noise : float
        Standard deviation of a report.
    past, points : float64 arrays
        The last values below the resume step, which may be means of many, and single reports.
    """

    level: float
    start: float
    noise: float
    past: FloatArray
    points: FloatArray

    def error(self, n: int) -> float:
        """Return the standard error of the difference between the level and a median of `n` new reports."""
        return math.hypot(median_error(self.past, min(BELOW, len(self.past))), median_error(self.points, n))


def left_below(series: Series, step: int) -> Left | None:
    """Return what was left of a series' level below the step where it resumes; None of fewer than six values."""
    told = told_before(series)
    past = series.judged_of(told.mean[told.step < step])
    past = past[np.isfinite(past)][-NOISE:]
    if series.older is None or len(past) < LEAST:
        return None
    ring = series.older.tail(RING)
    y = series.judged_of(ring.value)
    below = y[np.isfinite(y) & (ring.step < step)]
    points = (below if len(below) >= 2 * BELOW else y[np.isfinite(y)])[-NOISE:]
    root = [*earlier(series)][-1]
    head = series.judged_of(root.first[:5])
    head = head[np.isfinite(head)]
    level = median(past[-BELOW:])
    return Left(level, median(head) if len(head) else level, row_noise(points[-BELOW:]), past, points)
