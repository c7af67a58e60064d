"""Batches of a training set, in an order that is drawn from the seed, and a place in it that can be kept."""

from __future__ import annotations

from typing import Any

import torch

from trainmon_reference.choices.augmentation import augmented
from trainmon_reference.config import RunConfig
from trainmon_reference.tasks.base import Batch


class Loader:
    """An endless iterator over batches.

    Parameters
    ----------
    data : tuple of Tensor
        Examples along the first axis.
    config : RunConfig
        Of which `batch_size`, `shuffle`, `augmentation`, `mixup`, `cutmix`, `skip_batches` and `seed` matter.
    classes : int
        Of a classification, else 0.
    """

    def __init__(self, data: Batch, config: RunConfig, classes: int = 0) -> None:
        self.data, self.config, self.classes = data, config, classes
        self.count = config.skip_batches  # batches drawn
        self.per_epoch = max(1, len(data[0]) // config.batch_size)
        self._epoch, self._order = -1, torch.empty(0, dtype=torch.long)

    @property
    def epoch(self) -> float:
        """Times the set was gone through."""
        return self.count / self.per_epoch

    def __next__(self) -> Batch:
        epoch, place = divmod(self.count, self.per_epoch)
        if epoch != self._epoch:
            self._epoch, self._order = epoch, self._ordered(epoch)
        self.count += 1
        size = self.config.batch_size
        chosen = self._order[place * size : (place + 1) * size]
        return augmented(tuple(part[chosen] for part in self.data), self.config, self.count, self.classes)

    def __iter__(self) -> Loader:
        return self

    def state_dict(self) -> dict[str, Any]:
        """Return the place."""
        return {"count": self.count}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on at a place; `skip_batches` are left out from there."""
        self.count = state["count"] + self.config.skip_batches

    def _ordered(self, epoch: int) -> torch.Tensor:
        if not self.config.shuffle:
            return torch.arange(len(self.data[0]))
        generator = torch.Generator().manual_seed(self.config.seed * 1_000_003 + epoch)
        return torch.randperm(len(self.data[0]), generator=generator)
