"""What is to be read: runs and their sources, before a byte of them is judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

EVALUATION = frozenset({"validation", "val", "valid", "eval", "evaluation"})
"""Directories beside or below a run's own that hold its evaluation."""


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """One source of a run: files that continue each other, in order.

    Attributes
    ----------
    name : str
        Name relative to the root given, safe to show; the first file's, if there are several.
    paths : tuple of Path
        The files, oldest first.
    prefix : str
        The directory that prefixes its tags ("validation/"), "" for none.
    rank : int
        0 speaks first; a source of a higher rank is heard only for roles that no source of a lower rank has, or after
        that one has ended.
    names : tuple of str
        Names of the files to show, one a path; empty if there is one file, called `name`.
    """

    name: str
    paths: tuple[Path, ...]
    prefix: str = ""
    rank: int = 0
    names: tuple[str, ...] = ()

    def shown(self, i: int) -> str:
        """Return the name of the file `paths[i]` as it is shown."""
        return self.names[i] if self.names else self.name


@dataclass(frozen=True, slots=True)
class RunSpec:
    """A run to be read.

    `name` is relative to the root given, `sources` stand the richest first, `home` is the name of the directory
    that `name` is relative to (it tells equal names of several roots apart).
    """

    name: str
    sources: tuple[SourceSpec, ...] = field(default=())
    home: str = ""


def distinct(specs: Iterable[RunSpec]) -> list[RunSpec]:
    """Return the runs with names that are told apart: by the root's name first, then by a number."""
    runs = list(specs)
    counts = Counter(r.name for r in runs)
    runs = [replace(r, name=f"{r.home}/{r.name}") if counts[r.name] > 1 and r.home else r for r in runs]
    used: Counter[str] = Counter()
    out = []
    for r in runs:
        used[r.name] += 1
        out.append(r if used[r.name] == 1 else replace(r, name=f"{r.name} ({used[r.name]})"))
    return out
