"""Regression on sequences: the adding problem, which needs a memory as long as the sequence.

Each step has a number and a mark; the target is the sum of the two numbers that are marked, one in each half of the
sequence (Hochreiter & Schmidhuber, Neural Computation 9, 1997). A plain recurrent cell loses the gradient over a long
sequence, or has it explode where its weights are large.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from trainmon_reference.config import RunConfig
from trainmon_reference.models.recurrent import Recurrent
from trainmon_reference.tasks.base import Batch, Outcome
from trainmon_reference.tasks.supervised import Supervised

TRAIN, VALID = 4096, 512
LENGTH = 12  # steps, where the config doesn't say


def sums(count: int, length: int, seed: int) -> tuple[Tensor, Tensor]:
    """Draw sequences (count, length, 2) of a number in −1 … 1 and a mark of 0 or 1, and the sums (count,)."""
    generator = torch.Generator().manual_seed(seed)
    numbers = 2.0 * torch.rand(count, length, generator=generator) - 1.0
    marks, half, every = torch.zeros(count, length), length // 2, torch.arange(count)
    marks[every, torch.randint(half, (count,), generator=generator)] = 1.0
    marks[every, half + torch.randint(length - half, (count,), generator=generator)] = 1.0
    return torch.stack((numbers, marks), 2), (numbers * marks).sum(1)


class Sequence:
    """The task: a batch is sequences (n, length, 2) and their sums."""

    def __init__(self, config: RunConfig) -> None:
        data, targets = sums(TRAIN + VALID, config.length or LENGTH, config.seed)
        count = min(config.dataset_size or TRAIN, TRAIN)
        self.config, self.classes = config, 0
        self.train: Batch = (data[:count], targets[:count])
        self.valid: Batch = (data[TRAIN:], targets[TRAIN:])
        self.objective = Supervised(config, "mse")

    def model(self) -> nn.Module:
        """Return a recurrent network."""
        return Recurrent(2, self.objective.outputs, self.config)

    def outcome(self, model: nn.Module, batch: Batch) -> Outcome:
        """Return the loss and the mean error."""
        data, targets = batch
        return self.objective.outcome(model(data), targets)
