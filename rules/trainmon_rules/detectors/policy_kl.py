"""policy-kl: the policy runs away from its reference, or from the one that sampled.

What it detects: on a KL divergence in runs that tune a policy on answers, over twenty reports of which three quarters
must lie there: ten times the level of the two hundred reports before, and at least 1 nat a token (0.2 for the
divergence of one update, 10 where it is summed over an answer); more than 5 nats a token (1; 100, `info`) whatever it
was before; and less than -1, which no divergence can be.

Why it matters: far from the reference the reward model was never right, and answers decay into what it happens to
like. An update that moves the policy by that much is no longer the small step that PPO assumes.

Example: kl 0.04 over 300 steps, 2.9 from step 412 on; the reward falls to 0 at step 430.

When it is wrong: KL begins at 0 and rises in every healthy run; hence the least level. Single updates of 10³ are an
estimator's heavy tail and don't count. Where a summed divergence has a name like a token's it is told too early.

Fixes: a larger β (or KL coefficient), a smaller rate, fewer passes over a batch, a target KL; on a negative one:
sample and score with the same settings (temperature, top-k, padding, minimal length).

Source: TRL's training guide (0 to 10 nats an answer) and its warning of a negative KL; Stable-Baselines3's and
spinning up's target KL (0.01 to 0.05 an update); the limits are our own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from trainmon_rules.detectors.base import Peer, Rule
from trainmon_rules.detectors.lasting import Lasting, Limit
from trainmon_rules.detectors.policy import NO_ANSWERS, tunes_answers
from trainmon_rules.findings import Severity
from trainmon_rules.points import FloatArray
from trainmon_rules.roles.tags import plain
from trainmon_rules.series import Block, Series
from trainmon_rules.series.robust import median
from trainmon_rules.vocabulary import RunSettings
from trainmon_rules.words import short

UPDATE = frozenset({"approx", "approxkl", "ppo", "policykl", "update", "old"})
SUMMED = frozenset({"objective", "sequence", "seq", "sum"})
OTHER = frozenset({"reward", "coef", "coefficient", "target", "beta"})  # what is computed from it
BEFORE = 200  # reports whose level is that before
LEAST_BEFORE = 40


class PolicyKl(Lasting):
    """Holds the level of a KL divergence against its own past and against what is possible."""

    name: ClassVar[str] = "policy-kl"

    @dataclass(frozen=True, slots=True)
    class Params:
        """Limits over `reports`, in nats a token.

        `times` the level before, and `least`; `most` whatever it was; `negative`. Of the divergence of one update
        they are a fifth as large (`of_update`), of one summed over an answer ten (`of_answer`) and, for `most`,
        twenty times, and then only listed.
        """

        reports: int = 20
        times: float = 10.0
        least: float = 1.0
        most: float = 5.0
        negative: float = -1.0
        of_update: float = 0.2
        of_answer: float = 10.0

    params: Params

    def __init__(self, rule: Rule, series: Series, peer: Peer, settings: RunSettings) -> None:
        super().__init__(rule, series, peer, settings)
        words = frozenset(plain(series.tag).replace("/", "_").split("_"))
        self.judged = not words & OTHER
        self.update_kl, self.summed = bool(words & UPDATE), bool(words & SUMMED)
        self.tunes = False  # whether the run tunes a policy on answers

    def blind(self) -> str:
        """Return that the tag isn't the divergence itself, or the run another."""
        if not self.judged:
            return "no KL divergence itself is logged"
        return super().blind() or ("" if self.tunes else NO_ANSWERS)

    def limits(self, block: Block, values: FloatArray) -> Iterator[Limit]:
        """The limits that the level is beyond."""
        self.tunes = self.tunes or tunes_answers(self, block, len(block) - 1)
        if self.judged and self.tunes:
            yield from (limit for limit in self._set(block) if limit.lasts(values))

    def _set(self, block: Block) -> Iterator[Limit]:
        p, grave = self.params, self.rule.severity
        summed = self.summed or (not self.update_kl and bool(len(self.peer("reward_margin", block, len(block) - 1, 1))))
        scale = p.of_update if self.update_kl else p.of_answer if summed else 1.0
        past = self.past(block.start + len(block), BEFORE)
        if len(past) >= LEAST_BEFORE:
            before = median(past)
            words = f"rose to {{level}}, from {short(before, 3)} in the {len(past)} reports before"
            yield Limit(max(p.times * before, scale * p.least), True, words, grave)
        far = "stands at {level}: far from the " + ("policy that sampled" if self.update_kl else "reference")
        yield Limit((2 if summed else 1) * scale * p.most, True, far, Severity.INFO if summed else grave)
        wrong = "stands at {level}, which no divergence can be: answers are sampled otherwise than they are scored"
        yield Limit(p.negative, False, wrong, grave)
