"""preference-displacement: the chosen answers lose likelihood, and more of it than the margin gains.

What it detects: on the implicit reward of the chosen answers of a preference run (β times the log-ratio to the
reference model): three quarters of the last twenty reports lie below its first level by more than the margin has
gained, and by at least 5 (100 nats where β is known): `info`; by five times the margin's gain and at least 10 (200
nats): a warning.

Why it matters: the loss sees the difference only. It also falls where both answers become unlikely, the rejected
ones faster, and then the probability goes to answers that nobody has seen: a model with fine margins and accuracies
that babbles.

Example: rewards/margins 2.1, rewards/chosen -14, rewards/rejected -16 at step 400.

When it is wrong: a mild fall of both is the rule, good models were trained that way (a β of 0.01 gives chosen rewards
of -2 with margins of 1); that is what `info` is for. Rewards of a reward model have no zero, and aren't judged.

Fixes: a larger β; an SFT term on the chosen answers (RPO, `pref_ftx`), DPO-Positive; pairs that differ more; a smaller
rate and fewer passes.

Source: Pal et al. 2024 (DPO-Positive), Razin et al. 2024 (likelihood displacement); the limits are our own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trainmon_rules.detectors.base import Peer, Rule
from trainmon_rules.detectors.lasting import Lasting, Limit
from trainmon_rules.findings import Severity
from trainmon_rules.points import FloatArray
from trainmon_rules.roles.tags import plain
from trainmon_rules.series import Block, Series
from trainmon_rules.series.robust import median
from trainmon_rules.vocabulary import RunSettings
from trainmon_rules.words import short


class Displacement(Lasting):
    """Compares the fall of the chosen answers' reward with what the margin has gained."""

    name: ClassVar[str] = "preference-displacement"

    @dataclass(frozen=True, slots=True)
    class Params:
        """What counts, over `reports`.

        A fall of at least `fall`, or of `nats` where β is known, and of what the margin has gained; the rule's
        severity from `grave` times the gain and twice the fall.
        """

        reports: int = 20
        fall: float = 5.0
        nats: float = 100.0
        grave: float = 5.0

    params: Params

    def __init__(self, rule: Rule, series: Series, peer: Peer, settings: RunSettings) -> None:
        super().__init__(rule, series, peer, settings)
        self.judged = {"rewards", "chosen"} <= set(plain(series.tag).replace("/", "_").split("_"))
        self.margin = 0.0  # as of the last look

    def blind(self) -> str:
        """Return that it isn't the chosen answers' reward."""
        return super().blind() if self.judged else "no reward of the chosen answers is logged"

    def limits(self, block: Block, values: FloatArray) -> Iterator[Limit]:
        """The falls that count, the graver first."""
        p, first = self.params, self._first()
        beta = self.setting("preference_beta")
        least = p.nats * beta if beta else p.fall
        if not self.judged or first - median(values) < least:
            return
        margin = self.peer("reward_margin", block, len(block) - 1, p.reports)
        if not len(margin.finite):
            return
        self.margin = median(margin.finite)
        gain = max(0.0, self.margin - median(margin.first[np.isfinite(margin.first)]))
        words = f"is down to {{level}} from {short(first, 3)}, with a margin of only {short(self.margin, 3)}"
        yield Limit(first - max(2 * least, p.grave * gain), False, words, self.rule.severity)
        yield Limit(first - max(least, gain), False, words, Severity.INFO)

    def _first(self) -> float:
        return median(self.series.first[np.isfinite(self.series.first)])

    def evidence(self, level: float, limit: Limit) -> dict[str, Any]:
        """Return the reward of the chosen answers now and at first, and the margin."""
        beta = self.setting("preference_beta")
        nats = {"nats lost": (self._first() - level) / beta} if beta else {}
        return {"level now": level, "level at first": self._first(), "margin now": self.margin, **nats}
