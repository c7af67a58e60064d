"""Logs of a run through real writers, in the names of real frameworks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from trainmon_reference.logs.base import Writer, framework
from trainmon_reference.logs.jsonl import JsonLines
from trainmon_reference.record import Record
from trainmon_reference.scenarios.scenario import LogSpec

FORMATS: Mapping[str, type[Writer]] = {"jsonl": JsonLines}
USUAL = ("train_loss", "learning_rate", "grad_norm", "loss_scale", "val_loss", "eval_metric")
"""Roles that are logged where a scenario doesn't say."""


def open_log(folder: Path, spec: LogSpec, settings: Mapping[str, Any]) -> Writer:
    """Return the writer that a scenario asks for; it writes into `folder`."""
    names = framework(spec.framework)
    return FORMATS[names.format](folder, names, settings if spec.settings else {})


def thinned(records: Iterable[Record], spec: LogSpec) -> Iterator[Record]:
    """Yield what is logged of a trainer's records: one in `every`, the loss as the mean since the last, chosen roles."""
    roles, losses = spec.roles or USUAL, list[float]()
    for record in records:
        values = {role: value for role, value in record.values.items() if role in roles}
        if record.phase == "train":
            losses.append(record.values["train_loss"])
            if record.step % spec.every:
                continue
            if "train_loss" in values:
                values["train_loss"] = sum(losses) / len(losses)
            losses.clear()
        yield Record(record.step, record.epoch, record.seconds, record.phase, values)
