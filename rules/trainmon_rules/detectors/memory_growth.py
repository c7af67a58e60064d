"""memory-growth: memory grows steadily and will run out.

What it detects: memory in use (or falling free memory) whose medians of six equal parts of the run, its first fifth
left out, all rise by three standard errors and by 2 % together, as fast at the end as at the beginning, without
falling back in between. The step at which memory runs out follows from the slope (Theil-Sen) and the capacity: 100
where the metric is in percent, used and free memory together, or `--set gpu_memory=80GB` (`host_memory` for the host).

Why it matters: the job dies of it, mostly at night, and what was learnt since the last checkpoint is lost.

Example: the loss is summed as a tensor with its graph: 8 MB more every step, out of memory at step 9,000.

When it is wrong: caches and allocators grow at the beginning of a run and level off, which is why the rate must hold.
A dataset that is kept in memory grows through its whole first epoch. A running maximum grows with rare long batches. A
tooth of a sawtooth that takes more than 240 reports is a leak until it falls back.
A warning where it runs out before the planned end (or, where that isn't known, before the run is twice as long), and
from a growth by 30 % on where nobody knows the capacity; else `info`. What isn't pressing must still grow as fast when
the run is twice as long before it is told at all.

Fixes: log numbers, not tensors; detach what is kept from step to step; clear caches that grow with the data; save a
checkpoint before the step at which memory runs out.

Source: SageMaker Debugger's GPUMemoryIncrease; blocks and trend as in formula 11 of the prototype.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from trainmon_rules.detectors.base import Detector, Peer, Rule, resolved
from trainmon_rules.detectors.curve import MEDIAN_ERROR
from trainmon_rules.detectors.headroom import Headroom
from trainmon_rules.findings import Finding, Severity
from trainmon_rules.points import FloatArray, IntArray
from trainmon_rules.series import RING, Block, Series
from trainmon_rules.series.robust import median
from trainmon_rules.series.trend import next_look, noise, trend_of
from trainmon_rules.vocabulary import RunSettings

LEAST = 120  # reports
CELLS = 24  # of the trend
START = 0.2  # part of the run in which growth is normal
PARTS = 6
FALL = 0.3  # of the growth that may be lost in between
TWICE = 2  # times as long it must go on
EVEN = 0.05  # of its early rate that growth may lose, beyond noise
STOPPED = 0.2  # of its rate at which growth is over
FIRST_EPOCH = 1.2  # epochs in which a dataset may come into memory


@dataclass(frozen=True, slots=True)
class Growth:
    """A steady growth: its level at the beginning and now, where it began, slope a step and the slope's error."""

    first: float
    now: float
    step: int
    slope: float
    error: float


class MemoryGrowth(Detector):
    """A steady rise of memory over most of the run."""

    name: ClassVar[str] = "memory-growth"

    @dataclass(frozen=True, slots=True)
    class Params:
        """What growth counts.

        `errors` standard errors from part to part, `least` of the level in all, `steady` the rate at the end as a part
        of that at the beginning, `much` the growth that is a warning where the capacity isn't known.
        """

        errors: float = 3.0
        least: float = 0.02
        steady: float = 0.7
        much: float = 0.3

    params: Params
    least = LEAST

    def __init__(self, rule: Rule, series: Series, peer: Peer, settings: RunSettings) -> None:
        super().__init__(rule, series, peer, settings)
        self.look_at = LEAST
        self.growth: Growth | None = None
        self.seen = (0, 0.0)  # reports and slope when it was first seen
        self.peak = 0.0

    @property
    def room(self) -> Headroom:
        """How much memory there is."""
        return Headroom(self.series, self.peer, self.setting)

    def update(self, block: Block) -> Iterator[Finding]:
        """Look at the curve whenever it has grown by a twentieth."""
        trend = trend_of(block)
        if trend is None or trend.count < self.look_at:
            return
        self.look_at = next_look(trend.count)
        cells, steps = trend.cells()
        if len(cells) < CELLS:
            return
        used = -cells if self.room.free else cells
        if self.open is not None:
            yield from self._follow(block, used, steps, trend.width)
            return
        growth = self._growth(used, steps, trend.width, int(block.step[-1]))
        if growth is None:
            return
        if not self.seen[0] or growth.slope < self.params.steady * self.seen[1]:
            self.seen = (trend.count, growth.slope)
        lasts = trend.count >= TWICE * self.seen[0]
        left = self._left(block, growth)
        if lasts or (left is not None and left < int(block.step[-1])):
            self.growth, self.peak = growth, growth.now
            words, severity = self._words(block, growth), self._severity(block, growth)
            at = len(block) - 1
            self.open = self.finding(block, at, words["summary"], words["evidence"], growth.step, math.nan, severity)
            yield self.open

    # ------------------------------------------------------------------ does it grow
    def _growth(self, used: FloatArray, steps: IntArray, width: int, last: int) -> Growth | None:
        """Return the growth of a run whose cells of `width` reports begin at `steps`, as of its `last` step."""
        begin = int(START * len(used))
        y, x = used[begin:], steps[begin:]
        parts = np.array_split(y, PARTS)
        level = np.array([median(p) for p in parts])
        rises, total = np.diff(level), float(level[-1] - level[0])
        if total < self.params.least * abs(float(level[0])) or x[-1] <= x[0]:
            return None
        slope = theil_sen(x, y)
        spread = noise(y - slope * x)
        error = MEDIAN_ERROR * spread * math.sqrt(2.0 / len(parts[-1]))
        at = np.array([median(p) for p in np.array_split(x.astype(np.float64), PARTS)])
        early, late = ((level[j] - level[i]) / (at[j] - at[i]) for i, j in ((0, 2), (3, 5)))
        slack = max(self.params.errors * error / (at[2] - at[0]), EVEN * early)
        steady = late >= max(self.params.steady * early, early - slack) and early >= self.params.steady / 2 * late
        if not steady or (rises <= self.params.errors * error).any():
            return None
        if float((np.maximum.accumulate(y) - y).max()) > FALL * total:
            return None
        middle = x + 0.5 * float(np.median(np.diff(x))) * (1 - 1 / width)  # cells are means
        now = median(y - slope * middle) + slope * last
        uncertain = spread * math.sqrt(12.0 / len(y)) / float(x[-1] - x[0])
        return Growth(float(level[0]), now, int(x[0]), slope, uncertain) if slope > 0 else None

    def _follow(self, block: Block, used: FloatArray, steps: IntArray, width: int) -> Iterator[Finding]:
        """Bring the numbers up to date, or end it: it fell back, or grows no more."""
        found, was = self.open, self.growth
        if found is None or was is None:
            return
        step, now = int(block.step[-1]), median(used[-2:])
        self.peak = max(self.peak, now)
        last = used[-(len(used) // 4) :]
        half = len(last) // 2
        rate = (median(last[half:]) - median(last[:half])) / max(1, int(steps[-1] - steps[-len(last)]) // 2)
        fell = now < (was.first + self.peak) / 2
        if fell or rate < STOPPED * was.slope:
            self.open = None
            level = self.room.amount(now, now)
            what = f"fell back to {level}" if fell else f"grows no more, {level} now"
            yield resolved(found.changed(last_step=step), step, what)
            return
        grows = self._growth(used, steps, width, step) or replace(was, now=now)
        self.growth = replace(grows, first=was.first, step=was.step)
        severity = self._severity(block, self.growth)
        self.open = found.changed(
            last_step=step, severity=max(severity, found.severity), **self._words(block, self.growth)
        )
        if severity > found.severity:
            yield self.open

    # ------------------------------------------------------------------ when does it run out
    def _left(self, block: Block, g: Growth) -> float | None:
        """Return how many steps are left until memory runs out, None where nobody knows."""
        capacity = self.room.capacity(block, g.now)
        return (capacity - g.now) / g.slope if capacity is not None and capacity > g.now else None

    def _severity(self, block: Block, g: Growth) -> Severity:
        left, planned, last = self._left(block, g), self.setting("total_steps"), int(block.step[-1])
        if left is None:
            severe = g.now - g.first >= self.params.much * abs(g.first)
        else:
            severe = last + left < planned if planned else left < last
        severe = severe and not self._in_first_epoch(block)
        return self.rule.severity if severe else min(Severity.INFO, self.rule.severity)

    def _words(self, block: Block, g: Growth) -> dict[str, Any]:
        last, left, tag = int(block.step[-1]), self._left(block, g), self.series.tag
        verb = "falls" if self.room.free else "grows"
        text = (
            f"{tag} {verb} by {self.room.amount(1000 * g.slope, g.now)} every 1,000 steps, "
            f"from {self.room.amount(g.first, g.now)} at step {g.step:,} to {self.room.amount(g.now, g.now)}"
        )
        evidence: dict[str, Any] = {
            "level before": abs(g.first),
            "level now": abs(g.now),
            "growth a thousand": 1000 * g.slope,
            "error of that": 1000 * g.error,
        }
        if left is None:
            asked = self.room.asks(g.now)
            text += f"; {asked} tells when it runs out" if asked else ""
            return {"summary": text, "evidence": evidence}
        soonest = left * g.slope / (g.slope + 3 * g.error)
        evidence |= {
            "capacity": abs(g.now + left * g.slope),
            "runs out at step": last + round(left),
            "runs out at the earliest step": last + round(soonest),
        }
        text += f"; it runs out about step {last + round(left):,}"
        planned = self.setting("total_steps")
        if planned and last + left >= planned:
            text += f", after the planned end at {planned:,}"
        return {"summary": text, "evidence": evidence}

    def _in_first_epoch(self, block: Block) -> bool:
        epoch = self.peer("epoch", block, len(block) - 1, RING).finite
        return len(epoch) > 0 and float(epoch[-1]) < FIRST_EPOCH


def theil_sen(x: IntArray, y: FloatArray) -> float:
    """Return the median slope over all pairs of points."""
    i, j = np.triu_indices(len(x), 1)
    run = (x[j] - x[i]).astype(np.float64)
    ok = run > 0
    return median((y[j] - y[i])[ok] / run[ok]) if ok.any() else 0.0
