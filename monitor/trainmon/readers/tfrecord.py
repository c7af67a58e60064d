"""TFRecord framing: from bytes to checked payloads, losing nothing but what is broken.

A record is its length (8 bytes), the masked CRC-32C of the length, the payload, and the masked CRC-32C of the
payload. What can go wrong, and what happens then (TensorBoard's own readers stop for good at most of these;
tensorboard#3194, #5588):

- wrong payload checksum: that record is skipped;
- wrong length checksum: the next good record is looked for;
- a length beyond reason: as a wrong checksum; a long one: the record is passed over without being held;
- zeros where a header should be: network file systems show the blocks of a growing file out of order, so the
  cutter waits there, see `rewind`; `finish` gives up waiting;
- a cut tail: held back; counted when the source ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from trainmon.readers.crc import BITS, DELTA, crc32c, masked
from trainmon.readers.resync import FRAME, HEADER, find_record, unpack_check, unpack_header
from trainmon_rules.points import Problem

MAX_RECORD = 1 << 24  # bytes; longer payloads (images, graphs) are passed over unread
ABSURD = 1 << 30  # bytes; no logger writes a record of this length
PATIENCE = 1 << 24  # bytes behind a hole; with so many there, the hole will not be filled any more
ZEROS = bytes(HEADER)
KNOWN = 4096  # lengths remembered with their checksums


@dataclass(slots=True)
class RecordCutter:
    """Yields whole, checked payloads as (offset of the record, payload).

    Attributes
    ----------
    offset : int
        Offset of the first byte not consumed.
    in_hole : bool
        Zeros stand at `offset`; nothing goes on before they are read again or given up.
    skipped : Counter
        What was passed over, by kind.
    problems : list of Problem
        What was broken, and where; the owner takes them out.
    """

    offset: int = 0
    in_hole: bool = False
    skipped: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)
    _pieces: list[bytes] = field(default_factory=list)
    _size: int = 0  # bytes in the pieces
    _need: int = HEADER  # bytes that must be there before it is worth looking
    _passing: int = 0  # bytes of a long record still to pass over
    _lost: tuple[int, str] | None = None  # where the stretch begins that is being searched, and why
    _known: dict[int, int] = field(default_factory=dict)

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Take the next bytes and yield the records they complete."""
        if self._passing:
            n = min(self._passing, len(data))
            self._passing -= n
            self.offset += n
            data = data[n:]
        if data:
            self._pieces.append(data)
            self._size += len(data)
        if self._size >= self._need:
            yield from self._read(patient=True, last=False)

    def finish(self) -> Iterator[tuple[int, bytes]]:
        """Give up waiting, yield what can still be read, and count a cut tail: the source has ended."""
        yield from self._read(patient=False, last=True)
        if self._lost is not None:  # fewer bytes are left than a header has
            self._found(self._size)
            self.offset += self._size
            self._size = 0
        if self._size or self._passing:
            self.skipped["cut tail"] += 1
        self._pieces, self._size, self._passing = [], 0, 0

    def give_up(self) -> Iterator[tuple[int, bytes]]:
        """Stop waiting for the hole at `offset`; the source goes on."""
        yield from self._read(patient=False, last=False)

    def rewind(self) -> int | None:
        """Forget held bytes that may be zeros not yet visible; return the offset to read again from, else None."""
        if not (self.in_hole or (self._pieces and self._pieces[-1].endswith(b"\0"))):
            return None
        self._pieces, self._size, self._need, self.in_hole = [], 0, HEADER, False
        return self.offset

    # ------------------------------------------------------------------ the chain
    def _read(self, patient: bool, last: bool) -> Iterator[tuple[int, bytes]]:
        data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._need, self.in_hole = HEADER, False
        known, base, at, end = self._known, self.offset, 0, len(data)
        while True:
            while self._lost is None and at + HEADER <= end:
                length, check = unpack_header(data, at)
                stop = at + FRAME + length
                if known.get(length) != check or stop > end:
                    break
                payload = data[at + HEADER : stop - 4]
                crc = crc32c(payload)
                if (crc >> 15 | crc << 17) + DELTA & BITS != unpack_check(data, stop - 4)[0]:
                    break
                yield base + at, payload
                at = stop
            if end - at < self._need:
                break
            at = self._step(data, at, patient, last)
            if end - at < self._need:
                break
        self.offset = base + at
        self._pieces = [data[at:]] if at < end else []
        self._size = max(0, end - at)
        self._passing = max(0, at - end)
        self.offset -= self._passing

    def _step(self, data: bytes, at: int, patient: bool, last: bool) -> int:
        """Deal with what is no whole good record at `at`; return where to go on.

        Sets `_need` if bytes are missing there. The result may lie behind the end of `data`.
        """
        self._need = HEADER
        if self._lost is not None:
            return self._search(data, at, last)
        length, check = _header(data, at)
        if masked(data[at : at + 8]) != check or length >= ABSURD:
            return self._bad_header(data, at, patient, last)
        if length > MAX_RECORD:
            self.skipped["records over 16 MiB"] += 1
            return at + FRAME + length
        if length not in self._known:
            if len(self._known) >= KNOWN:
                self._known.clear()
            self._known[length] = check
            return at
        stop = at + FRAME + length
        if stop > len(data):
            return self._cut(data, at, length) if last else self._wait(at, FRAME + length)
        return self._bad_payload(data, at, stop, patient, last)

    def _wait(self, at: int, need: int) -> int:
        self._need = need
        return at

    # ------------------------------------------------------------------ what is broken
    def _bad_payload(self, data: bytes, at: int, stop: int, patient: bool, last: bool) -> int:
        if len(data) - stop < HEADER and not last:
            return self._wait(at, stop - at + HEADER)
        if data[stop - 1] == 0 and data[stop : stop + HEADER] == ZEROS:
            return self._hole(data, at, patient, last)
        # A writer that died inside a record, and another that went on behind it, leave whole records inside.
        inner, need = find_record(data, at + 1, stop, last)
        if inner >= 0 and need and not last:
            return self._wait(at, inner - at + need)
        go_on = inner if inner >= 0 and not need else stop
        self._report(at, f"the payload's checksum is wrong; {go_on - at} bytes were skipped")
        return go_on

    def _bad_header(self, data: bytes, at: int, patient: bool, last: bool) -> int:
        if data[at : at + HEADER] != ZEROS:
            if len(data) - at < 2 * HEADER and not last:
                return self._wait(at, 2 * HEADER)
            if data[at + HEADER - 1 : at + 2 * HEADER].strip(b"\0"):
                self._lost = self.offset + at, "a record's length is broken"
                return at + 1
        return self._hole(data, at, patient, last)

    def _hole(self, data: bytes, at: int, patient: bool, last: bool) -> int:
        if patient and not last and len(data) - at < PATIENCE:
            self.in_hole = True
            return self._wait(at, PATIENCE)
        self._lost = self.offset + at, "zero-filled hole"
        return at + 1

    def _search(self, data: bytes, at: int, last: bool) -> int:
        here, need = find_record(data, at, len(data), last)
        if here < 0 and not last:
            return max(at, len(data) - HEADER + 1)
        if need and not last:
            return self._wait(here, need)
        go_on = here if here >= 0 else len(data)
        self._found(go_on)
        return self._wait(go_on, need or HEADER)

    def _found(self, at: int) -> None:
        """End the stretch that is being searched at `at`."""
        if self._lost is not None:
            start, why = self._lost
            self._lost = None
            self._report(start - self.offset, f"{why} from {start} to {self.offset + at}; nothing in it was read")

    def _cut(self, data: bytes, at: int, length: int) -> int:
        here, need = find_record(data, at + 1, len(data), last=True)
        if here < 0 or need:
            return self._wait(at, FRAME + length)
        self._report(at, f"a record claims {length} bytes, more than there are; {here - at} bytes were skipped")
        return here

    def _report(self, at: int, error: str) -> None:
        self.skipped["corrupt records"] += 1
        self.problems.append(Problem(error, self.offset + at))


def _header(data: bytes, at: int) -> tuple[int, int]:
    length, check = unpack_header(data, at)
    return int(length), int(check)
