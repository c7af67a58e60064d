"""What a scenario is: a config, what goes wrong in it, how it is logged, and the truth about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trainmon_reference.config import RunConfig

HALVES = ("tuning", "test")
"""Thresholds may be chosen by the scenarios of the first; figures are told of the second."""


@dataclass(frozen=True, slots=True)
class Resume:
    """A stop and a return to a checkpoint.

    Attributes
    ----------
    at, since : int
        Update before which the job stops, and the checkpoint's update it goes on from; a checkpoint has to be there.
    without : tuple of str
        Parts of the checkpoint that are lost (`checkpoint.PARTS`).
    change : mapping
        Settings of the resumed run that differ.
    """

    at: int
    since: int
    without: tuple[str, ...] = ()
    change: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LogSpec:
    """How a run is logged.

    Attributes
    ----------
    framework : str
        Whose names and format: a key of `logs/frameworks.yaml`.
    every : int
        Updates a report; a loss is the mean over them, anything else the last value.
    roles : tuple of str
        What is logged, by role; empty is loss, rate, gradient norm, validation.
    settings : bool
        Whether hyper-parameters stand in the log, where the format can hold them.
    """

    framework: str
    every: int = 1
    roles: tuple[str, ...] = ()
    settings: bool = True


@dataclass(frozen=True, slots=True)
class Truth:
    """What is true of a run.

    Attributes
    ----------
    cause : str
        What was done to it, as a cause of `trainmon explain`; "" if it is healthy.
    onset : int
        Update at which it begins; -1 if it is healthy.
    symptoms : tuple of str
        Any of them found is the fault found.
    also : tuple of str
        May be found too: neither a hit nor a false alarm.
    routes : tuple of str
        Sheets (or packs) that are right as the primary route.
    questions : tuple of str
        Settings that are right to ask for instead.
    curable : bool
        Whether a change of the configuration can cure it.
    traceless : str
        Why nothing of it can be seen in the logged numbers; "" if something can.
    """

    cause: str = ""
    onset: int = -1
    symptoms: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    routes: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    curable: bool = False
    traceless: str = ""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One scenario; `family` holds those that differ only by task, size or naming, and lies in one `half`."""

    name: str
    family: str
    half: str
    about: str
    config: RunConfig
    log: LogSpec
    truth: Truth = Truth()
    faults: tuple[Mapping[str, Any], ...] = ()
    resume: Resume | None = None

    @property
    def healthy(self) -> bool:
        """Whether nothing is wrong with it."""
        return not self.truth.cause
