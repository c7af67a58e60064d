"""The distance of two images as a small network sees them (Johnson et al., arXiv 1603.08155, with VGG).

VGG would be a download. The network here has two convolutional layers, and is trained here, in about a second, to
tell generated digits apart. It says something about strokes and nothing about photographs.
"""

from __future__ import annotations

import functools

import torch
from torch import Tensor, nn
from torch.nn import functional

from trainmon_reference.data.glyphs import CLASSES, SIDE, glyphs

UPDATES, BATCH = 150, 64


@functools.cache
def features() -> nn.Sequential:
    """Return the trained layers, frozen. The same each time; torch's global generator is left as it was."""
    with torch.random.fork_rng(devices=[]), torch.enable_grad(), torch.autocast("cpu", enabled=False):
        torch.manual_seed(0)
        layers = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, 2, 1), nn.ReLU())
        head = nn.Linear(8 * (SIDE // 2) ** 2, CLASSES)
        optimizer = torch.optim.Adam([*layers.parameters(), *head.parameters()], lr=1e-2)
        images, labels = glyphs(UPDATES * BATCH, seed=0)
        batches = images.view(UPDATES, BATCH, 1, SIDE, SIDE), labels.view(UPDATES, BATCH)
        for batch, target in zip(*batches, strict=True):
            optimizer.zero_grad()
            functional.cross_entropy(head(layers(batch).flatten(1)), target).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    return layers.requires_grad_(False)


def feature_distance(output: Tensor, target: Tensor) -> Tensor:
    """Return the mean squared difference of the features of two sets of images (n, 1, side, side), over both layers."""
    distance = torch.zeros(())
    for layer in features():
        output, target = layer(output), layer(target)
        if isinstance(layer, nn.ReLU):
            distance = distance + functional.mse_loss(output, target)
    return distance
