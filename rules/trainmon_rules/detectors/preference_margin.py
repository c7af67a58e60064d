"""preference-margin: the margin of a preference run, or its accuracy, collapses.

What it detects: the mean of the last tenth of the reports (10 to 50) of the reward margin, or of the share of pairs
ranked right, lies below the best level (the mean of three times as many, ended earlier) by more than six standard
errors and by more than half of what had been gained since the start, at two looks running. An accuracy starts at one
half.

Why it matters: the policy no longer prefers the chosen answers, or never learned more than noise; the loss tells it
late, since a few large margins hide many negative ones.

Example: rewards/margins 1.4 around step 300, -0.6 from step 410 on; accuracy 0.78 → 0.49.

When it is wrong: margins rise at first and settle a sixth lower; with one or two pairs a report they are mostly
noise. So half of the gain must be lost, in means and not in medians, which jump where an accuracy is 0 or 1. If
the mean comes back half of the way it is resolved.

Fixes: look at β, the reference model and the pairs before the optimizer; a smaller rate (preference tuning takes a
tenth of that of supervised tuning, or less), clip at 1.0; go back to the best checkpoint.

Source: the routing table's scenario for preference tuning; the comparison of levels as formula 3 of the prototype,
with means.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trainmon_rules.detectors.base import Detector, Peer, Rule, resolved
from trainmon_rules.findings import Finding
from trainmon_rules.points import FloatArray
from trainmon_rules.series import RING, Block, Series, block_end
from trainmon_rules.series.robust import median, quantile
from trainmon_rules.vocabulary import RunSettings
from trainmon_rules.words import short

COIN = 0.5  # an accuracy that knows nothing
LOOKS = 2
ABSURD = 100.0  # times the spread of the reports
HUGE = 1e100  # no reward; sums and differences of such numbers are none


@dataclass(frozen=True, slots=True)
class Level:
    """A mean with its standard error, and the index and step at which its reports end."""

    index: int
    step: int
    mean: float
    error: float


class PreferenceMargin(Detector):
    """Compares the mean of the last reports with the best mean so far."""

    name: ClassVar[str] = "preference-margin"

    @dataclass(frozen=True, slots=True)
    class Params:
        """What counts: `errors` standard errors, and the part `lost` of the gain, after at least `reports`."""

        errors: float = 6.0
        lost: float = 0.5
        reports: int = 40

    params: Params

    def __init__(self, rule: Rule, series: Series, peer: Peer, settings: RunSettings) -> None:
        super().__init__(rule, series, peer, settings)
        self.best: Level | None = None
        self.young: deque[Level] = deque(maxlen=128)  # levels that may become the best
        self.looks = 0
        self.lowest = math.inf
        self.open: Finding | None = None
        self.least = self.params.reports

    def update(self, block: Block) -> Iterator[Finding]:
        """Look at the end of each block."""
        end = block.start + len(block)
        if end < self.params.reports // 2 or end != block_end(end - 1):
            return
        width = min(50, max(10, end // 10))
        view = self.series.before(end, RING)
        now = _level(view.value[-width:], end, int(view.step[-1]))
        if now is None:
            return
        if self.open is not None:
            yield from self._follow(block, now)
            return
        self._remember(_level(view.value[-3 * width :], end, now.step), end - width)
        if self.best is None or end < self.params.reports:
            return
        fall, gain = self.best.mean - now.mean, self.best.mean - self._start()
        error = math.hypot(now.error, self.best.error)
        fell = gain > 4 * self.best.error and fall > max(self.params.errors * error, self.params.lost * gain)
        self.looks = self.looks + 1 if fell else 0
        if self.looks >= LOOKS:
            self.looks, self.lowest = 0, now.mean
            first = self._onset(view.value, 0.5 * (self.best.mean + now.mean), width)
            words = self._words(self.best, now)
            onset, time = int(view.step[first]), float(view.time[first])
            self.open = self.finding(block, len(block) - 1, words["summary"], words["evidence"], onset, time)
            yield self.open

    def _start(self) -> float:
        if self.series.role == "reward_accuracy":
            return COIN
        first = self.series.first[np.isfinite(self.series.first)]
        return float(first.mean()) if len(first) else 0.0

    def _remember(self, level: Level | None, until: int) -> None:
        """Keep the level of now; those that ended early enough may be the best."""
        if level is not None:
            self.young.append(level)
        while self.young and self.young[0].index <= until:
            old = self.young.popleft()
            if self.best is None or old.mean > self.best.mean:
                self.best = old

    @staticmethod
    def _onset(values: FloatArray, middle: float, width: int) -> int:
        """The first report of the windows at the end whose means all lie below the middle."""
        first = len(values) - width
        while first >= width:
            part = values[first - width : first]
            part = part[np.isfinite(part)]
            if not len(part) or part.mean() >= middle:
                break
            first -= width
        return first

    def _follow(self, block: Block, now: Level) -> Iterator[Finding]:
        found, best = self.open, self.best
        if found is None or best is None:
            return
        self.lowest = min(self.lowest, now.mean)
        if now.mean > 0.5 * (best.mean + self.lowest) + now.error:
            self.open = None
            yield resolved(found, now.step, f"it is {short(now.mean, 3)} again by step {now.step}")
            return
        self.open = found.changed(last_step=now.step, **self._words(best, now))

    def _words(self, best: Level, now: Level) -> dict[str, Any]:
        more = ""
        if self.series.role == "reward_margin" and now.mean < 0:
            more = ": the rejected answers are the likelier ones"
        elif self.series.role == "reward_accuracy" and now.mean < COIN + 0.05:
            more = ": no better than a coin"
        return {
            "summary": f"{self.series.tag} fell from {short(best.mean, 3)} (around step {best.step}) "
            f"to {short(now.mean, 3)}{more}",
            "evidence": {
                "best level": best.mean,
                "best level around step": best.step,
                "level now": now.mean,
                "level at first": self._start(),
                "standard error": math.hypot(now.error, best.error),
            },
        }


def _level(values: FloatArray, index: int, step: int) -> Level | None:
    """Return the mean of some reports with its error; None where half of them are no numbers.

    A number like 1e300 would be the best level for ever: what lies absurdly far outside is left out.
    """
    good = values[np.abs(values) < HUGE]
    if len(good) < max(5, len(values) // 2):
        return None
    spread = quantile(good, 0.9) - quantile(good, 0.1)
    good = good[np.abs(good - median(good)) <= ABSURD * max(spread, 1.0)]
    return Level(index, step, float(good.mean()), float(good.std()) / math.sqrt(len(good)))
