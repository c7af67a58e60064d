"""How a slowdown is told from noise: where it began, how far the pace wanders anyway, whether work explains it."""

from __future__ import annotations

import math

import numpy as np

from trainmon_rules.detectors.base import Peer
from trainmon_rules.points import FloatArray
from trainmon_rules.series import RING, Block
from trainmon_rules.series.robust import median

WORK = {"batch": 0.02, "topology": 0.001, "length": 0.0, "answer_length": 0.0, "tokens": 0.0}
"""Roles whose change explains one, with the relative change that does; 0 where it must be half of the slowdown."""


def level_of(before: FloatArray) -> FloatArray:
    """Return the stretches without their drift, which a run that gets slower and slower would take for noise."""
    half = len(before) // 2
    slope = (median(before[half:]) - median(before[:half])) / (len(before) - half)
    return before - slope * np.arange(len(before))


def recovered(before: FloatArray, m: int) -> float:
    """Return the largest rise of a median of `m` stretches that came back: how far the pace wanders anyway."""
    stride = max(1, m // 4)
    starts = range(0, len(before) - m + 1, stride)
    level = np.array([median(before[s : s + m]) for s in starts])
    if len(level) < 3:
        return 0.0
    left = np.minimum.accumulate(level)
    right = np.minimum.accumulate(level[::-1])[::-1]
    return float((level - np.maximum(left, right)).max())


def turning(level: FloatArray, middle: float, rise: float) -> int:
    """Return the index at which the newest stay above `middle` begins: where the sum of what follows is largest."""
    excess = np.clip(level - middle, -rise, rise)
    return len(level) - 1 - int(np.cumsum(excess[::-1]).argmax())


def works_more(peer: Peer, block: Block, at: int, onset: int, rise: float) -> bool:
    """Whether a step is more work than before: a larger batch, longer sequences, other workers.

    Where a number varies anyway (lengths, tokens a step) it must have changed by half of the slowdown.
    """
    for role, least in WORK.items():
        view = peer(role, block, at, RING)
        before, after = (
            (view.step < onset) & np.isfinite(view.value),
            (view.step >= onset) & np.isfinite(view.value),
        )
        if before.sum() < 2 or after.sum() < 2:
            continue
        if role == "tokens":
            with np.errstate(all="ignore"):
                value = np.append(np.nan, np.diff(view.value) / np.diff(view.step))
            then, now = (median(value[m & np.isfinite(value)]) for m in (before, after))
        else:
            then, now = median(view.value[before]), median(view.value[after])
        if then > 0 and now > 0 and abs(math.log(now / then)) >= (least or rise / 2):
            return True
    return False
