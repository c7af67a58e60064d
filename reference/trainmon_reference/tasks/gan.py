"""A Wasserstein GAN with gradient penalty on points of the plane (Gulrajani et al., arXiv 1704.00028).

The critic moves at each update and the generator at each fifth, as published. One optimizer does for both: the critic's
loss reaches the critic only, the generator's the generator only. Both losses are signed.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.func import functional_call

from trainmon_reference.choices.losses import ADVERSARIAL, critic_loss, gradient_penalty, loss_name
from trainmon_reference.config import RunConfig
from trainmon_reference.models.blocks import Mlp
from trainmon_reference.tasks.base import Batch, Outcome

TRAIN, VALID = 4096, 512
MODES = 8  # on a circle of radius 1
SPREAD = 0.05
CRITIC_UPDATES = 5  # for one of the generator
NOISE = 4  # numbers that the generator starts from


def circle(count: int, seed: int) -> Tensor:
    """Draw points (count, 2) around eight places on a circle."""
    generator = torch.Generator().manual_seed(seed)
    angle = torch.randint(MODES, (count,), generator=generator) * (2.0 * math.pi / MODES)
    return torch.stack((angle.cos(), angle.sin()), 1) + SPREAD * torch.randn(count, 2, generator=generator)


def spread_error(real: Tensor, fake: Tensor) -> Tensor:
    """Return the energy distance of two sets of points (n, 2): 0 if they are distributed alike, never below 0."""
    across, own = torch.cdist(real, fake).mean(), torch.cdist(real, real).mean() + torch.cdist(fake, fake).mean()
    return 2.0 * across - own


class Players(nn.Module):
    """A generator and a critic, and how many batches the critic has been trained on."""

    batches: Tensor

    def __init__(self, config: RunConfig) -> None:
        super().__init__()
        self.generator, self.critic = Mlp(NOISE, 2, config), Mlp(2, 1, config)
        self.register_buffer("batches", torch.zeros((), dtype=torch.long))

    def judged(self, points: Tensor) -> Tensor:
        """Return the critic's scores (n, 1) of points, through which no gradient reaches the critic."""
        held = {name: weight.detach() for name, weight in self.critic.named_parameters()}
        scores: Tensor = functional_call(self.critic, held, (points,))
        return scores


class Gan:
    """The task: a batch is real points (n, 2)."""

    def __init__(self, config: RunConfig) -> None:
        points = circle(TRAIN + VALID, config.seed)
        self.config, self.classes = config, 0
        self.train: Batch = (points[: min(config.dataset_size or TRAIN, TRAIN)],)
        self.valid: Batch = (points[TRAIN:],)
        self.weight = ADVERSARIAL[loss_name(config, "wgan-gp", ADVERSARIAL)]

    def model(self) -> Players:
        """Return both players."""
        return Players(self.config)

    def outcome(self, model: Players, batch: Batch) -> Outcome:
        """Return the sum of both losses, with each and the energy distance to the real points (`train_error`).

        The sum is no measure of anything; what is to be logged is `adversarial_loss.critic` and
        `adversarial_loss.generator`.
        """
        real = batch[0]
        fake = model.generator(torch.randn(len(real), NOISE)).float()
        critic = critic_loss(model.critic(real).float(), model.critic(fake.detach()).float())
        generator = -model.judged(fake).float().mean()
        loss = critic + generator
        if model.training:
            critic = critic + self.weight * gradient_penalty(model.critic, real, fake)
            model.batches += 1
            loss = critic + generator if model.batches % CRITIC_UPDATES == 0 else critic + generator.detach()
        metrics = {
            "adversarial_loss.critic": critic.detach(),
            "adversarial_loss.generator": generator.detach(),
            "train_error": spread_error(real, fake.detach()),
        }
        return Outcome(loss, metrics)
