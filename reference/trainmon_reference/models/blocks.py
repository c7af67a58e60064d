"""Networks of equal blocks: a multilayer perceptron and a convolutional one."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from trainmon_reference.choices.activations import build_activation
from trainmon_reference.choices.initialization import initialize
from trainmon_reference.choices.normalization import build_normalization
from trainmon_reference.choices.regularization import DropPath
from trainmon_reference.config import RunConfig


def capped(logits: Tensor, cap: float) -> Tensor:
    """Return cap × tanh(logits / cap); the logits where the cap is 0."""
    return cap * torch.tanh(logits / cap) if cap else logits


class Block(nn.Module):
    """Layer, normalisation, activation, dropout; its input added where the config says `residual`.

    Parameters
    ----------
    layer : nn.Module
        Linear or convolutional; keeps the shape.
    width : int
        Its features or channels.
    config : RunConfig
        Of the run.
    norm : str
        The task's own normalisation.
    """

    def __init__(self, layer: nn.Module, width: int, config: RunConfig, norm: str) -> None:
        super().__init__()
        images = isinstance(layer, nn.Conv2d)
        self.path = nn.Sequential(
            layer,
            build_normalization(config.normalization or norm, width, images=images),
            build_activation(config.activation or "relu"),
            nn.Dropout(config.dropout),
        )
        self.drop, self.residual = DropPath(config.drop_path), config.residual

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's output, of the input's shape."""
        y: Tensor = self.path(x)
        return x + self.drop(y) if self.residual else y


class Mlp(nn.Module):
    """A multilayer perceptron: features (batch, inputs) → outputs (batch, outputs) through `depth` blocks."""

    def __init__(self, inputs: int, outputs: int, config: RunConfig) -> None:
        super().__init__()
        width = config.width
        self.stem = nn.Sequential(nn.Linear(inputs, width), build_activation(config.activation or "relu"))
        self.blocks = nn.Sequential(
            *(Block(nn.Linear(width, width), width, config, "none") for _ in range(config.depth))
        )
        self.head, self.cap = nn.Linear(width, outputs), config.logit_soft_cap
        initialize(self, config.initialization)

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs."""
        return capped(self.head(self.blocks(self.stem(x))), self.cap)


class Cnn(nn.Module):
    """A convolutional network: images (batch, 1, side, side) → outputs (batch, outputs).

    A stem that halves the side, `depth` blocks of width / 4 channels, a linear head on all positions: as small as it
    can be, since half-precision convolutions are slow on a CPU.
    """

    def __init__(self, side: int, outputs: int, config: RunConfig) -> None:
        super().__init__()
        width = max(1, config.width // 4)
        self.stem = nn.Sequential(nn.Conv2d(1, width, 3, 2, 1), build_activation(config.activation or "relu"))
        layers = (nn.Conv2d(width, width, 3, padding=1) for _ in range(config.depth))
        self.blocks = nn.Sequential(*(Block(layer, width, config, "batch") for layer in layers))
        self.head, self.cap = nn.Linear(width * (side // 2) ** 2, outputs), config.logit_soft_cap
        initialize(self, config.initialization)

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs."""
        return capped(self.head(self.blocks(self.stem(x)).flatten(1)), self.cap)
