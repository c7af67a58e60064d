"""grad-growth: the gradient norm grows steadily for dozens or hundreds of reports, too slowly for a spike.

What it detects: five medians of 16 reports in a row, each above the one before by a twelfth of the whole growth at
least, the last at eight times the first and above anything the norm has been before, while the loss is no better; or
the same of medians of 64 reports (1 % a report). It is looked for at every 16th and every 64th report.

Why it matters: this is how many runs go on their way to NaN: a few percent a step, unseen by a rule that asks for a
jump, because the baseline rises with the norm.

Example: 0.5 → 27 in 80 steps, 5 % a step, with the loss in its noise all the while; then NaN.

When it is wrong: a norm grows while learning starts, or while the rate warms up: an improving loss or a rising rate
explains it. Late in a run norms creep up by a few times over thousands of steps, which is no such growth. It is info
until the norm has reached thirty times its level, a warning then.

Fixes: clip the gradient norm (1.0 for language models), lower the rate 3–10 times; see which layer it comes from.

Source: TheDeepChecker's growth rate of gradients, made relative to the run and gated by its loss; OPT's logbook,
where a growing norm made people lower the rate by hand.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from trainmon_rules.detectors.base import Detector, Peer, Rule, resolved
from trainmon_rules.findings import Finding, Severity
from trainmon_rules.series import Block, Series
from trainmon_rules.series.robust import mad_sigma, median
from trainmon_rules.vocabulary import RunSettings
from trainmon_rules.words import short

LEVEL = 16  # reports behind a level
LONG = 64  # the same where the growth is slower
LEVELS = 5  # levels that must rise one after another
STEADY = 1 / 12  # of the growth that each level must add: a jump is the matter of grad-spike


@dataclass(slots=True)
class Ladder:
    """The last five levels of `width` reports each, oldest first, and the highest level before them."""

    width: int
    levels: list[float] = field(default_factory=list)
    top: float = -math.inf

    @property
    def span(self) -> int:
        """Reports behind all five."""
        return self.width * LEVELS

    def add(self, level: float) -> None:
        """Take the next level."""
        self.levels.append(level)
        if len(self.levels) > LEVELS:
            self.top = max(self.top, self.levels.pop(0))

    def grows(self, least: float) -> bool:
        """Whether each of the five adds its part to a growth of `least`, beyond anything before."""
        grown = self.levels[-1] - self.levels[0]
        if len(self.levels) < LEVELS or grown < least or not self.levels[-1] > self.top > -math.inf:
            return False
        return all(b - a >= STEADY * grown for a, b in pairwise(self.levels))


class GradGrowth(Detector):
    """Compares levels of 16 and of 64 reports at fixed places."""

    name: ClassVar[str] = "grad-growth"

    @dataclass(frozen=True, slots=True)
    class Params:
        """How many times the level of 80 (or 320) reports ago is told, and how many times is a warning."""

        ratio: float = 8.0
        clear: float = 30.0

    params: Params

    def __init__(self, rule: Rule, series: Series, peer: Peer, settings: RunSettings) -> None:
        super().__init__(rule, series, peer, settings)
        self.low = self.high = 0.0  # levels that the open one began at and has reached, as logarithms
        self.ladders = (Ladder(LEVEL), Ladder(LONG))
        self.least = self.ladders[0].span + LEVEL

    def update(self, block: Block) -> Iterable[Finding]:
        """Look at every 16th report, and at every 64th."""
        first = block.start // LEVEL * LEVEL + LEVEL
        for end in range(first, block.start + len(block) + 1, LEVEL):
            found = self._look(block, end)
            if found is not None:
                yield found

    def _look(self, block: Block, end: int) -> Finding | None:
        at = end - 1 - block.start
        told: Finding | None = None
        for ladder in self.ladders:
            if end % ladder.width:
                continue
            y = self.series.judged_of(self.series.before(end, ladder.width).value)
            y = y[np.isfinite(y)]
            if len(y) < ladder.width // 2:
                continue
            ladder.add(median(y))
            if told is None and self.open is None and ladder.grows(math.log(self.params.ratio)):
                told = self._judge(block, at, end, ladder)
            elif told is None and self.open is not None and ladder.width == LEVEL:
                told = self._follow(block, at, ladder.levels[-1])
        return told

    def _judge(self, block: Block, at: int, end: int, ladder: Ladder) -> Finding | None:
        if self._is_explained(block, at, ladder.span):
            return None
        self.low, self.high = ladder.levels[0], ladder.levels[-1]
        view = self.series.before(end, ladder.span)
        below = np.flatnonzero(self.series.judged_of(view.value) <= ladder.levels[1])
        since = int(below[-1]) if len(below) else 0
        step, time, words = int(view.step[since]), float(view.time[since]), self._words()
        self.open = self.finding(block, at, words["summary"], words["evidence"], step, time, self._severity())
        return self.open

    def _is_explained(self, block: Block, at: int, span: int) -> bool:
        """Whether the loss left its noise for the better meanwhile, or the rate went up."""
        rate = self.peer("learning_rate", block, at, span).finite
        if len(rate) >= 2 and rate[-1] > 1.001 * rate[0]:
            return True
        loss = self.peer("train_loss", block, at, span).finite
        if len(loss) < 2 * LEVELS:
            return True  # nothing to hold it against
        part = len(loss) // LEVELS
        before, now = loss[:part], loss[-part:]
        return median(now) < median(before) - max(mad_sigma(before), mad_sigma(now))

    def _severity(self) -> Severity:
        clear = self.high - self.low >= math.log(self.params.clear)
        return self.rule.severity if clear else min(Severity.INFO, self.rule.severity)

    def _follow(self, block: Block, at: int, level: float) -> Finding | None:
        found = self.open
        if found is None:
            return None
        step = int(block.step[at])
        if level < (self.low + self.high) / 2:
            self.open = None
            return resolved(found, step, f"the norm is back at {short(math.exp(level), 3)} by step {step}")
        self.high = max(self.high, level)
        severity = max(found.severity, self._severity())
        self.open = found.changed(last_step=step, severity=severity, **self._words())
        return self.open if severity > found.severity else None

    def _words(self) -> dict[str, Any]:
        low, high = math.exp(min(self.low, 700.0)), math.exp(min(self.high, 700.0))
        ratio = math.exp(min(self.high - self.low, 700.0))
        summary = f"{self.series.tag} grew steadily from {short(low, 3)} to {short(high, 3)}, {short(ratio, 3)} times"
        return {
            "summary": f"{summary}, while the loss got no better",
            "evidence": {"level before": low, "level now": high, "ratio": ratio},
        }
