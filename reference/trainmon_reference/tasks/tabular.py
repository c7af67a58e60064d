"""Classification of generated rows of numbers with a multilayer perceptron."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from trainmon_reference.config import RunConfig
from trainmon_reference.models.blocks import Mlp
from trainmon_reference.tasks.base import Batch, Outcome
from trainmon_reference.tasks.supervised import Supervised
from trainmon_rules.errors import BadConfig

TRAIN, VALID = 4096, 512
FEATURES = 16
CLASSES = 4  # where the config doesn't say
CLUSTERS = 3  # a class, so that no straight line parts them
SPREAD = 0.9  # standard deviation within a cluster, of centres one apart in each feature


def rows(count: int, config: RunConfig) -> tuple[Tensor, Tensor]:
    """Draw rows (count, 16) with mean 0 and variance about 1, and their classes (count,).

    A class is a few Gaussian clusters; `num_classes` says how many classes there are, `imbalance` how many of the rows
    are of the first.
    """
    classes = config.num_classes or CLASSES
    if classes < 2 or not 0.0 <= config.imbalance < 1.0:
        raise BadConfig("num_classes is 2 or more, imbalance at least 0 and below 1")
    generator = torch.Generator().manual_seed(config.seed)
    centres = torch.randn(classes, CLUSTERS, FEATURES, generator=generator)
    parts = (
        torch.full((classes,), (1.0 - config.imbalance) / (classes - 1)) if config.imbalance else torch.ones(classes)
    )
    if config.imbalance:
        parts[0] = config.imbalance
    labels = torch.multinomial(parts, count, replacement=True, generator=generator)
    cluster = torch.randint(CLUSTERS, (count,), generator=generator)
    noise = torch.randn(count, FEATURES, generator=generator)
    return (centres[labels, cluster] + SPREAD * noise) / (1.0 + SPREAD**2) ** 0.5, labels


class Tabular:
    """The task: a batch is rows (n, 16) and their classes."""

    def __init__(self, config: RunConfig) -> None:
        data, labels = rows(TRAIN + VALID, config)
        count = min(config.dataset_size or TRAIN, TRAIN)
        self.config, self.classes = config, config.num_classes or CLASSES
        self.train: Batch = (data[:count], labels[:count])
        self.valid: Batch = (data[TRAIN:], labels[TRAIN:])
        self.objective = Supervised(config, "cross-entropy", self.classes)

    def model(self) -> nn.Module:
        """Return a multilayer perceptron."""
        return Mlp(FEATURES, self.objective.outputs, self.config)

    def outcome(self, model: nn.Module, batch: Batch) -> Outcome:
        """Return loss and accuracy."""
        data, labels = batch
        return self.objective.outcome(model(data), labels)
