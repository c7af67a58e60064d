"""Replaying finished (or growing) logs: files → readers → engine → report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

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
    knowledge = Knowledge.load()
    runs: list[RunReport] = []
    errors: list[SourceError] = []
    for path in paths:
        try:
            specs = discover(str(path))
        except BadInput as error:
            errors.append(SourceError(error.source, error.error, fatal=True))
            continue
        for spec in specs:
            found, problems = replay_run(spec, chosen, knowledge, progress)
            runs.extend(found)
            errors.extend(problems)
    return Report(tuple(runs), tuple(errors))


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


__all__: Sequence[str] = ("replay", "replay_run")
