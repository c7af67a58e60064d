"""A trace: a folder with a log and the truth beside it, replayed once for trainmon and for all peers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from trainmon.evaluating.alarms import Alarm, joined
from trainmon.evaluating.logs import LOGGED, log_of
from trainmon.replaying import find, read_each
from trainmon_reference.peers import PEERS
from trainmon_reference.truth import FILE, Labelled, read_truth
from trainmon_rules.errors import BadInput
from trainmon_rules.points import IntArray
from trainmon_rules.report import SourceError
from trainmon_rules.state import Settings


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
        return self.labelled.onset - self.interval


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
    logs = [log_of(reading, reports) for reading, reports in read]
    if not any(len(log.rows) for log in logs):
        raise BadInput(name, "nothing of its log can be judged")
    rows = np.unique(np.concatenate([log.rows for log in logs]))
    interval = next(log.interval for log in logs if len(log.rows))
    losses = [log.run.of("train_loss") for log in logs]
    bad = [int(p.step[~np.isfinite(p.value)][0]) for p in losses if not np.isfinite(p.value).all()]
    since = labelled.onset - interval
    peers = {p.name: tuple(a for log in logs for a in joined(p.alarms(log.run), interval, since)) for p in PEERS}
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
