"""grad-start: a run that begins with an exploding gradient, before there is any baseline.

What it detects: in the first 64 reports, norms that span more than four orders of magnitude while the loss doesn't
fall by a tenth (critical); in the first fifteen, two of three norms at a hundred times the first two with a loss no
better than at the start (a warning). Its symptom is grad-explosion.

Why it matters: most real fault logs end within sixty reports; a rule that needs a baseline says nothing about them.

Example: gradient norms of 3.4e10, 62, 3.5e4 in the first 23 reports of a fine-tune whose loss stays at 12.

When it is wrong: a network whose last layer starts at zero begins with tiny norms; its loss falls, and then this is
silent.

Fixes: clip the gradient norm, lower the rate 3–10 times, warm up, check the initialisation.

Source: AutoTrainer's exploding-gradient check with its gate on a poor result, made relative to the run itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trainmon_rules.detectors.base import Detector, Peer, Rule, resolved
from trainmon_rules.findings import Finding, Severity
from trainmon_rules.series import Block, Series
from trainmon_rules.series.robust import median
from trainmon_rules.vocabulary import RunSettings
from trainmon_rules.words import short

LOOKS = (8, 12, 16, 24, 32, 48, 64)  # reports at which the span is judged
YOUNG = 16  # reports up to which the first norms are the yardstick
HITS = 2  # of the last three
CALM, CALM_WILD = 5, 16  # reports in a row near the lowest norm that end it, if it grew or spanned orders of magnitude
NEAR = 10.0  # times the lowest norm


class GradStart(Detector):
    """Judges the first 64 reports at fixed moments, and follows what it found."""

    name: ClassVar[str] = "grad-start"

    @dataclass(frozen=True, slots=True)
    class Params:
        """`span` of largest to median norm; `ratio` of two of three norms to the first two."""

        span: float = 1e4
        ratio: float = 100.0

    params: Params

    def __init__(self, rule: Rule, series: Series, peer: Peer, settings: RunSettings) -> None:
        super().__init__(rule, series, peer, settings)
        self.open: Finding | None = None
        self.lowest = self.top = 0.0
        self.calm = 0
        self.done = False

    def update(self, block: Block) -> Iterable[Finding]:
        """Yield the finding, if there is one, and its end."""
        if self.open is None and (self.done or block.start >= LOOKS[-1]):
            return ()
        return self._scan(block)

    def _scan(self, block: Block) -> Iterator[Finding]:
        for i in range(len(block)):
            if self.open is not None:
                yield from self._follow(block, i)
            elif not self.done:
                seen = block.start + i + 1
                found = self._span(block, i, seen) if seen in LOOKS else self._grown(block, i, seen)
                if found is not None:
                    self.open = found
                    yield found

    def _span(self, block: Block, at: int, seen: int) -> Finding | None:
        """Do the norms so far span orders of magnitude while nothing is learnt? Then it is critical."""
        view = self.series.before(seen, seen)
        norms = view.finite[view.finite > 0]
        loss = self.peer("train_loss", block, at, seen).finite
        if len(norms) < 6 or len(loss) < 6 or norms.max() / np.median(norms) < self.params.span:
            return None
        if np.partition(norms, -2)[-2] < NEAR * np.median(norms):  # one wild report is no exploding start
            return None
        first, now = median(loss[:3]), median(loss[-5:])
        if now < first - 0.1 * abs(first):
            return None
        self.lowest, self.top = float(norms.min()), float(norms.max())
        words = self._words(float(loss[-1]))
        return self.finding(
            block, at, words["summary"], words["evidence"], int(view.step[0]), severity=Severity.CRITICAL
        )

    def _grown(self, block: Block, at: int, seen: int) -> Finding | None:
        """Twice among three a hundredfold of the first norms, and a loss that is no better than at first."""
        if not 5 <= seen < YOUNG:
            return None
        view = self.series.before(seen, seen)
        norms, loss = view.value, self.peer("train_loss", block, at, seen).finite
        if len(loss) < 4 or not (np.isfinite(norms[:2]) & (norms[:2] > 0)).all():
            return None
        first = float(norms[:2].max())
        over = norms[-3:] >= self.params.ratio * first
        if over.sum() < HITS or not over[-1] or median(loss[-3:]) < loss[:3].min():  # one report alone is noise
            return None
        self.lowest, self.top = first, float(np.nanmax(norms[-3:]))
        start = int(np.flatnonzero(norms >= min(3.0, self.params.ratio) * first)[0])
        words = self._words(float(loss[-1]))
        return self.finding(
            block, at, words["summary"], words["evidence"], int(view.step[start]), float(view.time[start])
        )

    def _follow(self, block: Block, i: int) -> Iterator[Finding]:
        found, value, step = self.open, float(block.value[i]), int(block.step[i])
        if found is None or not (np.isfinite(value) and value > 0):
            return
        self.top = max(self.top, value)
        loss = self.peer("train_loss", block, i, 1).value
        self.open = found.changed(**self._words(float(loss[-1]) if len(loss) else float("nan")))
        if value > NEAR * self.lowest:
            self.calm = 0
            self.open = self.open.changed(last_step=step)
            return
        self.calm += 1
        wild = self.open.severity is Severity.CRITICAL
        if self.calm >= (CALM_WILD if wild else CALM):
            yield resolved(self.open, step, f"the norm is back at {short(value, 3)} by step {step}")
            self.open, self.done = None, True

    def _words(self, loss: float) -> dict[str, Any]:
        low, top = self.lowest, self.top
        return {
            "summary": f"{self.series.tag} went from {short(low, 3)} to {short(top, 3)} in the first reports "
            "and the loss was no better for it",
            "evidence": {"lowest": low, "largest": top, "ratio": top / low, "loss now": loss},
        }
