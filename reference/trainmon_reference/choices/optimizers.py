"""Optimizers by name: torch's own first, pytorch-optimizer's for the rest.

8-bit ones need a GPU, and aren't offered.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import nn

from trainmon_reference.choices.muon import Muon
from trainmon_reference.choices.named import chosen
from trainmon_reference.config import RunConfig
from trainmon_rules.errors import BadConfig

Groups = list[dict[str, Any]]
Build = Callable[[Groups, RunConfig], torch.optim.Optimizer]


def _betas(c: RunConfig) -> dict[str, Any]:
    return {"betas": (c.beta1, c.beta2)}


def _library(name: str, groups: Groups, c: RunConfig, **settings: Any) -> torch.optim.Optimizer:
    try:
        import pytorch_optimizer  # noqa: PLC0415  many seconds, and only some runs need it
    except ImportError:
        message = f"optimizer: {c.optimizer} needs pytorch-optimizer: pip install 'trainmon[reference]'"
        raise BadConfig(message) from None
    optimizer: torch.optim.Optimizer = getattr(pytorch_optimizer, name)(groups, lr=c.learning_rate, **settings)
    return optimizer


optim, FUSED = torch.optim, True  # one kernel for all parameters: small models spend a fifth of their time here
OPTIMIZERS: Mapping[str, Build] = {
    "sgd": lambda g, c: optim.SGD(g, lr=c.learning_rate, fused=FUSED),
    "momentum": lambda g, c: optim.SGD(g, lr=c.learning_rate, momentum=c.momentum, fused=FUSED),
    "nesterov": lambda g, c: optim.SGD(g, lr=c.learning_rate, momentum=c.momentum, nesterov=True, fused=FUSED),
    "adagrad": lambda g, c: optim.Adagrad(g, lr=c.learning_rate, fused=FUSED),
    "rmsprop": lambda g, c: optim.RMSprop(g, lr=c.learning_rate, eps=c.epsilon),
    "adam": lambda g, c: optim.Adam(g, lr=c.learning_rate, eps=c.epsilon, fused=FUSED, **_betas(c)),
    "adamw": lambda g, c: optim.AdamW(g, lr=c.learning_rate, eps=c.epsilon, fused=FUSED, **_betas(c)),
    "muon": lambda g, c: Muon(g, lr=c.learning_rate, momentum=c.momentum, eps=c.epsilon, **_betas(c)),
    "lamb": lambda g, c: _library("Lamb", g, c, max_grad_norm=0.0, **_betas(c)),
    "lion": lambda g, c: _library("Lion", g, c, betas=(0.9, 0.99)),
    "sophia": lambda g, c: _library("SophiaH", g, c, betas=(0.96, 0.99)),
    "shampoo": lambda g, c: _library("Shampoo", g, c, momentum=c.momentum),
    "ademamix": lambda g, c: _library(
        "AdEMAMix", g, c, weight_decouple=True, betas=(c.beta1, c.beta2, 0.9999), eps=c.epsilon
    ),
    "schedule-free": lambda g, c: _library("ScheduleFreeAdamW", g, c, eps=c.epsilon, **_betas(c)),
    "prodigy": lambda g, c: _library("Prodigy", g, c, eps=c.epsilon, **_betas(c)),
}
"""Numbers that stand here are the papers' own; Prodigy's rate is a factor on the one it finds, usually 1."""


def build_optimizer(model: nn.Module, config: RunConfig) -> torch.optim.Optimizer:
    """Return the optimizer of a run.

    Vectors (biases, norms) and embeddings are never decayed. Groups say with `hidden` whether they are the matrices
    between embedding and head, which `muon` treats apart.

    Raises
    ------
    BadConfig
        If the name isn't known, or the library that has it isn't installed.
    """
    build = chosen("optimizer", config.optimizer, OPTIMIZERS)
    kinds: dict[tuple[bool, bool], list[nn.Parameter]] = {}
    for decayed, hidden, parameter in _kinds(model):
        kinds.setdefault((decayed, hidden), []).append(parameter)
    groups: Groups = [
        {"params": parameters, "weight_decay": config.weight_decay if decayed else 0.0, "hidden": hidden}
        for (decayed, hidden), parameters in kinds.items()
    ]
    return build(groups, config)


def _kinds(model: nn.Module) -> Iterator[tuple[bool, bool, nn.Parameter]]:
    """Yield each parameter that is trained, with whether it is decayed, and whether it is a hidden matrix."""
    for name, module in model.named_modules():
        for parameter in module.parameters(recurse=False):
            if parameter.requires_grad:
                decayed = parameter.ndim > 1 and not isinstance(module, nn.Embedding)
                yield decayed, decayed and parameter.ndim == 2 and name.rsplit(".", 1)[-1] != "head", parameter


def set_mode(optimizer: torch.optim.Optimizer, *, training: bool) -> None:
    """Switch an optimizer that keeps two sets of weights (Schedule-Free) to those it trains or those it means."""
    switch = getattr(optimizer, "train" if training else "eval", None)
    if switch is not None:
        switch()


def backward(loss: torch.Tensor, optimizer: torch.optim.Optimizer) -> None:
    """Compute the gradients; where the next step differentiates them again (Sophia's Hessian), keep their graph."""
    period = getattr(optimizer, "update_period", 0)
    graph = bool(period) and optimizer.param_groups[0].get("step", 0) % period == 0
    with warnings.catch_warnings():
        if graph:  # torch warns of a cycle that keeps memory; the trainer cuts it: zero_grad sets gradients to None
            warnings.filterwarnings("ignore", "Using backward", UserWarning)
        loss.backward(create_graph=graph)  # type: ignore[no-untyped-call]
