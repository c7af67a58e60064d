"""Runs and attempts: where one source starts over.

When a tag's step goes back, the job was restarted. If it begins again within one logging interval of zero, or no
later than it began in this run, it is another run (`name#2`); else it resumed, and a new attempt of the same run
begins. Steps are compared within a tag only: tags of one file may live on different axes (Megatron's `lm loss vs
samples`), and a validation record may carry a step ahead of the training records around a resume.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from trainmon_rules.points import Batch, Boundary, Chunk, Event, Params

WINDOW = 256  # records looked at together in a batch that holds restarts


@dataclass(frozen=True, slots=True)
class Segment:
    """The part of a batch that belongs to one attempt of one run of its source; both count from 0."""

    run: int
    attempt: int
    chunks: list[Chunk]
    events: list[Event]


@dataclass(slots=True)
class _Tag:
    """What is remembered of a tag: its first and last step in this attempt, its point count, its first in the run."""

    first: int
    last: int
    count: int
    run_first: int

    @property
    def interval(self) -> int:
        """Mean distance of two reports in steps, at least 1."""
        return max(1, -(-(self.last - self.first) // max(1, self.count - 1)))


@dataclass(slots=True)
class Splitter:
    """Cuts the batches of one source at its restarts. Keeps four integers a tag.

    An event stands before the record of its row, and whether that record begins a run is told by its steps. So an
    event is held back until a record at or after its row has come: settings printed above a second run belong to
    that run, however the bytes were cut.
    """

    run: int = 0
    attempt: int = 0
    _tags: dict[str, _Tag] = field(default_factory=dict)
    _origin: dict[str, int] = field(default_factory=dict)
    _held: list[Event] = field(default_factory=list)  # events whose record hasn't come
    _seen: int = -1  # last row that has come

    def split(self, batch: Batch) -> list[Segment]:
        """Return the batch as segments in row order; most batches come back as one."""
        out: list[Segment] = []
        chunks, events = batch.chunks, self._due(batch)
        if not chunks and not events:
            return out
        if self._next_cut(chunks, events) is None:
            return [self._take(chunks, events)]
        for part in _windows(chunks, events):  # each cut costs what is left to look at: keep that short
            self._split(*part, out)
        return out

    def _split(self, chunks: list[Chunk], events: list[Event], out: list[Segment]) -> None:
        while chunks or events:
            cut = self._next_cut(chunks, events)
            if cut is None:
                out.append(self._take(chunks, events))
                break
            row, kind = cut
            if kind == "params":  # what is known at a point must not depend on what comes later in the batch
                out.append(self._take(*_before(chunks, events, row)))
                chunks, events = _from(chunks, events, row)
                continue
            before, early = _before(chunks, events, row)
            if before or early:
                out.append(self._take(before, early))
            chunks, events = _from(chunks, events, row)
            events = [e for e in events if not (isinstance(e, Boundary) and e.row == row)]
            self._begin(kind)

    def rest(self) -> list[Segment]:
        """Return what was held back: the source has ended. A boundary without a record behind it begins nothing."""
        events: list[Event] = [e for e in self._held if not isinstance(e, Boundary)]
        self._held = []
        return [self._take([], events)] if events else []

    def _due(self, batch: Batch) -> list[Event]:
        """Return the events whose record has come, in the order of their rows."""
        self._seen = max([self._seen, *(int(c.row[-1]) for c in batch.chunks)])
        if not batch.events and not self._held:
            return []
        events = sorted([*self._held, *batch.events], key=lambda e: e.row)
        self._held = [e for e in events if e.row > self._seen]
        return events[: len(events) - len(self._held)]

    def _take(self, chunks: list[Chunk], events: list[Event]) -> Segment:
        for c in chunks:
            known = self._tags.get(c.tag)
            if known is None:
                first = int(c.step[0])
                origin = self._origin.setdefault(c.tag, first)
                self._tags[c.tag] = _Tag(first, int(c.step[-1]), len(c), origin)
            else:
                known.last = int(c.step[-1])
                known.count += len(c)
        return Segment(self.run, self.attempt, chunks, events)

    def _begin(self, kind: str) -> None:
        self._tags = {}
        if kind == "run":
            self.run += 1
            self.attempt = 0
            self._origin = {}
        else:
            self.attempt += 1

    def _next_cut(self, chunks: list[Chunk], events: list[Event]) -> tuple[int, str] | None:
        """Return the first row at which something begins anew, and what."""
        best: tuple[int, str] | None = None
        stepped = False
        for e in events:
            # A boundary before anything was logged announces the beginning itself.
            if isinstance(e, Boundary) and (self._tags or any(int(c.row[0]) < e.row for c in chunks)):
                best = (e.row, e.kind)
                break
            if isinstance(e, Params) and any(int(c.row[0]) < e.row for c in chunks):
                best = (e.row, "params")
                break
        for c in chunks:
            found = self._step_back(c)
            # Of tags that go back in one record the most cautious decides; a boundary decides before them.
            if found is not None and (best is None or found[0] < best[0] or (found[0] == best[0] and stepped)):
                best = min(best, found) if best is not None and found[0] == best[0] else found
                stepped = True
        if best is not None and best[1] == "attempt" and self._restarts_at_zero(chunks, best[0]):
            best = (best[0], "run")
        return best

    def _step_back(self, c: Chunk) -> tuple[int, str] | None:
        known = self._tags.get(c.tag)
        back = np.flatnonzero(c.step[1:] < c.step[:-1]) + 1
        at = 0 if known is not None and c.step[0] < known.last else (int(back[0]) if len(back) else -1)
        if at < 0:
            return None
        begin = int(c.step[0])
        state = _Tag(begin, 0, 0, self._origin.get(c.tag, begin)) if known is None else known
        count = state.count + at
        last = int(c.step[at - 1]) if at else state.last
        interval = _Tag(state.first, last, count, state.run_first).interval
        first = int(c.step[at])
        is_new = first <= max(1, interval, state.run_first)
        return int(c.row[at]), "run" if is_new else "attempt"

    def _restarts_at_zero(self, chunks: list[Chunk], row: int) -> bool:
        """A boundary "attempt" is another run if a tag of the first record behind it begins at its beginning again."""
        places = [(c, i) for c in chunks if (i := int(np.searchsorted(c.row, row))) < len(c)]
        record = min((int(c.row[i]) for c, i in places), default=row)
        for c, i in sorted(places, key=lambda place: place[0].tag):
            known = self._tags.get(c.tag)
            if int(c.row[i]) > record or (known is None and not i):
                continue
            first = known.run_first if known is not None else self._origin.get(c.tag, int(c.step[0]))
            last = int(c.step[i - 1]) if i else known.last if known is not None else first
            if last > first:
                return int(c.step[i]) <= max(1, first)
        return False


def _windows(chunks: list[Chunk], events: list[Event]) -> Iterator[tuple[list[Chunk], list[Event]]]:
    """Yield the batch in stretches of `WINDOW` records, each event before the first record that isn't before it."""
    rows = np.unique(np.concatenate([c.row for c in chunks])) if chunks else np.zeros(0, np.int64)
    edges = rows[WINDOW::WINDOW]
    parts: list[list[Chunk]] = [[] for _ in range(len(edges) + 1)]
    for c in chunks:
        stops = [*np.searchsorted(c.row, edges).tolist(), len(c)]
        start = 0
        for part, stop in zip(parts, stops, strict=True):
            if stop > start:
                part.append(c.cut(start, stop))
            start = stop
    at = 0
    for part, edge in zip(parts, [*edges.tolist(), math.inf], strict=True):
        end = bisect_left(events, edge, at, key=lambda e: e.row)
        if part or end > at:
            yield part, events[at:end]
        at = end


def _before(chunks: list[Chunk], events: list[Event], row: int) -> tuple[list[Chunk], list[Event]]:
    """Return what stands before `row`."""
    head = [h for c in chunks if len(h := c.cut(0, int(np.searchsorted(c.row, row))))]
    return head, [e for e in events if e.row < row]


def _from(chunks: list[Chunk], events: list[Event], row: int) -> tuple[list[Chunk], list[Event]]:
    """Return what stands at or after `row`."""
    tail = [t for c in chunks if len(t := c.cut(int(np.searchsorted(c.row, row)), len(c)))]
    return tail, [e for e in events if e.row >= row]
