"""Replaying finished (or growing) logs: files → readers → engine → report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from trainmon.discovery.runs import RunSpec, SourceSpec, discover, distinct
from trainmon.readers import HEAD, Reader, sniff
from trainmon.sources import read_pieces
from trainmon_rules.debug import debugging
from trainmon_rules.diagnosis import Knowledge
from trainmon_rules.engine import Session
from trainmon_rules.errors import BadInput
from trainmon_rules.points import Batch
from trainmon_rules.postmortem import report_runs
from trainmon_rules.report import Report, RunReport, SourceError
from trainmon_rules.state import Settings

Progress = Callable[[str, int], None]
"""Told after each piece: the source's name and how many bytes of it were read."""


def replay(
    *paths: str | PathLike[str],
    settings: Settings | None = None,
    answers: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    against: str | PathLike[str] | None = None,
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
    against : str or path, optional
        Another run to hold each run against; what it is told by stands in a run's `comparison`.

    Returns
    -------
    Report
        One entry a run; what couldn't be read stands in `errors`.
    """
    chosen = settings or Settings.default(answers)
    found, errors = find(paths, chosen)
    if against is None:
        return replay_found(found, errors, chosen, progress)
    from trainmon.comparing import replay_against  # noqa: PLC0415 - only where it is asked for

    others, more = find([against], chosen)
    return replay_against(found, others, [*errors, *more], chosen, progress)


def find(
    paths: Iterable[str | PathLike[str]], settings: Settings | None = None
) -> tuple[list[RunSpec], list[SourceError]]:
    """Return the runs that paths hold, under distinct names, and an error for each path that holds none."""
    found: list[RunSpec] = []
    errors: list[SourceError] = []
    for path in dict.fromkeys(fspath(p) for p in paths):
        try:
            found.extend(discover(path, settings.roles if settings else None))
        except BadInput as error:
            errors.append(SourceError(error.source, error.error, error.offset, fatal=True))
        except OSError as error:
            errors.append(SourceError(path, (error.strerror or str(error)).lower(), fatal=True))
    return distinct(found), errors


def size_of(found: Iterable[RunSpec]) -> int:
    """Return how many bytes there are to read, as far as that is known."""
    total = 0
    for path in (p for spec in found for source in spec.sources for p in source.paths):
        with suppress(OSError):
            total += path.stat().st_size
    return total


def files_of(found: Iterable[RunSpec]) -> Iterator[Path | int]:
    """Yield the files that runs are read from; standard input as its descriptor."""
    for path in (p for spec in found for source in spec.sources for p in source.paths):
        yield path if str(path) != "-" else 0


def replay_found(
    found: Iterable[RunSpec],
    errors: Iterable[SourceError] = (),
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> Report:
    """Read runs that were found, one after the other."""
    problems = list(errors)
    runs = [r for _, _, rs in read_each(found, settings or Settings.default(), problems, progress) for r in rs]
    return Report(tuple(runs), tuple(problems))


def read_each(
    found: Iterable[RunSpec],
    settings: Settings,
    problems: list[SourceError],
    progress: Progress | None = None,
    whole: Collection[str] = (),
) -> Iterator[tuple[RunSpec, Reading, list[RunReport]]]:
    """Yield each run that was found as it is read, with its reports.

    What went wrong goes into `problems`; a fault of ours in one run doesn't stop the others. `whole` are roles whose
    series keep all their points.
    """
    knowledge = Knowledge.load()
    for spec in found:
        try:
            reading = read_run(spec, settings, progress, whole)
            reports = reading.reports(knowledge)
        except Exception as error:
            if debugging():
                raise
            what = f"internal error: {type(error).__name__}: {error} (TRAINMON_DEBUG=1 shows the traceback)"
            problems.append(SourceError(spec.name, what, fatal=True))
        else:
            problems.extend(reading.errors)
            yield spec, reading, reports


@dataclass(frozen=True, slots=True)
class Reading:
    """A run that was read to its end: the engine, and what became of each source."""

    session: Session
    feeds: dict[str, SourceFeed]

    @property
    def axis(self) -> str:
        """Name of the step axis of the richest source that has one."""
        return next((f.axis for f in self.feeds.values() if f.axis), "step")

    @property
    def skipped(self) -> Counter[str]:
        """What the readers passed over, by kind."""
        total: Counter[str] = Counter()
        for f in self.feeds.values():
            total.update(f.skipped)
        return total

    @property
    def errors(self) -> list[SourceError]:
        """Files and records that couldn't be read."""
        out = [e for f in self.feeds.values() for e in f.errors]
        for source in self.session.sources.values():
            out.extend(SourceError(p.file or source.name, p.error, p.offset, p.line) for p in source.problems)
            if more := source.problem_count - len(source.problems):
                out.append(SourceError(source.name, f"{more} more unreadable records"))
        return out

    def reports(self, knowledge: Knowledge) -> list[RunReport]:
        """Return a report for each run that the sources hold."""
        reports = report_runs(self.session, knowledge, self.axis, self.skipped)
        return [replace(r, sources=self.files(i, r.sources) or r.sources) for i, r in enumerate(reports)]

    def files(self, run: int, sources: Iterable[str]) -> tuple[str, ...]:
        """Return the files that hold points of the run with this number, in the order of its sources."""
        return tuple(name for source in sources for name in self.feeds[source].held.get(run, ()))


def read_run(
    spec: RunSpec, settings: Settings, progress: Progress | None = None, whole: Collection[str] = ()
) -> Reading:
    """Read one run's sources to their end, side by side; `whole` are roles whose series keep all their points."""
    session = Session(spec.name, settings, whole)
    feeds = {s.name: SourceFeed(s, progress) for s in spec.sources}
    for s in spec.sources:
        session.open(s.name, s.prefix, s.rank)
    for name, batch in _in_turn(feeds, session):
        counts = [r.points for r in session.runs]
        session.feed(name, batch)
        for number, run in enumerate(session.runs):
            if run.points > (counts[number] if number < len(counts) else 0):
                feeds[name].held.setdefault(number, {})[feeds[name].file] = None
    if any(f.format for f in feeds.values()):
        session.begin()
    session.end()
    return Reading(session, feeds)


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
        self.format = ""
        self.rows = 0
        self.file = ""  # the one being read
        self.held: dict[int, dict[str, None]] = {}  # files with points of a run, by the run's number

    def batches(self) -> Iterator[Batch]:
        """Yield the source's batches; a file that can't be read becomes an error, and the next one is read."""
        for i, path in enumerate(self.spec.paths):
            name = self.file = self.spec.shown(i)
            try:
                yield from self._file(path, name)
            except BadInput as error:
                self.errors.append(SourceError(name, error.error, error.offset, fatal=True))

    def _file(self, path: Path, name: str) -> Iterator[Batch]:
        """Yield one file's batches from a reader of its own; what was read before a file broke off stands."""
        reader: Reader | None = None
        broken: BadInput | None = None
        base, done = self.rows, 0
        try:
            for piece in _with_head(read_pieces(path, name)):
                if reader is None:
                    reader = sniff(name, piece)
                yield self._place(reader.feed(piece), base, name)
                done += len(piece)
                if self.progress is not None:
                    self.progress(name, done)
        except BadInput as error:
            broken = error
        if reader is not None:
            yield self._place(reader.finish(), base, name)
            self.skipped.update(reader.skipped)
            self.axis = self.axis or reader.axis
            self.format = self.format or reader.format
        elif broken is None:
            broken = BadInput(name, "is empty")
        if broken is not None:
            raise broken

    def _place(self, batch: Batch, base: int, name: str) -> Batch:
        """Number the records on from the file before, and name the file where the source has several."""
        batch = shifted(batch, base) if base else batch
        if self.spec.names:
            batch.problems = [replace(p, file=name) for p in batch.problems]
        last = max((int(c.row[-1]) for c in batch.chunks), default=-1)
        self.rows = max(self.rows, last + 1)
        return batch


def shifted(batch: Batch, base: int) -> Batch:
    """Return the batch with `base` added to every record number."""
    return Batch(
        [replace(c, row=c.row + base) for c in batch.chunks],
        [replace(e, row=e.row + base) for e in batch.events],
        batch.problems,
    )


def _with_head(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Join the first pieces until there is enough to recognise the format by; on an error, give what there is."""
    it = iter(pieces)
    head = b""
    try:
        while len(head) < HEAD:
            head += next(it)
    except StopIteration:
        pass
    except BadInput:
        if head:
            yield head
        raise
    if head:
        yield head
    yield from it


__all__: Sequence[str] = ("Reading", "find", "read_each", "read_run", "replay", "replay_found", "size_of")
