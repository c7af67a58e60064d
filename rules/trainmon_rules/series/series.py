"""One tag's points in one attempt, with the statistics that every detector reads.

A series keeps a ring of recent points, one robust baseline and one long history (`history`). Detectors own
scalars only. The baseline is refreshed at *block* boundaries, which are fixed by a point's index (after every
point at first, after 256 at last), and tests against it are elementwise; so nothing here depends on how the
points were cut into chunks.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trainmon_rules.points import BoolArray, Chunk, FloatArray, IntArray
from trainmon_rules.series.baseline import MIN_POINTS, Baseline, fit
from trainmon_rules.series.history import History
from trainmon_rules.series.view import View

RING = 512  # raw points kept for detectors that look back
WINDOW = 64  # accepted points behind the baseline; a longer one takes a young loss's curve for noise
READMIT = 128  # flagged points after which the new level is accepted as normal
OUTLIER_MEMORY = 384  # points for which an isolated outlier is remembered
OUTLIER_SIGMAS = 4.0


def _block_size(index: int) -> int:
    return 1 if index < 64 else 4 if index < 256 else 16 if index < 1024 else 64 if index < 16384 else 256


def block_start(index: int) -> int:
    """Return the index at which the block that holds `index` begins."""
    return index - index % _block_size(index)


def block_end(index: int) -> int:
    """Return the index at which the block that holds `index` ends (exclusive)."""
    return block_start(index) + _block_size(index)


@dataclass(slots=True, eq=False)
class Block:
    """Consecutive points of a series that share one baseline, as detectors see them.

    Attributes
    ----------
    series : Series
        The series; its ring holds at least the 512 points before `start`.
    start : int
        Index of the first point in the series.
    step, time, value, row : arrays, shape (n,)
        As in a `Chunk`.
    judged : float64 array, shape (n,)
        The value in judged units: rising is bad. NaN where it can't be judged.
    over : bool array, shape (n,)
        Points above the baseline's threshold.
    baseline : Baseline or None
        None until there are six accepted points.
    """

    series: Series
    start: int
    step: IntArray
    time: FloatArray
    value: FloatArray
    row: IntArray
    judged: FloatArray
    over: BoolArray
    baseline: Baseline | None
    over_before: int = 0

    def __len__(self) -> int:
        return len(self.value)

    def cut(self, start: int, stop: int) -> Block:
        """Return the points `start` to `stop` (exclusive) as a block of views."""
        s = slice(start, stop)
        return Block(
            self.series,
            self.start + start,
            self.step[s],
            self.time[s],
            self.value[s],
            self.row[s],
            self.judged[s],
            self.over[s],
            self.baseline,
            self.over_before + int(np.count_nonzero(self.over[:start])),
        )


@dataclass(slots=True, eq=False)
class Series:
    """One tag of one source in one attempt.

    Parameters
    ----------
    tag, role, source : str
        Names; `role` is "" for an unmapped tag.
    attempt : int
        Counts from 0.
    direction : int
        +1 where rising is bad (losses), −1 where falling is bad (rewards, accuracies), 0 where neither is.
    log : bool
        Judge the logarithm (gradient norms, which are log-normal).
    """

    tag: str
    role: str
    source: str
    attempt: int
    direction: int = 1
    log: bool = False
    retain: int = RING
    count: int = 0
    history: History = field(default_factory=History)
    shown: int | None = None  # points that the detector asked now has been shown; None where none is asked
    baseline: Baseline | None = None
    wanted: int | None = None  # index of the first point that a waiting detector hasn't been shown
    over: int = 0  # points above the baseline's threshold so far
    shared: dict[str, Any] = field(default_factory=dict)  # summaries that several detectors read, by name
    older: Series | None = None  # the same tag in the attempt before; it grows no more
    _step: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    _time: FloatArray = field(default_factory=lambda: np.zeros(0))
    _value: FloatArray = field(default_factory=lambda: np.zeros(0))
    _row: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    _peak: FloatArray = field(default_factory=lambda: np.zeros(0))  # of a rate: the highest value before each point
    _top: float = math.nan  # the highest of all so far
    _first: FloatArray = field(default_factory=lambda: np.zeros(0))  # the first 16 values
    _first_step: int = 0
    _base: int = 0  # index of the ring's first point
    _done: int = 0  # index of the first point not judged yet
    _window: deque[float] = field(default_factory=lambda: deque(maxlen=WINDOW))
    _flagged: deque[float] = field(default_factory=lambda: deque(maxlen=WINDOW))
    _flags_in_a_row: int = 0
    _clean_in_a_row: int = 0
    _outliers: deque[tuple[int, float]] = field(default_factory=lambda: deque(maxlen=64))

    # ------------------------------------------------------------------ points in
    def extend(self, c: Chunk) -> None:
        """Append the next points. They are judged when `blocks` is iterated."""
        first = self._done if self.wanted is None else min(self._done, self.wanted)
        keep = max(0, first - self.retain - self._base)
        self._step = np.concatenate([self._step[keep:], c.step])
        self._time = np.concatenate([self._time[keep:], c.time])
        self._value = np.concatenate([self._value[keep:], c.value])
        self._row = np.concatenate([self._row[keep:], c.row])
        if self.role == "learning_rate":
            self._remember_peaks(c, keep)
        self._base += keep
        self.count += len(c)
        if len(self._first) < 16:
            self._first = np.concatenate([self._first, c.value[: 16 - len(self._first)]])
        self.history.extend(c.step, c.value)

    def _remember_peaks(self, c: Chunk, keep: int) -> None:
        if not self.count and self.older is None:
            self._first_step = int(c.step[0])
        tops = np.fmax.accumulate(np.append(self._top, np.where(np.isfinite(c.value), c.value, np.nan)))
        self._peak = np.concatenate([self._peak[keep:], tops[:-1]])
        self._top = float(tops[-1])

    def inherit(self, older: Series, resume_step: int) -> None:
        """Start from the baseline that the attempt before had below the step where this one resumes."""
        self.older = older
        self._top, self._first_step = older._top, older._first_step
        ring = older.tail(RING)
        kept = self.judged_of(ring.value[ring.step < resume_step])
        kept = kept[np.isfinite(kept)][-WINDOW:]
        if len(kept) >= 2 * MIN_POINTS:
            self._window.extend(kept.tolist())
            self.baseline = self._fit(0)

    def judged_of(self, value: FloatArray) -> FloatArray:
        """Return the values in judged units: rising is bad, NaN where they can't be judged."""
        with np.errstate(divide="ignore", invalid="ignore"):
            y = np.log(value) if self.log else value * (self.direction or 1)
        return np.where(np.isfinite(y), y, np.nan)

    # ------------------------------------------------------------------ looking back
    @property
    def first(self) -> FloatArray:
        """The first 16 values, as logged; to a detector only those that it has been shown."""
        return self._first[: self.shown]

    def tail(self, n: int) -> View:
        """Return the last `n` points (fewer if there are fewer)."""
        return self._view(self.count - n, self.count)

    def before(self, index: int, n: int) -> View:
        """Return the `n` points before `index`."""
        return self._view(index - n, index)

    def asof_row(self, row: int, n: int) -> View:
        """Return the last `n` points in records up to and including `row` of the same source."""
        end = self._base + int(np.searchsorted(self._row, row, "right"))
        return self._view(end - n, end)

    def _view(self, start: int, stop: int) -> View:
        start = max(start, self._base)
        s = slice(start - self._base, max(stop - self._base, start - self._base))
        first, peak = self._first[: max(0, stop)], self._peak_before(s)
        return View(start, self._step[s], self._time[s], self._value[s], self._row[s], first, peak)

    def _peak_before(self, s: slice) -> float:
        if not len(self._peak) or s.stop <= s.start:
            return math.nan
        seen = int(self._step[s.stop - 1]) - self._first_step
        return math.inf if self._first_step > max(1, seen) else float(self._peak[s.start])

    @property
    def interval(self) -> int:
        """Steps from one report to the next: the median over the ring, at least 1."""
        return 1 if len(self._step) < 2 else max(1, int(np.median(np.diff(self._step[-65:]))))

    def interval_at(self, index: int) -> int:
        """Return the steps between reports as known at `index`: the median over the 64 before."""
        steps = self.before(index + 1, 65).step
        return 1 if len(steps) < 2 else max(1, int(np.median(np.diff(steps))))

    @property
    def last_step(self) -> int:
        """Step of the last point."""
        return int(self._step[-1])

    @property
    def last_value(self) -> float:
        """Value of the last point."""
        return float(self._value[-1])

    # ------------------------------------------------------------------ judging
    def blocks(self) -> Iterator[Block]:
        """Yield the points not judged yet, a block (or the part of one that is there) at a time."""
        while self._done < self.count:
            start = self._done
            end = block_end(start)
            stop = min(end, self.count)
            view = self._view(start, stop)
            y = self.judged_of(view.value)
            over, before = self._over(y), self.over
            self.over += int(np.count_nonzero(over))
            yield Block(self, start, view.step, view.time, view.value, view.row, y, over, self.baseline, before)
            self._done = stop
            if stop == end:
                self._admit(end)

    def _over(self, y: FloatArray) -> BoolArray:
        b = self.baseline
        return np.zeros(len(y), np.bool_) if b is None else y - b.level > b.threshold

    def _admit(self, end: int) -> None:
        """At a block's end, let its good points into the window and fit the next baseline."""
        start = block_start(end - 1)
        y = self.judged_of(self._view(start, end).value)
        over = self._over(y)
        self._remember_outliers(start, y)
        finite = np.isfinite(y)
        if not (over & finite).any():
            if finite.any():
                self._window.extend(y[finite].tolist())
                self._clean_in_a_row += int(finite.sum())
                if self._clean_in_a_row >= 16:
                    self._flags_in_a_row = 0
                    self._flagged.clear()
        else:
            for value, flag, ok in zip(y.tolist(), over.tolist(), finite.tolist(), strict=True):
                if ok:
                    self._admit_one(value, flag)
        self.baseline = self._fit(end)

    def _admit_one(self, value: float, flagged: bool) -> None:
        if not flagged:
            self._window.append(value)
            self._clean_in_a_row += 1
            if self._clean_in_a_row >= 16:
                self._flags_in_a_row = 0
                self._flagged.clear()
            return
        self._clean_in_a_row = 0
        self._flags_in_a_row += 1
        self._flagged.append(value)
        if self._flags_in_a_row >= READMIT:  # a lasting shift: this is the new normal
            self._window.clear()
            self._window.extend(self._flagged)
            self._flags_in_a_row = 0
            self._flagged.clear()

    def _remember_outliers(self, start: int, y: FloatArray) -> None:
        b = self.baseline
        if b is None:
            return
        for i in np.flatnonzero(y - b.level > OUTLIER_SIGMAS * b.scale).tolist():
            self._outliers.append((start + i, float(y[i] - b.level)))

    def _outlier_excess(self, now: int) -> float:
        """Return the largest isolated outlier of the last 384 points, 0 if there were fewer than two."""
        index = {i for i, _ in self._outliers}
        isolated = [
            excess
            for i, excess in self._outliers
            if i >= now - OUTLIER_MEMORY and i < now - 1 and i - 1 not in index and i + 1 not in index
        ]
        return max(isolated) if len(isolated) >= 2 else 0.0

    def _fit(self, now: int) -> Baseline | None:
        window = np.fromiter(self._window, np.float64, len(self._window))
        return fit(window, self.log, self._outlier_excess(now))
