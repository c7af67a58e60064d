"""The engine for callbacks, notebooks and tests: feed points, get incident events."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trainmon.readers.values import flatten, number
from trainmon_rules.diagnosis import Knowledge
from trainmon_rules.engine import Session
from trainmon_rules.findings import Severity
from trainmon_rules.incidents import Incident
from trainmon_rules.points import Batch, Chunk, Params
from trainmon_rules.postmortem import report_incident, report_runs
from trainmon_rules.report import IncidentReport, Report
from trainmon_rules.state import Run, Settings


@dataclass(frozen=True, slots=True)
class IncidentEvent:
    """Something happened to an incident: it is "firing" (new), "updated", "resolved" or "ended"."""

    event: str
    run: str
    incident: IncidentReport


class Monitor:
    """Judges points as they come; the same engine that `replay` runs.

    Parameters
    ----------
    run : str
        The run's name.
    settings : Settings, optional
        Rules and roles; the shipped ones by default.
    params : mapping, optional
        The run's settings (total steps, classes, precision …), which answer the diagnosis' questions.
    sources : sequence of str
        Where points come from, if from more than one place (a training and a validation log): a rule over several of
        them waits until each has reached the moment in question. The first is the one that `log` and `feed` mean.

    Examples
    --------
    >>> monitor = Monitor("demo")
    >>> for step in range(3):
    ...     events = monitor.log({"loss": float("nan"), "lr": 1e-3}, step=step)
    >>> [(e.event, e.incident.symptom, e.incident.severity) for e in events]
    [('updated', 'nonfinite', 'critical')]
    """

    def __init__(
        self,
        run: str = "run",
        settings: Settings | None = None,
        params: Mapping[str, Any] | None = None,
        sources: Sequence[str] = ("log",),
    ) -> None:
        self.session = Session(run, settings or Settings.default())
        self.knowledge = Knowledge.load()
        self._row: dict[str, int] = {}
        self._said: dict[str, tuple[str, str]] = {}
        self.first = sources[0]
        for source in sources:
            self.session.open(source)
        if params:
            self.session.feed(self.first, Batch(events=[Params(0, flatten(params))]))

    def log(
        self, values: Mapping[str, Any], step: int, time: float = math.nan, source: str | None = None
    ) -> list[IncidentEvent]:
        """Take one record, as a logger would write it.

        Parameters
        ----------
        values : mapping
            Metric names to numbers (or strings that are numbers); nested mappings are joined with "/", what is
            no number is passed over.
        step : int
            The step of the record.
        time : float
            Wall time in seconds since the epoch; NaN if unknown.
        source : str
            Where the record comes from: each source has a step axis and restarts of its own. Rules that compare
            across sources wait for all of them, "log" always among them.

        Returns
        -------
        list of IncidentEvent
            What is new, empty almost always.
        """
        source = source or self.first
        row = self._row.get(source, 0)
        chunks = [
            Chunk(key, np.array([step]), np.array([time], np.float64), np.array([v]), np.array([row]))
            for key, raw in flatten(values).items()
            if (v := number(raw)) is not None
        ]
        return self.feed(Batch(chunks), source)

    def feed(self, batch: Batch | list[Chunk], source: str | None = None) -> list[IncidentEvent]:
        """Take chunks of points, whose rows go on from those fed before; return what is new."""
        source = source or self.first
        batch = batch if isinstance(batch, Batch) else Batch(batch)
        last = max((int(c.row[-1]) for c in batch.chunks), default=-1)
        self._row[source] = max(self._row.get(source, 0), last + 1)
        return self._events(self.session.feed(source, batch))

    def close(self) -> list[IncidentEvent]:
        """Say that the run is over; incidents that are firing become ended."""
        return self._events(self.session.end())

    def report(self) -> Report:
        """Return the report as of now."""
        return Report(tuple(report_runs(self.session, self.knowledge, live=True)))

    @property
    def incidents(self) -> list[Incident]:
        """All incidents so far, of every run fed."""
        return [i for run in self.session.runs for i in run.incidents]

    def _events(self, changed: list[Run]) -> list[IncidentEvent]:
        out = []
        for run in changed:
            for incident in run.incidents:
                now = (
                    str(incident.state),
                    str(max(incident.severity, Severity.INFO)) + incident.lead.summary,
                )
                before = self._said.get(incident.id)
                if before == now:
                    continue
                self._said[incident.id] = now
                state = now[0]
                kind = "firing" if before is None else "updated" if state == "firing" else state
                out.append(IncidentEvent(kind, run.name, report_incident(incident, run, self.knowledge)))
        return out
