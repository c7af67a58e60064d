"""Augmentation of a training batch: noise and shifts by strength, mixup, cutmix."""

from __future__ import annotations

from trainmon_reference.config import RunConfig
from trainmon_reference.tasks.base import Batch


def augmented(batch: Batch, config: RunConfig, number: int) -> Batch:
    """Return a training batch as the config's `augmentation`, `mixup` and `cutmix` change it."""
    return batch
