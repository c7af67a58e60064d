"""Short trainings: run a config, and ask of a number how it went."""

import math

import pytest

torch = pytest.importorskip("torch")

from trainmon_reference.config import RunConfig  # noqa: E402
from trainmon_reference.record import Record  # noqa: E402
from trainmon_reference.trainer import Trainer  # noqa: E402

torch.set_num_threads(1)

HEALTHY = {
    "autoencoder": {},
    "bandit": {"learning_rate": 1e-3},
    "contrastive": {},
    "gan": {"learning_rate": 1e-3, "beta1": 0.5, "beta2": 0.9, "batch_size": 64},
    "images": {},
    "preference": {"learning_rate": 1e-3, "batch_size": 16},
    "sequence": {"length": 4, "learning_rate": 1e-2},
    "tabular": {},
    "text": {"batch_size": 16},
}
"""What lets each task learn within some fifty updates."""


def trained(task: str, updates: int = 40, **change: object) -> list[Record]:
    """Return the records of a short training of a task, with settings beside those of `HEALTHY`."""
    return list(Trainer(RunConfig(task=task, total_steps=updates).changed({**HEALTHY[task], **change})).run())


def series(records: list[Record], role: str, phase: str = "train") -> list[float]:
    return [record.values[role] for record in records if record.phase == phase]


def fell(numbers: list[float], part: int = 8) -> bool:
    """Whether all are finite and the mean of the last ones is clearly below that of the first."""
    first, last = sum(numbers[:part]) / part, sum(numbers[-part:]) / part
    return all(map(math.isfinite, numbers)) and last < first - 0.02 * abs(first)


def learns(task: str, updates: int = 40, **change: object) -> bool:
    """Whether the training loss falls."""
    return fell(series(trained(task, updates, **change), "train_loss"))
