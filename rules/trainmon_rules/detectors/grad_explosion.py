"""grad-explosion: the gradient norm leaves its range by orders of magnitude.

What it detects: two of three reports at a hundred times the baseline's level; among the first fifteen, at a hundred
times the first two while the loss is no better; or, within the first 64 reports, a largest norm ten thousand times
the median while the loss doesn't fall.

Why it matters: with such a gradient one update can destroy what was learnt; without clipping it usually ends
in NaN.

Example: gradient norms of 3.4e10, 62, 3.5e4 in the first 23 reports of a fine-tune whose loss stays at 12.

When it is wrong: norms of unscaled fp16 gradients are large by nature; only ratios to the run's own past count. A
single report is an explosion only at the start. It is a warning; critical if it has lasted 32 reports and the loss
is clearly worse than before, or if the start spans those four orders of magnitude.

Fixes: clip the gradient norm (1.0 for language models, 5.0 in general, 0.5 where sensitive), lower the rate
3–10 times, warm up, check the initialisation.

Source: AutoTrainer's and TheDeepChecker's exploding-gradient checks, made relative; AutoTrainer's gate on a poor
loss.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trainmon_rules.detectors.base import Peer, Rule
from trainmon_rules.detectors.excursion import HITS, Episode, Hit
from trainmon_rules.detectors.grad_spike import GradSpike
from trainmon_rules.findings import Finding, Severity
from trainmon_rules.series import Baseline, Block, Series
from trainmon_rules.words import short

LOOKS = (8, 12, 16, 24, 32, 48, 64)  # reports at which the start is judged


class GradExplosion(GradSpike):
    """A hundredfold excursion, or a start that spans orders of magnitude."""

    name: ClassVar[str] = "grad-explosion"

    @dataclass(frozen=True, slots=True)
    class Params(GradSpike.Params):
        """`ratio` to the level before; `span` of largest to median norm over the first reports."""

        ratio: float = 100.0
        lasting: int = 32
        span: float = 1e4

    params: Params

    def __init__(self, rule: Rule, series: Series, peer: Peer, facts: dict[str, Any]) -> None:
        super().__init__(rule, series, peer, facts)
        self.started_badly = False

    def update(self, block: Block) -> Iterable[Finding]:
        """Judge the start at fixed reports, and excursions always."""
        if block.start >= LOOKS[-1]:
            return super().update(block)
        return self._early(block)

    def _early(self, block: Block) -> Iterator[Finding]:
        if not self.started_badly and self.episode is None:
            end = block.start + len(block)
            found = self._start(block) if end in LOOKS else self._young(block) if end < LOOKS[2] else None
            if found is not None:
                self.started_badly = True
                yield found
        if not self.started_badly:
            yield from super().update(block)

    def _start(self, block: Block) -> Finding | None:
        """Judge at one of the fixed reports whether the norms span orders of magnitude while nothing is learnt."""
        at = len(block) - 1
        seen = block.start + len(block)
        norms = self.series.before(seen, seen).value
        norms = norms[np.isfinite(norms) & (norms > 0)]
        loss = self.peer("train_loss", block, at, seen).finite
        if len(norms) < 6 or len(loss) < 6:
            return None
        top, middle = float(norms.max()), float(np.median(norms))
        first, last = float(np.median(loss[:3])), float(np.median(loss[-5:]))
        if top / middle < self.params.span or last < first - 0.1 * abs(first):
            return None
        return self.finding(
            block,
            at,
            f"{self.series.tag} spans {short(middle, 3)} to {short(top, 3)} in the first {seen} reports "
            "and the loss does not fall",
            {"largest": top, "median": middle, "ratio": top / middle, "loss first": first, "loss now": last},
            int(self.series.before(seen, seen).step[0]),
            severity=Severity.CRITICAL,
        )

    def _young(self, block: Block) -> Finding | None:
        """Judge too few reports for a baseline: twice among three a hundredfold of the first, and a loss no better."""
        at, seen = len(block) - 1, block.start + len(block)
        view = self.series.before(seen, seen)
        norms, loss = view.value, self.peer("train_loss", block, at, seen).finite
        if len(norms) < 5 or len(loss) < 4 or not (np.isfinite(norms[:2]) & (norms[:2] > 0)).all():
            return None
        first, over = float(norms[:2].max()), norms[-3:] >= self.params.ratio * float(norms[:2].max())
        if over.sum() < HITS or not over[-1] or loss[-1] < np.median(loss[:3]):
            return None
        top = float(norms[-3:].max())
        ratio = {"first": first, "peak": top, "ratio": top / first, "loss now": float(loss[-1])}
        grew = f"{self.series.tag} grew from {short(first, 3)} to {short(top, 3)}"
        summary = f"{grew} within {seen} reports and the loss is no better"
        start = int(np.flatnonzero(norms > 3 * first)[0])
        return self.finding(block, at, summary, ratio, int(view.step[start]), float(view.time[start]), Severity.WARNING)

    def opens(self, block: Block, at: int, baseline: Baseline, hits: list[Hit]) -> Finding | None:
        """Open when two of three reports are a hundredfold."""
        least = math.log(self.params.ratio)
        if sum(h.excess >= least for h in hits) < HITS:
            return None
        words = self._words(baseline, hits[0], max(hits, key=lambda h: h.excess))
        return self.finding(
            block, at, words["summary"], words["evidence"], hits[0].step, hits[0].time, Severity.WARNING
        )

    def grown(self, block: Block, at: int, episode: Episode) -> Finding | None:
        """Critical once it has lasted and the loss is clearly worse than before."""
        e = episode
        if e.peak.value > 4 * float(e.finding.evidence["peak"]):
            return e.finding.changed(last_step=e.last_step, **self.describe(e))
        if e.finding.severity >= Severity.CRITICAL or e.reports < self.params.lasting or e.reports % 4:
            return None
        if not self._loss_is_worse(block, at, e):
            return None
        return e.finding.changed(severity=Severity.CRITICAL, last_step=e.last_step, **self.describe(e))

    def _loss_is_worse(self, block: Block, at: int, e: Episode) -> bool:
        loss = self.peer("train_loss", block, at, min(512, 2 * e.reports + 20))
        before = loss.finite_where(loss.step < e.onset.step)[-20:]
        after = loss.finite_where(loss.step >= e.onset.step)[-8:]
        if len(before) < 5 or len(after) < 5:
            return False
        spread = 1.4826 * float(np.median(np.abs(before - np.median(before))))
        rise = float(np.median(after) - np.median(before))
        return rise > max(3 * spread, 0.1 * abs(float(np.median(before))))
