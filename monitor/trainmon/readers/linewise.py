"""The common part of the readers of lines: bytes to lines, records to batches, what was passed over."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from trainmon.readers.lines import LineCutter
from trainmon.readers.records import Records
from trainmon_rules.points import Batch

CONFLICT = re.compile(rb"(<{7}|>{7}|\|{7})( |$)|={7}$")
CONFLICT_ERROR = "git conflict markers: both sides are read as runs of their own; resolve the conflict to get one"


class LinewiseReader:
    """Base of the readers whose records are lines; subclasses implement `_read`.

    Parameters
    ----------
    records : Records, optional
        Where the records are assembled.
    """

    def __init__(self, records: Records | None = None) -> None:
        self.lines = LineCutter()
        self.records = records or Records()
        self.conflict = False  # a git conflict marker was reported

    @property
    def axis(self) -> str:
        """Name of the step axis, "" while unknown."""
        return self.records.axis

    @property
    def skipped(self) -> Counter[str]:
        """What was passed over, by kind."""
        counts = self.records.skipped.copy()
        if self.lines.too_long:
            counts["lines over the limit"] += self.lines.too_long
        return counts

    @property
    def offset(self) -> int:
        """Offset of the first byte not consumed."""
        return self.lines.offset

    def feed(self, data: bytes) -> Batch:
        """Take the next bytes; return the records that became complete."""
        self._read(self.lines.feed(data))
        return self.records.take()

    def finish(self) -> Batch:
        """Return the last line, if it is whole, and what was held back."""
        self._read(self.lines.finish(), cut=True)
        return self.records.finish()

    def _read(self, lines: Iterable[tuple[int, int, bytes]], cut: bool = False) -> None:
        """Read lines as (number, offset, bytes); `cut` says that they may end anywhere, which is no error."""
        raise NotImplementedError

    def _conflict(self, number: int) -> None:
        """Take a git conflict marker: the run ends at it; the first one is reported."""
        self.records.skipped["conflict markers"] += 1
        if not self.conflict:
            self.conflict = True
            self.records.problem(CONFLICT_ERROR, number)
        self.records.boundary("git conflict marker")
