"""What is kept of a run so that it can go on: weights, optimizer, schedule, scaler, place in the data, random state."""

from __future__ import annotations

import copy
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from trainmon_reference.trainer import Trainer

PARTS = ("model", "optimizer", "schedule", "scaler", "loader")
"""Parts of a checkpoint; a resume may lose each of them."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A run's state after `step` updates."""

    step: int
    parts: dict[str, Any]
    random: torch.Tensor

    @classmethod
    def of(cls, trainer: Trainer) -> Checkpoint:
        """Return a copy of a trainer's state."""
        parts = {part: copy.deepcopy(getattr(trainer, part).state_dict()) for part in PARTS}
        return cls(trainer.step, parts, torch.get_rng_state())

    def restore(self, trainer: Trainer, without: Collection[str] = ()) -> None:
        """Bring a fresh trainer to this state, but for the parts that are lost."""
        for part in PARTS:
            if part not in without:
                getattr(trainer, part).load_state_dict(copy.deepcopy(self.parts[part]))
        trainer.step = self.step
        torch.set_rng_state(self.random)
