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
        evidence = {
            "level before": level,
            "peak": peak.value,
            "peak step": peak.step,
            "ratio": peak.value / level,
            "threshold": self.natural(baseline.level + baseline.threshold),
            "baseline points": baseline.count,
        }
        return f"{short(peak.value / level, 3)} times, peak at step {peak.step}", evidence

    def natural(self, judged: float) -> float:
        """Return a logarithm as the norm that was logged."""
        return math.exp(min(judged, 700.0))
