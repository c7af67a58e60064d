"""Opening what a person named: files, compressed files, standard input; bytes out, one clear line when it fails."""

from __future__ import annotations

import os
import signal
import stat
import sys
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trainmon_rules.errors import BadInput

PIECE = 1 << 20  # bytes read at a time


def read_pieces(path: Path | str, name: str) -> Iterator[bytes]:
    """Yield a file's bytes in order, decompressed if it is gzip; `-` is standard input.

    Raises
    ------
    BadInput
        If it is missing, unreadable, not a regular file, or broken gzip. What was read before stands.
    """
    raw = _stdin(name) if str(path) == "-" else _file(Path(path), name)
    first = next(raw, b"")
    if first[:2] == b"\x1f\x8b":
        yield from _gunzip(first, raw, name)
    else:
        yield first
        yield from raw


def _stdin(name: str) -> Iterator[bytes]:
    if sys.stdin is None:
        raise BadInput(name, "standard input is closed")
    stop = _CtrlC()
    try:
        with stop:
            while piece := stop.read(sys.stdin.fileno()):
                yield piece
    except OSError as error:
        raise BadInput(name, f"can't be read: {(error.strerror or str(error)).lower()}") from None


class _CtrlC:
    """Ctrl-C ends a stream that has begun, so that it is reported on; earlier, and the second time, it interrupts."""

    def __init__(self) -> None:
        self.reading = self.begun = self.stopped = False
        self.before: Any = None

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            self.before = signal.signal(signal.SIGINT, self._heard)

    def __exit__(self, *_: object) -> None:
        if self.before is not None:
            signal.signal(signal.SIGINT, self.before)

    def _heard(self, *_: object) -> None:
        if self.reading or self.stopped or not self.begun:
            raise KeyboardInterrupt
        self.stopped = True

    def read(self, fd: int) -> bytes:
        """Return the next piece, nothing once the stream was stopped."""
        if self.stopped:
            return b""
        try:
            self.reading = True
            piece = os.read(fd, PIECE)
        except KeyboardInterrupt:
            if not self.begun:
                raise
            piece, self.stopped = b"", True
        finally:
            self.reading = False
        self.begun = True
        return piece


def _file(path: Path, name: str) -> Iterator[bytes]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        raise BadInput(name, "no such file or directory") from None
    except OSError as error:
        raise BadInput(name, f"can't be opened: {(error.strerror or str(error)).lower()}") from None
    try:
        mode = os.fstat(fd).st_mode
        if not stat.S_ISREG(mode):
            raise BadInput(name, "is not a regular file (a device, socket or pipe); give a file, a directory or -")
        piece = os.read(fd, PIECE)
        while piece and (following := os.read(fd, PIECE)):
            yield piece
            piece = following
    except OSError as error:
        raise BadInput(name, f"can't be read: {(error.strerror or str(error)).lower()}") from None
    finally:
        os.close(fd)
    if piece:  # the last piece goes out with the file closed: a run may have thousands of small sources
        yield piece


def _gunzip(first: bytes, raw: Iterator[bytes], name: str) -> Iterator[bytes]:
    """Decompress gzip members one after the other; a cut tail ends quietly, broken data says so."""
    inflate = zlib.decompressobj(wbits=31)
    piece, offset = first, 0
    while True:
        try:
            out = inflate.decompress(piece, PIECE)
        except zlib.error as error:
            raise BadInput(name, f"broken gzip data: {error}", offset) from None
        if out:
            yield out
        if inflate.eof and inflate.unused_data:
            piece, inflate = inflate.unused_data.lstrip(b"\0"), zlib.decompressobj(wbits=31)
            if piece:
                continue
        elif inflate.unconsumed_tail:
            piece = inflate.unconsumed_tail
            continue
        offset += len(piece)
        piece = next(raw, b"")
        if not piece:
            return
