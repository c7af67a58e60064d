"""The truth beside a log: `truth.json`, read back. Needs no torch."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from trainmon_reference.scenarios.scenario import HALVES, Truth
from trainmon_rules.errors import BadInput

SCHEMA = "trainmon.truth/1"
FILE = "truth.json"
LABELS = ("healthy", "faulty")


@dataclass(frozen=True, slots=True)
class Labelled:
    """What is known of one trace.

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
    """

    scenario: str
    family: str
    half: str
    seed: int
    about: str
    truth: Truth

    @property
    def healthy(self) -> bool:
        """Whether nothing is wrong with it."""
        return not self.truth.cause


def read_truth(folder: Path) -> Labelled:
    """Return what stands in a trace's `truth.json`.

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
        data = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise BadInput(str(path), f"can't be read: {(error.strerror or str(error)).lower()}") from None
    except ValueError:
        raise BadInput(str(path), "is no JSON") from None
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise BadInput(str(path), f"is not of the schema {SCHEMA}")
    kinds = {"scenario": str, "family": str, "half": str, "seed": int, "about": str, "label": str}
    if wrong := next((key for key, kind in kinds.items() if not isinstance(data.get(key), kind)), None):
        raise BadInput(str(path), f"{wrong}: {data.get(wrong)!r} is not what a truth has there")
    truth = _truth(data, path)
    if data["half"] not in HALVES or data["label"] not in LABELS or (data["label"] == "healthy") != (not truth.cause):
        raise BadInput(str(path), f"label {data['label']!r}, half {data['half']!r} and cause {truth.cause!r} don't fit")
    if truth.cause and truth.onset < 0:
        raise BadInput(str(path), f"onset: {truth.onset} of a faulty run; it is the update at which the fault begins")
    return Labelled(data["scenario"], data["family"], data["half"], data["seed"], data["about"], truth)


def _truth(data: dict[str, Any], path: Path) -> Truth:
    """Return the fields of a `Truth`, each of the kind that its default has."""
    usual, found = Truth(), dict[str, Any]()
    for field in fields(Truth):
        value, default = data.get(field.name), getattr(usual, field.name)
        value = tuple(value) if isinstance(value, list) else value
        words = not isinstance(value, tuple) or all(isinstance(word, str) for word in value)
        if type(value) is not type(default) or not words:
            raise BadInput(str(path), f"{field.name}: {data.get(field.name)!r} is not what a truth has there")
        found[field.name] = value
    return Truth(**found)
