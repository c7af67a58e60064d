"""Preference tuning by DPO of a tiny character model (Rafailov et al., arXiv 2305.18290).

The reference model is trained here for a moment on the text that Python ships; the policy starts as a copy of it. Of
a pair, the chosen answer is how the text goes on, the rejected one the same with some characters replaced. A few pairs
are the wrong way round, as with people.
"""

from __future__ import annotations

import functools

import torch
from torch import Tensor, nn
from torch.nn import functional

from trainmon_reference.choices.losses import loss_name
from trainmon_reference.config import RunConfig
from trainmon_reference.data.corpus import alphabet, windows
from trainmon_reference.models.transformer import Transformer
from trainmon_reference.tasks.base import Batch, Outcome

PROMPT, ANSWER = 6, 10  # characters
TRAIN, VALID = 1024, 256
REPLACED = 0.3  # of a rejected answer's characters
SWAPPED = 0.05  # of the pairs
SHAPE = ("width", "depth", "activation", "normalization", "residual", "qk_norm", "logit_soft_cap")
"""Settings that the reference model shares with the policy."""

UPDATES, BATCH = 60, 32  # of the reference model's own training


def drawn(seed: int) -> tuple[Tensor, Tensor]:
    """Draw chosen and rejected texts, int64 tensors (1280, 16)."""
    generator = torch.Generator().manual_seed(seed)
    pieces = windows(PROMPT + ANSWER)
    chosen = pieces[torch.randperm(len(pieces), generator=generator)[: TRAIN + VALID]]
    other = chosen[torch.randperm(len(chosen), generator=generator)]
    replaced = torch.rand(chosen.shape, generator=generator) < REPLACED
    replaced[:, :PROMPT] = False
    rejected = torch.where(replaced, other, chosen)
    swapped = torch.rand(len(chosen), 1, generator=generator) < SWAPPED
    return torch.where(swapped, rejected, chosen), torch.where(swapped, chosen, rejected)


@functools.cache
def reference_model(shape: RunConfig) -> Transformer:
    """Return the model that tuning starts from; the same each time, torch's global generator is left as it was."""
    with torch.random.fork_rng(devices=[]), torch.enable_grad(), torch.autocast("cpu", enabled=False):
        torch.manual_seed(0)
        symbols = len(alphabet())
        model = Transformer(symbols, symbols, PROMPT + ANSWER, shape)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        for batch in windows(PROMPT + ANSWER + 1)[: UPDATES * BATCH].view(UPDATES, BATCH, -1):
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    return model


def answers(model: nn.Module, text: Tensor) -> Tensor:
    """Return the log-probabilities (n, answer, symbols) of each place of the answer, for texts (n, 16)."""
    return functional.log_softmax(model(text[:, :-1])[:, PROMPT - 1 :].float(), -1)


def of_text(logps: Tensor, text: Tensor) -> Tensor:
    """Return the log-probability (n,) of each text's answer by those of its places."""
    return logps.gather(-1, text[:, PROMPT:, None])[:, :, 0].sum(1)


class Preference:
    """The task.

    A batch is chosen texts (n, 16) and rejected ones, prompt and answer as numbers of characters, then what the
    reference model says: log-probabilities at each place of the chosen answer (n, 10, symbols), and of the rejected
    answer as a whole (n,). They never change, so they are computed once.
    """

    def __init__(self, config: RunConfig) -> None:
        loss_name(config, "dpo", ("dpo",))
        self.config, self.classes = config, 0
        self.start = reference_model(RunConfig(**{name: getattr(config, name) for name in SHAPE}))
        pairs = drawn(config.seed)
        with torch.no_grad():
            chosen, rejected = (answers(self.start, side) for side in pairs)
        every: Batch = (*pairs, chosen, of_text(rejected, pairs[1]))
        count = min(config.dataset_size or TRAIN, TRAIN)
        self.train: Batch = tuple(part[:count] for part in every)
        self.valid: Batch = tuple(part[TRAIN:] for part in every)

    def model(self) -> Transformer:
        """Return a policy: a copy of the reference model, with the config's dropout."""
        symbols = len(alphabet())
        policy = Transformer(symbols, symbols, PROMPT + ANSWER, self.config)
        policy.load_state_dict(self.start.state_dict())
        return policy

    def outcome(self, model: nn.Module, batch: Batch) -> Outcome:
        """Return DPO's loss, with margin, accuracy, implicit rewards and log-probabilities of both sides.

        `kl` is the divergence of the policy from the reference at a place of the chosen answers.
        """
        chosen, rejected, anchor, anchor_rejected = batch
        policy_chosen, policy_rejected = answers(model, torch.cat((chosen, rejected))).chunk(2)
        logps_chosen, logps_rejected = of_text(policy_chosen, chosen), of_text(policy_rejected, rejected)
        beta = self.config.preference_beta
        reward_chosen = beta * (logps_chosen - of_text(anchor, chosen))
        reward_rejected = beta * (logps_rejected - anchor_rejected)
        margin = reward_chosen - reward_rejected
        metrics = {
            "reward_margin": margin.mean(),
            "reward_accuracy": (margin > 0).float().mean(),
            "implicit_reward.chosen": reward_chosen.mean(),
            "implicit_reward.rejected": reward_rejected.mean(),
            "logps.chosen": logps_chosen.mean(),
            "logps.rejected": logps_rejected.mean(),
            "kl": (policy_chosen.exp() * (policy_chosen - anchor)).sum(-1).mean(),
        }
        loss = -functional.logsigmoid(margin).mean()
        return Outcome(loss, {role: value.detach() for role, value in metrics.items()})
