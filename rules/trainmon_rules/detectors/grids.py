"""Values at equal distances, near and far back, with the learning rate beside them: what a pattern is looked for in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from trainmon_rules.detectors.base import Peer
from trainmon_rules.detectors.phases import AGAIN, autocorrelation, detrended
from trainmon_rules.points import FloatArray, IntArray
from trainmon_rules.series import RING, Block
from trainmon_rules.series.trend import Trend, whole

BINNED = 4  # reports: a second look at the ring averages them, so that noise hides less
CELLS = 128  # of the whole curve
MISSING = 0.25  # share of the values that may be missing


@dataclass(frozen=True, slots=True)
class Grid:
    """Values at equal distances, the step of each, how many reports a value stands for, and the rate beside each."""

    value: FloatArray
    step: IntArray
    width: int
    rate: FloatArray

    @property
    def distance(self) -> float:
        """Steps from one value to the next."""
        return max(1e-9, float(self.step[-1] - self.step[0]) / (len(self.step) - 1))

    def rate_cycles(self, period: float) -> bool:
        """Whether the learning rate moves with that period, in values."""
        top = float(np.abs(self.rate).max(initial=0.0))
        if not float(np.ptp(self.rate)) > 0.01 * top:
            return False
        r, _ = detrended(self.rate)
        return bool(autocorrelation(r)[round(period)] > AGAIN and float(np.ptp(r)) > 0.05 * top)


@dataclass(slots=True)
class Grids:
    """Keeps the whole curve of a series, and of the learning rate beside it, in at most 128 cells each."""

    curve: Trend = field(default_factory=lambda: Trend(CELLS))
    rates: Trend = field(default_factory=lambda: Trend(CELLS))

    def take(self, block: Block, peer: Peer) -> bool:
        """Take a block that is whole; False while its last point is missing."""
        taken = whole(block)
        if taken is None:
            return False
        view, y, _ = taken  # also what lies above the baseline: it belongs to a pattern
        rate = peer("learning_rate", block, len(block) - 1, 1).finite
        self.curve.extend(view, y, np.isfinite(y))
        self.rates.extend(view, np.full(len(y), float(rate[-1]) if len(rate) else 0.0), np.ones(len(y), np.bool_))
        return True

    def seen(self, block: Block, peer: Peer) -> Iterator[Grid]:
        """Give the ring report by report, then averaged, then the last three quarters of the whole curve."""
        ring = block.series.before(block.start + len(block), RING)
        y = _filled(block.series.judged_of(ring.value))
        rate = _rate_at(ring.step, block, peer)
        if y is not None:
            yield Grid(y, ring.step, 1, rate)
            if len(y) == RING:
                binned = y.reshape(-1, BINNED).mean(axis=1)
                yield Grid(binned, ring.step[::BINNED], BINNED, rate[::BINNED])
        young = len(self.curve.mean) // 4
        cells = _filled(np.array(self.curve.mean[young:]))
        if self.curve.width > 1 and cells is not None:
            rates = np.array(self.rates.mean[young:])
            yield Grid(cells, np.array(self.curve.step[young:]), self.curve.width, rates)


def _rate_at(step: IntArray, block: Block, peer: Peer) -> FloatArray:
    view = peer("learning_rate", block, len(block) - 1, RING)
    keep = np.isfinite(view.value)
    return np.interp(step, view.step[keep], view.value[keep]) if keep.any() else np.zeros(len(step))


def _filled(y: FloatArray) -> FloatArray | None:
    """Return the values with gaps bridged; None if too many are missing."""
    good = np.isfinite(y)
    if good.all():
        return y
    if good.sum() < (1 - MISSING) * len(y):
        return None
    at = np.arange(len(y))
    return np.interp(at, at[good], y[good])
