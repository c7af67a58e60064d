"""Cutting bytes into lines, for every line-based reader.

A line ends at LF, CR LF or a bare CR (progress bars). A CR at the very end of the input is held back until
the next byte shows which it is. Lines longer than the budget are passed over to their end and counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

MAX_LINE = 1 << 20  # bytes; a longer line is no log record
BOM = b"\xef\xbb\xbf"


@dataclass(slots=True)
class LineCutter:
    """Yields complete lines as (number, offset, bytes without the ending); numbers count from 1."""

    number: int = 0
    offset: int = 0  # of the first byte not yielded
    too_long: int = 0
    _held: bytes = b""
    _skipping: bool = False

    def feed(self, data: bytes) -> Iterator[tuple[int, int, bytes]]:
        """Take the next bytes and yield the lines they complete."""
        data = self._held + data
        self._held = b""
        end = max(data.rfind(b"\n"), data.rfind(b"\r", 0, len(data) - 1)) + 1
        if end == 0 and len(data) <= MAX_LINE:
            self._held = data
            return
        whole, self._held = data[:end], data[end:]
        if b"\r" in whole:
            # A CR LF pair is one ending. `whole` never ends between the two: a final CR was held back.
            whole = (
                whole.replace(b"\r\n", b" \n").replace(b"\r", b"\n")
                if _has_pairs(whole)
                else whole.replace(b"\r", b"\n")
            )
        at = 0
        while (stop := whole.find(b"\n", at)) >= 0:
            line, start = whole[at:stop], self.offset
            self.offset += stop + 1 - at
            at = stop + 1
            self.number += 1
            if self._skipping or len(line) > MAX_LINE:
                self.too_long += 1
                self._skipping = False
                continue
            yield self.number, start, line
        if len(self._held) > MAX_LINE:
            self._skipping = True
            self.offset += len(self._held)
            self._held = b""

    def finish(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield the last line if the source ended without a line ending."""
        line, self._held = self._held.rstrip(b"\r"), b""
        if line and not self._skipping:
            self.number += 1
            start, self.offset = self.offset, self.offset + len(line)
            yield self.number, start, line


def _has_pairs(data: bytes) -> bool:
    return b"\r\n" in data
