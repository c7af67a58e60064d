"""Which record of a source was the last one at a moment of another source.

Sources of one run are read in turns, so "what had been logged by then" must not mean "what has been read by now".
A clock keeps, for each record of a source in one attempt, the latest step and the latest wall time up to it. Both
never fall, whatever the log does (clocks that are set back, records without a time, a validation record that is
ahead of the training records), so the answer is final as soon as the source has passed the moment.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from trainmon_rules.points import Chunk, FloatArray, IntArray

KEPT = 1_000_000  # records


@dataclass(slots=True, eq=False)
class Clock:
    """The records of a source in one attempt: their rows, and the latest step and wall time up to each.

    `timed` says whether the run's first record in that source has a wall time; then moments are compared by it,
    else by step.
    """

    timed: bool
    row: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    step: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    time: FloatArray = field(default_factory=lambda: np.zeros(0))

    def extend(self, chunks: Sequence[Chunk], since: float) -> None:
        """Take the next records; `since` is the latest wall time of the run in this source before them."""
        rows = np.concatenate([c.row for c in chunks])
        row, at = np.unique(rows, return_inverse=True)
        step = np.full(len(row), np.iinfo(np.int64).min)
        time = np.full(len(row), since)
        np.maximum.at(step, at, np.concatenate([c.step for c in chunks]))
        times = np.concatenate([c.time for c in chunks])
        np.maximum.at(time, at, np.where(np.isfinite(times), times, -np.inf))
        if len(self.step):
            step[0] = max(int(step[0]), int(self.step[-1]))
        self.row = np.concatenate([self.row[-KEPT:], row])
        self.step = np.concatenate([self.step[-KEPT:], np.maximum.accumulate(step)])
        self.time = np.concatenate([self.time[-KEPT:], np.maximum.accumulate(time)])

    def row_at(self, step: int, time: float) -> int:
        """Return the last record at or before a moment, -1 if there is none."""
        if self.timed and math.isfinite(time):
            end = int(np.searchsorted(self.time, time, "right"))
        else:
            end = int(np.searchsorted(self.step, step, "right"))
        return int(self.row[end - 1]) if end else -1
