"""Series that are the same from the start: what `flat` needs beside its curve.

Counted value by value, but only until the series has moved; after that it costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from trainmon_rules.detectors.base import Detector, Peer, Rule, resolved
from trainmon_rules.detectors.curve import METRICS
from trainmon_rules.findings import Finding
from trainmon_rules.series import Block, Series
from trainmon_rules.vocabulary import RunSettings
from trainmon_rules.words import short


class Constant(Detector):
    """Counts equal values from the first report on. Parameters `ties` and `zeros` are those of `Flat`."""

    def __init__(self, rule: Rule, series: Series, peer: Peer, settings: RunSettings) -> None:
        super().__init__(rule, series, peer, settings)
        self.done = series.attempt > 0  # a resumed run has learned before
        self.open: Finding | None = None
        self.level = math.nan  # judged level at which it was said
        self.values: list[float] = []  # the first, then what it changed to
        self.equal = 0
        self.since: tuple[int, float] = (0, math.nan)
        self.constant = False  # said because of equal values
        self.better = 0

    def _constant(self, block: Block) -> Iterator[Finding]:
        """Judge each value until it is clear that the series moves."""
        metric = self.series.role in METRICS
        if self.constant or len(self.values) <= 1 + metric:
            for i, value in enumerate(block.value.tolist()):
                if math.isfinite(value) and not self.done:
                    yield from self._leaves(block, i) if self.constant else self._equals(block, i, value)
        if metric:
            self.done = self.done or (len(self.values) > 2 and not self.constant)

    def _equals(self, block: Block, i: int, value: float) -> Iterator[Finding]:
        """Count equal values from the first report on; a metric may change once, after the untrained evaluation."""
        if not self.values or value != self.values[-1]:
            if len(self.values) > 2:
                return
            first_stretch = self.equal
            self.values.append(value)
            self.equal = 1
            self.since = int(block.step[i]), float(block.time[i])
            if len(self.values) == 2 and first_stretch > 1:
                self.values.append(value)  # it did move: no constant any more
        else:
            self.equal += 1
        if self.series.role in METRICS:
            yield from self._constant_metric(block, i, value)
            return
        enough = self.equal == (self.params.ties if value else self.params.zeros)
        if enough and len(self.values) == 1 and not self._total_speaks(block, i):
            ask = "" if value else ": are there any labels?"
            summary = f"{self.series.tag} is exactly {value:.6g} from the start{ask}"
            yield self._say_constant(block, i, summary, {"value": value})

    def _constant_metric(self, block: Block, i: int, value: float) -> Iterator[Finding]:
        if self.series.direction >= 0 or len(self.values) > 2:
            return
        top = 0.98 <= value <= 1.0 or value == 100.0
        if self.equal == self.params.ties and value >= 0 and not top:
            summary = f"{self.series.tag} is exactly {value:.6g} in {self.equal} reports, since step {self.since[0]}"
            yield self._say_constant(block, i, summary, {"value": value})
        elif value == 0.0 and len(self.values) == 1 and self.series.role == "eval_metric":
            loss = self.peer("train_loss", block, i, 512)
            values = loss.finite
            if loss.start or len(values) < 10:
                return
            first, last = float(values[:3].mean()), float(values[-10:].mean())
            if 0 <= last < 0.01 * first:
                summary = (
                    f"{self.series.tag} is 0 while the training loss is down to {short(last, 3)}: are there any labels?"
                )
                yield self._say_constant(block, i, summary, {"value": 0.0, "first loss": first, "loss now": last})

    def _say_constant(self, block: Block, i: int, summary: str, evidence: dict[str, Any]) -> Finding:
        self.constant = True
        self.level = float(self.series.judged_of(block.value[i : i + 1])[0])
        self.open = self.finding(block, i, summary, {**evidence, "equal reports": self.equal}, *self.since)
        return self.open

    def standing(self) -> Finding | None:
        """Return what is open; a constant with the number of its reports so far."""
        found = self.open
        if found is None or not self.constant:
            return found
        then = found.evidence["equal reports"]
        summary = found.summary.replace(f"in {then} reports", f"in {self.equal} reports")
        return found.changed(evidence={**found.evidence, "equal reports": self.equal}, summary=summary)

    def _leaves(self, block: Block, i: int) -> Iterator[Finding]:
        """Three reports in a row better than the constant (or, if it was zero, other than it) end it."""
        y = float(block.judged[i])
        moved = y < self.level - 1e-3 * abs(self.level) if self.level else y != 0
        self.better = self.better + 1 if moved else 0
        if self.better >= 3:
            yield from self._close(int(block.step[i]))

    def _total_speaks(self, block: Block, at: int) -> bool:
        return self.series.role == "loss_component" and len(self.peer("train_loss", block, at, 1)) > 0

    def _close(self, step: int) -> Iterator[Finding]:
        if self.open is not None:
            how = "it moves again" if self.constant else "it has begun to learn"
            yield resolved(self.open, step, f"{how}, by step {step}")
        self.open, self.constant, self.done = None, False, True
