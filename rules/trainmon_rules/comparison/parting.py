"""Since when two courses of one quantity differ for good: two runs at the same steps, not one run against its past.

What two runs of one recipe do differently is noise, so a difference counts only if it lasts to the end of what they
share, is larger than the wobble of the differences themselves over windows of its own length, and larger than what
matters. Its beginning is where the cumulated excess over half its level is lowest (the estimate that a CUSUM chart
gives: Page, Biometrika 41, 1954); then what lies before is looked at in the same way, so that a slow drift is
followed back to where it first shows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from trainmon_rules.points import BoolArray, FloatArray, IntArray
from trainmon_rules.series.robust import jump_sigma, median

LEAST = 8  # pairs below which nothing is said
CELLS = 32  # windows of the whole whose medians give the wobble
LAGS = (1, 2, 4, 8)  # windows apart: the wobble of noise that is correlated shows at some distance only
SURE = 6.0  # standard errors by which the level of a difference must stand out
FEW = 40  # pairs at which that is doubled: so few don't show how far their noise wanders
STILL = 2.5  # standard errors by which its end must
SHORTEST = 20  # the last 1/20 is the shortest part that can be called lasting
SAME = 1e-6  # relative difference of numbers that count as the same
ENOUGH = 64  # pairs that tell their own wobble
STEPS_BACK = 12  # times that what lies before a parting is looked at


@dataclass(frozen=True, slots=True)
class Course:
    """One tag's points over a whole run: each step once, rising."""

    step: IntArray
    value: FloatArray

    @classmethod
    def of(cls, parts: list[tuple[IntArray, FloatArray]]) -> Course:
        """Return the course that attempts make: one that began again below an earlier one's end takes its place.

        Of several points at one step the last counts.
        """
        step, value = np.zeros(0, np.int64), np.zeros(0)
        for s, v in parts:
            if len(s):
                kept = step < s[0]
                step, value = np.concatenate([step[kept], s]), np.concatenate([value[kept], v])
        order = np.argsort(step, kind="stable")
        step, value = step[order], value[order]
        last = np.append(step[1:] != step[:-1], True) if len(step) else np.zeros(0, np.bool_)
        return cls(step[last], value[last])


@dataclass(frozen=True, slots=True)
class Pairs:
    """Values of two courses at the same steps; `exact` unless one of them had to be read between its points."""

    step: IntArray
    one: FloatArray
    other: FloatArray
    exact: bool = True

    def __len__(self) -> int:
        return len(self.step)


def paired(one: Course, other: Course) -> Pairs:
    """Return the values at common steps; where few are common, the denser course read at the sparser one's steps."""
    step, a, b = np.intersect1d(one.step, other.step, assume_unique=True, return_indices=True)
    common = Pairs(step, one.value[a], other.value[b])
    if not len(one.step) or not len(other.step):
        return common
    first, last = max(one.step[0], other.step[0]), min(one.step[-1], other.step[-1])
    inside = [(c.step >= first) & (c.step <= last) for c in (one, other)]
    wanted = one.step[inside[0]] if inside[0].sum() <= inside[1].sum() else other.step[inside[1]]
    if 2 * len(common) >= len(wanted):
        return common
    at = wanted.astype(np.float64)
    return Pairs(wanted, np.interp(at, one.step, one.value), np.interp(at, other.step, other.value), exact=False)


def same_until(p: Pairs) -> int:
    """Return how many pairs at the beginning hold the same numbers."""
    with np.errstate(invalid="ignore", over="ignore"):
        near = np.abs(p.one - p.other) <= SAME * np.maximum(np.abs(p.one), np.abs(p.other))
    near |= (p.one == p.other) | (np.isnan(p.one) & np.isnan(p.other))
    return len(p) if near.all() else int(near.argmin())


def broken_from(p: Pairs) -> int | None:
    """Return the first pair from which one course is never finite and the other always; None if there is none."""
    one, other = np.isfinite(p.one), np.isfinite(p.other)
    if not len(p) or one[-1] == other[-1]:
        return None
    like_the_last: BoolArray = (one == one[-1]) & (other == other[-1])
    return 0 if like_the_last.all() else int(len(p) - like_the_last[::-1].argmin())


def parted_from(difference: FloatArray, floor: float) -> int | None:
    """Return the first index from which a difference lasts to the end; None if it doesn't, or is but noise.

    Parameters
    ----------
    difference : float64 array, shape (n,)
        One course minus the other at common steps, all finite.
    floor : float
        The least level that matters.
    """
    d, wobble = difference, _wobble(difference)
    end, onset, sign = len(d), None, 0.0
    for _ in range(STEPS_BACK):
        if end >= ENOUGH:
            wobble = _wobble(d[:end])  # a drift makes the windows of the whole wobble; those before it don't
        level = _lasting(d[:end], wobble, floor)
        if level == 0 or level * sign < 0:
            break
        sign = level
        first = _begin(d[:end], level)
        onset = end = _begin(d[:end], median(d[first:end]))
        if end < LEAST:
            break
    return onset


def _begin(d: FloatArray, level: float) -> int:
    """Return where a difference of this level begins that lasts to the end; no value counts for more than three."""
    excess = np.clip(np.sign(level) * d, -3 * abs(level), 3 * abs(level)) - abs(level) / 2
    return int(np.argmin(np.concatenate([[0.0], np.cumsum(excess)])[:-1]))


def _wobble(d: FloatArray) -> float:
    """Return the standard deviation that single differences would need for windows of them to wobble as they do."""
    width = max(1, len(d) // CELLS)
    cells = np.median(d[len(d) % width :].reshape(-1, width), axis=1)
    return max((_apart(cells, lag) for lag in LAGS if len(cells) > lag + 4), default=0.0) * float(np.sqrt(width))


def _apart(cells: FloatArray, lag: int) -> float:
    """Return the noise of windows as it shows at this distance: by first differences, or by second ones if less.

    A step spoils few of the first, a long drift all of them but none of the second.
    """
    first = jump_sigma(cells[lag:] - cells[:-lag])
    if len(cells) <= 2 * lag + 4:
        return first
    second = cells[2 * lag :] - 2 * cells[lag:-lag] + cells[: -2 * lag]
    return min(first, jump_sigma(second) / math.sqrt(3))  # of three values, not of two


def _lasting(d: FloatArray, wobble: float, floor: float) -> float:
    """Return the level of the difference that lasts to the end, over the longest part that shows one; 0 for none."""
    n, errors = len(d), SURE * (1 + FEW / len(d))
    while n >= max(LEAST, len(d) // SHORTEST):
        level, end = median(d[-n:]), max(LEAST, n // 4)
        at_end = median(d[-end:])
        sure = abs(level) >= max(floor, errors * wobble / np.sqrt(n)) and level != 0
        if sure and level * at_end > 0 and abs(at_end) >= max(floor, STILL * wobble / np.sqrt(end)):
            return level
        n //= 2
    return 0.0
