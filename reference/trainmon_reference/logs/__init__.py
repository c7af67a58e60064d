"""Logs of a run through real writers, in the names of real frameworks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from trainmon_reference.logs.base import Writer, framework, frameworks
from trainmon_reference.logs.epochs import EpochCsv
from trainmon_reference.logs.jsonl import JsonLines
from trainmon_reference.logs.lightning import LightningCsv
from trainmon_reference.logs.tensorboard import TensorBoard
from trainmon_reference.logs.text import Fairseq, Megatron, OpenMMLab
from trainmon_reference.logs.trainer_state import TrainerState
from trainmon_reference.record import Record, role_of
from trainmon_reference.scenarios.scenario import LogSpec
from trainmon_rules.errors import BadConfig

__all__ = ["FORMATS", "USUAL", "Writer", "check_log", "framework", "frameworks", "open_log", "thinned"]

FORMATS: Mapping[str, type[Writer]] = {
    "jsonl": JsonLines,
    "tensorboard": TensorBoard,
    "lightning-csv": LightningCsv,
    "epoch-csv": EpochCsv,
    "trainer-state": TrainerState,
    "megatron": Megatron,
    "fairseq": Fairseq,
    "openmmlab": OpenMMLab,
}
USUAL = ("train_loss", "learning_rate", "grad_norm", "loss_scale", "val_loss", "eval_metric")
"""Roles that are logged where a scenario doesn't say, as far as the framework has a name for them."""


def check_log(spec: LogSpec) -> None:
    """Raise BadConfig if a framework isn't known, or has no name for a role that a scenario wants logged."""
    names = framework(spec.framework)
    known = {role_of(key) for key in (*names.train, *names.valid)}
    if missing := sorted({role_of(role) for role in spec.roles} - known):
        raise BadConfig(f"{spec.framework} has no name for {', '.join(missing)}; it has: {', '.join(sorted(known))}")


def open_log(folder: Path, spec: LogSpec, settings: Mapping[str, Any]) -> Writer:
    """Return the writer that a scenario asks for; it writes into `folder`. BadConfig as of `check_log`."""
    check_log(spec)
    names = framework(spec.framework)
    total = int(settings.get("total_steps", 0))
    return FORMATS[names.format](folder, names, settings if spec.settings else {}, total)


def thinned(records: Iterable[Record], spec: LogSpec) -> Iterator[Record]:
    """Yield what is logged of a trainer's records: one in `every`, chosen roles.

    A loss of training is the mean since the last report, anything else the last value.
    """
    roles = {role_of(role) for role in spec.roles or USUAL}
    sums: dict[str, list[float]] = {}
    for record in records:
        values = {key: value for key, value in record.values.items() if role_of(key) in roles}
        if record.phase == "train":
            for key, value in values.items():
                if role_of(key).endswith("loss"):
                    sums.setdefault(key, []).append(value)
            if record.step % spec.every:
                continue
            values |= {key: sum(found) / len(found) for key, found in sums.items()}
            sums.clear()
        yield Record(record.step, record.epoch, record.seconds, record.phase, values)
