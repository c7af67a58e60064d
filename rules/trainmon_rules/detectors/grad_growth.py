"""grad-growth: the gradient norm grows steadily for dozens of reports, too slowly for a spike.

What it detects: five medians of 16 reports in a row, each above the one before by a twelfth of the whole growth at
least, the last at eight times the first and above anything the norm has been before, while the loss is no better. It
is looked for at every 16th report.

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
from dataclasses import dataclass
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
LEVELS = 5  # levels that must rise one after another
SPAN = LEVEL * LEVELS
STEADY = 1 / 12  # of the growth that each level must add: a jump is the matter of grad-spike


class GradGrowth(Detector):
    """Compares levels of 16 reports at fixed places."""

    name: ClassVar[str] = "grad-growth"

    @dataclass(frozen=True, slots=True)
    class Params:
        """How many times the level of 80 reports ago is told, and how many times is a warning."""

        ratio: float = 8.0
        clear: float = 30.0

    params: Params

    def __init__(self, rule: Rule, series: Series, peer: Peer, settings: RunSettings) -> None:
        super().__init__(rule, series, peer, settings)
        self.least = SPAN + LEVEL
        self.top = -math.inf  # highest level up to 80 reports ago
        self.low = self.high = 0.0  # levels that the open one began at and has reached, as logarithms
        self.levels: list[float] = []  # the last five, oldest first

    def update(self, block: Block) -> Iterable[Finding]:
        """Look at every 16th report."""
        first = block.start // LEVEL * LEVEL + LEVEL
        for end in range(first, block.start + len(block) + 1, LEVEL):
            found = self._look(block, end)
            if found is not None:
                yield found

    def _look(self, block: Block, end: int) -> Finding | None:
        y = self.series.judged_of(self.series.before(end, LEVEL).value)
        y = y[np.isfinite(y)]
        if len(y) < LEVEL // 2:
            return None
        self.levels.append(median(y))
        if len(self.levels) > LEVELS:
            self.top = max(self.top, self.levels.pop(0))
        at = end - 1 - block.start
        if self.open is not None:
            return self._follow(block, at, self.levels[-1])
        return self._judge(block, at, end) if self._grows() else None

    def _grows(self) -> bool:
        levels = self.levels
        grown = levels[-1] - levels[0]
        if len(levels) < LEVELS or grown < math.log(self.params.ratio) or not levels[-1] > self.top > -math.inf:
            return False
        return all(b - a >= STEADY * grown for a, b in pairwise(levels))

    def _judge(self, block: Block, at: int, end: int) -> Finding | None:
        if self._is_explained(block, at):
            return None
        self.low, self.high = self.levels[0], self.levels[-1]
        view = self.series.before(end, SPAN)
        below = np.flatnonzero(self.series.judged_of(view.value) <= self.levels[1])
        since = int(below[-1]) if len(below) else 0
        return self._opened(block, at, int(view.step[since]), float(view.time[since]))

    def _opened(self, block: Block, at: int, step: int, time: float) -> Finding:
        words = self._words()
        self.open = self.finding(block, at, words["summary"], words["evidence"], step, time, self._severity())
        return self.open

    def _is_explained(self, block: Block, at: int) -> bool:
        """Whether the loss left its noise for the better meanwhile, or the rate went up."""
        rate = self.peer("learning_rate", block, at, SPAN).finite
        if len(rate) >= 2 and rate[-1] > 1.001 * rate[0]:
            return True
        loss = self.peer("train_loss", block, at, SPAN).finite
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
