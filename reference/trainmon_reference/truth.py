"""The truth beside a log: `truth.json`, written and read back. Needs no torch."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

import msgspec

from trainmon_reference.logs.base import Writer
from trainmon_reference.scenarios.scenario import HALVES, Scenario, Truth
from trainmon_rules.errors import BadInput

SCHEMA = "trainmon.truth/1"
FILE = "truth.json"


@dataclass(frozen=True, slots=True)
class Labelled:
    """What is known of one simulated run. In the file, the fields of `truth` stand beside the others.

    Attributes
    ----------
    scenario, family, half : str
        Which scenario it is of, what it is judged together with, and whether thresholds may be chosen by it.
    seed : int
        Of the run.
    about : str
        A sentence for a person.
    truth : Truth
        Cause, onset, what may be found, which routes and questions are right.
    framework : str
        Whose names and format the log has.
    axis : str
        What the log's steps count: `step` (updates of the weights) or `epoch`.
    every : int
        Updates a report.
    updates_per_step : float
        Updates that a step of the log's axis stands for.
    onset_logged : int
        The onset on the log's axis; -1 if the run is healthy.
    torch : str
        The version that trained it.
    """

    scenario: str
    family: str
    half: str
    seed: int
    about: str
    truth: Truth
    framework: str = ""
    axis: Literal["step", "epoch"] = "step"
    every: int = 1
    updates_per_step: float = 1.0
    onset_logged: int = -1
    torch: str = ""

    @property
    def onset(self) -> int:
        """The onset on the log's axis; the update itself in a file that doesn't tell the axis."""
        return self.truth.onset if self.onset_logged < 0 else self.onset_logged

    @property
    def healthy(self) -> bool:
        """Whether nothing is wrong with it."""
        return not self.truth.cause

    @property
    def label(self) -> str:
        """`healthy` or `faulty`."""
        return "healthy" if self.healthy else "faulty"

    def as_dict(self) -> dict[str, Any]:
        """Return the content of `truth.json`."""
        rest = asdict(self)
        return {"schema": SCHEMA, "label": self.label, **rest.pop("truth"), **rest}


def truth_of(scenario: Scenario, seed: int, log: Writer, torch: str) -> Labelled:
    """Return the truth of a run.

    Parameters
    ----------
    scenario : Scenario
        Which.
    seed : int
        Of the run.
    log : Writer
        The one that wrote its log, closed.
    torch : str
        Version of torch.
    """
    return Labelled(
        scenario=scenario.name,
        family=scenario.family,
        half=scenario.half,
        seed=seed,
        about=scenario.about,
        truth=scenario.truth,
        framework=scenario.log.framework,
        axis=log.axis,
        every=scenario.log.every if log.axis == "step" else max(1, round(log.updates_per_step)),
        updates_per_step=round(log.updates_per_step, 4),
        onset_logged=-1 if scenario.healthy else log.place(scenario.truth.onset),
        torch=torch,
    )


def write_truth(folder: Path, truth: Labelled) -> None:
    """Write `truth.json` into a run's folder."""
    (folder / FILE).write_text(json.dumps(truth.as_dict(), indent=1) + "\n", encoding="utf-8")


def read_truth(folder: Path) -> Labelled:
    """Return what stands in a simulated run's `truth.json`.

    Parameters
    ----------
    folder : Path
        Where the log and the truth lie.

    Raises
    ------
    BadInput
        If the file can't be read, or isn't a truth of this schema.
    """
    path = folder / FILE
    try:
        data = json.loads(path.read_bytes())
    except OSError as error:
        raise BadInput(str(path), f"can't be read: {(error.strerror or str(error)).lower()}") from None
    except (ValueError, RecursionError):
        raise BadInput(str(path), "is no JSON") from None
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise BadInput(str(path), f"is not of the schema {SCHEMA}")
    names = [field.name for field in fields(Truth)]
    if missing := next((key for key in ("label", *names) if key not in data), None):
        raise BadInput(str(path), f"has no {missing}")
    try:
        found = msgspec.convert({**data, "truth": {name: data[name] for name in names}}, Labelled)
    except msgspec.ValidationError as error:
        raise BadInput(str(path), f"is not what a truth is: {error}") from None
    if found.half not in HALVES:
        raise BadInput(str(path), f"half {found.half!r} is none; there are {' and '.join(HALVES)}")
    if data["label"] != found.label:
        raise BadInput(str(path), f"label {data['label']!r} and cause {found.truth.cause!r} don't fit")
    if not found.healthy and found.truth.onset < 0:
        raise BadInput(str(path), f"onset: {found.truth.onset} of a faulty run; it is an update, counted from 0")
    return found
