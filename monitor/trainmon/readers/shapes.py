"""Remembering what records look like, so that most of them need not be taken apart.

A logger writes the same record over and over: only wall time, step and value differ. Once a record with a
single scalar was read field by field, the bytes around its value name its tag, since all lengths stand in
them: another record with the same bytes around four (or eight) others can only be the same tag with another
value.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct

from trainmon.readers.wire import BYTES, FIXED32, FIXED64, VARINT, Span, fields

MAX_SHAPE = 512  # bytes of a record behind its step; longer ones are read field by field
MAX_SHAPES = 8192
MAX_SPOTS = 4  # places of the value tried in records of one length

WALL_TIME, STEP, SUMMARY = 0x09, 0x10, 0x2A  # keys as the common writers order them
unpack_float = Struct("<f").unpack_from
unpack_double = Struct("<d").unpack_from

# In a tensor: float and double fields, packed, single, and as raw content.
_VALUES = {5 << 3 | BYTES, 5 << 3 | FIXED32, 6 << 3 | BYTES, 6 << 3 | FIXED64, 4 << 3 | BYTES}
_OTHERS = {1 << 3 | VARINT, 2 << 3 | BYTES, 3 << 3 | VARINT}


def read_step(record: bytes) -> Span:
    """Return the step and where the summary begins; 0, -1 if the record is not wall time, step, summary."""
    if len(record) < 12 or record[0] != WALL_TIME:
        return 0, -1
    if record[9] == SUMMARY:
        return 0, 9
    step, at = record[10], 11
    if record[9] != STEP:
        return 0, -1
    if step > 127:
        step &= 127
        shift = 7
        for byte in record[11:18]:  # up to 56 bits; longer and negative steps go the long way
            at += 1
            step |= (byte & 127) << shift
            if byte < 128:
                break
            shift += 7
        else:
            return 0, -1
    return step, at


@dataclass(slots=True)
class Shapes:
    """The shapes of single-scalar records seen so far."""

    _ends: dict[bytes, str] = field(default_factory=dict)  # all that stands before a final float → tag
    _spots: dict[int, tuple[Span, ...]] = field(default_factory=dict)  # length → where the value may stand
    _around: dict[tuple[bytes, bytes], str] = field(default_factory=dict)  # bytes before and behind the value → tag

    def find(self, record: bytes, at: int) -> tuple[str, float] | None:
        """Return tag and value of a record whose summary begins at `at`, or None if it must be taken apart."""
        tag = self._ends.get(record[at:-4])
        if tag is not None:
            return tag, unpack_float(record, len(record) - 4)[0]
        for start, stop in self._spots.get(len(record) - at, ()):
            tag = self._around.get((record[at : at + start], record[at + stop :]))
            if tag is not None:
                unpack = unpack_float if stop - start == 4 else unpack_double
                return tag, unpack(record, at + start)[0]
        return None

    def learn(self, record: bytes, at: int, tag: str, value: Span, kind: str) -> None:
        """Remember a record with one scalar, read field by field; `value` is what its `kind` of value spans."""
        size = len(record) - at
        if at < 0 or size > MAX_SHAPE or len(self._around) + len(self._ends) >= MAX_SHAPES:
            return
        spot = value if kind == "simple_value" else _in_tensor(record, value)
        if spot is None:
            return
        if kind == "simple_value" and spot[1] == len(record):
            self._ends[record[at:-4]] = tag
            return
        place = spot[0] - at, spot[1] - at
        spots = self._spots.get(size, ())
        if place not in spots:
            if len(spots) >= MAX_SPOTS:
                return
            self._spots[size] = (*spots, place)
        self._around[record[at : spot[0]], record[spot[1] :]] = tag


def _in_tensor(record: bytes, span: Span) -> Span | None:
    """Return where the only float or double of a tensor stands; None if it is of another type or unusual."""
    spot: Span | None = None
    dtype = 0
    for key, start, stop in fields(record, *span):
        if key == 1 << 3 | VARINT:
            dtype = start
        if key in _VALUES and spot is None:
            spot = start, stop
        elif key not in _OTHERS:
            return None
    width = {1: 4, 2: 8}.get(dtype)
    return spot if spot is not None and spot[1] - spot[0] == width else None
