"""Whole JSON documents: trainer_state.json and whatever else is written in one piece and rewritten as it grows.

A document can't be streamed: it is buffered up to `MAX_BYTES` and read when it is complete. Its shapes, and how
each becomes records, stand in `shapes_of_json`. Several objects one after another (pretty-printed JSON lines)
are records as well.

A file that is rewritten is compared with what was read before: `replace` returns only the new points where the
old ones are an equal prefix.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from trainmon.readers.jsonl import parse_int, parse_json
from trainmon.readers.lines import BOM
from trainmon.readers.records import Records
from trainmon.readers.shapes_of_json import NOTHING, add_document
from trainmon_rules.points import Batch, Chunk

MAX_BYTES = 256 << 20
TOO_BIG = f"is a JSON document of more than {MAX_BYTES >> 20} MiB; write JSON lines (one object a line) instead"


class DocumentReader:
    """Reads one JSON document, and later versions of it."""

    format: ClassVar[str] = "json"

    def __init__(self) -> None:
        self.records = Records()
        self.offset = 0
        self._held: list[bytes] = []
        self._size = 0
        self._read = Batch()  # everything returned so far

    @property
    def axis(self) -> str:
        """Name of the step axis."""
        return self.records.axis

    @property
    def skipped(self) -> Counter[str]:
        """What was passed over."""
        return self.records.skipped

    def feed(self, data: bytes) -> Batch:
        """Hold the next bytes; a document says nothing before its end."""
        self._size += len(data)
        if self._size > MAX_BYTES:
            self._held = []
        elif data:
            self._held.append(data)
        return Batch()

    def finish(self) -> Batch:
        """Read the document; if it can't be read, the batch holds one problem."""
        if not self._size:
            return Batch()
        data, self._held, size, self._size = b"".join(self._held), [], self._size, 0
        self.offset += size
        if size > MAX_BYTES:
            self.records.problem(TOO_BIG)
            return self.records.take()
        try:
            values = parse_values(data)
        except ValueError as error:
            self.records.skipped["corrupt records"] += 1
            self.records.problem(f"{error}; the document is broken or still being written", offset=0)
            return self.records.take()
        self._read = _read(self.records, values)
        return self._read

    def replace(self, data: bytes) -> Batch | None:
        """Read a newer version of the whole document.

        Parameters
        ----------
        data : bytes
            The file as it is now.

        Returns
        -------
        Batch or None
            What is new; empty if nothing is, or if the version was caught in the middle of being written. None
            if what was returned before has changed: the run has to be read again from its beginning.
        """
        if len(data) > MAX_BYTES:
            return Batch()
        try:
            values = parse_values(data)
        except ValueError:
            return Batch()
        records = Records()
        whole = _read(records, values)
        news = _news(self._read, whole)
        if news is None:
            return None
        self.records, self._read, self.offset = records, whole, len(data)
        return news


def parse_values(data: bytes) -> list[Any]:
    """Return the JSON values that stand one after another in `data`; ValueError if it isn't all JSON."""
    data = data.removeprefix(BOM).strip(b"\0 \t\r\n")
    if not data:
        raise ValueError("holds nothing")
    try:
        return [parse_json(data)]
    except ValueError as error:
        if "Extra data" not in str(error):
            raise
    text, at, out = data.decode("utf-8", "replace"), 0, []
    decoder = json.JSONDecoder(parse_int=parse_int)
    while at < len(text):
        try:
            value, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            raise ValueError(f"not valid JSON: {error.msg} at line {error.lineno}") from None
        except RecursionError:
            raise ValueError("nested too deeply") from None
        out.append(value)
        while at < len(text) and text[at] in " \t\r\n,":
            at += 1
    return out


def _read(records: Records, values: list[Any]) -> Batch:
    """Return all records of a document."""
    document = values[0] if len(values) == 1 else [v for v in values if isinstance(v, Mapping)]
    if not add_document(records, document):
        records.problem(NOTHING)
    return records.finish()


def _news(old: Batch, new: Batch) -> Batch | None:
    """Return what `new` holds beyond `old`; None if `old` isn't its beginning."""
    events = len(old.events)
    if new.events[:events] != old.events or new.problems[: len(old.problems)] != old.problems:
        return None
    last = max((int(c.row[-1]) for c in old.chunks), default=-1)
    if any(e.row <= last for e in new.events[events:]):
        return None
    before = {c.tag: c for c in old.chunks}
    chunks = []
    for c in new.chunks:
        known = before.pop(c.tag, None)
        n = 0 if known is None else len(known)
        if known is not None and not _begins_with(c, known):
            return None
        if len(c) > n:
            if c.row[n] <= last:
                return None
            chunks.append(c.cut(n, len(c)))
    return None if before else Batch(chunks, new.events[events:], new.problems[len(old.problems) :])


def _begins_with(c: Chunk, head: Chunk) -> bool:
    n = len(head)
    return len(c) >= n and all(
        np.array_equal(a[:n], b, equal_nan=a.dtype.kind == "f")
        for a, b in ((c.row, head.row), (c.step, head.step), (c.time, head.time), (c.value, head.value))
    )
