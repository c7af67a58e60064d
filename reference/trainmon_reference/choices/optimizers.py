"""Optimizers by name: torch's own first, pytorch-optimizer's for the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import nn

from trainmon_reference.config import RunConfig
from trainmon_rules.errors import BadConfig

Build = Callable[[list[dict[str, object]], RunConfig], torch.optim.Optimizer]


def _adamw(groups: list[dict[str, object]], c: RunConfig) -> torch.optim.Optimizer:
    return torch.optim.AdamW(groups, lr=c.learning_rate, betas=(c.beta1, c.beta2), eps=c.epsilon)


def _sgd(groups: list[dict[str, object]], c: RunConfig) -> torch.optim.Optimizer:
    return torch.optim.SGD(groups, lr=c.learning_rate, momentum=c.momentum)


OPTIMIZERS: Mapping[str, Build] = {"adamw": _adamw, "momentum": _sgd}


def build_optimizer(model: nn.Module, config: RunConfig) -> torch.optim.Optimizer:
    """Return the optimizer of a run; vectors (biases, norms) and embeddings are never decayed.

    Raises
    ------
    BadConfig
        If the name isn't known.
    """
    if config.optimizer not in OPTIMIZERS:
        raise BadConfig(f"optimizer: unknown {config.optimizer!r}; known: {', '.join(OPTIMIZERS)}")
    embedded = {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding)}
    decayed = [p for p in model.parameters() if p.ndim > 1 and id(p) not in embedded]
    rest = [p for p in model.parameters() if p.ndim <= 1 or id(p) in embedded]
    groups: list[dict[str, object]] = [
        {"params": decayed, "weight_decay": config.weight_decay},
        {"params": rest, "weight_decay": 0.0},
    ]
    return OPTIMIZERS[config.optimizer]([g for g in groups if g["params"]], config)
