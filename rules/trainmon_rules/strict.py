"""Plain data that strict JSON can hold: JSON has no word for a number that isn't finite, so it becomes one."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

# fields that the schemas name with a word of Python
RENAMED = {"evidence_for": "for", "evidence_against": "against"}


def strict(value: float) -> float | str:
    """Return a finite number as it is, another as "NaN", "Infinity" or "-Infinity"."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def plain(value: Any, skip: Collection[str] = ()) -> Any:
    """Return a record, or whatever records hold, as data for strict JSON.

    Parameters
    ----------
    value : object
        Dataclasses and mappings become dicts, tuples lists; other objects stay.
    skip : collection of str
        Fields of the outermost dataclass to leave out.
    """
    if is_dataclass(value) and not isinstance(value, type):
        names = (f.name for f in fields(value) if f.name not in skip)
        return {RENAMED.get(name, name): plain(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return strict(value) if isinstance(value, float) else value
