"""Walking a directory that may be hostile: regular files only, no link followed, bounded depth and number.

Everything under a directory given by a person may have been put there by somebody else (shared clusters), so a
link is never followed: what it names inside the root is met at its own place, what it names outside isn't ours.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path

from trainmon.readers.values import clean_name

MAX_DEPTH = 16
MAX_FILES = 200_000  # entries looked at; more are counted as left out
MAX_NAME = 256  # characters of a name shown
PASSED_OVER = frozenset({"__pycache__", "node_modules", "site-packages"})


def showable(name: str) -> str:
    """Return a file name that is safe to print anywhere: odd characters become U+FFFD, length is capped."""
    half = MAX_NAME // 2
    return clean_name(name if len(name) <= MAX_NAME else f"{name[:half]}…{name[1 - half :]}")


@dataclass(slots=True)
class Folder:
    """A directory: its regular files and sub-directories in the order of their names.

    `parts` are the names that lead to it from the root; `error` says why it couldn't be listed.
    """

    path: Path
    parts: tuple[str, ...] = ()
    files: list[Path] = field(default_factory=list)
    folders: list[Folder] = field(default_factory=list)
    error: str = ""

    @property
    def name(self) -> str:
        """The directory's own name, lower case."""
        return self.path.name.lower()


@dataclass(slots=True)
class Walk:
    """What a walk passed over, for the message when nothing was found."""

    seen: int = 0
    links: int = 0
    left_out: int = 0  # entries beyond the depth or number


def walk(root: Path) -> tuple[Folder, Walk]:
    """List a directory and everything below it.

    Hidden names, caches, links, FIFOs, sockets and devices are passed over; a directory that can't be listed
    has its `error` set.
    """
    state = Walk()
    return _list(root, (), state), state


def _list(path: Path, parts: tuple[str, ...], state: Walk) -> Folder:
    folder = Folder(path, parts)
    try:
        with os.scandir(path) as entries:
            found = sorted(entries, key=lambda e: _natural(e.name))
    except OSError as error:
        folder.error = f"can't be listed: {(error.strerror or str(error)).lower()}"
        return folder
    for entry in found:
        if entry.name.startswith(".") or entry.name in PASSED_OVER:
            continue
        if state.seen >= MAX_FILES:
            state.left_out += 1
            continue
        state.seen += 1
        _sort_in(entry, folder, state)
    return folder


def _sort_in(entry: os.DirEntry[str], folder: Folder, state: Walk) -> None:
    try:
        mode = entry.stat(follow_symlinks=False).st_mode
    except OSError:
        return  # it went away
    if stat.S_ISLNK(mode):
        state.links += 1
    elif stat.S_ISREG(mode):
        folder.files.append(folder.path / entry.name)
    elif stat.S_ISDIR(mode):
        if len(folder.parts) >= MAX_DEPTH:
            state.left_out += 1
        else:
            folder.folders.append(_list(folder.path / entry.name, (*folder.parts, entry.name), state))


def _natural(name: str) -> list[tuple[int, int, str]]:
    """Sort key under which `run2` stands before `run10`."""
    pieces = re.findall(r"[0-9]{1,18}|[^0-9]+|[0-9]+", name)
    return [(0, int(p), p) if p[0].isdigit() and p.isascii() and len(p) <= 18 else (1, 0, p) for p in pieces]
