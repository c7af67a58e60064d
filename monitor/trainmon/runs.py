"""From a path to runs: which files tell one story, and under what name.

A file is a run. A directory is searched; see `discover`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from trainmon_rules.errors import BadInput


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """One source of a run: files that continue each other, in order, and the directory that prefixes its tags."""

    name: str
    paths: tuple[Path, ...]
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class RunSpec:
    """A run to be read: its name relative to the root given, and its sources, the richest first."""

    name: str
    sources: tuple[SourceSpec, ...] = field(default=())


def discover(path: str) -> list[RunSpec]:
    """Return the runs that a path holds; BadInput if it doesn't exist or holds no log."""
    if path == "-":
        return [RunSpec("stdin", (SourceSpec("stdin", (Path("-"),)),))]
    p = Path(path)
    if not p.exists():
        raise BadInput(path, "no such file or directory")
    if p.is_dir():
        raise BadInput(path, "holds no training log")
    return [RunSpec(p.name, (SourceSpec(p.name, (p,)),))]
