"""grad-spike: the gradient norm jumps; the earliest herald of a loss spike.

What it detects: two of three reports whose logarithm is six robust standard deviations above the baseline, and at
least three times its level. Judged against the run's own past, never by absolute numbers.

Why it matters: the gradient leads. In BLOOM-176B it rose four reports before the loss peaked.

Example: 0.24 → 0.95 → 2.4 → 15.9 → 145 → 960 in five steps.

When it is wrong: a norm rises 5–20 times within 50 reports exactly when a plateau breaks and learning starts, and
has a hump at the end of warm-up. It is therefore info by itself, a warning only if it lasts 50 reports while the
loss isn't better than before; and it is silent in the first 60 reports and while the rate is warming up, unless
it is a hundredfold.

Fixes: clip the gradient norm, look at the batch, lower the rate or lengthen the warm-up.

Source: OLMo-core's StabilityMonitor (6 standard deviations over 128 reports), taken on the logarithm since norms
are log-normal; the lead over the loss: BLOOM and OLMo 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trainmon_rules.detectors.episode import Episode, Hit
from trainmon_rules.detectors.excursion import HITS
from trainmon_rules.detectors.grad_excursion import GradExcursion
from trainmon_rules.findings import Severity
from trainmon_rules.series import Baseline, Block


class GradSpike(GradExcursion):
    """Two of three reports far above the baseline of the log norm."""

    name: ClassVar[str] = "grad-spike"

    @dataclass(frozen=True, slots=True)
    class Params:
        """Thresholds.

        `ratio` to the level before; `early` reports and warm-up in which only `hundredfold` counts; `lasting`
        reports after which it is a warning if the loss is no better.
        """

        ratio: float = 3.0
        early: int = 60
        hundredfold: float = 100.0
        lasting: int = 50

    params: Params

    def opens(self, block: Block, at: int, baseline: Baseline, hits: list[Hit]) -> Severity | None:
        """Open at the second hit if the ratio is large enough for this phase of the run."""
        ratio = self.ratio(baseline, hits[-1])
        if len(hits) < HITS or ratio < self.params.ratio or not any(h.excess > baseline.threshold for h in hits):
            return None
        if ratio < self.params.hundredfold and (block.start + at < self.params.early or self.warming_up(block, at)):
            return None
        return Severity.INFO

    def warming_up(self, block: Block, at: int) -> bool:
        """Whether the learning rate is still rising, or did within the last fifth of the reports so far."""
        seen = block.start + at + 1
        lr = self.peer("learning_rate", block, at, min(512, max(2, seen // 6))).finite
        return len(lr) >= 2 and bool(lr[-1] > lr[0] * 1.001)

    def grown(self, block: Block, at: int, episode: Episode) -> Severity | None:
        """A warning once it lasts while the loss is no better than before the onset; a much higher peak is said."""
        e = episode
        if e.peak.value > 4 * float(e.finding.evidence["peak"]):
            return e.finding.severity
        if e.finding.severity >= self.rule.severity or e.reports < self.params.lasting:
            return None
        return None if e.reports % 8 or self._loss_is_better(block, at, e) else self.rule.severity

    def _loss_is_better(self, block: Block, at: int, e: Episode) -> bool:
        loss = self.peer("train_loss", block, at, min(512, 2 * e.reports))
        before = loss.finite_where(loss.step < e.onset.step)
        after = loss.finite_where(loss.step >= e.onset.step)
        if len(before) < 5 or len(after) < 5:
            return False
        return bool(np.median(after[-20:]) < np.median(before[-20:]))
