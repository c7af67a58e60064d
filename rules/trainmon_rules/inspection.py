"""What is known of a run before anything is judged: sources, attempts, tags with their roles and cadence.

`inspect_runs` takes it from a session that was fed; exporters only format it. The field names are those of the
schema `trainmon.inspect/1`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from trainmon_rules.engine import Session
from trainmon_rules.report import Blind, RunReport, SourceError, error_dict
from trainmon_rules.series import Series
from trainmon_rules.state import Attempt, Run
from trainmon_rules.strict import plain

SCHEMA = "trainmon.inspect/1"
RECENT = 65  # points whose distances give the cadence


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """One source: its format, the files that make it up, its records up to the last with a number (of all its runs).

    `points` are those of the run it is listed under; `skipped` counts what the reader passed over, by kind.
    """

    source: str
    format: str
    files: tuple[str, ...]
    records: int
    points: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AttemptFacts:
    """What was logged between two resumes."""

    attempt: int
    first_step: int
    last_step: int
    points: int


@dataclass(frozen=True, slots=True)
class TagFacts:
    """One tag over all attempts.

    `role` is "" if no meaning is known; `steps_per_report` and `seconds_per_report` are medians over its newest
    points, None where there is one point or no wall time; `last_value` may be non-finite.
    """

    tag: str
    role: str
    source: str
    points: int
    first_step: int
    last_step: int
    steps_per_report: int | None
    seconds_per_report: float | None
    last_value: float


@dataclass(frozen=True, slots=True)
class RunFacts:
    """One run."""

    run: str
    axis: str
    status: str
    points: int
    first_step: int | None
    last_step: int | None
    sources: tuple[SourceFacts, ...]
    attempts: tuple[AttemptFacts, ...]
    tags: tuple[TagFacts, ...]
    unmapped: tuple[str, ...]
    blind: tuple[Blind, ...]


@dataclass(frozen=True, slots=True)
class Inspection:
    """What `trainmon inspect` found over all paths given."""

    runs: tuple[RunFacts, ...]
    errors: tuple[SourceError, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return strict-JSON data, schema `trainmon.inspect/1`; non-finite numbers are strings."""
        return {"schema": SCHEMA, "runs": plain(self.runs), "errors": [error_dict(e) for e in self.errors]}


def inspect_runs(session: Session, reports: Sequence[RunReport], sources: Sequence[SourceFacts]) -> list[RunFacts]:
    """Return the facts of each run of a session.

    Parameters
    ----------
    session : Session
        The engine after it was fed.
    reports : sequence of RunReport
        Its report, a run each.
    sources : sequence of SourceFacts
        What the readers know of the sources; their points are filled in here.
    """
    return [_run(run, report, sources) for run, report in zip(session.runs, reports, strict=True)]


def _run(run: Run, report: RunReport, sources: Sequence[SourceFacts]) -> RunFacts:
    tags = _tags(run.attempts)
    points = {s.source: sum(t.points for t in tags if t.source == s.source) for s in sources}
    told = [s for s in sources if s.source in run.sources or not s.records]
    return RunFacts(
        run=report.run,
        axis=report.axis,
        status=report.status,
        points=report.points,
        first_step=report.first_step,
        last_step=report.last_step,
        sources=tuple(replace(s, points=points[s.source]) for s in told),
        attempts=tuple(_attempt(a) for a in run.attempts if a.tracked),
        tags=tuple(sorted(tags, key=lambda t: (not t.role, t.role, t.tag))),
        unmapped=report.unmapped,
        blind=report.blind,
    )


def _attempt(attempt: Attempt) -> AttemptFacts:
    series = [t.series for t in attempt.tracked.values()]
    first, last = min(_first_step(s) for s in series), max(s.last_step for s in series)
    return AttemptFacts(attempt.number + 1, first, last, sum(s.count for s in series))


def _tags(attempts: Sequence[Attempt]) -> list[TagFacts]:
    """Join the attempts' series of each tag."""
    found: dict[tuple[str, str], list[Series]] = {}
    for attempt in attempts:
        for tracked in attempt.ordered():
            s = tracked.series
            found.setdefault((s.source, s.tag), []).append(s)
    return [_tag(series) for series in found.values()]


def _tag(series: Sequence[Series]) -> TagFacts:
    newest = series[-1]
    typical = max(series, key=lambda s: min(s.count, RECENT))
    seconds = np.diff(typical.tail(RECENT).time)
    seconds = seconds[np.isfinite(seconds)]
    return TagFacts(
        tag=newest.tag,
        role=newest.role,
        source=newest.source,
        points=sum(s.count for s in series),
        first_step=min(_first_step(s) for s in series),
        last_step=max(s.last_step for s in series),
        steps_per_report=typical.interval if typical.count > 1 else None,
        seconds_per_report=float(np.median(seconds)) if len(seconds) else None,
        last_value=newest.last_value,
    )


def _first_step(series: Series) -> int:
    return int(series.history.first_step[0])
