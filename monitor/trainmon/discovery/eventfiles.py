"""Event files from outside: is a file one, and when were its first and its last record written.

An event file is a chain of records: length (8 bytes), masked CRC of the length (4), payload, masked CRC of the
payload (4). The payload is a protobuf `Event` whose first field is the wall time. The first record proves what
the file is (a TFRecord of training data is framed alike but holds no event), headers near the end give the
last wall time. Content is checked by the reader, not here.

Framing after TensorBoard (`tensorboard/data/server/tf_record.rs`, Apache-2.0).
"""

from __future__ import annotations

import math
import os
import re
import struct
from dataclasses import dataclass
from pathlib import Path

from trainmon.readers.crc import masked
from trainmon.readers.resync import looks_like_events

HEADER = 12
FRAME = 16  # bytes of a record beside its payload
TAIL = (1 << 18, 1 << 22, 1 << 24)  # bytes at the end in which the last record is looked for
MAX_RECORD = 1 << 28
MAX_TRIES = 10_000

_ZEROS = re.compile(rb"\0{4,}")


@dataclass(frozen=True, slots=True)
class EventFile:
    """An event file: wall times of its first and last record, in seconds since the epoch."""

    path: Path
    first: float
    last: float


def is_event_file(head: bytes) -> bool:
    """Tell from the first bytes whether this is an event file."""
    if not looks_like_events(head):
        return False
    payload = head[HEADER:84]
    return _length(head, 0) is None or not payload or payload[:1] == b"\t" or b"brain.Event:" in payload


def probe(path: Path, head: bytes) -> EventFile:
    """Return the wall times between which an event file was written; OSError if it can't be read.

    Parameters
    ----------
    path : Path
        The file.
    head : bytes
        Its first bytes, which `is_event_file` accepts.
    """
    last = _last_time(path)
    times = (_wall_time(head, 0), _time_in_name(path.name), last, 0.0)
    first = next(t for t in times if math.isfinite(t))
    return EventFile(path, first, max(first, last))


def chains(files: list[EventFile]) -> list[list[EventFile]]:
    """Sort event files of one directory into chains of files that continue each other.

    A file begun after another's last record continues it; files whose times overlap were written side by side.
    A file of a single moment (a marker, hyper-parameters) never stands in the way.
    """
    out: list[list[EventFile]] = []
    ends: list[float] = []
    for f in sorted(files, key=lambda f: (f.first, f.path.name)):
        home = next((i for i, end in enumerate(ends) if f.first >= end or f.first == f.last), None)
        if home is None:
            out.append([f])
            ends.append(f.last)
        else:
            out[home].append(f)
            ends[home] = max(ends[home], f.last)
    return out


def _length(data: bytes, at: int) -> int | None:
    """Return the length of the record whose header stands at `at`, None if there is no valid header."""
    if at + HEADER > len(data):
        return None
    length, check = struct.unpack_from("<QI", data, at)
    return int(length) if length <= MAX_RECORD and masked(data[at : at + 8]) == check else None


def _wall_time(data: bytes, at: int) -> float:
    """Return the wall time of the event whose record stands at `at`, NaN if it has none."""
    start = at + HEADER
    if data[start : start + 1] != b"\t" or len(data) < start + 9:
        return math.nan
    (time,) = struct.unpack_from("<d", data, start + 1)
    return float(time) if 0 < time < 1e11 else math.nan


def _last_time(path: Path) -> float:
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    try:
        size = os.fstat(fd).st_size
        for window in TAIL:
            start = max(0, size - window)
            found = _latest(os.pread(fd, min(window, size), start))
            if math.isfinite(found) or start == 0:
                return found if math.isfinite(found) else -math.inf
        return os.fstat(fd).st_mtime
    finally:
        os.close(fd)


def _latest(data: bytes) -> float:
    """Return the latest wall time among the whole chain of records at the end of `data`."""
    at, latest = 0, math.nan
    while at + HEADER <= len(data):
        length = _length(data, at)
        if length is None:
            at = _next_header(data, at + 1)
            continue
        time = _wall_time(data, at)
        if math.isfinite(time) and not time <= latest:
            latest = time
        at += FRAME + length
    return latest


def _next_header(data: bytes, at: int) -> int:
    """Return where the next valid header stands.

    Lengths are below 2**28, so a header has at least four zeros before its CRC: only the ends of runs of zeros are
    tried, and not without end, because a hostile file could consist of them.
    """
    for tried, zeros in enumerate(_ZEROS.finditer(data, at)):
        if tried > MAX_TRIES:
            break
        for start in range(max(at, zeros.end() - 11), zeros.end() - 7):
            if _length(data, start) is not None:
                return start
    return len(data)


def _time_in_name(name: str) -> float:
    found = re.search(r"tfevents\.(\d{9,11})(?:\.|$)", name)
    return float(found.group(1)) if found else math.nan
