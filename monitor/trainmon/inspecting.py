"""`trainmon inspect`: what the logs hold and how they were understood, without a verdict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike

from trainmon.discovery.specs import RunSpec
from trainmon.replaying import Progress, Reading, SourceFeed, find, read_each
from trainmon_rules.inspection import Inspection, RunFacts, SourceFacts, inspect_runs
from trainmon_rules.report import RunReport, SourceError
from trainmon_rules.state import Settings


def inspect(
    *paths: str | PathLike[str], settings: Settings | None = None, progress: Progress | None = None
) -> Inspection:
    """Read logs and return what is known of them before anything is judged.

    Parameters
    ----------
    *paths : str or path
        Files, directories, or "-" for standard input.
    settings : Settings, optional
        Rules and roles; the shipped ones by default.
    progress : callable, optional
        Told the source's name and the bytes read, after each piece.

    Returns
    -------
    Inspection
        One entry a run; what couldn't be read stands in `errors`.
    """
    chosen = settings or Settings.default()
    found, errors = find(paths, chosen)
    return inspect_found(found, errors, chosen, progress)


def inspect_found(
    found: Iterable[RunSpec],
    errors: Iterable[SourceError],
    settings: Settings,
    progress: Progress | None = None,
) -> Inspection:
    """Read runs that were found and return what is known of them."""
    problems = list(errors)
    read = read_each(found, settings, problems, progress)
    runs = [facts for _, reading, reports in read for facts in facts_of(reading, reports)]
    return Inspection(tuple(runs), tuple(problems))


def facts_of(reading: Reading, reports: Sequence[RunReport]) -> list[RunFacts]:
    """Return the facts of each run that was read, with its reports beside it."""
    sources = [_source(feed) for feed in reading.feeds.values()]
    return inspect_runs(reading.session, reports, sources)


def _source(feed: SourceFeed) -> SourceFacts:
    spec = feed.spec
    files = tuple(spec.shown(i) for i in range(len(spec.paths)))
    return SourceFacts(spec.name, feed.format, files, feed.rows, 0, dict(feed.skipped))
