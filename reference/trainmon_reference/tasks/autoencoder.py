"""A small variational autoencoder of generated digits (Kingma & Welling, arXiv 1312.6114)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.distributions import Normal, kl_divergence

from trainmon_reference.choices.losses import RECONSTRUCTION, loss_name
from trainmon_reference.config import RunConfig
from trainmon_reference.data.glyphs import SIDE, glyphs
from trainmon_reference.models.blocks import Mlp
from trainmon_reference.tasks.base import Batch, Outcome

TRAIN, VALID = 4096, 512
LATENT = 8
KL_WEIGHT = 0.01  # a latent number, beside the mean error of a pixel


class Vae(nn.Module):
    """Images → mean and log standard deviation of a code → images."""

    def __init__(self, config: RunConfig) -> None:
        super().__init__()
        self.encoder, self.decoder = Mlp(SIDE * SIDE, 2 * LATENT, config), Mlp(LATENT, SIDE * SIDE, config)

    def forward(self, images: Tensor) -> tuple[Tensor, Normal]:
        """Return images (n, 1, side, side) and the codes' distribution; a code is drawn while training only."""
        mean, log_deviation = self.encoder(images.flatten(1)).float().chunk(2, 1)
        code = Normal(mean, log_deviation.exp(), validate_args=False)
        return self.decoder(code.rsample() if self.training else mean).float().view_as(images), code


class Autoencoder:
    """The task: a batch is images (n, 1, 8, 8), and the same without augmentation."""

    def __init__(self, config: RunConfig) -> None:
        images, _ = glyphs(TRAIN + VALID, config.seed)
        train = images[: min(config.dataset_size or TRAIN, TRAIN)]
        self.config, self.classes = config, 0
        self.train: Batch = (train, train)
        self.valid: Batch = (images[TRAIN:], images[TRAIN:])
        self.reconstruction = RECONSTRUCTION[loss_name(config, "reconstruction-l2", RECONSTRUCTION)]

    def model(self) -> nn.Module:
        """Return an encoder and a decoder."""
        return Vae(self.config)

    def outcome(self, model: nn.Module, batch: Batch) -> Outcome:
        """Return reconstruction + weighted KL, and both as `loss_component.reconstruction` and `loss_component.kl`."""
        images, whole = batch
        again, code = model(images)
        kl = kl_divergence(code, Normal(torch.zeros(()), torch.ones(()))).sum(1).mean()
        error = self.reconstruction(again, whole)
        parts = {"loss_component.reconstruction": error.detach(), "loss_component.kl": kl.detach()}
        return Outcome(error + KL_WEIGHT * kl, parts)
