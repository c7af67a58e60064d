"""Writing a report to a file: whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from trainmon_rules.errors import BadOutput


def check_writable(path: Path) -> None:
    """Raise BadOutput if the file can't be written: said before long work, not after it."""
    if path.is_dir():
        raise BadOutput(str(path), "is a directory")
    if not path.parent.is_dir():
        raise BadOutput(str(path), "its directory does not exist")
    target = path if path.exists() else path.parent
    if not os.access(target, os.W_OK):
        raise BadOutput(str(path), "permission denied")


def check_no_input(path: Path, inputs: Iterable[Path | int]) -> None:
    """Raise BadOutput if the file is one of those read, under whatever name; an open file counts by its descriptor."""
    target = _regular(path)
    if target is None:
        return
    for read in inputs:
        source = _regular(read)
        if source is not None and os.path.samestat(target, source):
            raise BadOutput(str(path), "it is one of the files read")


def _regular(file: Path | int) -> os.stat_result | None:
    """Return what there is to know of a regular file, None of anything else."""
    try:
        known = os.fstat(file) if isinstance(file, int) else file.stat()
    except (OSError, ValueError):
        return None
    return known if stat.S_ISREG(known.st_mode) else None


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that a reader sees the old content or the new, never a part.

    A device or pipe (`/dev/stdout`) is written to as it is; a symbolic link stays one.

    Raises
    ------
    BadOutput
        If it can't be written; the old content then stands.
    """
    try:
        _write(path, data)
    except OSError as error:
        raise BadOutput(str(path), (error.strerror or str(error)).lower()) from None


def _write(path: Path, data: bytes) -> None:
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        mode = 0
    if mode and not stat.S_ISREG(mode):
        with path.open("wb", buffering=0) as out:
            out.write(data)
        return
    path = path.resolve()
    draft = path.with_name(f".{path.name[:200]}.{os.getpid()}.tmp")
    try:
        with draft.open("xb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
            if mode:
                os.fchmod(out.fileno(), stat.S_IMODE(mode))
        draft.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise
