"""flat: it never learned.

What it detects: a training loss whose last third is no better than its first, with enough reports to be sure
that an improvement of 4 % of the first loss would have shown; a reward of which the same is true, or (info, and a
warning at three times the length) that has not moved by half a standard deviation of its own noise; a loss or
metric that is exactly the same from the first reports on; a loss of exactly 0; and a metric of exactly 0 beside a
loss that is nearly nothing (are there any labels?).

Why it matters: every further step is wasted, and the cause (a frozen parameter, a rate of zero or far off,
labels that aren't loaded, dead units) is visible from the beginning.

Example: loss 10.46, 10.47, 10.48 … 10.46 over 121 steps, beside a gradient norm of 0.0002.

When it is wrong: some runs sit on a plateau first and then learn (grokking, sparse rewards). Then it says so:
the finding is resolved at the step where learning began. Fine-tuning over several epochs is flat within one and steps
down where the next begins: where an epoch is logged a curve is `info` until one and a half have passed (or the run has
one only, `num_epochs`). It is silent while the rate is still warming up, on a
slow but significant improvement, on a resumed attempt, and where the log begins after the larger part of the run.

Fixes: overfit one batch first; check that the labels reach the loss and the optimizer holds the parameters; try
ten times the rate, and a tenth.

Source: formula 5 of the prototype (thirds, with twice the standard error); TheDeepChecker's and AutoTrainer's
checks of the initial loss; the exact constants are our own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trainmon_rules.detectors.base import Peer, Rule
from trainmon_rules.detectors.constant import Constant
from trainmon_rules.detectors.curve import METRICS, Curve, error_of_difference
from trainmon_rules.findings import Finding, Severity
from trainmon_rules.series import RING, Block, Series
from trainmon_rules.series.robust import median
from trainmon_rules.series.trend import noise
from trainmon_rules.vocabulary import RunSettings
from trainmon_rules.words import short

EPOCHS = 1.5  # that must have passed: what is learned by heart shows where the examples come again


@dataclass(frozen=True, slots=True)
class Thirds:
    """The curve in numbers: levels of the thirds and the standard error of the difference of two."""

    first: float
    middle: float
    last: float
    error: float

    @property
    def best(self) -> float:
        """The lowest of the three."""
        return min(self.first, self.middle, self.last)

    @property
    def gain(self) -> float:
        """Improvement from the first to the last third; judged units fall when they improve."""
        return self.first - self.last


class Flat(Constant):
    """Compares the thirds of the whole curve, at points 5 % apart."""

    name: ClassVar[str] = "flat"

    @dataclass(frozen=True, slots=True)
    class Params:
        """Evidence needed.

        `gain` is the improvement, as a share of the first level, that must be excluded; `reports` and `steps` how
        much of a run is needed for it. A quiet series (row noise below `quiet` of the level) is judged after
        `reports_quiet` reports, against that share. A gain below `negligible` that is also slowing down counts as
        none, however significant. Rewards need `reports_reward` and `steps_reward`. `ties` equal values from the
        start are constant, `zeros` a zero loss.
        """

        gain: float = 0.04
        reports: int = 40
        steps: int = 200
        quiet: float = 0.01
        negligible: float = 0.001
        reports_quiet: int = 20
        reports_reward: int = 48
        steps_reward: int = 1000
        ties: int = 12
        zeros: int = 5

    params: Params

    def __init__(self, rule: Rule, series: Series, peer: Peer, settings: RunSettings) -> None:
        super().__init__(rule, series, peer, settings)
        self.curve = Curve(self.params.reports_quiet)
        self.said_at = 0
        self.first_epoch: float | None = None

    def update(self, block: Block) -> Iterable[Finding]:
        """Yield one finding when it is sure that nothing was learned, and its end if something is, later."""
        return () if self.done else self._judge(block)

    def _judge(self, block: Block) -> Iterator[Finding]:
        if self.series.role != "reward":  # a reward may well be constant for a while
            yield from self._constant(block)
        if self.series.role not in METRICS and not self.done:
            yield from self._curve(block)

    # ------------------------------------------------------------------ a curve
    def _curve(self, block: Block) -> Iterator[Finding]:
        if not self.curve.look(block, self.peer):
            return
        at = len(block) - 1
        epoch = self._epoch(block)
        thirds = self._thirds(block)
        if thirds is None or self.constant:
            return
        if self.open is not None:
            yield from self._has_it_begun(block)
            yield from self._still(block, thirds, epoch)
            if self.open is not None:
                self.open = self.open.changed(last_step=int(block.step[-1]), **self._words(thirds))
        elif self._is_flat(block, thirds) and not self._total_speaks(block, at):
            yield self._say_curve(block, at, thirds, epoch)

    def _thirds(self, block: Block) -> Thirds | None:
        cells, _ = self.curve.trend.cells()
        k = len(cells) // 3
        if k < 3:
            return None
        parts = [median(p) for p in (cells[:k], cells[k : len(cells) - k], cells[-k:])]
        if self.open is None and parts[0] - min(parts) >= self._most(block):
            return None  # it learned: nearly always, and no more need be computed
        return Thirds(parts[0], parts[1], parts[2], error_of_difference(cells, k))

    def _most(self, block: Block) -> float:
        """The improvement that must be excluded, in the long run."""
        row = block.baseline.scale if block.baseline is not None and self.series.role == "reward" else 0.0
        return max(self.params.gain * abs(self.curve.trend.start), 0.5 * row)

    def _is_flat(self, block: Block, t: Thirds) -> bool:
        p, trend = self.params, self.curve.trend
        if not trend.saw_the_start or trend.count - self.curve.rate.risen_at < max(p.reports_quiet, trend.count // 4):
            return False
        scale = abs(trend.start)
        row = block.baseline.scale if block.baseline is not None else 0.0
        span = trend.last_step - trend.first_step
        if self.series.role == "reward":
            if trend.count < p.reports_reward or span < p.steps_reward:
                return False
            limit = self._most(block)
        elif trend.count >= p.reports and span >= p.steps:
            limit = self._most(block)
        elif row < p.quiet * scale:
            limit = p.quiet * scale
        else:
            return False
        moved = t.first - t.best  # also what was gained in between and lost again
        slowing = moved < p.negligible * scale and t.first - t.middle >= t.middle - t.last
        settled = moved + 2 * t.error < limit and (moved < 2 * max(t.error, 1e-12) or slowing)
        worse = t.last - t.first > max(2 * t.error, p.negligible * scale)  # then it isn't flat, but falling apart
        return settled and not worse and self._no_early_drop(t, limit, row)

    def _no_early_drop(self, t: Thirds, limit: float, row: float) -> bool:
        """What was learned within the first reports doesn't show in the first third."""
        head = np.array(self.curve.trend.head)
        cells, _ = self.curve.trend.cells()
        drops = (
            (self.curve.trend.start, 4 * row),
            (median(head), 1.5 * row),
            (float(cells[0]), 5 * noise(cells)),
        )
        return all(level - t.last < limit + slack for level, slack in drops)

    def _epoch(self, block: Block) -> bool:
        """Whether the examples have come again, as far as the log tells, or never will."""
        epoch = self.peer("epoch", block, len(block) - 1, RING).finite
        if self.first_epoch is None and len(epoch):
            self.first_epoch = float(epoch[0])
        if self.first_epoch is None or not len(epoch):
            return True
        total = self.setting("num_epochs")
        return bool(epoch[-1] - self.first_epoch >= EPOCHS) or (total is not None and 0 < total <= 1)

    def _say_curve(self, block: Block, at: int, t: Thirds, epoch: bool) -> Finding:
        trend = self.curve.trend
        words = self._words(t)
        self.level = t.last
        self.said_at = trend.count
        sure = t.first - t.best + 2 * t.error < self.params.gain * abs(trend.start)
        exploring = self.series.role == "reward" and not sure  # which takes its time
        severity = min(Severity.INFO, self.rule.severity) if exploring or not epoch else None
        self.open = self.finding(
            block, at, words["summary"], words["evidence"], trend.first_step, trend.first_time, severity=severity
        )
        return self.open

    def _words(self, t: Thirds) -> dict[str, Any]:
        sign = self.series.direction or 1
        evidence: dict[str, Any] = {
            "first third": sign * t.first,
            "last third": sign * t.last,
            "improvement": t.gain,
            "standard error": t.error,
            "reports": self.curve.trend.count,
        }
        if self.curve.rate.known:
            evidence["learning rate"] = self.curve.rate.last
        first, last = short(sign * t.first), short(sign * t.last)
        return {
            "summary": f"{self.series.tag} has not improved in {self.curve.trend.count} reports: "
            f"{first} in the first third, {last} in the last",
            "evidence": evidence,
        }

    def _still(self, block: Block, t: Thirds, epoch: bool) -> Iterator[Finding]:
        """A reward that is still flat at three times the length deserves a warning, a loss when its epoch is over."""
        found = self.open
        if found is None or found.severity >= self.rule.severity:
            return
        longer = self.series.role != "reward" or self.curve.trend.count >= 3 * self.said_at
        if epoch and longer and self._is_flat(block, t):
            self.open = found.changed(severity=self.rule.severity, last_step=int(block.step[-1]))
            yield self.open

    def _has_it_begun(self, block: Block) -> Iterator[Finding]:
        """Resolved once the last eighth is better than the level at which it was said, beyond doubt."""
        cells, _ = self.curve.trend.cells()
        now, k = self.curve.newest()
        error = error_of_difference(cells, k)
        row = block.baseline.scale if self.series.role == "reward" and block.baseline is not None else 0.0
        if self.level - now > max(self.params.gain * abs(self.curve.trend.start), row, 5 * error):
            yield from self._close(int(block.step[-1]))
