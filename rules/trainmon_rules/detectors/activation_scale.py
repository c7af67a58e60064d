"""activation-scale: activations or logits grow or shrink without end.

What it detects: on the logarithm of a norm, mean, maximum or standard deviation of activations, attention logits or
logits: six consecutive medians (of 20 reports, or of 80) that all rise, each by more than three of its standard
errors, threefold in all, with the last third of that climb at least three quarters as steep as the first: growth by a
factor again and again, not a step and not the approach to a level. The same for falling. `info` at first, a warning
once it is tenfold since its onset.

Why it matters: it ends in overflow (FP16: at 65,504), in a softmax that knows one answer and passes no gradient, or
in activations that vanish, and it can be seen hundreds of steps before the loss.

Example: activation norm 12, 18, 27, 41, 62, 94 in medians of 20 steps; the loss diverges 300 steps later.

When it is wrong: norms grow quickly in the first hundreds of steps and then more slowly; so it is silent before 200
reports, while the learning rate still rises, and where the climb slows down. Growth in proportion to time or to its
root is healthy and slows down on the logarithm. If the level stands for three medians it is resolved. Norms of
weights aren't judged: they grow for as long as they are trained.

Fixes: normalise queries and keys, soft-cap the logits, z-loss on the output logits; weight decay; a lower rate;
pre-norm instead of post-norm.

Source: Wortsman et al. 2023 (attention-logit growth, output-logit divergence); six rising medians as formula 11 of the
prototype, on logarithms; the constants are our own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trainmon_rules.detectors.base import Detector, Peer, Rule, resolved
from trainmon_rules.detectors.curve import MEDIAN_ERROR
from trainmon_rules.findings import Finding, Severity
from trainmon_rules.points import FloatArray
from trainmon_rules.series import RING, Block, Series, block_end
from trainmon_rules.series.robust import median
from trainmon_rules.series.trend import Rate, noise
from trainmon_rules.vocabulary import RunSettings
from trainmon_rules.words import short

MEDIANS = 6
WIDTHS = (20, 80)  # reports behind each median
LARGEST = 65504.0  # number of FP16
STANDS = 0.1  # change of the logarithm over three medians that is none


@dataclass(frozen=True, slots=True)
class Climb:
    """Medians of the logarithm that go one way: all back to the first of them, their width and standard error."""

    levels: FloatArray
    width: int
    error: float

    @property
    def total(self) -> float:
        """The whole change, of the logarithm."""
        return float(self.levels[-1] - self.levels[0])


class ActivationScale(Detector):
    """Looks for six medians in geometric progression."""

    name: ClassVar[str] = "activation-scale"

    @dataclass(frozen=True, slots=True)
    class Params:
        """What counts.

        `young` reports are not judged; `errors` standard errors by which each median must differ from the one before,
        `factor` in all, `steady` the part of the first two differences that the last two must have; `grave` the factor
        since the onset that makes it a warning.
        """

        young: int = 200
        errors: float = 3.0
        factor: float = 3.0
        steady: float = 0.75
        grave: float = 10.0

    params: Params

    def __init__(self, rule: Rule, series: Series, peer: Peer, settings: RunSettings) -> None:
        super().__init__(rule, series, peer, settings)
        self.rate = Rate()
        self.start = self.now = math.nan  # logarithm of the level at the onset and now
        self.width = 0  # of the medians that showed it
        self.pace = 0.0  # change of the logarithm a report
        self.open: Finding | None = None
        self.least = self.params.young

    def update(self, block: Block) -> Iterator[Finding]:
        """Look at the end of each block."""
        end = block.start + len(block)
        if end < self.params.young or end != block_end(end - 1):
            return
        view = self.series.before(end, RING)
        size = np.abs(view.value)
        if self.open is not None:
            yield from self._follow(block, size)
        elif (climb := self._climb(size)) is not None and self._is_warm(block, end):
            self.start, self.now, self.width = float(climb.levels[0]), float(climb.levels[-1]), climb.width
            self.pace = climb.total / ((len(climb.levels) - 1) * climb.width)
            first = max(0, len(view) - len(climb.levels) * climb.width)
            words, severity = self._words(), self._severity()
            onset, time = int(view.step[first]), float(view.time[first])
            self.open = self.finding(block, len(block) - 1, words["summary"], words["evidence"], onset, time, severity)
            yield self.open

    def _is_warm(self, block: Block, end: int) -> bool:
        self.rate.look(self.peer("learning_rate", block, len(block) - 1, 512), end)
        return not self.rate.known or end - self.rate.risen_at >= MEDIANS * WIDTHS[0]

    def _climb(self, size: FloatArray) -> Climb | None:
        """The steepest of the climbs that end here, one a width."""
        found = [c for width in WIDTHS if self._far(size, width) and (c := self._of_width(size, width)) is not None]
        return max(found, key=lambda c: abs(c.total) / (len(c.levels) * c.width), default=None)

    def _far(self, size: FloatArray, width: int) -> bool:
        """Whether the ends are far enough from each other: nearly never, and the rest need not be looked at."""
        first, last = size[-MEDIANS * width :][:width], size[-width:]
        first, last = first[np.isfinite(first)], last[np.isfinite(last)]
        if len(size) < MEDIANS * width or not len(first) or not len(last):
            return False
        a, b = median(first), median(last)
        return not a < self.params.factor * b or not b < self.params.factor * a

    def _of_width(self, size: FloatArray, width: int) -> Climb | None:
        p, levels = self.params, _medians(size, width)
        if len(levels) < MEDIANS:
            return None
        steps = np.diff(levels)
        total = float(levels[-1] - levels[-MEDIANS])
        sign = 1.0 if total > 0 else -1.0
        last = sign * steps[-MEDIANS + 1 :]
        if not abs(total) >= math.log(p.factor) or last[-2:].sum() < p.steady * last[:2].sum():
            return None
        recent = size[-MEDIANS * width :]
        error = MEDIAN_ERROR * noise(np.log(recent[np.isfinite(recent) & (recent > 0)])) * math.sqrt(2.0 / width)
        rising = sign * steps > p.errors * error
        if not rising[-MEDIANS + 1 :].all():
            return None
        steady = np.flatnonzero(~rising)
        begun = int(steady[-1]) + 1 if len(steady) else 0
        return Climb(levels[begun:], width, error)

    def _follow(self, block: Block, size: FloatArray) -> Iterator[Finding]:
        found = self.open
        levels = _medians(size, self.width)
        if found is None or len(levels) < 3:
            return
        step, self.now = int(block.step[-1]), float(levels[-1])
        self.pace = float(levels[-1] - levels[-3]) / (2 * self.width)
        sign = 1.0 if found.evidence["factor"] > 1 else -1.0
        if sign * (levels[-1] - levels[-3]) < STANDS:
            self.open = None
            yield resolved(found, step, f"it stands at {short(math.exp(self.now), 3)} by step {step}")
            return
        severity = max(found.severity, self._severity())
        self.open = found.changed(severity=severity, last_step=step, **self._words())
        if severity > found.severity:
            yield self.open

    def _severity(self) -> Severity:
        return self.rule.severity if abs(self.now - self.start) >= math.log(self.params.grave) else Severity.INFO

    def _words(self) -> dict[str, Any]:
        start, now = math.exp(self.start), math.exp(self.now)
        way, times = ("grew", now / start) if now > start else ("shrank", start / now)
        left = (math.log(LARGEST) - self.now) / self.pace if self.pace > 0 else 0.0
        return {
            "summary": f"{self.series.tag} {way} {short(times, 3)}× without slowing down, from about {short(start, 3)} "
            f"to {short(now, 3)}",
            "evidence": {"level at the onset": start, "level now": now, "factor": now / start}
            | ({"reports to 65504": round(left)} if left > 0 else {}),
        }


def _medians(size: FloatArray, width: int) -> FloatArray:
    """Return the logarithms of the medians of the last whole windows, back to the first that is half empty."""
    windows = len(size) // width
    parts = size[len(size) - windows * width :].reshape(windows, width)
    full = (np.isfinite(parts) & (parts > 0)).sum(axis=1) >= width // 2
    empty = np.flatnonzero(~full)
    parts = parts[int(empty[-1]) + 1 if len(empty) else 0 :]
    return np.array([math.log(median(p[np.isfinite(p) & (p > 0)])) for p in parts])
