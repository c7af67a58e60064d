"""Finding the next record of a TFRecord file when the chain of lengths is broken.

A record's header is recognised by the checksum of its length, and believed when the checksum of the payload
fits too. Only records below 64 KiB are looked for: that holds every record with scalars, bounds what must be
kept while a candidate is still incomplete, and bounds the work that a file full of forged headers can cause.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

import numpy as np

from trainmon.readers.crc import masked, short_length_checks

HEADER = 12  # bytes: the length and its checksum
FRAME = 16  # bytes that a record has besides its payload
BLOCK = 1 << 20

unpack_header = Struct("<QI").unpack_from
unpack_check = Struct("<I").unpack_from


def payload_fits(data: bytes, at: int, length: int) -> bool:
    """Say whether the checksum behind the payload of the complete record at `at` is right."""
    stop = at + HEADER + length
    return masked(data[at + HEADER : stop]) == int(unpack_check(data, stop)[0])


def headers(data: bytes, at: int, limit: int) -> Iterator[int]:
    """Yield each position in `at` … `limit` (exclusive) where the header of a non-empty short record stands."""
    limit = min(limit, len(data) - HEADER + 1)
    checks = short_length_checks()
    for start in range(at, limit, BLOCK):
        n = min(BLOCK, limit - start)
        raw = np.frombuffer(data, np.uint8, n + HEADER - 1, start)
        zero = raw[2 : n + 7] == 0  # the upper six bytes of a length below 65,536
        here = zero[:n].copy()
        for i in range(1, 6):
            here &= zero[i : n + i]
        found = np.flatnonzero(here)
        length = raw[found].astype(np.int64) | raw[found + 1].astype(np.int64) << 8
        stored = np.ndarray((n,), "<u4", data, start + 8, (1,))[found]
        right = (checks[length] == stored) & (length > 0)
        yield from (found[right] + start).tolist()


def find_record(data: bytes, at: int, limit: int, last: bool) -> tuple[int, int]:
    """Return where the first believable record begins, and how many bytes it needs if some are missing.

    Parameters
    ----------
    data : bytes
        What is at hand.
    at, limit : int
        The record must begin at `at` or behind it, and before `limit`.
    last : bool
        No more bytes will come: a whole record is preferred to one that is cut.

    Returns
    -------
    position, needed : int
        -1, 0 if there is none; `needed` is 0 for a whole record whose payload was checked.
    """
    cut = (-1, 0)
    for here in headers(data, at, limit):
        length = int(unpack_header(data, here)[0])
        if here + FRAME + length <= len(data):
            if payload_fits(data, here, length):
                return here, 0
        elif not last:
            return here, FRAME + length
        elif cut[0] < 0:
            cut = here, FRAME + length
    return cut


def looks_like_events(head: bytes) -> bool:
    """Say whether a source that begins with `head` is an event file (or any other TFRecord file).

    The checksum of the first length decides. Where it is wrong, a whole record further on does: one flipped
    bit must not hide a file.
    """
    if len(head) < HEADER:
        return False
    length, check = unpack_header(head)
    if length < 1 << 30 and masked(head[:8]) == check:
        return True
    if b"\0" * 6 not in head:
        return False
    here, missing = find_record(head, 1, len(head), last=True)
    return here >= 0 and not missing
