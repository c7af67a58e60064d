"""attention-range: attention logits or their entropy are out of the range in which a softmax learns.

What it detects: maximal attention logits of which three quarters of the last twenty reports lie above 100 (`info`) or
1000; an attention entropy that lies below a tenth (`info`) or a fiftieth of its first level.

Why it matters: such a softmax knows one answer and passes no gradient; the loss diverges soon after, or never learns
what that head should have learned.

Example: attention_entropy 3.1 at first, 0.04 from step 2,200 on; the loss spikes at step 2,310.

When it is wrong: single heads may well become sharp (induction heads), and with a logit cap or QK norm large logits
come and go; so an alarm needs three quarters of twenty reports, and the milder limit is only listed. Frameworks that
clip at 100 stand just below it. If the level comes back by a fifth it is resolved.

Fixes: normalise queries and keys, soft-cap the logits; weight decay on the query and key projections; a lower rate.

Source: Dehghani et al. 2023 (ViT-22B: logits above 50,000 before QK norm), Zhai et al. 2023 (entropy collapse), Kimi
K2's QK-clip at 100.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trainmon_rules.detectors.base import Peer, Rule
from trainmon_rules.detectors.lasting import Lasting, Limit
from trainmon_rules.findings import Severity
from trainmon_rules.points import FloatArray
from trainmon_rules.roles.tags import plain
from trainmon_rules.series import Block, Series
from trainmon_rules.series.robust import median
from trainmon_rules.vocabulary import RunSettings


class AttentionRange(Lasting):
    """Holds the level of attention logits, or of attention entropy, against fixed limits."""

    name: ClassVar[str] = "attention-range"

    @dataclass(frozen=True, slots=True)
    class Params:
        """Levels over `reports`: of maximal logits `logits` and `logits_grave`, of entropy parts of its first level."""

        reports: int = 20
        logits: float = 100.0
        logits_grave: float = 1000.0
        entropy: float = 0.1
        entropy_grave: float = 0.02

    params: Params

    def __init__(self, rule: Rule, series: Series, peer: Peer, settings: RunSettings) -> None:
        super().__init__(rule, series, peer, settings)
        words = frozenset(plain(series.tag).replace("/", "_").split("_"))
        self.entropy = "entropy" in words
        self.logits = bool(words & {"logit", "logits"}) and not self.entropy

    def blind(self) -> str:
        """Return that the tag names something else of attention."""
        return super().blind() if self.entropy or self.logits else "no attention logits or entropy are logged"

    def limits(self, block: Block, values: FloatArray) -> Iterator[Limit]:
        """The limits of what the tag names, the graver first."""
        p, grave = self.params, self.rule.severity
        if self.logits:
            words = "stands at {level}: a softmax of logits that large knows one answer"
            yield Limit(p.logits_grave, True, words, grave)
            yield Limit(p.logits, True, words, Severity.INFO)
        elif self.entropy and (first := median(self.series.first[np.isfinite(self.series.first)])) > 0:
            words = f"is down to {{level}}, from {first:.3g} in the first reports: attention looks at one place"
            yield Limit(p.entropy_grave * first, False, words, grave)
            yield Limit(p.entropy * first, False, words, Severity.INFO)
