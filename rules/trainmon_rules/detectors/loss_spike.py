"""loss-spike: the loss jumps up and comes back.

What it detects: two of three reports above the robust baseline by six standard deviations (twelve while the
baseline has fewer than twelve points), by 2 % of the level, three times the 95th percentile of the
recent residuals and 1.3 times the isolated outliers that this series has anyway. It says how much came back:
`recovered` (five reports in a row within half the threshold, and after how many), else after 50 and 150 reports
`partly` (at least half of the rise) or `not`; the number of spikes in the run so far, and the spike score.

Why it matters: spikes cost progress, half of the lost ones never come back, and on large runs they announce
divergence.

Example: BLOOM-176B at iteration 31216: 2.20 → 5.10 within four steps, back to 2.22 thirty steps later. Its gradient
norm rose at iteration 31215: one report before the loss, four before the peak.

When it is wrong: one report above is no spike (the same batch does that in every healthy run); it is counted
only where reports are sparse, from twice the threshold on, and then as info. Up to 192 reports after a warm restart
of the learning rate a rise is expected. What rises more slowly than by the threshold within four reports is the
wandering of an autocorrelated loss. A loss that stays up is `divergence`.

Fixes: lower the peak learning rate, clip the gradient norm, lengthen the warm-up; skip the batches around the
onset and resume from a checkpoint before it.

Source: OLMo-core's rolling window with 6 standard deviations; made robust, with flagged reports left out of the
baseline (Lightning Fabric, metaseq) and persistence (KillLossSpike, Marin). The spike score is OLMo 2's (the share of
reports far above those before), measured by this baseline.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trainmon_rules.detectors.episode import Episode, Hit
from trainmon_rules.detectors.excursion import HITS, Excursion
from trainmon_rules.detectors.schedule import restarted
from trainmon_rules.findings import Finding, Severity
from trainmon_rules.series import Baseline, Block, Series
from trainmon_rules.series.robust import median

YOUNG = 12  # reports before which a spike is measured by the range of those before it
RESTART_REACH = 192  # reports after a warm restart in which a rise is explained by it; the baseline follows after 128


class LossSpike(Excursion):
    """Two of three reports above the baseline."""

    name: ClassVar[str] = "loss-spike"

    @dataclass(frozen=True, slots=True)
    class Params:
        """`single` times the threshold is worth an info where reports are more than `sparse` steps apart."""

        single: float = 2.0
        sparse: int = 1

    params: Params

    def _look(self, block: Block, i: int, y: float, b: Baseline) -> Iterator[Finding]:
        """While the baseline is short, the range of the reports before is the better yardstick."""
        young = _young_baseline(self.series, block.start + i) if block.start + i < YOUNG else None
        return super()._look(block, i, y, young or b)

    def opens(self, block: Block, at: int, baseline: Baseline, hits: list[Hit]) -> Severity | None:
        """Open at the second hit; a single large one counts where reports are sparse; a warm restart explains both."""
        if restarted(self.peer("learning_rate", block, at, RESTART_REACH)):
            return None
        strong = any(h.excess > baseline.threshold for h in hits)
        if strong and not self._jumped(hits, baseline):
            return None
        if len(hits) >= HITS and strong:
            return self.rule.severity
        if not hits[-1].excess > self.params.single * baseline.threshold or baseline.count < 12:
            return None
        return Severity.INFO if self.series.interval_at(block.start + at) > self.params.sparse else None

    def _jumped(self, hits: list[Hit], b: Baseline) -> bool:
        """Whether it rose within four reports: an autocorrelated loss wanders as high, but slowly."""
        ring = self.series.before(hits[0].index, 4)
        before = self.series.judged_of(ring.value)
        before = before[np.isfinite(before)]
        rise = max(h.excess for h in hits) + b.level - float(before.min()) if len(before) else math.inf
        return rise >= b.threshold

    def grown(self, block: Block, at: int, episode: Episode) -> Severity | None:
        """An info becomes a warning at its second hit; a peak twice as high is said."""
        e = episode
        said = float(e.finding.evidence["excess in standard deviations"])
        worse = e.peak.excess / e.baseline.scale > 2 * said
        second = e.finding.severity < self.rule.severity and e.reports <= 3
        if second:
            return self.rule.severity
        return e.finding.severity if worse else None

    def lasting(self, episode: Episode) -> Severity:
        """One that isn't back is no trifle, however it began."""
        return max(episode.finding.severity, self.rule.severity)

    def measured(self, baseline: Baseline, peak: Hit) -> tuple[str, dict[str, Any]]:
        """Return the peak in standard deviations, and the numbers."""
        level = self.natural(baseline.level)
        sigmas = peak.excess / baseline.scale
        shown = f"{sigmas:.0f}" if sigmas < 1000 else "over 1000"
        evidence = {
            "level before": level,
            "peak": peak.value,
            "peak step": peak.step,
            "rise": peak.value - level,
            "excess in standard deviations": min(sigmas, 1e6) if math.isfinite(sigmas) else 1e6,
            "threshold": self.natural(baseline.level + baseline.threshold),
            "baseline points": baseline.count,
        }
        return f"peak at step {peak.step}; {shown} standard deviations", evidence


def _young_baseline(series: Series, index: int) -> Baseline | None:
    """Return level and range of the reports before, without the last two; None if there are too few, or signed ones."""
    y = series.judged_of(series.before(index, YOUNG).value)[:-2] if index >= 6 else np.zeros(0)
    y = y[np.isfinite(y)]
    if len(y) < 4 or y.min() <= 0:
        return None
    level, spread = median(y), float(y.max() - y.min())
    threshold = max(2 * spread, 0.2 * level)
    return Baseline(level, level, 0.0, max(spread / 2, 1e-12), threshold, YOUNG)
