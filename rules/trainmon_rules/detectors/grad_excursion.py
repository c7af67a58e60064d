"""What grad-spike and grad-explosion share: excursions of a logarithm, told as the norms that were logged."""

from __future__ import annotations

import math
from typing import Any

from trainmon_rules.detectors.episode import Hit
from trainmon_rules.detectors.excursion import Excursion
from trainmon_rules.series import Baseline
from trainmon_rules.words import short


class GradExcursion(Excursion):
    """An excursion of a gradient norm."""

    def measured(self, baseline: Baseline, peak: Hit) -> tuple[str, dict[str, Any]]:
        """Return how many times the level before the peak is, and the numbers."""
        level = self.natural(baseline.level)
        ratio = _over(peak.value, level)
        evidence = {
            "level before": level,
            "peak": peak.value,
            "peak step": peak.step,
            "ratio": ratio,
            "threshold": self.natural(baseline.level + baseline.threshold),
            "baseline points": baseline.count,
        }
        return f"{short(ratio, 3)} times, peak at step {peak.step}", evidence

    def natural(self, judged: float) -> float:
        """Return a logarithm as the norm that was logged; a role of a user's rule may be judged as it is."""
        return math.exp(min(judged, 700.0)) if self.series.log else super().natural(judged)

    def ratio(self, baseline: Baseline, hit: Hit) -> float:
        """Return how many times its level a hit is."""
        if self.series.log:
            return math.exp(min(hit.excess, 700.0))
        return abs(_over(hit.value, self.natural(baseline.level)))


def _over(value: float, level: float) -> float:
    """Return how many times a level a value is; infinite for a level of 0."""
    return value / level if level else math.inf
