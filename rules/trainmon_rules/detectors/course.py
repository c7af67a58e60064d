"""How fast a schedule really runs: the factor between the steps that its rates belong to and those of the log.

A scheduler that is stepped every micro-batch runs through its decay eight times too fast, one that is stepped once
an epoch hardly moves. The rates then lie on the announced curve, on a time axis that is wrong by a constant factor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from trainmon_rules.points import FloatArray, IntArray
from trainmon_rules.schedules import Schedule
from trainmon_rules.series import Series
from trainmon_rules.series.trend import is_rate

SAME = 1e-6  # relative difference of two rates that are the same
UNKNOWN_FLOORS = (0.0, 0.1)  # of the peak: usual ends where none is announced
FAST, SLOW = 1.25, 0.5  # factors that no usual end, and no other count of the warm-up, explains
DONE = 0.2  # part of the decay that must be done (fast), or should have been
LATER = 1.6  # times the step: the factor must be the same then, else it is another curve that only begins so
LATER_SLOW = 1.3  # no usual curve begins so slowly
STEADY = 0.03  # relative change of the factor that is none


@dataclass(slots=True)
class Course:
    """What is remembered of the rate: its first steps, its peak, and since when it has not moved."""

    taken: int = 0  # points, also those that can't be rates
    count: int = 0
    step: int = 0  # of the last report
    first_step: int = 0
    peak: float = 0.0
    peak_step: int = 0
    low: float = math.inf  # of the rates above 0
    value: float = math.nan
    since: int = 0  # step since which it is `value`
    ties: int = 0  # reports of that value
    longest: int = 0  # steps of the longest stretch without a move before this one

    def take(self, step: IntArray, rate: FloatArray) -> None:
        """Take the next usable reports."""
        if not len(rate):
            return
        if not self.count:
            self.first_step = self.since = int(step[0])
        self.count += len(rate)
        self.step = int(step[-1])
        top = int(rate.argmax())
        if rate[top] > self.peak * (1 + SAME):
            self.peak, self.peak_step = float(rate[top]), int(step[top])
        self.low = min(self.low, float(rate.min(initial=math.inf, where=rate > 0)))
        before = np.concatenate([[self.value], rate[:-1]])
        moves = np.flatnonzero(~(np.abs(rate - before) <= SAME * self.peak))
        if not len(moves):
            self.ties += len(rate)
            return
        edges = np.concatenate([[self.since], step[moves]])
        self.longest = max(self.longest, int(np.diff(edges).max()))
        self.value, self.since, self.ties = float(rate[-1]), int(step[moves[-1]]), len(rate) - int(moves[-1])


def course_of(series: Series, end: int) -> Course:
    """Return a series' course up to its point `end`, the end of a block; whichever detector asks first takes it in."""
    course: Course = series.shared.setdefault("course", Course())
    if course.taken < end:
        view = series.before(end, end - course.taken)
        course.taken = end
        ok = is_rate(view.value)
        course.take(view.step[ok], view.value[ok])
    return course


@dataclass(frozen=True, slots=True)
class Factor:
    """Schedule's steps a step of the log: the most likely factor, what printing makes of it, the least and the most."""

    step: int
    best: float
    error: float
    least: float
    most: float


def factor_at(plan: Schedule, step: int, share: float, error: float, peak_step: int) -> Factor | None:
    """Return the factor that a rate in its decay implies; None before the decay, or where its end isn't known.

    Parameters
    ----------
    plan : Schedule
        A cosine or a straight line with a known end.
    step : int
        The report's step, after that of the peak.
    share, error : float
        Rate over the peak, and how far off it may be printed.
    peak_step : int
        Step at which the rate was highest; the decay may also be counted from 0, as torch does.
    """
    total = plan.total
    if total is None or step <= peak_step:
        return None
    shares = (share, share - error, share + error)
    done = [
        [(plan.done(x, floor), origin) for x in shares]
        for floor in (UNKNOWN_FLOORS if plan.floor is None else (plan.floor,))
        for origin in (peak_step, 0)
    ]
    if any(step - origin * (1.0 - u) <= 0 for row in done for u, origin in row):
        return None  # steps below 0, or so large that they can't be told apart
    found = [[u * total / (step - origin * (1.0 - u)) for u, origin in row] for row in done]
    first, every = found[0], [f for row in found for f in row]
    return Factor(step, first[0], max(first) - min(first), min(every), max(every))


@dataclass(slots=True)
class Pace:
    """Says that a schedule runs too fast or too slowly, once the factor has stayed the same for a while."""

    seen: Factor | None = None

    def look(self, plan: Schedule, step: int, share: float, error: float, peak_step: int) -> Factor | None:
        """Return the factor if it is off and steady."""
        now = factor_at(plan, step, share, error, peak_step)
        if now is None or not _is_off(plan, now):
            self.seen = None
            return None
        if self.seen is None:
            self.seen = now
        elif step >= (LATER if now.best > 1 else LATER_SLOW) * self.seen.step:
            if abs(now.best - self.seen.best) <= STEADY * self.seen.best + now.error:
                return now
            self.seen = now
        return None


def _is_off(plan: Schedule, f: Factor) -> bool:
    part = f.step / (plan.total or 1)
    return (f.least >= FAST and f.best * part >= DONE) or (f.most <= SLOW and part >= DONE and f.best > 0)


def whole(factor: float) -> str:
    """Return a factor in words: a whole number (or one over it) where it is near one."""
    ratio = factor if factor >= 1 else 1 / factor
    near = round(ratio)
    return str(near) if abs(ratio / near - 1) < 0.03 else f"{ratio:.3g}"


def off_by(plan: Schedule, step: int, share: float, peak_step: int) -> float:
    """Return by how much of the peak a rate is off the announced curve at the least; NaN where it isn't known."""
    floors = UNKNOWN_FLOORS if plan.floor is None else (plan.floor,)
    plans = [Schedule(plan.shape, plan.warmup, plan.total, plan.peak, f) for f in floors]
    origins = dict.fromkeys((peak_step, plan.warmup or 0, 0))
    shares = [float(p.share(np.array([step]), o)[0]) for p in plans for o in origins]
    return min(abs(share - s) for s in shares)
