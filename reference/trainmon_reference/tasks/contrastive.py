"""Contrastive learning: two views of one image are to lie together, those of others apart."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from trainmon_reference.choices.augmentation import distorted
from trainmon_reference.choices.losses import PAIR, loss_name
from trainmon_reference.config import RunConfig
from trainmon_reference.data.glyphs import SIDE, glyphs
from trainmon_reference.models.blocks import Cnn
from trainmon_reference.tasks.base import Batch, Outcome

TRAIN, VALID = 4096, 512
EMBEDDING = 16  # numbers an image
NEAR = 32  # images among which the partner is looked for, to measure


class Contrastive:
    """The task: a batch is images (n, 1, 8, 8) and another view of each, with noise and moved.

    Views are drawn once; `augmentation` draws more of the first ones.
    """

    def __init__(self, config: RunConfig) -> None:
        images, _ = glyphs(TRAIN + VALID, config.seed)
        views = distorted(images, "medium", config.seed)
        count = min(config.dataset_size or TRAIN, TRAIN)
        self.config, self.classes = config, 0
        self.train: Batch = (images[:count], views[:count])
        self.valid: Batch = (images[TRAIN:], views[TRAIN:])
        self.loss = PAIR[loss_name(config, "infonce", PAIR)]

    def model(self) -> nn.Module:
        """Return a convolutional encoder."""
        return Cnn(SIDE, EMBEDDING, self.config)

    def outcome(self, model: nn.Module, batch: Batch) -> Outcome:
        """Return the loss, and how often the nearest of 32 views is the image's own (`train_metric`).

        Negatives are looked for among `batch_size` examples also where more are given, as in an evaluation: among more
        it would be another, higher loss.
        """
        first, second = model(torch.cat(batch[:2])).float().chunk(2)
        a, b = functional.normalize(first.detach()[:NEAR], dim=1), functional.normalize(second.detach()[:NEAR], dim=1)
        found = (a @ b.T).argmax(1).eq(torch.arange(len(a))).float().mean()
        size = self.config.batch_size
        starts = range(0, max(1, len(first) - size + 1), size)
        loss = torch.stack([self.loss(first[at : at + size], second[at : at + size]) for at in starts]).mean()
        return Outcome(loss, {"train_metric": found})
