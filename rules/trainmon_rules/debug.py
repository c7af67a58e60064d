"""Whether the user wants to see how trainmon itself failed."""

from __future__ import annotations

import os


def debugging() -> bool:
    """Whether tracebacks were asked for, with TRAINMON_DEBUG=1."""
    return os.environ.get("TRAINMON_DEBUG", "") not in ("", "0")
