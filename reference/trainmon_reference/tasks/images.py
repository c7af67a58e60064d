"""Classification of small generated images of digits with a convolutional network."""

from __future__ import annotations

from torch import nn

from trainmon_reference.config import RunConfig
from trainmon_reference.data.glyphs import CLASSES, SIDE, glyphs
from trainmon_reference.models.blocks import Cnn
from trainmon_reference.tasks.base import Batch, Outcome
from trainmon_reference.tasks.supervised import Supervised

TRAIN, VALID = 4096, 512


class Images:
    """The task: a batch is images (n, 1, 8, 8) and their digits."""

    def __init__(self, config: RunConfig) -> None:
        images, labels = glyphs(TRAIN + VALID, config.seed)
        count = min(config.dataset_size or TRAIN, TRAIN)
        self.config, self.classes = config, CLASSES
        self.train: Batch = (images[:count], labels[:count])
        self.valid: Batch = (images[TRAIN:], labels[TRAIN:])
        self.objective = Supervised(config, "cross-entropy", self.classes)

    def model(self) -> nn.Module:
        """Return a convolutional network."""
        return Cnn(SIDE, self.objective.outputs, self.config)

    def outcome(self, model: nn.Module, batch: Batch) -> Outcome:
        """Return loss and accuracy."""
        images, labels = batch
        return self.objective.outcome(model(images), labels)
