"""Losses by name, in families: each family takes the same arguments. torch's own where it has one.

`trainmon_reference.tasks` says which families a task can be trained with; a wrong one is possible where its numbers
make sense at all (the squared error on class numbers, say).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from trainmon_reference.config import RunConfig
from trainmon_rules.errors import BadConfig

HUBER_DELTA = 1.0
QUANTILE = 0.9  # the percentile that the quantile loss predicts
FOCAL_GAMMA = 2.0  # Lin et al., arXiv 1708.02002
SMOOTHING = 0.1  # of label-smoothing, where the config has none
MARGIN = 0.5  # of pairs and triplets, on the unit sphere
TEMPERATURE = 0.1  # of InfoNCE


def log_cosh(output: Tensor, target: Tensor) -> Tensor:
    """Return the mean of log cosh(output − target), in a form that doesn't overflow."""
    error = output - target
    return (error + functional.softplus(-2.0 * error) - math.log(2.0)).mean()


def quantile(output: Tensor, target: Tensor) -> Tensor:
    """Return the pinball loss: τ · max(e, 0) + (1 − τ) · max(−e, 0), e = target − output."""
    error = target - output
    return torch.maximum(QUANTILE * error, (QUANTILE - 1.0) * error).mean()


Regression = Callable[[Tensor, Tensor], Tensor]
REGRESSION: Mapping[str, Regression] = {
    "mse": functional.mse_loss,
    "mae": functional.l1_loss,
    "huber": lambda output, target: functional.huber_loss(output, target, delta=HUBER_DELTA),
    "log-cosh": log_cosh,
    "quantile": quantile,
}
"""Of outputs and targets of one shape."""


def focal(logits: Tensor, shares: Tensor, c: RunConfig) -> Tensor:
    """Return −(1 − p)^γ log p of the right class, γ = 2, without class weights."""
    log_p = functional.log_softmax(logits, 1)
    return -(shares * (1.0 - log_p.exp()) ** FOCAL_GAMMA * log_p).sum(1).mean()


def hinge(logits: Tensor, shares: Tensor, c: RunConfig) -> Tensor:
    """Return the mean of max(0, 1 − y · output), y = ±1, each class against the rest.

    torch's `multi_margin_loss` compares classes with each other, and takes no shares.
    """
    return functional.relu(1.0 - (2.0 * shares - 1.0) * logits).mean()


Classification = Callable[[Tensor, Tensor, RunConfig], Tensor]
CLASSIFICATION: Mapping[str, Classification] = {
    "cross-entropy": lambda o, y, c: functional.cross_entropy(o, y, label_smoothing=c.label_smoothing),
    "bce": lambda o, y, c: functional.binary_cross_entropy_with_logits(o, y),
    "focal": focal,
    "label-smoothing": lambda o, y, c: functional.cross_entropy(o, y, label_smoothing=c.label_smoothing or SMOOTHING),
    "hinge": hinge,
    "kl": lambda o, y, c: functional.kl_div(functional.log_softmax(o, 1), y, reduction="batchmean"),
}
"""Of logits and each class' share of the target, both (n, classes)."""


def _unit(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    return functional.normalize(a, dim=1), functional.normalize(b, dim=1)


def contrastive(a: Tensor, b: Tensor) -> Tensor:
    """Return d² for pairs and max(0, margin − d)² for an example and the next one's partner (Hadsell et al., 2006)."""
    a, b = _unit(a, b)
    apart = functional.relu(MARGIN - functional.pairwise_distance(a, b.roll(1, 0)))
    return (functional.pairwise_distance(a, b).square() + apart.square()).mean()


def triplet(a: Tensor, b: Tensor) -> Tensor:
    """Return max(0, d(a, p) − d(a, n) + margin); the negative is the next one's partner."""
    a, b = _unit(a, b)
    return functional.triplet_margin_loss(a, b, b.roll(1, 0), margin=MARGIN)


def infonce(a: Tensor, b: Tensor) -> Tensor:
    """Return the cross-entropy of finding the partner among all of the batch (van den Oord et al., 1807.03748)."""
    a, b = _unit(a, b)
    return functional.cross_entropy(a @ b.T / TEMPERATURE, torch.arange(len(a), device=a.device))


Pair = Callable[[Tensor, Tensor], Tensor]
PAIR: Mapping[str, Pair] = {"contrastive": contrastive, "triplet": triplet, "infonce": infonce}
"""Of two embeddings (n, width) of the same n things; the others of the batch are the negatives."""


def perceptual(output: Tensor, target: Tensor) -> Tensor:
    """Return the distance between features of two images, in a small network that is trained here."""
    from trainmon_reference.models.perceptual import feature_distance  # noqa: PLC0415  trained when first asked for

    return feature_distance(output, target)


RECONSTRUCTION: Mapping[str, Regression] = {
    "reconstruction-l2": functional.mse_loss,
    "reconstruction-l1": functional.l1_loss,
    "perceptual": perceptual,
}
"""Of an image and its reconstruction, (n, 1, side, side)."""


def critic_loss(real: Tensor, fake: Tensor) -> Tensor:
    """Return what a Wasserstein critic minimises: its mean score of the generated minus that of the real. Signed."""
    return fake.mean() - real.mean()


def gradient_penalty(critic: Callable[[Tensor], Tensor], real: Tensor, fake: Tensor) -> Tensor:
    """Return the mean of (|∇ critic| − 1)² between real and generated examples (n, …); Gulrajani et al., 1704.00028."""
    part = torch.rand((len(real), *(1,) * (real.ndim - 1)), device=real.device)
    between = (part * real + (1.0 - part) * fake.detach()).requires_grad_()
    (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    length = torch.linalg.vector_norm(slope.flatten(1), dim=1)
    away: Tensor = length - 1.0
    return away.square().mean()


ADVERSARIAL: Mapping[str, float] = {"wgan-gp": 0.1}
"""The weight of the gradient penalty; the loss is `critic_loss` + weight · `gradient_penalty`. The paper has 10 for
images; 0.1 is what its authors' own script has for points of the plane."""

LOSSES = (*REGRESSION, *CLASSIFICATION, *PAIR, *RECONSTRUCTION, *ADVERSARIAL)
"""All names."""


def loss_name(config: RunConfig, own: str, *families: Sequence[str] | Mapping[str, object]) -> str:
    """Return the name of a run's loss: the config's, or the task's own.

    Raises
    ------
    BadConfig
        If it isn't known, or not one that the task can be trained with.
    """
    name, possible = config.loss_function or own, [name for family in families for name in family]
    if name not in possible:
        what = "this task takes no" if name in LOSSES else "unknown"
        raise BadConfig(f"loss_function: {what} {name!r}; it takes: {', '.join(possible)}")
    return name
