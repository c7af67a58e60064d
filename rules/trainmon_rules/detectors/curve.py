"""What `flat` and `plateau` share: when they look at the whole curve, and how sure a level in it is."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from trainmon_rules.detectors.base import Peer
from trainmon_rules.points import FloatArray
from trainmon_rules.series import Block
from trainmon_rules.series.robust import median
from trainmon_rules.series.trend import Rate, Trend, next_look, noise, trend_of

METRICS = ("eval_metric", "train_metric")  # judged for being constant, not as a curve
MEDIAN_ERROR = 1.25  # standard error of a median in that of the mean, of a normal distribution


@dataclass(slots=True)
class Curve:
    """The curve as of the last look and the learning rate beside it; `look_at` is the number of points of the next."""

    look_at: int
    trend: Trend = field(default_factory=Trend)
    rate: Rate = field(default_factory=Rate)

    def look(self, block: Block, peer: Peer) -> bool:
        """Take the curve and the rate as of the end of this block; False where it isn't time yet."""
        trend = trend_of(block)
        if trend is None or trend.count < self.look_at:
            return False
        self.trend = trend
        self.look_at = next_look(trend.count)
        self.rate.look(peer("learning_rate", block, len(block) - 1, 512), trend.count)
        return True

    def newest(self) -> tuple[float, int]:
        """Return the level of the last eighth, and the number of cells that it is made of."""
        cells, _ = self.trend.cells()
        k = max(2, len(cells) // 8)
        return median(cells[-k:]), k


def error_of_difference(cells: FloatArray, k: int) -> float:
    """Return the standard error of the difference of the medians of `k` cells each, from the noise of `cells`."""
    return MEDIAN_ERROR * noise(cells) * math.sqrt(2.0 / k)
