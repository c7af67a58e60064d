"""One log as the peers see it, with the incidents found in it: steps counted on over attempts and restarts.

A resumed run trains steps again, and one that starts over begins at 0. What came first is told by how much was
trained until then, so each attempt goes on where the one before ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trainmon.evaluating.alarms import Alarm, alarm_of
from trainmon.replaying import Reading
from trainmon_reference.peers import LoggedRun, Points
from trainmon_rules.points import IntArray
from trainmon_rules.report import RunReport
from trainmon_rules.series import Series
from trainmon_rules.state import Attempt, Run

LOGGED = ("train_loss", "loss_component", "val_loss", "grad_norm", "learning_rate", "eval_metric", "throughput",
    "step_time", "reward")  # fmt: skip
"""Roles whose series are kept whole: the peers read some, all count as rows of the log."""


@dataclass(frozen=True, slots=True, eq=False)
class Log:
    """What a log holds, with steps counted on over attempts and restarts.

    Attributes
    ----------
    rows : int64 array
        The steps at which anything of `LOGGED` was logged.
    interval : int
        Steps from one report to the next.
    run : LoggedRun
        Its series by role, for the peers.
    incidents : list of Alarm
        What trainmon told.
    """

    rows: IntArray
    interval: int
    run: LoggedRun
    incidents: list[Alarm]


def log_of(reading: Reading, reports: Sequence[RunReport]) -> Log:
    """Return what was read as one log: a job that starts over is the same job."""
    attempts = {(n, a.number): a for n, run in enumerate(reading.session.runs) for a in run.attempts if a.tracked}
    interval = next(map(_interval, attempts.values()), 1)
    shifts = _shifts(attempts, interval)
    rows, series = [np.zeros(0, np.int64)], dict[str, list[Points]]()
    for key, shift in shifts.items():
        for role in LOGGED:
            points = [_points(s, shift) for s in attempts[key].of_role(role)]
            rows += [p.step for p in points]
            series.setdefault(role, []).extend(points[:1])
    every = np.unique(np.concatenate(rows))
    whole = {role: _joined(parts) for role, parts in series.items() if parts}
    if "train_loss" not in whole and "loss_component" in whole:  # no total: the first component speaks
        whole["train_loss"] = whole["loss_component"]
    facts = reading.session.runs[0] if reading.session.runs else Run("")
    total, size = _fact(facts, "total_steps"), _fact(facts, "model_size")
    logged = LoggedRun(whole, total or int(every[-1]) if len(every) else total, size or 1)
    told = [alarm_of(i, shifts.get((n, i.attempt - 1), 0)) for n, r in enumerate(reports) for i in r.incidents]
    return Log(every, interval, logged, told)


def _shifts(attempts: Mapping[tuple[int, int], Attempt], interval: int) -> dict[tuple[int, int], int]:
    """Return by how much the steps of each attempt (number of its run, its own) have to be moved on."""
    shift, reached, shifts = 0, None, dict[tuple[int, int], int]()
    for key, attempt in attempts.items():
        steps = [s.tail(s.count).step for role in LOGGED for s in attempt.of_role(role)]
        if not steps:
            continue
        if reached is not None:
            shift = max(shift, reached + interval - min(int(s[0]) for s in steps))
        shifts[key] = shift
        reached = shift + max(int(s[-1]) for s in steps)
    return shifts


def _interval(attempt: Attempt) -> int:
    """Return the steps between two reports: of the training loss, else of what is logged most often."""
    losses = attempt.of_role("train_loss") or [t.series for t in attempt.ordered()]
    return max(1, max(losses, key=lambda s: s.count).interval)


def _points(series: Series, shift: int) -> Points:
    view = series.tail(series.count)
    return Points(view.step + shift, view.value, view.time)


def _joined(parts: Sequence[Points]) -> Points:
    step, value, time = (np.concatenate([getattr(p, name) for p in parts]) for name in ("step", "value", "time"))
    return Points(step, value, time)


def _fact(run: Run, name: str) -> int:
    """Return a setting that any source of the run tells; 0 if none does."""
    return next((int(value) for said in run.said.values() if (value := said.get(name))), 0)
