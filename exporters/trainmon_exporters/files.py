"""Writing a report to a file: whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
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
