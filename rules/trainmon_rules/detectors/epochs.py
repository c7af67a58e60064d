"""How long an epoch is, in steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainmon_rules.points import FloatArray, IntArray
from trainmon_rules.series import View

CLOSE = 0.07  # a length is an epoch's if it differs by less


@dataclass(slots=True)
class Epochs:
    """Learns the length of an epoch from what is logged of it; remembers the first step and epoch that it was shown."""

    first: tuple[int, float] | None = None

    def length(self, view: View) -> float | None:
        """Return the steps of an epoch, given what was logged last of the epoch; None while that isn't known."""
        keep = np.isfinite(view.value)
        return self._length(view.step[keep], view.value[keep]) if keep.any() else None

    def _length(self, step: IntArray, epoch: FloatArray) -> float | None:
        """From where epochs begin if they are counted in whole ones, else from all that has passed."""
        if self.first is None:
            self.first = int(step[0]), float(epoch[0])
        counted = bool((epoch == np.floor(epoch)).all())
        if counted and bool((np.diff(epoch) < 0).any()):
            return None  # folds, phases, ranks in turn: it isn't what has passed
        begins = np.flatnonzero(np.diff(np.floor(epoch)) > 0) + 1
        if counted and len(begins) > 2:
            return float(step[begins[-1]] - step[begins[0]]) / float(epoch[begins[-1]] - epoch[begins[0]])
        passed = float(epoch[-1]) - self.first[1]
        enough = passed * CLOSE > 1 if counted else passed > 0
        return (int(step[-1]) - self.first[0]) / passed if enough else None


def is_one(epochs: float) -> bool:
    """Whether so many epochs are one."""
    return abs(epochs - 1.0) < CLOSE
