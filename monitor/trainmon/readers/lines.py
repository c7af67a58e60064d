"""Cutting bytes into lines, for every line-based reader.

A line ends at LF, CR LF or a bare CR (progress bars); several CRs in a row, with or without an LF after them,
are one ending (some Windows tools write CR CR LF). Lines longer than the budget are passed over to their end
and counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MAX_LINE = 1 << 20  # bytes; a longer line is no log record
BOM = b"\xef\xbb\xbf"

_ENDING = re.compile(rb"\r++\n?|\n")
_CR_GOES_ON = re.compile(rb"\r*+\n?")


@dataclass(slots=True)
class LineCutter:
    """Yields complete lines as (number, offset, bytes without the ending); numbers count from 1."""

    number: int = 0
    offset: int = 0  # of the first byte not yielded
    too_long: int = 0
    _held: bytes = b""
    _skipping: bool = False
    _after_cr: bool = False  # the last line ended with CR: what follows of that ending is no line of its own

    def feed(self, data: bytes) -> Iterator[tuple[int, int, bytes]]:
        """Take the next bytes and yield the lines they complete."""
        if self._after_cr and data:
            more = _CR_GOES_ON.match(data)
            end = more.end() if more else 0
            self._after_cr = end == len(data) and data[-1:] == b"\r"
            self.offset += end
            data = data[end:]
        data = self._held + data
        end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        whole, self._held = data[:end], data[end:]
        if whole:
            self._after_cr = whole[-1:] == b"\r"
            yield from self._cut_cr(whole) if b"\r" in whole else self._cut(whole)
        if len(self._held) > MAX_LINE or self._skipping:
            self._skipping = self._skipping or bool(self._held)
            self.offset += len(self._held)
            self._held = b""

    def finish(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield the last line if the source ended without a line ending."""
        line, self._held = self._held, b""
        if line or self._skipping:
            yield from self._line(line, len(line))

    def _cut(self, whole: bytes) -> Iterator[tuple[int, int, bytes]]:
        lines = whole.split(b"\n")
        lines.pop()
        for line in lines:
            if self._skipping or len(line) > MAX_LINE:
                yield from self._line(line, len(line) + 1)
                continue
            start = self.offset
            self.offset = start + len(line) + 1
            self.number += 1
            yield self.number, start, line

    def _cut_cr(self, whole: bytes) -> Iterator[tuple[int, int, bytes]]:
        at = 0
        for ending in _ENDING.finditer(whole):
            yield from self._line(whole[at : ending.start()], ending.end() - at)
            at = ending.end()

    def _line(self, line: bytes, size: int) -> Iterator[tuple[int, int, bytes]]:
        start = self.offset
        self.offset += size
        self.number += 1
        if self._skipping or len(line) > MAX_LINE:
            self.too_long += 1
            self._skipping = False
        else:
            yield self.number, start, line
