"""From a path to runs: which files tell one story, and under what name.

A file is a run. A directory is searched (`directories`): event files that continue each other, and the logs that
stand beside them, are one run; any other log is a run of its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from trainmon.discovery.folders import showable
from trainmon.discovery.specs import EVALUATION, RunSpec, SourceSpec, distinct
from trainmon_rules.errors import BadInput

if TYPE_CHECKING:
    from trainmon_rules.roles import RoleTable

__all__ = ["RunSpec", "SourceSpec", "discover", "distinct"]


def discover(path: str, roles: RoleTable | None = None) -> list[RunSpec]:
    """Return the runs that a path holds.

    Parameters
    ----------
    path : str
        A file, a directory, or "-" for standard input.
    roles : RoleTable, optional
        Tells logs from other tables in a directory; the shipped one by default.

    Raises
    ------
    BadInput
        If the path doesn't exist, can't be searched or holds no log.
    """
    if path == "-":
        return [RunSpec("stdin", (SourceSpec("stdin", (Path("-"),)),))]
    if not path:  # a variable of the shell that isn't set; Path("") would be the current directory
        raise BadInput("''", "is an empty path; give a file, a directory or -")
    p = Path(path)
    shown = showable(path)
    try:
        is_dir, exists = p.is_dir(), p.exists()
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise BadInput(shown, f"can't be opened: {reason}") from None
    if not exists:
        raise BadInput(shown, "no such file or directory")
    if is_dir:
        from trainmon.discovery.directories import search  # noqa: PLC0415 - reading one file needs none of it
        from trainmon_rules.roles import RoleTable  # noqa: PLC0415

        return search(p, shown, roles or RoleTable.load())
    return [_file(p)]


def _file(path: Path) -> RunSpec:
    name = showable(path.name)
    return RunSpec(name, (SourceSpec(name, (path,), _prefix(path)),), showable(path.resolve().parent.name))


def _prefix(path: Path) -> str:
    """Keras gives its validation curves the training names: the directory alone tells them apart."""
    parent = path.resolve().parent.name
    if parent.lower() not in EVALUATION:
        return ""
    from trainmon.discovery.eventfiles import is_event_file  # noqa: PLC0415
    from trainmon.discovery.recognise import head_of  # noqa: PLC0415

    try:
        return f"{showable(parent)}/" if is_event_file(head_of(path)[0]) else ""
    except OSError:
        return ""
