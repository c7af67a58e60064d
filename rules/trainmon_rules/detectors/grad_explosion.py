"""grad-explosion: the gradient norm leaves its range by orders of magnitude.

What it detects: two of three reports at a hundred times the baseline's level. The first reports, which have no baseline
yet, are the matter of grad-start, under the same symptom.

Why it matters: with such a gradient one update can destroy what was learnt; without clipping it usually ends
in NaN.

Example: 0.24 → 960 in five steps, and it stays there while the loss rises.

When it is wrong: norms of unscaled fp16 gradients are large by nature; only ratios to the run's own past count, and a
single report is none. It is a warning; critical if it has lasted 32 reports and the loss is clearly worse than
before (by a tenth, and by three times its spread).

Fixes: clip the gradient norm (1.0 for language models, 5.0 in general, 0.5 where sensitive), lower the rate
3–10 times, warm up, check the initialisation.

Source: AutoTrainer's and TheDeepChecker's exploding-gradient checks, made relative; AutoTrainer's gate on a poor
loss.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trainmon_rules.detectors.episode import Episode, Hit
from trainmon_rules.detectors.excursion import HITS
from trainmon_rules.detectors.grad_excursion import GradExcursion
from trainmon_rules.findings import Severity
from trainmon_rules.series import Baseline, Block


class GradExplosion(GradExcursion):
    """A hundredfold excursion."""

    name: ClassVar[str] = "grad-explosion"

    @dataclass(frozen=True, slots=True)
    class Params:
        """`ratio` to the level before; `lasting` reports before it can be critical."""

        ratio: float = 100.0
        lasting: int = 32

    params: Params

    def opens(self, block: Block, at: int, baseline: Baseline, hits: list[Hit]) -> Severity | None:
        """Open when two of three reports are a hundredfold."""
        least = math.log(self.params.ratio)
        return Severity.WARNING if sum(h.excess >= least for h in hits) >= HITS else None

    def grown(self, block: Block, at: int, episode: Episode) -> Severity | None:
        """Critical once it has lasted and the loss is clearly worse than before."""
        e = episode
        if e.peak.value > 4 * float(e.finding.evidence["peak"]):
            return e.finding.severity
        if e.finding.severity >= Severity.CRITICAL or e.reports < self.params.lasting or e.reports % 4:
            return None
        return Severity.CRITICAL if self._loss_is_worse(block, at, e) else None

    def _loss_is_worse(self, block: Block, at: int, e: Episode) -> bool:
        loss = self.peer("train_loss", block, at, min(512, 2 * e.reports + 20))
        before = loss.finite_where(loss.step < e.onset.step)[-20:]
        after = loss.finite_where(loss.step >= e.onset.step)[-8:]
        if len(before) < 5 or len(after) < 5:
            return False
        spread = 1.4826 * float(np.median(np.abs(before - np.median(before))))
        rise = float(np.median(after) - np.median(before))
        return rise > max(3 * spread, 0.1 * abs(float(np.median(before))))
