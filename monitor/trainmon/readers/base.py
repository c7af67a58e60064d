"""The interface of a reader: bytes in, batches out.

A reader is told nothing but the bytes of one file, in order, in pieces of any size. It yields every complete
record once, holds a partial one back without a timer, and never raises for bad content: what can't be read
becomes a `Problem` and a count. Everything about it can be pickled, so that reading can be resumed.
"""

from __future__ import annotations

from collections import Counter
from typing import ClassVar, Protocol

from trainmon_rules.points import Batch


class Reader(Protocol):
    """Reads one source of one format."""

    format: ClassVar[str]

    @property
    def axis(self) -> str:
        """Name of the step axis found so far ("step", "iteration", "epoch", "row"), "" while unknown."""
        ...

    @property
    def skipped(self) -> Counter[str]:
        """What was passed over, by kind: lists, text values, corrupt records."""
        ...

    @property
    def offset(self) -> int:
        """Byte offset of the first byte not consumed: everything before it has been returned."""
        ...

    def feed(self, data: bytes) -> Batch:
        """Take the next bytes; return the records that became complete."""
        ...

    def finish(self) -> Batch:
        """Return what is still held back: the source has ended."""
        ...
