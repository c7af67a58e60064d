"""slow: it learns, but far less than its own beginning promised.

What it detects: of two things one. The loss fell by a steady part at each doubling of the run, and then by less than
15 % of that over the last doubling, though still beyond doubt (three standard errors). Or it has fallen in a straight
line since the beginning, beyond doubt, by less than 4 % of its first level (1 % in 64 reports).

Why it matters: the run is alive but the compute buys little; a straight line means that every step is too short.

Example: 0.695 → 0.685 in 100 epochs, as steep at the end as at the beginning.

When it is wrong: every loss flattens. A power law gains at each doubling at least half of what it gained in the one
before, and an exponential that still had a sixth of its progress before it never falls to 15 % of that beyond doubt;
the rule fires on neither. But a task may have an easy and a hard part, and a model that comes trained already gains
little: always `info`. It is silent once the rate has decayed to half, while it rises, on a resumed attempt, near zero
(5 % of the first level), and on fewer than 64 reports. What doesn't fall any more is `plateau`, what never fell `flat`.

Fixes: raise the rate 2-5 times, or shorten the warm-up; check weight decay and the optimizer's defaults.

Source: the trend clause of the prototype's formula 5 ("significant but small improvement is slow, at most info") and
AUTOTRAINER's slow convergence, with progress a doubling as the yardstick; the constants are our own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from trainmon_rules.detectors.base import Detector, Peer, Rule, resolved
from trainmon_rules.detectors.curve import MEDIAN_ERROR, Curve, error_of_difference
from trainmon_rules.findings import Finding
from trainmon_rules.points import FloatArray
from trainmon_rules.series import Block, Series
from trainmon_rules.series.robust import median
from trainmon_rules.series.trend import noise
from trainmon_rules.vocabulary import RunSettings
from trainmon_rules.words import short

CELLS = 32  # of the curve, for five doublings
BEGUN = 0.15  # of the progress made in the doubling that sets the pace
CONVERGED = 0.05  # of the first level
STRAIGHT, UNBENT = 0.75, 1.5  # share of the earlier gain that a line must exceed, by so many standard errors
WHOLE = 256  # reports over which `small` is meant; a shorter run must have gained less in proportion


@dataclass(frozen=True, slots=True)
class Pace:
    """The gain of late and the one it is measured by, in judged units, with the error of a difference of levels."""

    gain: float
    promised: float
    error: float
    straight: bool


class Slow(Detector):
    """Compares the gains of doublings, and of thirds, of the whole curve, at points 5 % apart."""

    name: ClassVar[str] = "slow"

    @dataclass(frozen=True, slots=True)
    class Params:
        """Evidence needed.

        `share` of the promised gain is too little, `errors` standard errors are beyond doubt; a straight line has
        gained less than `small` of the first level, and less in proportion before 256 reports; `reports` of a run, and
        `steps` unless a report's noise is below `quiet` of the first level; `rate` of its peak is alive.
        """

        share: float = 0.15
        errors: float = 3.0
        small: float = 0.04
        reports: int = 64
        steps: int = 200
        quiet: float = 0.01
        rate: float = 0.5

    params: Params

    def __init__(self, rule: Rule, series: Series, peer: Peer, settings: RunSettings) -> None:
        super().__init__(rule, series, peer, settings)
        self.least = self.params.reports
        self.curve = Curve(self.least)
        self.level = self.until = math.nan  # when it was said, and the level at which it is slow no more

    def update(self, block: Block) -> Iterator[Finding]:
        """Yield a finding when it has become slow, and its end when it isn't any more."""
        if self.series.attempt > 0 or not self.curve.look(block, self.peer):
            return
        cells, _ = self.curve.trend.cells()
        if self.open is not None:
            yield from self._follow(block, cells)
        elif self._may_be(block, cells):
            pace = self._straight(cells) or self._broken(cells)
            if pace is not None:
                yield self._say(block, cells, pace)

    def _may_be(self, block: Block, cells: FloatArray) -> bool:
        trend, rate = self.curve.trend, self.curve.rate
        if len(cells) < CELLS or not trend.saw_the_start:
            return False
        row = block.baseline.scale if block.baseline is not None else 0.0
        if trend.last_step - trend.first_step < self.params.steps and row > self.params.quiet * abs(trend.start):
            return False
        if trend.start > 0 and median(cells[-4:]) < CONVERGED * trend.start:
            return False
        return rate.alive(self.params.rate) and rate.risen_at < trend.count // 4

    def _straight(self, cells: FloatArray) -> Pace | None:
        """A small, certain gain, as large in the last third as before."""
        k = len(cells) // 3
        first, middle, last = (median(c) for c in (cells[:k], cells[k : len(cells) - k], cells[-k:]))
        error = error_of_difference(cells, k)
        before, late = first - middle, middle - last
        whole = self.curve.trend.start - last
        sure = before > self.params.errors * error and late - STRAIGHT * before > UNBENT * error
        pace = self.params.small * min(1.0, self.curve.trend.count / WHOLE)
        return Pace(late, before, error, True) if sure and whole < pace * abs(self.curve.trend.start) else None

    def _broken(self, cells: FloatArray) -> Pace | None:
        """Gains that were steady over three doublings, and then were hardly any."""
        n = len(cells)
        levels = [median(cells[max(0, i - i // 8) : i + max(1, i // 8)]) for i in (n // 16, n // 8, n // 4, n // 2)]
        levels.append(median(cells[-max(2, n // 8) :]))
        one, two, three, late = (a - b for a, b in itertools.pairwise(levels))
        error = MEDIAN_ERROR * noise(cells[n // 2 :]) * math.sqrt(2.0 / max(2, n // 8))
        steady = one > 0 and two >= 0.7 * one and three >= 0.7 * two
        begun = three >= BEGUN * (self.curve.trend.start - levels[-1])
        slow = self.params.errors * error < late < self.params.share * three
        middle = median(cells[3 * n // 4 - n // 16 : 3 * n // 4 + n // 16])
        slow = slow and levels[3] - error > middle > levels[4] + 3 * error  # in both halves: no step, no end of it
        return Pace(late, three, error, False) if steady and begun and slow else None

    def _say(self, block: Block, cells: FloatArray, pace: Pace) -> Finding:
        tag, trend = self.series.tag, self.curve.trend
        self.level = median(cells[-max(2, len(cells) // 8) :])
        if pace.straight:
            self.until = trend.start - 2 * self.params.small * abs(trend.start)
            gained = trend.start - self.level
            said = f"{tag} has fallen by {short(gained, 2)} in {trend.count} reports, in a straight line"
        else:
            self.until = self.level - 0.5 * pace.promised
            said = f"{tag} fell by {short(pace.promised, 2)} in a doubling of the run, and by {short(pace.gain, 2)} in "
            said += "the last one"
        evidence: dict[str, Any] = {
            "first level": trend.start,
            "level": self.level,
            "gain of late": pace.gain,
            "gain before": pace.promised,
            "share of the promise": pace.gain / pace.promised,
            "standard error": pace.error,
            "straight": "yes" if pace.straight else "no",
            "reports": trend.count,
        }
        if self.curve.rate.known:
            evidence["learning rate"] = self.curve.rate.last
        step, time = (trend.first_step, trend.first_time) if pace.straight else (trend.step[len(cells) // 2], math.nan)
        self.open = self.finding(block, len(block) - 1, said, evidence, step, time)
        return self.open

    def _follow(self, block: Block, cells: FloatArray) -> Iterator[Finding]:
        """Over once it has gained what it should have."""
        found, step = self.open, int(block.step[-1])
        if found is None:
            return
        now, k = self.curve.newest()
        if now < self.until and self.level - now > 5 * error_of_difference(cells, k):
            self.open = None
            self.curve.look_at = 2 * self.curve.trend.count
            yield resolved(found, step, f"it has picked up, by step {step}")
            return
        self.open = found.changed(last_step=step, evidence={**found.evidence, "level": now})
