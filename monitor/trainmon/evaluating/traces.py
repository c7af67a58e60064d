"""A trace: a folder with a log and the truth beside it, replayed once for trainmon and for all peers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from trainmon.replaying import Reading, find, read_each
from trainmon_reference.peers import PEERS, LoggedRun, Points
from trainmon_reference.peers import Alarm as PeerAlarm
from trainmon_reference.truth import FILE, Labelled, read_truth
from trainmon_rules.errors import BadInput
from trainmon_rules.incidents import JOIN_REPORTS, JOIN_STEPS
from trainmon_rules.points import IntArray
from trainmon_rules.report import IncidentReport, RunReport, SourceError
from trainmon_rules.series import Series
from trainmon_rules.state import Attempt, Run, Settings

LOGGED = ("train_loss", "loss_component", "val_loss", "grad_norm", "learning_rate", "eval_metric", "throughput",
    "step_time", "reward")  # fmt: skip
"""Roles whose series are kept whole: the peers read some, all count as rows of the log."""

ALARM = "alarm"  # severity of a peer's
_ASKED = re.compile(r"--set (\w+)=")


@dataclass(frozen=True, slots=True)
class Alarm:
    """Somebody was told of something.

    Attributes
    ----------
    symptoms : tuple of str
        All that it may be of; the first names it.
    severity : str
        Of an incident, else `alarm`.
    step : int
        When it was told; steps that a resumed or restarted run trains again are counted on.
    route : str
        Primary route, "" if there is none.
    asks : tuple of str
        Settings that are asked for.
    """

    symptoms: tuple[str, ...]
    severity: str
    step: int
    route: str = ""
    asks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """A replayed run with its truth.

    Attributes
    ----------
    name : str
        Its folder below the one that was given.
    labelled : Labelled
        The truth.
    interval : int
        Steps from one report to the next.
    rows : int64 array
        The steps at which anything was logged, counted on over attempts.
    nonfinite : int or None
        Step of the first training loss that isn't finite.
    ours, peers : tuple of Alarm, and one for each peer by name
        What was told.
    """

    name: str
    labelled: Labelled
    interval: int
    rows: IntArray
    nonfinite: int | None
    ours: tuple[Alarm, ...]
    peers: Mapping[str, tuple[Alarm, ...]]

    @property
    def steps(self) -> int:
        """Steps trained, as far as the log tells."""
        return int(self.rows[-1] - self.rows[0]) + self.interval

    @property
    def since(self) -> int:
        """First step at which the fault may be told of: its onset less one report."""
        return self.labelled.truth.onset - self.interval


def find_traces(root: Path) -> list[Path]:
    """Return the folders below `root` that hold a truth, sorted; BadInput if there is none.

    Parameters
    ----------
    root : Path
        A folder of traces, or a trace itself.
    """
    if not root.is_dir():
        raise BadInput(str(root), "is no folder" if root.exists() else "no such folder")
    found = sorted(path.parent for path in root.rglob(FILE))
    if not found:
        raise BadInput(str(root), f"holds no trace: no {FILE} anywhere in it (trainmon simulate writes some)")
    return found


def read_trace(folder: Path, name: str, labelled: Labelled, settings: Settings) -> Trace:
    """Replay a trace; BadInput if its log can't be read or tells nothing.

    Parameters
    ----------
    folder, name : Path, str
        Where it lies, and how it is called.
    labelled : Labelled
        Its truth.
    settings : Settings
        Rules and roles.
    """
    found, problems = find([folder], settings)
    read = [(reading, reports) for _, reading, reports in read_each(found, settings, problems, whole=LOGGED)]
    if fatal := next((e for e in problems if e.fatal), None):
        raise BadInput(name, fatal.error)
    logs = [log for reading, reports in read for log in _logs(reading, reports)]
    if not any(len(log.rows) for log in logs):
        raise BadInput(name, "nothing of its log can be judged")
    rows = np.unique(np.concatenate([log.rows for log in logs]))
    interval = next(log.interval for log in logs if len(log.rows))
    losses = (p for log in logs for role in ("train_loss", "loss_component") if (p := log.run.series.get(role)))
    bad = [int(p.step[~np.isfinite(p.value)][0]) for p in losses if not np.isfinite(p.value).all()]
    since = labelled.truth.onset - interval
    peers = {p.name: tuple(a for log in logs for a in _joined(p.alarms(log.run), interval, since)) for p in PEERS}
    ours = sorted((a for log in logs for a in log.incidents), key=lambda a: a.step)
    return Trace(name, labelled, interval, rows, min(bad, default=None), tuple(ours), peers)


def truths(root: Path, folders: Iterable[Path]) -> tuple[list[tuple[Path, str, Labelled]], list[SourceError]]:
    """Return folder, name and truth of each trace, and an error for each truth that can't be used."""
    found, errors = list[tuple[Path, str, Labelled]](), list[SourceError]()
    for folder in folders:
        name = folder.relative_to(root).as_posix() if folder != root else folder.resolve().name
        try:
            found.append((folder, name, read_truth(folder)))
        except BadInput as error:
            errors.append(SourceError(f"{name}/{FILE}", error.error, fatal=True))
    return found, errors


# ------------------------------------------------------------------------------------- one log, counted on
@dataclass(frozen=True, slots=True, eq=False)
class _Log:
    """What a log holds, with steps counted on over attempts and restarts."""

    rows: IntArray
    interval: int
    run: LoggedRun
    incidents: list[Alarm]


def _logs(reading: Reading, reports: Sequence[RunReport]) -> list[_Log]:
    """Return one log for all runs of a session: a job that starts over is the same job."""
    attempts = [(r, a) for r, run in enumerate(reading.session.runs) for a in run.attempts if a.tracked]
    interval = max(1, next((_interval(a) for _, a in attempts), 1))
    shift, reached = 0, None
    shifts: dict[tuple[int, int], int] = {}
    rows, series = list[IntArray](), dict[str, list[Points]]()
    for run, attempt in attempts:
        kept = {role: attempt.of_role(role) for role in LOGGED}
        steps = [s.tail(s.count).step for same in kept.values() for s in same]
        if not steps:
            continue
        if reached is not None:
            shift = max(shift, reached + interval - min(int(s[0]) for s in steps))
        shifts[run, attempt.number] = shift
        rows += [s + shift for s in steps]
        reached = shift + max(int(s[-1]) for s in steps)
        for role, same in kept.items():
            if same:
                series.setdefault(role, []).append(_points(same[0], shift))
    every = np.unique(np.concatenate(rows)) if rows else np.zeros(0, np.int64)
    whole = {role: _whole(parts) for role, parts in series.items()}
    facts = reading.session.runs[0] if reading.session.runs else Run("")
    total, size = _fact(facts, "total_steps"), _fact(facts, "model_size")
    logged = LoggedRun(whole, total or (int(every[-1]) if len(every) else 0), size or 1)
    told = [_alarm(i, shifts.get((n, i.attempt - 1), 0)) for n, r in enumerate(reports) for i in r.incidents]
    return [_Log(every, interval, logged, told)]


def _interval(attempt: Attempt) -> int:
    """Return the steps between two reports: of the training loss, else of what is logged most often."""
    losses = attempt.of_role("train_loss") or [t.series for t in attempt.ordered()]
    return max(losses, key=lambda s: s.count).interval


def _points(series: Series, shift: int) -> Points:
    view = series.tail(series.count)
    return Points(view.step + shift, view.value, view.time)


def _whole(parts: Sequence[Points]) -> Points:
    step, value, time = (np.concatenate([getattr(p, name) for p in parts]) for name in ("step", "value", "time"))
    return Points(step, value, time)


def _fact(run: Run, name: str) -> int:
    """Return a setting that any source of the run tells; 0 if none does."""
    return next((int(value) for said in run.said.values() if (value := said.get(name))), 0)


def _alarm(incident: IncidentReport, shift: int) -> Alarm:
    symptoms = (incident.symptom, *(symptom for symptom, _ in incident.others))
    route = next((r.sheet for r in incident.routes if r.rank == "primary"), "")
    asks = tuple(key for question in incident.questions for key in _ASKED.findall(question))
    return Alarm(symptoms, incident.severity, incident.detected_step + shift, route, asks)


def _joined(alarms: Iterable[PeerAlarm], interval: int, since: int) -> list[Alarm]:
    """Join a peer's alarms of one kind that follow each other as closely as findings of one incident may.

    One that goes on over the onset of the fault is told anew there, which an incident of ours isn't.
    """
    reach = max(JOIN_STEPS, JOIN_REPORTS * interval)
    told: list[Alarm] = []
    last: dict[tuple[str, ...], int] = {}
    for alarm in alarms:
        before = last.get(alarm.means)
        if before is None or alarm.step - before > reach or before < since <= alarm.step:
            told.append(Alarm(alarm.means, ALARM, alarm.step))
        last[alarm.means] = alarm.step
    return told
