"""What a task is: data, a model for it, and how the loss comes out of a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor, nn

from trainmon_reference.config import RunConfig

Batch = tuple[Tensor, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a batch gives.

    Attributes
    ----------
    loss : Tensor, scalar
        To be minimised.
    metrics : dict of str to Tensor
        Scalars by role (`train_metric`, `reward_margin`, …), detached. Where several have one role, each has its own
        word after a dot: `logps.chosen`, `logps.rejected`.
    """

    loss: Tensor
    metrics: dict[str, Tensor]


class Task(Protocol):
    """One thing to learn. Made from a config; draws its data with the config's seed.

    Attributes
    ----------
    train, valid : tuple of Tensor
        Examples along the first axis of each: inputs first, targets second, where there are targets.
    classes : int
        Of a classification, else 0.
    """

    train: Batch
    valid: Batch
    classes: int

    def __init__(self, config: RunConfig) -> None: ...

    def model(self) -> nn.Module:
        """Return a fresh model, its weights drawn from torch's global generator."""
        ...

    def outcome(self, model: Any, batch: Batch) -> Outcome:
        """Return loss and metrics of a batch; `model` is what `model()` gave."""
        ...
