"""A stretch of a series' points, as detectors look back on them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from trainmon_rules.points import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """A stretch of a series' points, oldest first; `start` is the index of the first.

    `first` holds the first values of the whole series as of the stretch's end, up to 16, as logged; `peak`, of a
    learning rate, the highest value before the stretch: infinite while more of the run had passed before the log
    began than has been seen, NaN where there was none before.
    """

    start: int
    step: IntArray
    time: FloatArray
    value: FloatArray
    row: IntArray
    first: FloatArray = field(default_factory=lambda: np.zeros(0))
    peak: float = math.nan

    def __len__(self) -> int:
        return len(self.value)

    @property
    def finite(self) -> FloatArray:
        """The finite values."""
        return self.value[np.isfinite(self.value)]

    def finite_where(self, mask: BoolArray) -> FloatArray:
        """The finite values among those picked by a mask of the view's length."""
        return self.value[mask & np.isfinite(self.value)]


EMPTY = View(0, np.zeros(0, np.int64), np.zeros(0), np.zeros(0), np.zeros(0, np.int64))
