"""policy-limit: a share that tells how a policy learns stands where it hardly learns, or where it is gamed.

What it detects: in runs that tune a policy on answers (by preferences, or by rewards), over twenty reports of which
three quarters must lie beyond the limit that its rule sets: the policy-ratio clip touches more than 35 % of the
samples (`info`; 50 %); all answers of a group have the same reward in more than 90 % of the groups (`info`; 98 %); more
than 90 % of the answers are cut at the length limit (`info`; 98 %); the policy's entropy is below a tenth of its first
level (`info`; a fiftieth); the margin of a preference run is above 20 (`info`); answers are three times as long as at
first while the reward rose (`info`).

Why it matters: none of these shows in the loss, which is near zero in such runs whatever happens. A clipped sample, a
group without spread and an answer that never ended teach nothing; a policy without entropy finds nothing new; a
margin of 20 is past what the loss can still see; and the cheapest way to a higher reward may be length.

Example: completions/clipped_ratio 0.6 at first, 1.0 from step 65 on: no answer ends within 512 tokens, and the reward
wanders without trend until the end.

When it is wrong: a group without spread is success where every answer is right; so it stays `info` while the reward
has risen. Answers of a reasoning model are meant to grow longer. Runs that aren't tuned on answers (games, robots,
VAEs) are not judged: they have healthy values of their own.

Fixes: smaller steps (rate, passes over a batch); rewards that differ within a group, harder or easier prompts; a
longer limit, or a penalty on length; an entropy bonus; β, the pairs and early stopping.

Source: TRL's description of its metrics; DAPO (groups without spread are dropped, overlong answers are masked); the
limits are our own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trainmon_rules.detectors.base import Peer, Rule
from trainmon_rules.detectors.lasting import Lasting, Limit
from trainmon_rules.detectors.policy import NO_ANSWERS, rose, tunes_answers
from trainmon_rules.findings import Severity
from trainmon_rules.points import FloatArray
from trainmon_rules.roles.tags import plain
from trainmon_rules.series import Block, Series
from trainmon_rules.series.robust import median
from trainmon_rules.vocabulary import RunSettings
from trainmon_rules.words import short

WORDS = {
    "clip_fraction": "stands at {level}: that share of the samples is clipped",
    "reward_zero_std": "stands at {level}: in that share of the groups all answers get the same reward",
    "answers_cut": "stands at {level}: that share of the answers is cut at the length limit",
    "entropy": "is down to {level}: the policy hardly varies its answers",
    "reward_margin": "stands at {level}: far beyond what the loss can still see",
    "answer_length": "has grown to {level} while the reward rose",
}


class PolicyLimit(Lasting):
    """Holds a share, or a level against its first one, against the limits of its rule."""

    name: ClassVar[str] = "policy-limit"

    @dataclass(frozen=True, slots=True)
    class Params:
        """Limits over `reports`; 0 is off.

        `above` is listed, `above_grave` has the rule's severity; `below_first` and `below_grave` are parts of the
        first level below which the same holds; `times_first` a multiple of it, together with a reward that rose.
        """

        reports: int = 20
        above: float = 0.0
        above_grave: float = 0.0
        below_first: float = 0.0
        below_grave: float = 0.0
        times_first: float = 0.0

    params: Params

    def __init__(self, rule: Rule, series: Series, peer: Peer, settings: RunSettings) -> None:
        super().__init__(rule, series, peer, settings)
        self.tunes = False  # whether the run tunes a policy on answers

    def blind(self) -> str:
        """Return that the run is another."""
        return super().blind() or ("" if self.tunes else NO_ANSWERS)

    def limits(self, block: Block, values: FloatArray) -> Iterator[Limit]:
        """The limits that the level is beyond, the graver first."""
        self.tunes = self.tunes or tunes_answers(self, block, len(block) - 1)
        for limit in self._set() if self.tunes else ():
            if limit.lasts(values) and (said := self._fitted(limit, block)) is not None:
                yield said

    def _set(self) -> Iterator[Limit]:
        p, grave, first = self.params, self.rule.severity, self._first()
        words = WORDS.get(self.series.role, "stands at {level}")
        if p.above_grave:
            yield Limit(p.above_grave, True, words, grave)
        if p.above:
            yield Limit(p.above, True, words, Severity.INFO)
        if not first > 0:
            return
        since = f"{words}, {short(first, 3)} in the first reports"
        if p.below_grave:
            yield Limit(p.below_grave * first, False, since, grave)
        if p.below_first:
            yield Limit(p.below_first * first, False, since, Severity.INFO)
        if p.times_first and not _EXTREMES.intersection(plain(self.series.tag).replace("/", "_").split("_")):
            yield Limit(p.times_first * first, True, since, Severity.INFO)

    def _first(self) -> float:
        return median(self.series.first[np.isfinite(self.series.first)])

    def _fitted(self, limit: Limit, block: Block) -> Limit | None:
        """The limit as the reward lets it count, None where it doesn't."""
        at = len(block) - 1
        if self.series.role not in ("reward_zero_std", "answer_length"):
            return limit
        gain = rose(self.peer("reward", block, at, self.params.reports), self.params.reports)
        if self.series.role == "answer_length":
            return None if gain is None else limit
        if gain is None:
            return limit
        words = f"{limit.words} (the reward rose from {short(gain[0], 3)} to {short(gain[1], 3)})"
        return Limit(limit.value, True, words, Severity.INFO)


_EXTREMES = frozenset({"min", "max", "terminated"})
