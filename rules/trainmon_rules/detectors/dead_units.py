"""dead-units: a large part of the units never answers any more.

What it detects: a share of dead units (0 to 1, or percent) of which three quarters of the last ten reports lie above
one half, at twice the level of the first reports (or half of those that lived then); or above nine tenths from the
start; and (`info`) above one half from the start. A count is divided by the setting `num_units`; without it, a count
that has doubled against the hundred reports before, far beyond their noise (`info`). A share of zero activations above
99 % that was below 90 % at first (`info`). Features of a sparse autoencoder: `info`.

Why it matters: a ReLU that answers no example gets no gradient and stays dead; the model has become smaller than it
was paid for, and often it stands still.

Example: dead_relu 0.08 in the first reports, 0.71 from step 420 on, after a spike of the gradient norm.

When it is wrong: sparse autoencoders kill features in numbers and revive some by resampling, and pruning makes zeros
on purpose; that is why those are only listed. Activations may be 90 % zero with no unit dead. If the share comes back
below two fifths it is resolved.

Fixes: lower the rate (dying ReLUs are pushed below zero by large steps), a leaky activation or GELU, He
initialisation, warm-up; in a sparse autoencoder an auxiliary loss on dead features, or resampling.

Source: the seeds' "more than 50 % zero is dying ReLU", SageMaker Debugger's DeadRelu (50 %), AutoTrainer (70 %);
formula 11 of the prototype: median of ten against half and twice the base.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trainmon_rules.detectors.base import Peer, Rule
from trainmon_rules.detectors.lasting import Lasting, Limit
from trainmon_rules.findings import Finding, Severity
from trainmon_rules.points import FloatArray
from trainmon_rules.roles.tags import plain
from trainmon_rules.series import Block, Series
from trainmon_rules.series.robust import mad_sigma, median, quantile
from trainmon_rules.vocabulary import RunSettings
from trainmon_rules.words import short

FEATURES = frozenset({"feature", "features", "latent", "latents", "sae", "dictionary"})
SHARES = frozenset({"share", "frac", "fraction", "ratio", "rate", "prop", "proportion"})
BEFORE = 100  # reports with which a count is compared
MANY = 2 / 3  # of the units, dead in the first reports: worth a note
ABSURD = 1e12  # no number of units


class DeadUnits(Lasting):
    """Compares the level of the last reports with half of all units and with the first reports."""

    name: ClassVar[str] = "dead-units"

    @dataclass(frozen=True, slots=True)
    class Params:
        """What counts.

        `reports` behind a level; `share` of dead units that is too much if it is also `base` times that of the first
        reports; `start` the share that is too much from the beginning; `zeros` the share of zero activations that is,
        where it was below `zeros_before` at first.
        """

        reports: int = 10
        share: float = 0.5
        base: float = 2.0
        start: float = 0.9
        zeros: float = 0.99
        zeros_before: float = 0.9

    params: Params

    def __init__(self, rule: Rule, series: Series, peer: Peer, settings: RunSettings) -> None:
        super().__init__(rule, series, peer, settings)
        words = frozenset(plain(series.tag).replace("/", "_").split("_"))
        self.zeros = series.role == "activation_sparsity"
        self.judged = not self.zeros or bool(words & {"zero", "zeros", "dead", "inactive"})
        self.mild = self.zeros or bool(words & FEATURES)
        self.percent = bool(words & {"pct", "percent", "percentage"})
        self.share = bool(words & SHARES)
        self.some = False  # whether a value was above 0
        self.fractions = False  # whether a value was no whole number
        self.count = False  # whether a value was above 1
        if not self.judged:
            self.least = 0

    def blind(self) -> str:
        """Return that a count needs the number of all units."""
        if not self.judged or (self.zeros and self._whole() is None):
            return "no share or count of dead units is logged"
        if too_few := super().blind():
            return too_few
        none = not self.some or self._whole() is not None  # of no unit at all it is known that none is dead
        return "" if none else "the number of units isn't known (--set num_units=…)"

    def update(self, block: Block) -> Iterable[Finding]:
        """Take note of what the numbers are, and look at the end of each block."""
        if not self.judged:
            return ()
        value = block.value[np.isfinite(block.value) & (block.value < ABSURD)]
        self.some = self.some or bool((value > 0).any())
        self.count = self.count or bool((value > 1).any())
        self.fractions = self.fractions or bool((value != np.round(value)).any())
        return super().update(block)

    def _whole(self) -> float | None:
        """What stands for all units: 1, 100, or their number; None where nobody says it."""
        if self.percent or self.share:
            return 100.0 if self.percent or self.count else 1.0
        if not self.count:
            return 1.0 if self.fractions else None  # nothing but 0 and 1 may be a count
        total = None if self.zeros else self.setting("num_units")
        return float(total) if total else None

    def _base(self) -> float:
        """The level of the first reports."""
        return median(self.series.first[np.isfinite(self.series.first)][: self.params.reports])

    def limits(self, block: Block, values: FloatArray) -> Iterator[Limit]:
        """The limit of a share; of a count without a total, the doubling."""
        whole = self._whole()
        if whole is None:
            yield from self._of_count(block)
            return
        p, base = self.params, self._base() / whole
        if self.zeros:
            if base < p.zeros_before:
                yield Limit(p.zeros * whole, True, "of the activations are zero", Severity.INFO)
            return
        risen = max(p.share, min(p.base * base, (1 + base) / 2))  # half of those that lived have died
        severity = Severity.INFO if self.mild else self.rule.severity
        yield Limit((p.start if base > p.start else risen) * whole, True, "of the units are dead", severity)
        if base > MANY:  # initialised so, or dead before the first report
            mild = min(Severity.INFO, severity)
            yield Limit(MANY * whole, True, "of the units are dead from the first reports on", mild)

    def words(self, level: float, limit: Limit) -> str:
        """Return the finding in a sentence, in percent where that is known."""
        whole = self._whole()
        if whole is None or "{level}" in limit.words:
            return super().words(level, limit)
        now, then = (short(100 * v / whole, 3) for v in (level, self._base()))
        return f"{self.series.tag}: {now} % {limit.words} ({then} % in the first reports)"

    def _of_count(self, block: Block) -> Iterator[Limit]:
        past = self.past(block.start + len(block), BEFORE)
        usual = quantile(past, 0.95) if len(past) == BEFORE else 0.0
        if usual > 0 and not self.zeros:
            limit = max(self.params.base * usual, usual + 6 * mad_sigma(past))
            words = f"has doubled to {{level}}, from at most {usual:.4g} in the {BEFORE} reports before"
            yield Limit(limit, True, words, Severity.INFO)

    def evidence(self, level: float, limit: Limit) -> dict[str, Any]:
        """Return the level now and at first, as a share too where that is known, and the limit."""
        whole = self._whole()
        share = {"share dead": level / whole} if whole else {}
        return {"level now": level, "level at first": self._base(), "limit": limit.value, **share}
