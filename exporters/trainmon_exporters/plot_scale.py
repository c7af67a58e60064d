"""The y axis of a plot: linear or logarithmic, from any finite values to places between 0 and 1."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from trainmon_rules.report import Curve
from trainmon_rules.words import short

LOG_RATIO = 100.0  # from here on a positive range is drawn logarithmically
LOG_RATIO_ZEROS = 1000.0  # the same where some values are exactly zero
GUTTER = 9  # columns for the numbers of the y axis
_MOST = sys.float_info.max


@dataclass(frozen=True, slots=True)
class Scale:
    """Lowest and highest value, and whether the axis is logarithmic."""

    low: float
    high: float
    log: bool

    @classmethod
    def of(cls, curves: Sequence[Curve]) -> Scale:
        """Return the axis that holds the finite values of all curves."""
        cells = [(lo, hi) for c in curves for lo, hi in zip(c.low, c.high, strict=True) if lo <= hi]
        values = [v for cell in cells for v in cell]
        if not values:
            return cls(0.0, 1.0, False)
        low, high = min(values), max(values)
        positive = min((v for v in values if v > 0), default=0.0)
        ratio = LOG_RATIO if low > 0 else LOG_RATIO_ZEROS
        if low >= 0 and positive > 0 and high / positive > ratio:
            return cls(positive, high, True)
        if not low / 2 < high / 2:  # equal, or so small that they can't be told apart
            room = abs(low) * 0.05 or 1.0
            return cls(max(low - room, -_MOST), min(high + room, _MOST), False)
        return cls(low, high, False)

    def place(self, value: float) -> float:
        """Return where a value stands: 0 at the bottom, 1 at the top, and nothing beyond."""
        if self.log:
            value = max(value, self.low)
            place = (math.log(value) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        else:  # halves: the range may exceed a float
            place = (value / 2 - self.low / 2) / (self.high / 2 - self.low / 2)
        return min(1.0, max(0.0, place))

    def at(self, place: float) -> float:
        """Return the value at a place; exactly the lowest and the highest at the ends."""
        if place in (0.0, 1.0):
            return self.high if place else self.low
        if self.log:
            return math.exp(math.log(self.low) * (1 - place) + math.log(self.high) * place)
        return self.low * (1 - place) + self.high * place


def labels(values: Sequence[float]) -> list[str]:
    """Return numbers that fit the gutter, with as many digits as it takes to tell them apart."""
    texts = [text if len(text := short(v)) <= GUTTER else f"{v:.2g}" for v in values]
    for digits in range(5, GUTTER):
        longer = [short(v, digits) for v in values]
        if len(set(texts)) == len(set(values)) or any(len(t) > GUTTER for t in longer):
            break
        texts = longer
    return texts
