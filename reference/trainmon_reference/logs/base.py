"""What a writer of a log is, and the framework's names it writes under."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar, Literal

from trainmon_reference.record import Record
from trainmon_rules.errors import BadConfig
from trainmon_rules.yamlfile import parse

START = 1_767_225_600.0
"""Wall time at which every simulated run begins: 2026-01-01 00:00 UTC."""


@dataclass(frozen=True, slots=True)
class Framework:
    """Names and format of one framework.

    Attributes
    ----------
    name, format : str
        Of the framework; and which writer of `logs.FORMATS` writes it.
    train, valid : mapping
        Key of a record's values (a role) to tag, for training and for evaluations.
    settings : mapping
        Name in the vocabulary to the framework's own. "a/b" stands for two flags, of which the one is true that the
        value names. Empty where the format holds no settings that trainmon reads; `"*": "*"` keeps all names.
    values : mapping
        Values of settings that the framework calls otherwise, by the vocabulary's name.
    options : mapping
        What the writer wants to know besides.
    """

    name: str
    format: str
    train: Mapping[str, str]
    valid: Mapping[str, str]
    settings: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    def tags(self, record: Record) -> dict[str, float]:
        """Return a record's numbers under this framework's tags; what it has no tag for is left out."""
        tags = self.train if record.phase == "train" else self.valid
        return {tags[key]: value for key, value in record.values.items() if key in tags}

    def named(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return settings of the vocabulary as this framework calls them; what it doesn't log is left out."""
        if "*" in self.settings:
            return dict(settings)
        out: dict[str, Any] = {}
        for key, name in self.settings.items():
            if key in settings:
                value = self.values.get(key, {}).get(settings[key], settings[key])
                flags = name.split("/")
                out |= {flag: flag == value for flag in flags} if len(flags) > 1 else {name: value}
        return out


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


def stamp(seconds: float, form: str) -> str:
    """Return a wall time (UTC) of a run as a framework prints it.

    Parameters
    ----------
    seconds : float
        Since the run's start.
    form : str
        For `strftime`.
    """
    return datetime.fromtimestamp(START + seconds, UTC).strftime(form)


class Writer(ABC):
    """Writes one run's log, one attempt after another.

    Parameters
    ----------
    folder : Path
        Where the log goes.
    framework : Framework
        Whose names it has.
    settings : mapping
        Of the vocabulary; empty if they aren't logged.
    total : int
        Updates planned, for the formats that always print them.

    Attributes
    ----------
    axis : str
        What the log's steps count: `step` (updates) or `epoch`.
    """

    axis: ClassVar[Literal["step", "epoch"]] = "step"

    def __init__(self, folder: Path, framework: Framework, settings: Mapping[str, Any], total: int = 0) -> None:
        self.folder, self.framework, self.total = folder, framework, total
        self.settings = framework.named(settings)
        self.begin()

    def begin(self) -> None:  # noqa: B027 - only some have something to do
        """Open the log."""

    @abstractmethod
    def write(self, record: Record) -> None:
        """Write one record."""

    def resume(self, step: int) -> None:  # noqa: B027 - most frameworks just go on
        """Go on from the checkpoint of this update after a restart of the job, as the framework does."""

    @abstractmethod
    def close(self) -> None:
        """Write what is left."""

    @property
    def updates_per_step(self) -> float:
        """Updates that a step of the log's axis stands for."""
        return 1.0

    def place(self, update: int) -> int:
        """Return where on the log's axis an update stands; asked after `close`."""
        return update
