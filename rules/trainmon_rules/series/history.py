"""The long memory of a series: at most 256 cells that always span its whole attempt.

Each cell holds the same number of consecutive points, a power of two; when the cells are full, neighbours are
merged and the cells become twice as wide. Which points share a cell depends on their index alone, and sums
are taken in pairs in index order, so the content never depends on how the points arrived.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from trainmon_rules.points import FloatArray, IntArray

CELLS = 256


@dataclass(slots=True)
class History:
    """Cells of `width` points: count of finite values, their mean, lowest, highest, and the steps they span."""

    width: int = 1
    count: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    mean: FloatArray = field(default_factory=lambda: np.zeros(0))
    low: FloatArray = field(default_factory=lambda: np.zeros(0))
    high: FloatArray = field(default_factory=lambda: np.zeros(0))
    first_step: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    last_step: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    _values: list[FloatArray] = field(default_factory=list)
    _steps: list[IntArray] = field(default_factory=list)
    _held: int = 0

    def extend(self, step: IntArray, value: FloatArray) -> None:
        """Take the next points; those that don't fill a cell yet are held back."""
        at = 0
        while at < len(value):
            room = (CELLS - len(self.mean)) * self.width - self._held
            take = min(room, len(value) - at)
            self._values.append(value[at : at + take])
            self._steps.append(step[at : at + take])
            self._held += take
            at += take
            if self._held >= self.width:
                self._fill()
            if len(self.mean) == CELLS:
                self._merge()

    def _fill(self) -> None:
        value = np.concatenate(self._values)
        step = np.concatenate(self._steps)
        full = len(value) // self.width * self.width
        rest_v, rest_s = value[full:].copy(), step[full:].copy()
        self._values, self._steps, self._held = ([rest_v], [rest_s], len(rest_v)) if len(rest_v) else ([], [], 0)
        ok = np.isfinite(value[:full])
        cells = (
            ok.astype(np.int64),
            np.where(ok, value[:full], 0.0),
            np.where(ok, value[:full], np.inf),
            np.where(ok, value[:full], -np.inf),
            step[:full],
            step[:full],
        )
        width = self.width
        while width > 1:
            cells = _pair(*cells)
            width //= 2
        self._append(*cells)

    def _append(
        self,
        n: IntArray,
        mean: FloatArray,
        low: FloatArray,
        high: FloatArray,
        first: IntArray,
        last: IntArray,
    ) -> None:
        self.count = np.concatenate([self.count, n])
        self.mean = np.concatenate([self.mean, mean])
        self.low = np.concatenate([self.low, low])
        self.high = np.concatenate([self.high, high])
        self.first_step = np.concatenate([self.first_step, first])
        self.last_step = np.concatenate([self.last_step, last])

    def whole(self) -> tuple[IntArray, FloatArray, FloatArray, FloatArray, IntArray]:
        """Return first step, lowest, mean, highest and number of non-finite points of each cell, for plots.

        Points held back stand as a last cell of their own, so nothing of the series is missing.
        """
        cells = (self.first_step, self.low, self.mean, self.high, self.width - self.count)
        if not self._held:
            return cells
        value = np.concatenate(self._values)
        good = value[np.isfinite(value)]
        low, mean, high = (good.min(), _mean(good), good.max()) if len(good) else (np.inf, 0.0, -np.inf)
        rest = (self._steps[0][0], low, mean, high, len(value) - len(good))
        step, lows, means, highs, bad = (np.append(c, r) for c, r in zip(cells, rest, strict=True))
        return step, lows, means, highs, bad

    def _merge(self) -> None:
        cells = _pair(self.count, self.mean, self.low, self.high, self.first_step, self.last_step)
        self.count, self.mean, self.low, self.high, self.first_step, self.last_step = cells
        self.width *= 2

    def __len__(self) -> int:
        return len(self.mean)


def _pair(
    n: IntArray, mean: FloatArray, low: FloatArray, high: FloatArray, first: IntArray, last: IntArray
) -> tuple[IntArray, FloatArray, FloatArray, FloatArray, IntArray, IntArray]:
    """Merge cells 0 and 1, 2 and 3, …; cells without a finite value weigh nothing."""
    total = n[0::2] + n[1::2]
    weight = n[1::2] / np.maximum(total, 1)
    a, b = mean[0::2], mean[1::2]
    with np.errstate(over="ignore", invalid="ignore"):
        both = a + (b - a) * weight
    both = np.where(np.isfinite(both), both, a * (1 - weight) + b * weight)  # ±1e308: their difference is no number
    return (
        total,
        both,
        np.minimum(low[0::2], low[1::2]),
        np.maximum(high[0::2], high[1::2]),
        first[0::2],
        last[1::2],
    )


def _mean(value: FloatArray) -> float:
    """Return the mean of finite values, also where their sum is no number."""
    with np.errstate(over="ignore", invalid="ignore"):
        mean = float(value.mean())
    return mean if np.isfinite(mean) else float((value / len(value)).sum())
