"""Augmentation of a training batch: noise, shifts and flips by strength; mixup and cutmix.

A batch is inputs first, targets second. Class numbers become each class' share (n, classes) where examples are mixed;
the losses of a classification take both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from trainmon_reference.choices.named import chosen
from trainmon_reference.config import RunConfig
from trainmon_rules.errors import BadConfig

if TYPE_CHECKING:
    from trainmon_reference.tasks.base import Batch


@dataclass(frozen=True, slots=True)
class Strength:
    """How strong: noise by its standard deviation, shifts of images in pixels, flips, symbols replaced by others."""

    noise: float = 0.0
    shift: int = 0
    flip: bool = False
    replaced: float = 0.0


STRENGTHS: Mapping[str, Strength] = {
    "none": Strength(),
    "light": Strength(noise=0.1, shift=1, replaced=0.02),
    "medium": Strength(noise=0.2, shift=1, replaced=0.05),
    "strong": Strength(noise=0.4, shift=2, flip=True, replaced=0.1),
}
ALSO = {"heavy": "strong"}
"""The other name in use."""


def augmented(batch: Batch, config: RunConfig, number: int, classes: int = 0) -> Batch:
    """Return a training batch as the config's `augmentation`, `mixup` and `cutmix` change it.

    Parameters
    ----------
    batch : tuple of Tensor
        Inputs, targets, and whatever else; only inputs are augmented, inputs and targets mixed.
    config : RunConfig
        Its seed and the batch's number seed the generator, so that a run that goes on draws what it would have drawn.
    number : int
        Of the batch.
    classes : int
        Of a classification, else 0.

    Raises
    ------
    BadConfig
        If the strength isn't known, or symbols were to be mixed.
    """
    seed = config.seed * 1_000_003 + number
    inputs = distorted(batch[0], config.augmentation, seed)
    batch = (inputs, *batch[1:])
    return mixed(batch, config, seed, classes) if config.mixup or config.cutmix else batch


def distorted(inputs: Tensor, strength: str, seed: int) -> Tensor:
    """Return inputs with noise (and images moved and flipped), or with some symbols replaced; the shape stays."""
    how = chosen("augmentation", ALSO.get(strength, strength), STRENGTHS)
    if strength == "none":
        return inputs
    generator = torch.Generator().manual_seed(seed)
    if not inputs.is_floating_point():
        others = inputs[torch.randperm(len(inputs), generator=generator)]
        return torch.where(torch.rand(inputs.shape, generator=generator) < how.replaced, others, inputs)
    if inputs.ndim == 4:
        inputs = _flipped(_shifted(inputs, how.shift, generator), how.flip, generator)
    return inputs + how.noise * torch.randn(inputs.shape, generator=generator)


def _shifted(images: Tensor, most: int, generator: torch.Generator) -> Tensor:
    """Move each image by up to `most` pixels; what comes in is 0."""
    height, width = images.shape[-2:]
    wide = functional.pad(images, (most, most, most, most))
    down, across = torch.randint(2 * most + 1, (2, len(images), 1), generator=generator)
    ys, xs = down + torch.arange(height), across + torch.arange(width)
    return wide[torch.arange(len(images))[:, None, None], :, ys[:, :, None], xs[:, None, :]].movedim(-1, 1)


def _flipped(images: Tensor, flip: bool, generator: torch.Generator) -> Tensor:
    """Mirror half of the images, left to right."""
    if not flip:
        return images
    mirrored = torch.rand(len(images), 1, 1, 1, generator=generator) < 0.5
    return torch.where(mirrored, images.flip(-1), images)


def mixed(batch: Batch, config: RunConfig, seed: int, classes: int) -> Batch:
    """Mix each example with another: all of it (mixup, arXiv 1710.09412) or a patch (cutmix, arXiv 1905.04899).

    The share is drawn once a batch from Beta(a, a). Where both are asked for, chance decides for each batch. What isn't
    an image is cut along its last axis.
    """
    inputs, targets, *rest = batch
    if not inputs.is_floating_point():
        raise BadConfig("mixup, cutmix: symbols can't be mixed; choose augmentation")
    random = np.random.default_rng(seed)
    order = torch.as_tensor(random.permutation(len(inputs)))
    shares = functional.one_hot(targets, classes).float() if classes else targets
    if not config.cutmix or (config.mixup and random.random() < 0.5):
        part = random.beta(config.mixup, config.mixup)
        inputs = part * inputs + (1.0 - part) * inputs[order]
    else:
        cut = _patch(inputs, random.beta(config.cutmix, config.cutmix), random)
        part = 1.0 - float(cut.float().mean())
        inputs = torch.where(cut, inputs[order], inputs)
    return (inputs, part * shares + (1.0 - part) * shares[order], *rest)


def _patch(inputs: Tensor, part: float, random: np.random.Generator) -> Tensor:
    """Return a mask, broadcastable to the inputs, of a patch that leaves about `part` of them."""
    cut = torch.ones((1,) * inputs.ndim, dtype=torch.bool)
    axes = range(max(1, inputs.ndim - 2), inputs.ndim) if inputs.ndim == 4 else (inputs.ndim - 1,)
    for axis in axes:
        size = inputs.shape[axis]
        length = round(size * (1.0 - part) ** (1.0 / len(axes)))
        start = int(random.integers(size - length + 1))
        places = torch.arange(size).view([-1 if i == axis else 1 for i in range(inputs.ndim)])
        cut = cut & (places >= start) & (places < start + length)
    return cut
