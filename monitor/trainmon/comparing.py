"""`trainmon replay A --against B`: the same rules over both, then each run of A held against one of B."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from trainmon.discovery.specs import RunSpec, distinct
from trainmon.replaying import Progress, read_each
from trainmon_rules.comparison import COMPARED, Subject, compare
from trainmon_rules.report import Report, RunReport, SourceError
from trainmon_rules.state import Settings

Candidate = tuple[str, Subject]  # a run's name below its own root, and the run


def replay_against(
    found: Sequence[RunSpec],
    others: Sequence[RunSpec],
    errors: Iterable[SourceError],
    settings: Settings,
    progress: Progress | None = None,
) -> Report:
    """Read runs and those they are held against; return a report of both, the runs of `found` first.

    Parameters
    ----------
    found, others : sequence of RunSpec
        The runs in question and those on the other side, each under a name that is its own on its side.
    errors : iterable of SourceError
        What couldn't be found.
    settings : Settings
        Rules and roles, for both sides.
    progress : callable, optional
        Told the source's name and the bytes read, after each piece.
    """
    problems = list(errors)
    named = distinct([*found, *others])
    given = {new.name: old.name for new, old in zip(named, [*found, *others], strict=True)}

    def read(specs: Sequence[RunSpec]) -> Iterator[Candidate]:
        for spec, reading, reports in read_each(specs, settings, problems, progress, COMPARED):
            for run, report in zip(reading.session.runs, reports, strict=True):
                yield given[spec.name] + report.run.removeprefix(spec.name), Subject.of(run, report)

    candidates = list(read(named[len(found) :]))
    runs: list[RunReport] = []
    used: dict[str, RunReport] = {}
    for name, subject in read(named[: len(found)]):
        report = subject.report
        if candidates:
            partner, why = _partner(name, candidates)
            used[partner.report.run] = partner.report
            report = replace(report, comparison=compare(subject, partner, settings.roles, why))
        runs.append(report)
    return Report((*runs, *used.values()), tuple(problems))


def _partner(name: str, candidates: Sequence[Candidate]) -> tuple[Subject, str]:
    """Return the run to hold one of this name against, and why: the only one, that of the name, else the longest."""
    if len(candidates) == 1:
        return candidates[0][1], "the only run there"
    for other, subject in candidates:
        if other == name:
            return subject, "the run of the same name"
    return max((s for _, s in candidates), key=lambda s: s.length), f"the longest of {len(candidates)} runs there"
