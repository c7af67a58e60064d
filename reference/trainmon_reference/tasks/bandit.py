"""Reinforcement learning in its smallest form: a contextual bandit, learnt by policy gradient (REINFORCE).

A context has one best action of several; the reward is 1 for it and 0 else, with noise. The loss is signed and near
zero, and says nothing about how well it goes; the reward does.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.distributions import Categorical, kl_divergence

from trainmon_reference.choices.losses import loss_name
from trainmon_reference.config import RunConfig
from trainmon_reference.models.blocks import Mlp
from trainmon_reference.tasks.base import Batch, Outcome

TRAIN, VALID = 4096, 512
CONTEXT = 8  # numbers that are seen
ACTIONS = 6
TRIES = 8  # actions a context
NOISE = 0.3  # standard deviation of a reward
ENTROPY = 0.01  # weight of the bonus for a policy that still tries


class Policies(nn.Module):
    """A policy that is trained, and a copy of how it began."""

    def __init__(self, config: RunConfig) -> None:
        super().__init__()
        self.policy = Mlp(CONTEXT, ACTIONS, config)
        self.reference = copy.deepcopy(self.policy).requires_grad_(False)

    def forward(self, seen: Tensor) -> tuple[Categorical, Categorical]:
        """Return the distribution over actions for contexts (n, 8), now and at the start."""
        policy, start = self.policy(seen).float(), self.reference(seen).float()
        return Categorical(logits=policy, validate_args=False), Categorical(logits=start, validate_args=False)


class Bandit:
    """The task: a batch is contexts (n, 8) and the best action of each, which only the reward knows."""

    def __init__(self, config: RunConfig) -> None:
        loss_name(config, "policy-gradient", ("policy-gradient",))
        generator = torch.Generator().manual_seed(config.seed)
        seen = torch.randn(TRAIN + VALID, CONTEXT, generator=generator)
        best = (seen @ torch.randn(CONTEXT, ACTIONS, generator=generator)).argmax(1)
        count = min(config.dataset_size or TRAIN, TRAIN)
        self.config, self.classes = config, 0
        self.train: Batch = (seen[:count], best[:count])
        self.valid: Batch = (seen[TRAIN:], best[TRAIN:])

    def model(self) -> nn.Module:
        """Return a policy."""
        return Policies(self.config)

    def outcome(self, model: nn.Module, batch: Batch) -> Outcome:
        """Return the policy's loss, also as `rl_loss`, with `reward`, `entropy` and `kl` from the first policy.

        Several actions are tried in each context; the advantage is the reward in standard deviations from their mean,
        as in GRPO (arXiv 2402.03300).
        """
        seen, best = batch
        policy, start = model(seen)
        action = policy.sample((TRIES,))
        reward = (action == best).float() + NOISE * torch.randn(action.shape)
        advantage = (reward - reward.mean(0)) / (reward.std(0) + 1e-6)
        entropy = policy.entropy().mean()
        loss = -(advantage * policy.log_prob(action)).mean() - ENTROPY * entropy
        metrics = {
            "rl_loss": loss,
            "reward": reward.mean(),
            "entropy": entropy,
            "kl": kl_divergence(policy, start).mean(),
        }
        return Outcome(loss, {role: value.detach() for role, value in metrics.items()})
