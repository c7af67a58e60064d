"""The pace of a run: how long a step takes, report by report.

A logged step time speaks; else a logged throughput, else the model FLOPs utilisation (as one over it: units don't
matter where a run is compared with its own past), else the wall times between two reports of the training loss. One of
them speaks for the run, so that one slowdown isn't told four times.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainmon_rules.detectors.base import Peer
from trainmon_rules.points import BoolArray, FloatArray, IntArray
from trainmon_rules.series import Block, Series

MEASURED = ("step_time", "throughput", "mfu")  # roles that are a pace themselves; all others are timed by the clock
SPEAKERS = (*MEASURED, "train_loss")  # the first that is logged speaks, then any other that a rule lists
ANOTHER = "another metric tells the pace from here on"
ABSURD = 1e20  # no pace; FLOPs a second are 1e15
TOO_LONG = 30 * 86400.0  # seconds: a clock that was set, not a pause


@dataclass(frozen=True, slots=True, eq=False)
class Paces:
    """How long steps took, by report.

    Attributes
    ----------
    pace : float64 array, shape (n,)
        Time a step, in the log's unit (seconds by wall time); NaN where it can't be told.
    steps : float64 array, shape (n,)
        Steps since the report before; NaN where they didn't go on.
    seconds : float64 array, shape (n,)
        Wall time since the report before; NaN where it is missing or the clock was set.
    step, time : arrays, shape (n,)
        Of the report itself.
    """

    pace: FloatArray
    steps: FloatArray
    seconds: FloatArray
    step: IntArray
    time: FloatArray

    def __len__(self) -> int:
        return len(self.pace)

    def picked(self, which: BoolArray | IntArray | slice) -> Paces:
        """Return some of the reports."""
        return Paces(self.pace[which], self.steps[which], self.seconds[which], self.step[which], self.time[which])

    @property
    def known(self) -> Paces:
        """The reports whose pace can be told."""
        ok = np.isfinite(self.pace)
        return self if ok.all() else self.picked(ok)


def paces(series: Series, end: int, n: int) -> Paces:
    """Return the paces of the `n` reports before index `end` of a series."""
    view = series.before(end, n + 1)
    with np.errstate(all="ignore"):
        steps, seconds = np.diff(view.step).astype(np.float64), np.diff(view.time)
        own = slice(len(view) - min(n, len(view)), None)
        if view.start > end - n - 1 and len(view):  # nothing is known before the first report
            steps, seconds = (np.concatenate([[np.nan], a]) for a in (steps, seconds))
        steps = np.where(steps > 0, steps, np.nan)
        seconds = np.where((seconds >= 0) & (seconds < TOO_LONG), seconds, np.nan)
        value = view.value[own]
        if by_wall_time(series.role):
            pace = seconds / steps
        else:
            pace = np.where((value > 0) & np.isfinite(value), value, np.nan)
            pace = pace if series.role == "step_time" else 1.0 / pace
        pace = np.where((pace >= 0) & (pace < ABSURD) & ((pace > 1.0 / ABSURD) | (pace == 0)), pace, np.nan)
    return Paces(pace, steps, seconds, view.step[own], view.time[own])


def by_wall_time(role: str) -> bool:
    """Whether the pace of a series is told by its wall times."""
    return role not in MEASURED


def whole_seconds(reports: Paces) -> bool:
    """Whether wall times have a resolution of a second."""
    return bool((reports.time == reports.time.round()).all())


def as_logged(role: str, pace: float) -> float:
    """Return a pace as the log has it: a throughput where that is what is logged."""
    return pace if role == "step_time" or by_wall_time(role) else 1.0 / pace if pace else float("inf")


def speaks(peer: Peer, block: Block, speakers: tuple[str, ...] = SPEAKERS) -> int:
    """Return how many of the block's first points were logged before a better speaker appeared.

    A role that isn't a speaker, which a rule of the user's may list, gives way to all of them.
    """
    own = block.series.role
    better = speakers[: speakers.index(own)] if own in speakers else speakers
    n = len(block)
    for role in better:
        if not n or not len(peer(role, block, n - 1, 1)):
            continue
        low, high = 0, n - 1  # the first point at which it was there
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if len(peer(role, block, middle, 1)) else (middle + 1, high)
        n = low
    return n
