"""Regularisers that a config turns on by a number: penalties on the loss, dropped activations and dropped paths.

Label smoothing stands with the losses, mixup and cutmix with the augmentation.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from trainmon_reference.config import RunConfig


def penalty(model: nn.Module, config: RunConfig) -> Tensor | float:
    """Return l1 · Σ|w| + l2 · Σw² over the weight matrices that are trained: lasso, ridge, or both (elastic net)."""
    if not config.l1 and not config.l2:
        return 0.0
    weights = [p for p in model.parameters() if p.ndim > 1 and p.requires_grad]
    return sum(config.l1 * p.abs().sum() + config.l2 * p.square().sum() for p in weights)


class DropPath(nn.Module):
    """Drops a residual path for whole examples while training (stochastic depth; Huang et al., arXiv 1603.09382).

    Parameters
    ----------
    part : float
        Of the examples; those that stay are scaled by 1 / (1 − part).
    """

    def __init__(self, part: float) -> None:
        super().__init__()
        self.part = part

    def forward(self, x: Tensor) -> Tensor:
        """Return the path's output, some examples of it zero; the first axis holds the examples."""
        if not self.training or not self.part:
            return x
        kept = torch.rand((len(x), *(1,) * (x.ndim - 1)), device=x.device) >= self.part
        return x * kept / (1.0 - self.part)
