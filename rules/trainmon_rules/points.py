"""What a reader hands over: chunks of points, and the few events that stand between them.

A *record* is whatever the format calls one (a line, a row, an event). Records are numbered from 0 in the
order of the source; that number (`row`) is what makes every later decision independent of how the bytes were
cut: two readings of one source, however chunked, carry the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Consecutive points of one tag of one source.

    Attributes
    ----------
    tag : str
        The metric's name as logged.
    step : int64 array, shape (n,)
        Position on the source's step axis.
    time : float64 array, shape (n,)
        Wall time in seconds since the epoch; NaN where the log has none.
    value : float64 array, shape (n,)
        The logged number; may be NaN or infinite.
    row : int64 array, shape (n,)
        Number of the record in its source; never falls.
    """

    tag: str
    step: IntArray
    time: FloatArray
    value: FloatArray
    row: IntArray

    def __len__(self) -> int:
        return len(self.value)

    def cut(self, start: int, stop: int) -> Chunk:
        """Return the points `start` to `stop` (exclusive) as a chunk of views."""
        s = slice(start, stop)
        return Chunk(self.tag, self.step[s], self.time[s], self.value[s], self.row[s])


def chunk(
    tag: str,
    step: Sequence[int] | IntArray,
    value: Sequence[float] | FloatArray,
    time: Sequence[float] | FloatArray | None = None,
    row: Sequence[int] | IntArray | None = None,
) -> Chunk:
    """Build a chunk from anything array-like; wall times default to NaN and rows to 0, 1, 2, …."""
    v = np.asarray(value, np.float64)
    t = np.full(len(v), np.nan) if time is None else np.asarray(time, np.float64)
    r = np.arange(len(v), dtype=np.int64) if row is None else np.asarray(row, np.int64)
    return Chunk(tag, np.asarray(step, np.int64), t, v, r)


@dataclass(frozen=True, slots=True)
class Params:
    """Hyper-parameters found in the log at `row`: flat names to plain values."""

    row: int
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Boundary:
    """The source itself says that something new begins at `row`.

    `kind` "run" starts another run (a git conflict marker, a header printed again), "attempt" a resume
    (`SessionLog.START`).
    """

    row: int
    kind: Literal["run", "attempt"]
    why: str


@dataclass(frozen=True, slots=True)
class Finish:
    """The log says at `row` that training came to its planned end."""

    row: int
    why: str


@dataclass(frozen=True, slots=True)
class Problem:
    """A record that could not be read. The rest of the source goes on.

    `offset` is the byte offset of the record (None where the format has no offsets), `line` its line
    number from 1 (None for binary formats), `file` the file it stands in where that isn't the source's name.
    """

    error: str
    offset: int | None = None
    line: int | None = None
    file: str = ""


Event = Params | Boundary | Finish


@dataclass(slots=True)
class Batch:
    """Everything that one piece of input gave. A record is never split between two batches."""

    chunks: list[Chunk] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.chunks or self.events or self.problems)

    @property
    def points(self) -> int:
        """Number of points in all chunks."""
        return sum(len(c) for c in self.chunks)
