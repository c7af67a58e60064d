"""trainmon reads the logs of training runs and says what is going wrong, since which step, why, and what to do.

`replay(path)` returns a `Report`; a `Monitor` is fed points and yields incident events. Both are loaded on
first use, so that importing trainmon costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from trainmon.monitor import IncidentEvent, Monitor
    from trainmon.replaying import replay
    from trainmon_rules.report import Report

__all__ = ["IncidentEvent", "Monitor", "Report", "__version__", "replay"]

_HOME = {
    "replay": "trainmon.replaying",
    "Monitor": "trainmon.monitor",
    "IncidentEvent": "trainmon.monitor",
    "Report": "trainmon_rules.report",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        from importlib import import_module  # noqa: PLC0415 - the point is to import late

        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'trainmon' has no attribute {name!r}")
