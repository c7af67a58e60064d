"""Has it learned, and is it still learning: the summaries that the slow detectors keep.

`Trend` is the whole curve in at most 64 cells, `Rate` the learning rate's past, `Ties` the length of a run of
equal values. Unlike `Series.history`, which holds everything that was fed, they are taken at block ends only, so
a decision made on them is one about the points up to there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from trainmon_rules.points import BoolArray, FloatArray, IntArray
from trainmon_rules.series import Block, View, block_end, block_start
from trainmon_rules.series.robust import jump_sigma, median

CELLS = 64
FAR_BELOW = 20.0  # times the threshold: no improvement, but a number like -1e300
ABSURD_RATE = 1e3  # no learning rate
LOOK_EVERY = 1.05  # the run must have grown by this factor before the curve is looked at again


def whole(block: Block) -> tuple[View, FloatArray, BoolArray] | None:
    """Return the whole block that ends with this part of it, its judged values and which of them count.

    None while the block's last point is missing. Points above the baseline's threshold (or absurdly far below it) and
    those that can't be judged don't count: one spike must not decide what a level is.
    """
    end = block.start + len(block)
    if end != block_end(block.start):
        return None
    start = block_start(end - 1)
    if start == block.start:
        view, y = View(start, block.step, block.time, block.value, block.row), block.judged
    else:
        view = block.series.before(end, end - start)
        y = block.series.judged_of(view.value)
    b = block.baseline
    if b is None:
        return view, y, np.isfinite(y)
    return view, y, (y - b.level <= b.threshold) & (b.level - y < FAR_BELOW * b.threshold)


def is_rate(value: FloatArray) -> BoolArray:
    """Return which values can be a learning rate."""
    return (value >= 0) & (value < ABSURD_RATE)


def noise(cells: FloatArray) -> float:
    """Return the standard deviation of the cells about their own slow course, from differences of neighbours."""
    return jump_sigma(np.diff(cells))


@dataclass(slots=True)
class Trend:
    """The curve so far in equal cells of `width` points (a power of two), fewer than `most`: means of those that count.

    `mean` and `step` (of each cell's first point) hold complete cells only; a cell without a point that counts
    is NaN. `count` is the number of points taken, `head` the first 16 that count.
    """

    most: int = CELLS
    width: int = 1
    count: int = 0
    first_step: int = 0
    first_time: float = math.nan
    last_step: int = 0
    head: list[float] = field(default_factory=list)
    mean: list[float] = field(default_factory=list)
    step: list[int] = field(default_factory=list)
    _weight: list[int] = field(default_factory=list)
    _sum: float = 0.0
    _n: int = 0
    _held: int = 0
    _step: int = 0

    def extend(self, view: View, value: FloatArray, ok: BoolArray) -> None:
        """Take one whole block, as `whole` returns it."""
        step = view.step
        if not self.count:
            self.first_step, self.first_time = int(step[0]), float(view.time[0])
        self.last_step = int(step[-1])
        self.count += len(value)
        if len(self.head) < 16:
            self.head = (self.head + value[ok].tolist())[:16]
        part = min(len(value), self.width)
        if part == len(value):
            counts, sums = [int(np.count_nonzero(ok))], [float((value if ok.all() else np.where(ok, value, 0.0)).sum())]
        else:
            kept = np.where(ok, value, 0.0).reshape(-1, part)
            counts, sums = ok.reshape(-1, part).sum(axis=1).tolist(), kept.sum(axis=1).tolist()
        for i, (n, s) in enumerate(zip(counts, sums, strict=True)):
            if not self._held:
                self._step = int(step[i * part])
            self._n += n
            self._sum += s
            self._held += part
            if self._held == self.width:
                self._close()
        while len(self.mean) >= self.most:
            self._merge()

    def _close(self) -> None:
        self.mean.append(self._sum / self._n if self._n else math.nan)
        self.step.append(self._step)
        self._weight.append(self._n)
        self._sum, self._n, self._held = 0.0, 0, 0

    def _merge(self) -> None:
        w, m = self._weight, self.mean
        total = [a + b for a, b in zip(w[0::2], w[1::2], strict=True)]
        sums = [
            (a * n if n else 0.0) + (b * k if k else 0.0)
            for a, n, b, k in zip(m[0::2], w[0::2], m[1::2], w[1::2], strict=True)
        ]
        self.mean = [s / n if n else math.nan for s, n in zip(sums, total, strict=True)]
        self._weight, self.step = total, self.step[0::2]
        self.width *= 2

    def cells(self) -> tuple[FloatArray, IntArray]:
        """Return the complete cells that have a value, and the step at which each begins."""
        mean, step = np.array(self.mean), np.array(self.step, np.int64)
        ok = np.isfinite(mean)
        return mean[ok], step[ok]

    @property
    def start(self) -> float:
        """The level of the first reports: the median of five, so that a first row of 1e16 doesn't set the scale."""
        return median(np.array(self.head[:5])) if self.head else math.nan

    @property
    def saw_the_start(self) -> bool:
        """Whether more of the run was seen than had passed before the log begins."""
        return self.first_step <= max(1, self.last_step - self.first_step)


def trend_of(block: Block) -> Trend | None:
    """Return the series' trend as of the end of this block; None while the block's last point is missing.

    The trend belongs to the series: whichever detector asks first takes the block in.
    """
    end = block.start + len(block)
    if end != block_end(block.start):
        return None
    trend: Trend = block.series.shared.setdefault("trend", Trend())
    if trend.count < end and (taken := whole(block)) is not None:
        trend.extend(*taken)
    return trend


@dataclass(slots=True)
class Rate:
    """The learning rate as far as it was looked at: its peak, its last value, and when it last rose above its peak."""

    peak: float = math.nan
    last: float = math.nan
    risen_at: int = 0

    def look(self, view: View, index: int) -> None:
        """Take the rates as of the point `index` of the judged series."""
        values = view.finite_where(is_rate(view.value))
        if not len(values):
            return
        top = float(values.max())
        before = float(values[0]) if math.isnan(self.peak) else self.peak
        if top > before * 1.0001:
            self.risen_at = index
        self.peak = max(before, top)
        self.last = float(values[-1])

    @property
    def known(self) -> bool:
        """Whether a learning rate is logged."""
        return math.isfinite(self.last)

    def alive(self, share: float) -> bool:
        """Whether the rate is still at least `share` of its peak; a rate that isn't logged counts as alive."""
        return not self.known or (self.last > 0 and self.last >= share * self.peak)


@dataclass(slots=True)
class Ties:
    """The run of equal finite values that the series is in: its value, length, and where it began."""

    value: float = math.nan
    length: int = 0
    seen: int = 0
    step: int = 0
    time: float = math.nan

    def extend(self, block: Block, wanted: int) -> list[Tie]:
        """Take the next points; return where in them runs first reached `wanted` values."""
        finite = np.flatnonzero(np.isfinite(block.value))
        v = block.value[finite]
        if len(v) and (v == self.value).all():
            reached = self.length < wanted <= self.length + len(v)
            at = int(finite[wanted - self.length - 1]) if reached else 0
            found = [Tie(at, self.value, self.step, self.time, self.seen - self.length)] if reached else []
            self.length += len(v)
            self.seen += len(v)
            return found
        found = []
        for i, value in zip(finite.tolist(), v.tolist(), strict=True):
            self.seen += 1
            if value == self.value:
                self.length += 1
            else:
                self.value, self.length = value, 1
                self.step, self.time = int(block.step[i]), float(block.time[i])
            if self.length == wanted:
                found.append(Tie(i, value, self.step, self.time, self.seen - self.length))
        return found


@dataclass(frozen=True, slots=True)
class Tie:
    """A run of equal values that has become long enough.

    `at` is the deciding point in its block, `step` and `time` those of the run's first, `before` the number of
    finite values logged before it.
    """

    at: int
    value: float
    step: int
    time: float
    before: int


def next_look(index: int) -> int:
    """Return the number of points at which to look again: one more, or 5 % more where that is more."""
    return max(index + 1, math.ceil(index * LOOK_EVERY))
