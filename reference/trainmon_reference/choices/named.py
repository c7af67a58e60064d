"""A choice by its name, or one clear line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from trainmon_rules.errors import BadConfig

T = TypeVar("T")


def chosen(setting: str, name: str, known: Mapping[str, T]) -> T:
    """Return what a setting names; BadConfig with the known names if there is no such thing."""
    if name not in known:
        raise BadConfig(f"{setting}: unknown {name!r}; known: {', '.join(known)}")
    return known[name]
