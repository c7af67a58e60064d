"""plateau: it learned, and then it stopped, although the learning rate is still alive.

What it detects: over the last half of a run, a training loss (or reward) that no longer improves: the gain from
its third to its last quarter is less than twice its standard error, and both together less than 2 % of the progress
made so far. And a metric that comes to an exactly constant value below its best: a policy or classifier that has
collapsed to one answer.

Why it matters: half of the compute bought nothing. Either the run is finished and can be stopped, or something
holds it: the rate, the capacity, the labels, a collapsed class.

Example: loss 0.906 → 0.6931 in 50 epochs, then 0.6931 = ln 2 for 450: two classes, no information.

When it is wrong: the curve alone can't tell a stuck run from one that has reached its noise floor, so this is
`info` unless there is a second witness: a loss at ln 2, ln 10, ln 100 or ln 1000 with an accuracy at chance (the
first two also where no accuracy is logged), or a metric stuck below its best. It is silent on a power-law tail
(still improving, slowly), after the rate has decayed below 30 % of its peak, during warm-up, at a loss below 5 % of
its first value (converged), and while validation still improves.

Fixes: raise the rate or restart its schedule; look at what is predicted; check the labels and the capacity.

Source: Soup CLI's halves and TheDeepChecker's progress rule, as formula 6 of the prototype (progress as the
scale, with the standard error); ties count as no improvement as in yolov5 pull request 13833.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trainmon_rules.detectors.base import Detector, Peer, Rule, resolved
from trainmon_rules.detectors.curve import METRICS, Curve, error_of_difference
from trainmon_rules.findings import Finding, Severity
from trainmon_rules.series import Block, Series
from trainmon_rules.series.robust import median
from trainmon_rules.series.trend import Tie, Ties
from trainmon_rules.vocabulary import RunSettings
from trainmon_rules.words import short

CLASSES = (2, 10, 100, 1000)  # whose logarithm a loss is compared with


@dataclass(frozen=True, slots=True)
class Halves:
    """The level at first; of the second half its two halves' levels, their difference's error, where it begins."""

    start: float
    before: float
    level: float
    error: float
    step: int

    @property
    def gain(self) -> float:
        """Improvement from the third to the last quarter; judged units fall when they improve."""
        return self.before - self.level


class Plateau(Detector):
    """Compares the last two quarters of the whole curve, at points 5 % apart."""

    name: ClassVar[str] = "plateau"

    @dataclass(frozen=True, slots=True)
    class Params:
        """Evidence needed.

        `reports` in the run; `learned` the progress that makes it a plateau rather than flat, as a share of the first
        level; `stopped` the share of the progress that must be excluded as a further gain; `rate` the share of the
        peak rate that counts as alive; `floor` the share of the first level that counts as converged; `ties` equal
        values of a metric that count as constant.
        """

        reports: int = 80
        learned: float = 0.04
        stopped: float = 0.02
        rate: float = 0.3
        floor: float = 0.05
        ties: int = 12

    params: Params

    def __init__(self, rule: Rule, series: Series, peer: Peer, settings: RunSettings) -> None:
        super().__init__(rule, series, peer, settings)
        self.ties = Ties()
        self.curve = Curve(self.params.reports)
        self.least = self.params.ties if series.role in METRICS else self.params.reports
        self.open: Finding | None = None
        self.said: tuple[float, float] = (math.nan, math.nan)  # level, and progress up to it
        self.best = math.inf

    def update(self, block: Block) -> Iterable[Finding]:
        """Yield a finding when learning has stopped, and its end when it goes on."""
        return self._constant(block) if self.series.role in METRICS else self._curve(block)

    # ------------------------------------------------------------------ a metric that no longer moves
    def _constant(self, block: Block) -> Iterator[Finding]:
        ties = {tie.at: tie for tie in self.ties.extend(block, self.params.ties)}
        for i, y in enumerate(block.judged.tolist()):
            if self.open is not None and math.isfinite(y) and y != self.said[0]:
                step = int(block.step[i])
                yield resolved(self.open, step, f"it moves again at step {step}")
                self.open = None
            if (tie := ties.get(i)) is not None and self._collapsed(tie, y):
                self.said = y, 0.0
                self.open = self._say_constant(block, tie)
                yield self.open
            if math.isfinite(y):
                self.best = min(self.best, y)

    def _collapsed(self, tie: Tie, y: float) -> bool:
        """Constant after it had moved, at a value clearly worse than the best."""
        return tie.before > 1 and self.series.direction < 0 and y - self.best > 0.05 * abs(self.best)

    def _say_constant(self, block: Block, tie: Tie) -> Finding:
        best = -self.best
        return self.finding(
            block,
            tie.at,
            f"{self.series.tag} is stuck at exactly {tie.value:.6g} since step {tie.step}; its best was {best:.6g}",
            {"value": tie.value, "best": best, "equal reports": self.params.ties},
            tie.step,
            tie.time,
            Severity.WARNING,
        )

    # ------------------------------------------------------------------ a curve that no longer falls
    def _curve(self, block: Block) -> Iterator[Finding]:
        if not self.curve.look(block, self.peer):
            return
        at = len(block) - 1
        halves = self._halves()
        if halves is None:
            return
        if self.open is not None:
            yield from self._goes_on(block)
        elif self._has_stopped(halves) and not self._validation_improves(block, at, halves.step):
            yield self._say_curve(block, at, halves)

    def _halves(self) -> Halves | None:
        cells, steps = self.curve.trend.cells()
        n = len(cells)
        if n < 16:
            return None
        tail = cells[n // 2 :]
        k = len(tail) // 2
        a, b = tail[:k], tail[-k:]
        before, level = median(a), median(b)
        start = max(self.curve.trend.start, float(cells[0]))
        if self.open is None and before - level >= self.params.stopped * max(0.0, start - level):
            return None  # it still learns: nearly always, and no more need be computed
        near = error_of_difference(tail, k)
        return Halves(start, before, level, max(near, _slow_error(a, b)), int(steps[n // 2]))

    def _has_stopped(self, h: Halves) -> bool:
        p, trend = self.params, self.curve.trend
        progress = h.start - h.level
        if progress <= max(p.learned * abs(h.start), 6 * h.error):
            return False
        if self.series.role != "reward" and h.start > 0 and h.level < p.floor * h.start:
            return False
        if h.gain + 2 * h.error >= p.stopped * progress or h.gain >= 2 * max(h.error, 1e-12):
            return False
        if h.gain < -p.stopped * progress - 2 * h.error:
            return False  # it rises: that is for divergence to say
        return self.curve.rate.alive(p.rate) and self.curve.rate.risen_at < trend.count // 2

    def _validation_improves(self, block: Block, at: int, step: int) -> bool:
        val = self.peer("val_loss", block, at, 512)
        ok = np.isfinite(val.value)
        late = ok & (val.step >= step)
        early = ok & (val.step < step)
        if not late.any() or not early.any():
            return False
        best = float(val.value[early].min())
        return float(val.value[late].min()) < best - 0.01 * abs(best)

    def _say_curve(self, block: Block, at: int, h: Halves) -> Finding:
        sign = self.series.direction or 1
        progress = self.curve.trend.start - h.level
        self.said = h.level, progress
        evidence: dict[str, Any] = {
            "first level": sign * self.curve.trend.start,
            "level": sign * h.level,
            "gain over the last quarter": h.gain,
            "standard error": h.error,
            "reports": self.curve.trend.count,
        }
        if self.curve.rate.known:
            evidence["learning rate"] = self.curve.rate.last
            evidence["share of its peak"] = self.curve.rate.last / self.curve.rate.peak
        classes = self._chance(block, at, h.level)
        why = ""
        if classes:
            evidence["ln of classes"] = math.log(classes)
            why = f" = ln {classes}: it answers at chance"
        summary = f"{self.series.tag} stands at {short(sign * h.level)}{why}; nothing gained since step {h.step}"
        severity = Severity.WARNING if classes else None
        self.open = self.finding(block, at, summary, evidence, h.step, math.nan, severity)
        return self.open

    def _chance(self, block: Block, at: int, level: float) -> int:
        """Return the number of classes at whose logarithm the loss stands, 0 if accuracy is better than chance."""
        if self.series.role != "train_loss":
            return 0
        for k in CLASSES:
            if abs(level - math.log(k)) < 0.005 * math.log(k):
                found = [self.peer(role, block, at, 32).finite for role in METRICS]
                levels = [float(v.mean()) for v in found if len(v) >= 4 and 0 <= float(v.mean()) <= 1]
                if levels:
                    return k if max(levels) < 1.2 / k + 0.02 else 0
                return k if k <= 10 else 0
        return 0

    def _goes_on(self, block: Block) -> Iterator[Finding]:
        """Resolved once the last eighth is below the level at which it was said, beyond doubt."""
        if self.open is None:
            return
        cells, _ = self.curve.trend.cells()
        now, k = self.curve.newest()
        error = error_of_difference(cells[len(cells) // 2 :], k)
        level, progress = self.said
        if level - now > max(2 * self.params.stopped * progress, 5 * error):
            step = int(block.step[-1])
            yield resolved(self.open, step, f"it improves again at step {step}")
            self.open = None
            self.curve.look_at = 2 * self.curve.trend.count


def _slow_error(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> float:
    """Return the error of the difference as the scatter of four groups in each half shows it.

    A cyclic rate or correlated noise moves the level for many cells at a time, which neighbours don't show.
    """
    groups = [[median(g) for g in np.array_split(half, 4)] for half in (a, b)]
    with np.errstate(over="ignore", invalid="ignore"):  # a level of 1e300 makes it infinite: nothing is said
        spread = math.sqrt(sum(float(np.var(g, ddof=1)) for g in groups) / 2)
    return spread * math.sqrt(2.0 / 4) if math.isfinite(spread) else math.inf
