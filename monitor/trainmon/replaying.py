"""Replaying finished (or growing) logs: files → readers → engine → report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from trainmon.guard import debugging
from trainmon.readers import HEAD, Reader, sniff
from trainmon.runs import RunSpec, SourceSpec, discover
from trainmon.sources import read_pieces
from trainmon_rules.diagnosis import Knowledge
from trainmon_rules.engine import Session, Settings
from trainmon_rules.errors import BadInput
from trainmon_rules.points import Batch
from trainmon_rules.postmortem import report_runs
from trainmon_rules.report import Report, RunReport, SourceError

Progress = Callable[[str, int], None]
"""Told after each piece: the source's name and how many bytes of it were read."""


def replay(
    *paths: str | PathLike[str],
    settings: Settings | None = None,
    answers: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Report:
    """Read logs from beginning to end and return what went wrong in them.

    Parameters
    ----------
    *paths : str or path
        Files, directories, or "-" for standard input.
    settings : Settings, optional
        Rules and roles; the shipped ones by default.
    answers : mapping, optional
        What the log can't tell, as with `--set KEY=VALUE` (only without `settings`).
    progress : callable, optional
        Told the source's name and the bytes read, after each piece.

    Returns
    -------
    Report
        One entry a run; what couldn't be read stands in `errors`.
    """
    chosen = settings or Settings.default(answers)
    found, errors = find(paths)
    return replay_found(found, errors, chosen, progress)


def find(paths: Iterable[str | PathLike[str]]) -> tuple[list[RunSpec], list[SourceError]]:
    """Return the runs that paths hold, and an error for each path that holds none or can't be looked into."""
    found: list[RunSpec] = []
    errors: list[SourceError] = []
    for path in paths:
        try:
            found.extend(discover(fspath(path)))
        except BadInput as error:
            errors.append(SourceError(error.source, error.error, error.offset, fatal=True))
        except OSError as error:
            errors.append(SourceError(fspath(path), (error.strerror or str(error)).lower(), fatal=True))
    return found, errors


def size_of(found: Iterable[RunSpec]) -> int:
    """Return how many bytes there are to read, as far as that is known."""
    total = 0
    for path in (p for spec in found for source in spec.sources for p in source.paths):
        with suppress(OSError):
            total += path.stat().st_size
    return total


def replay_found(
    found: Iterable[RunSpec],
    errors: Iterable[SourceError] = (),
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> Report:
    """Read runs that were found, one after the other; a fault of ours in one of them doesn't stop the others."""
    chosen = settings or Settings.default()
    knowledge = Knowledge.load()
    runs: list[RunReport] = []
    problems = list(errors)
    for spec in found:
        try:
            reports, unread = replay_run(spec, chosen, knowledge, progress)
        except Exception as error:
            if debugging():
                raise
            what = f"internal error: {type(error).__name__}: {error} (TRAINMON_DEBUG=1 shows the traceback)"
            problems.append(SourceError(spec.name, what, fatal=True))
        else:
            runs.extend(reports)
            problems.extend(unread)
    return Report(tuple(runs), tuple(problems))


def replay_run(
    spec: RunSpec, settings: Settings, knowledge: Knowledge, progress: Progress | None = None
) -> tuple[list[RunReport], list[SourceError]]:
    """Read one run's sources and return its reports and errors."""
    session = Session(spec.name, settings)
    feeds = {s.name: SourceFeed(s, progress) for s in spec.sources}
    for s in spec.sources:
        session.open(s.name, s.prefix)
    for name, batch in _in_turn(feeds, session):
        session.feed(name, batch)
    session.end()
    errors = [e for f in feeds.values() for e in f.errors]
    for source in session.sources.values():
        errors.extend(SourceError(source.name, p.error, p.offset, p.line) for p in source.problems)
        if source.problem_count > len(source.problems):
            more = source.problem_count - len(source.problems)
            errors.append(SourceError(source.name, f"{more} more unreadable records"))
    skipped: Counter[str] = Counter()
    for f in feeds.values():
        skipped.update(f.skipped)
    axis = next((f.axis for f in feeds.values() if f.axis), "step")
    return report_runs(session, knowledge, axis, skipped), errors


def _in_turn(feeds: dict[str, SourceFeed], session: Session) -> Iterator[tuple[str, Batch]]:
    """Yield batches of all sources, always of the one that is furthest behind in time, then in step."""
    live = {name: f.batches() for name, f in feeds.items()}
    while live:
        name = min(live, key=lambda n: (session.sources[n].reached_time, session.sources[n].reached_step))
        batch = next(live[name], None)
        if batch is None:
            del live[name]
            session.close(name)
        else:
            yield name, batch


class SourceFeed:
    """Reads one source, file after file, and turns it into batches with rows that go on across files."""

    def __init__(self, spec: SourceSpec, progress: Progress | None) -> None:
        self.spec = spec
        self.progress = progress
        self.errors: list[SourceError] = []
        self.skipped: Counter[str] = Counter()
        self.axis = ""
        self.rows = 0

    def batches(self) -> Iterator[Batch]:
        """Yield the source's batches; what can't be read becomes an error of the source."""
        for path in self.spec.paths:
            name = self.spec.name if len(self.spec.paths) == 1 else path.name
            try:
                yield from self._file(path, name)
            except BadInput as error:
                self.errors.append(SourceError(name, error.error, error.offset, fatal=True))

    def _file(self, path: Path, name: str) -> Iterator[Batch]:
        reader: Reader | None = None
        base, done = self.rows, 0
        for piece in _with_head(read_pieces(path, name)):
            if reader is None:
                reader = sniff(name, piece)
            yield self._shift(reader.feed(piece), base)
            done += len(piece)
            if self.progress is not None:
                self.progress(name, done)
        if reader is None:
            raise BadInput(name, "is empty")
        yield self._shift(reader.finish(), base)
        self.skipped.update(reader.skipped)
        self.axis = self.axis or reader.axis

    def _shift(self, batch: Batch, base: int) -> Batch:
        """Number the records on from the file before."""
        if base:
            batch = shifted(batch, base)
        last = max((int(c.row[-1]) for c in batch.chunks), default=-1)
        self.rows = max(self.rows, last + 1)
        return batch


def shifted(batch: Batch, base: int) -> Batch:
    """Return the batch with `base` added to every record number."""
    from dataclasses import replace  # noqa: PLC0415

    return Batch(
        [replace(c, row=c.row + base) for c in batch.chunks],
        [replace(e, row=e.row + base) for e in batch.events],
        batch.problems,
    )


def _with_head(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Join the first pieces until there is enough to recognise the format by."""
    it = iter(pieces)
    head = b""
    for piece in it:
        head += piece
        if len(head) >= HEAD:
            break
    if head:
        yield head
    yield from it


__all__: Sequence[str] = ("find", "replay", "replay_found", "replay_run", "size_of")
