"""Preference tuning by DPO of a tiny character model (Rafailov et al., arXiv 2305.18290).

The reference model is trained here for a moment on the text that Python ships; the policy starts as a copy of it. Of
a pair, the chosen answer is how the text goes on, the rejected one the same with some characters replaced. A few pairs
are the wrong way round, as with people.
"""

from __future__ import annotations

import copy
import functools

import torch
from torch import Tensor, nn
from torch.nn import functional

from trainmon_reference.choices.losses import loss_name
from trainmon_reference.config import RunConfig
from trainmon_reference.data.corpus import alphabet, windows
from trainmon_reference.models.transformer import Transformer
from trainmon_reference.tasks.base import Batch, Outcome

PROMPT, ANSWER = 8, 12  # characters
TRAIN, VALID = 4096, 256
REPLACED = 0.15  # of a rejected answer's characters
SWAPPED = 0.1  # of the pairs
SHAPE = ("width", "depth", "activation", "normalization", "residual", "qk_norm", "logit_soft_cap")
"""Settings that the reference model shares with the policy."""

UPDATES, BATCH = 80, 32  # of the reference model's own training


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


def answer_logps(model: nn.Module, text: Tensor) -> Tensor:
    """Return the log-probability (n,) of each text's answer, given its prompt; text is (n, prompt + answer)."""
    logps = functional.log_softmax(model(text[:, :-1]).float(), -1)
    each: Tensor = logps.gather(-1, text[:, 1:, None])[:, PROMPT - 1 :, 0]
    return each.sum(1)


class Pairs(nn.Module):
    """A policy that is trained and the reference that isn't."""

    def __init__(self, config: RunConfig) -> None:
        super().__init__()
        shape = {name: getattr(config, name) for name in SHAPE}
        start = reference_model(RunConfig(**shape))
        symbols = len(alphabet())
        self.policy = Transformer(symbols, symbols, PROMPT + ANSWER, config)
        self.policy.load_state_dict(start.state_dict())
        self.reference = copy.deepcopy(start).requires_grad_(False)

    def forward(self, text: Tensor) -> tuple[Tensor, Tensor]:
        """Return the log-probabilities (n,) of the answers by the policy and by the reference."""
        with torch.no_grad():
            anchor = answer_logps(self.reference, text)
        return answer_logps(self.policy, text), anchor


class Preference:
    """The task: a batch is chosen texts (n, 20) and rejected ones, prompt and answer as numbers of characters."""

    def __init__(self, config: RunConfig) -> None:
        loss_name(config, "dpo", ("dpo",))
        generator = torch.Generator().manual_seed(config.seed)
        chosen = windows(PROMPT + ANSWER)[-(TRAIN + VALID) :]
        chosen = chosen[torch.randperm(len(chosen), generator=generator)]
        other = chosen[torch.randperm(len(chosen), generator=generator)]
        replaced = torch.rand(chosen.shape, generator=generator) < REPLACED
        replaced[:, :PROMPT] = False
        rejected = torch.where(replaced, other, chosen)
        swapped = torch.rand(len(chosen), 1, generator=generator) < SWAPPED
        pairs = torch.where(swapped, rejected, chosen), torch.where(swapped, chosen, rejected)
        count = min(config.dataset_size or TRAIN, TRAIN)
        self.config, self.classes = config, 0
        self.train: Batch = tuple(part[:count] for part in pairs)
        self.valid: Batch = tuple(part[TRAIN:] for part in pairs)

    def model(self) -> nn.Module:
        """Return a policy and its reference."""
        return Pairs(self.config)

    def outcome(self, model: nn.Module, batch: Batch) -> Outcome:
        """Return DPO's loss, with margin, accuracy, implicit rewards and log-probabilities of both sides.

        `kl` is the policy's divergence from the reference as estimated on these answers: the mean of
        r − 1 − log r, r = reference / policy, which is never negative.
        """
        (policy_chosen, anchor_chosen), (policy_rejected, anchor_rejected) = (model(side) for side in batch[:2])
        beta = self.config.preference_beta
        chosen, rejected = beta * (policy_chosen - anchor_chosen), beta * (policy_rejected - anchor_rejected)
        margin = (chosen - rejected).detach()
        log_ratio = torch.cat((anchor_chosen - policy_chosen, anchor_rejected - policy_rejected)).detach() / ANSWER
        metrics = {
            "reward_margin": margin.mean(),
            "reward_accuracy": (margin > 0).float().mean(),
            "implicit_reward.chosen": chosen.detach().mean(),
            "implicit_reward.rejected": rejected.detach().mean(),
            "logps.chosen": policy_chosen.detach().mean(),
            "logps.rejected": policy_rejected.detach().mean(),
            "kl": (log_ratio.expm1() - log_ratio).mean(),
        }
        return Outcome(-functional.logsigmoid(chosen - rejected).mean(), metrics)
