"""Which roles are compared between runs, and from which difference on it matters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Looked:
    """How the series of a role are compared.

    `matters` is the least relative difference that does; `log` takes it of the logarithm; `exact` series have no noise;
    `direction` is +1 where rising is bad, −1 where falling is, None for what the role table says.
    """

    matters: float = 0.01
    log: bool = False
    exact: bool = False
    direction: int | None = None


LEVELS = (
    "train_loss", "loss_component", "val_loss", "val_loss_component", "eval_metric", "eval_error", "train_metric",
    "train_error", "perplexity", "val_perplexity", "reward", "reward_margin", "reward_accuracy",
)  # fmt: skip

COMPARED: Mapping[str, Looked] = {
    **dict.fromkeys(LEVELS, Looked()),
    "grad_norm": Looked(0.1, log=True),
    "learning_rate": Looked(0.001, exact=True),
    **dict.fromkeys(("throughput", "mfu"), Looked(0.05, log=True, direction=-1)),
    "step_time": Looked(0.05, log=True, direction=1),
    "gpu_util": Looked(0.05, direction=-1),
    "gpu_mem": Looked(0.05),
}
"""The roles that are compared, in the order in which they are told."""
