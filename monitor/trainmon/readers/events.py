"""TensorBoard event files: `simple_value` and scalar tensors become points, settings become `Params`.

Written by TensorFlow, torch, tensorboardX and everything that logs through them. Images, histograms, graphs
and the like are passed over and counted. The step is int64 and may be missing (0); tags of one file may count
different things on it (iterations, samples), so nothing here compares steps of different tags.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from struct import Struct
from typing import ClassVar

import numpy as np

from trainmon.readers import settings
from trainmon.readers.shapes import Shapes, read_step, unpack_float
from trainmon.readers.tensors import read_tensor
from trainmon.readers.tfrecord import RecordCutter
from trainmon.readers.wire import VARINT, RawValue, fields, read_event
from trainmon_rules.points import Batch, Boundary, Chunk, Event, Finish, Params, Problem

MAX_TEXTS = 4096  # text tags looked at for settings
NOT_SCALARS = {  # plugins whose tensors are no scalars even where they hold one number
    b"audio": "audio", b"histograms": "histograms", b"images": "images", b"mesh": "meshes", b"pr_curves": "pr curves",
}  # fmt: skip
PLACEHOLDER = ("hp_metric", -1.0)  # Lightning logs it so that the hparams tab shows the run
START, STOP = 1, 2  # SessionLog.SessionStatus

unpack_time = Struct("<d").unpack_from


@dataclass(slots=True)
class Columns:
    """Points in the order of the source, and the tag each belongs to."""

    numbers: dict[str, int] = field(default_factory=dict)  # tag → its number in this batch
    tag: list[int] = field(default_factory=list)
    step: list[int] = field(default_factory=list)
    time: list[float] = field(default_factory=list)
    value: list[float] = field(default_factory=list)
    row: list[int] = field(default_factory=list)

    def chunks(self) -> list[Chunk]:
        """Return the points as one chunk a tag, tags in order of first appearance."""
        if not self.tag:
            return []
        tag = np.array(self.tag, np.int64)
        order = np.argsort(tag, kind="stable")
        step, row = np.array(self.step, np.int64)[order], np.array(self.row, np.int64)[order]
        time, value = np.array(self.time, np.float64)[order], np.array(self.value, np.float64)[order]
        time[time == 0] = np.nan  # a time that is missing reads as zero
        stops = np.cumsum(np.bincount(tag)).tolist()
        cuts = [slice(a, b) for a, b in zip([0, *stops], stops, strict=False)]
        return [Chunk(t, step[c], time[c], value[c], row[c]) for t, c in zip(self.numbers, cuts, strict=True)]


class EventReader:
    """Reads one event file as it comes."""

    format: ClassVar[str] = "tfevents"
    axis: ClassVar[str] = "step"

    def __init__(self) -> None:
        self.records = RecordCutter()
        self.row = 0  # records so far
        self._shapes = Shapes()
        self._counts: Counter[str] = Counter()
        self._starts = 0
        self._texts: set[bytes] = set()
        self._events: list[Event] = []

    @property
    def skipped(self) -> Counter[str]:
        """What was passed over, by kind."""
        return self._counts + self.records.skipped

    @property
    def offset(self) -> int:
        """Offset of the first byte not consumed."""
        return self.records.offset

    def feed(self, data: bytes) -> Batch:
        """Take the next bytes; return the records that became complete."""
        return self._read(self.records.feed(data))

    def finish(self) -> Batch:
        """Return what can still be read: the source has ended, and holes in it are given up."""
        return self._read(self.records.finish())

    def rewind(self) -> int | None:
        """Return the offset from which the source must be read again, None if nowhere.

        Network file systems show zeros in place of blocks that haven't arrived. A caller that follows a
        growing file asks before each look at it, and feeds what the file holds from that offset on.
        """
        return self.records.rewind()

    def give_up(self) -> Batch:
        """Stop waiting for the zero-filled hole at `offset`; return what stands behind it."""
        return self._read(self.records.give_up())

    # ------------------------------------------------------------------ records
    def _read(self, records: Iterator[tuple[int, bytes]]) -> Batch:
        columns = Columns()
        numbers, find = columns.numbers, self._shapes.find
        add_tag, add_step, add_time = columns.tag.append, columns.step.append, columns.time.append
        add_value, add_row = columns.value.append, columns.row.append
        for offset, record in records:
            step, at = read_step(record)
            known = find(record, at) if at > 0 else None
            if known is None:
                self._take_apart(offset, record, at, columns)
            else:
                tag, value = known
                add_tag(numbers.setdefault(tag, len(numbers)))
                add_step(step)
                add_time(unpack_time(record, 1)[0])
                add_value(value)
                add_row(self.row)
            self.row += 1
        problems, self.records.problems = self.records.problems, []
        events, self._events = self._events, []
        return Batch(columns.chunks(), events, sorted(problems, key=lambda p: p.offset or 0))

    def _take_apart(self, offset: int, record: bytes, at: int, columns: Columns) -> None:
        """Read a record field by field."""
        before = len(self._events)
        try:
            event = read_event(record)
            points = [p for v in event.values if (p := self._value(record, v)) is not None]
            if event.kind == "session log":
                self._session(event.content, event.step)
        except ValueError as error:
            del self._events[before:]  # a record is taken whole or not at all
            self._counts["corrupt records"] += 1
            self.records.problems.append(Problem(f"not a TensorBoard event: {error}; the record was skipped", offset))
            return
        if event.kind not in ("", "summary", "session log", "file version"):
            self._counts[event.kind] += 1
        time = 0.0 if event.wall_time is None else float(unpack_time(record, event.wall_time[0])[0])
        for tag, value in points:
            columns.tag.append(columns.numbers.setdefault(tag, len(columns.numbers)))
            columns.step.append(event.step)
            columns.time.append(time)
            columns.value.append(value)
            columns.row.append(self.row)
        if len(points) == len(event.values) == 1 and points[0][0] != PLACEHOLDER[0]:
            self._shapes.learn(record, at, points[0][0], event.values[0].content, event.values[0].kind)

    def _value(self, record: bytes, value: RawValue) -> tuple[str, float] | None:
        """Return a value's tag and number; None, with its kind counted, if it is no scalar."""
        tag = value.tag.decode("utf-8", "replace")
        start, stop = value.content
        number: float | bytes | None = None
        kind = value.kind or "values without a number"
        if value.plugin == b"hparams":
            self._settings(settings.from_hparams(value.plugin_content), "hparams")
            return None
        if value.kind == "simple_value":
            number = float(unpack_float(record, start)[0])
        elif value.kind == "tensor":
            kind = NOT_SCALARS.get(value.plugin, "tensors")
            number = read_tensor(record[start:stop]) if kind == "tensors" else None
        if isinstance(number, bytes):
            self._text(value, tag, number)
            return None
        if (tag, number) == PLACEHOLDER:
            kind, number = "placeholder hp_metric", None
        if number is None:
            self._counts[kind] += 1
            return None
        return tag, number

    # ------------------------------------------------------------------ what is no point
    def _text(self, value: RawValue, tag: str, text: bytes) -> None:
        """Take the first text of each tag for settings if it looks like them; later ones are samples."""
        if value.plugin != b"text":
            self._counts["graphs" if value.plugin.startswith(b"graph") else "text"] += 1
            return
        first = value.tag not in self._texts and len(self._texts) < MAX_TEXTS and len(text) <= settings.MAX_TEXT
        if first:
            self._texts.add(value.tag)
        self._settings(settings.from_text(tag, text.decode("utf-8", "replace")) if first else {}, "text")

    def _settings(self, found: dict[str, object], kind: str) -> None:
        if found:
            self._events.append(Params(self.row, found))
        else:
            self._counts[kind] += 1

    def _session(self, content: bytes, step: int) -> None:
        """Take a session's mark: a second START is a resume, as TensorBoard has it (#4763)."""
        status = 0
        for key, start, _ in fields(content, 0, len(content)):
            if key == 1 << 3 | VARINT:
                status = start
        if status == START:
            self._starts += 1
            if self._starts > 1:
                self._texts.clear()
                self._events.append(Boundary(self.row, "attempt", f"SessionLog.START at step {step}"))
        elif status == STOP:
            self._events.append(Finish(self.row, f"SessionLog.STOP at step {step}"))
