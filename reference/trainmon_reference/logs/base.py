"""What a writer of a log is, and the framework's names it writes under."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Protocol

from trainmon_reference.record import Record
from trainmon_rules.errors import BadConfig
from trainmon_rules.yamlfile import parse

START = 1_767_225_600.0
"""Wall time at which every simulated run begins: 2026-01-01 00:00 UTC."""


@dataclass(frozen=True, slots=True)
class Framework:
    """Names and format of one framework; `train` and `valid` give the tag of each role."""

    name: str
    format: str
    train: Mapping[str, str]
    valid: Mapping[str, str]

    def tags(self, record: Record) -> dict[str, float]:
        """Return a record's numbers under this framework's tags; what it has no tag for is left out."""
        tags = self.train if record.phase == "train" else self.valid
        return {tags[role]: value for role, value in record.values.items() if role in tags}


@functools.cache
def frameworks() -> Mapping[str, Framework]:
    """Return the frameworks by name."""
    text = resources.files("trainmon_reference").joinpath("logs", "frameworks.yaml").read_text("utf-8")
    return {name: Framework(name, **entry) for name, entry in parse(text, "frameworks.yaml").items()}


def framework(name: str) -> Framework:
    """Return a framework; BadConfig if it isn't known."""
    if name not in frameworks():
        raise BadConfig(f"framework: unknown {name!r}; known: {', '.join(frameworks())}")
    return frameworks()[name]


class Writer(Protocol):
    """Writes one run's log, one attempt after another."""

    def __init__(self, folder: Path, framework: Framework, settings: Mapping[str, Any]) -> None: ...

    def write(self, record: Record) -> None:
        """Write one record."""
        ...

    def resume(self) -> None:
        """Go on after a restart of the job, as the framework does."""
        ...

    def close(self) -> None:
        """Write what is left."""
        ...
