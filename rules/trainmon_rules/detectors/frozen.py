"""frozen-loss: a training loss that moved is from one report on the same to the last digit.

What it detects: 30 equal losses in a row (10 of exactly 0) after a loss that went up and down and never repeated itself
in 16 reports. A loss of 0 must have come at once: from more than a hundredth of the first reports' level.

Why it matters: batches differ, so their losses do; an equal one is no measurement. The labels are masked, the updates
are skipped, the graph is cut off, or the number is an old one that is logged again.

Example: loss 2.21, 2.19, 2.2, then 0.0 in each of 300 reports, beside a gradient norm of 0.

When it is wrong: a loss printed with few digits repeats itself as it settles, and one over all data at once comes to
rest: both show by ties or by a monotone course before, and it is silent. Three reports in a row of another value end
it.

Fixes: count the labels that aren't masked in a batch; check that the optimizer steps and that the logged loss is the
batch's; overfit one batch.

Source: our own, after SageMaker Debugger's UnchangedTensor and AllZero rules, which look at tensors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trainmon_rules.detectors.base import Detector, Peer, Rule, resolved
from trainmon_rules.findings import Finding
from trainmon_rules.points import FloatArray
from trainmon_rules.series import Block, Series
from trainmon_rules.series.robust import median
from trainmon_rules.series.trend import Tie, Ties
from trainmon_rules.vocabulary import RunSettings
from trainmon_rules.words import short

BEFORE = 16  # reports before, which must all differ
TURNS = 4  # times that they must have turned
SMALL = 0.01  # of the level of the first reports
MOVES = 3  # other values in a row that end it


class FrozenLoss(Detector):
    """Counts equal values after a loss that moved."""

    name: ClassVar[str] = "frozen-loss"

    @dataclass(frozen=True, slots=True)
    class Params:
        """Equal reports in a row that count: `ties` of any value, `zeros` of exactly 0."""

        ties: int = 30
        zeros: int = 10

    params: Params

    def __init__(self, rule: Rule, series: Series, peer: Peer, settings: RunSettings) -> None:
        super().__init__(rule, series, peer, settings)
        self.some, self.none = Ties(), Ties()  # of any value, of zeros
        self.least = BEFORE + self.params.ties
        self.value = math.nan
        self.moves = 0

    def update(self, block: Block) -> Iterator[Finding]:
        """Yield a finding when the loss has been the same for long enough, and its end."""
        told = {t.at: t for t in self.some.extend(block, self.params.ties)}
        told |= {t.at: t for t in self.none.extend(block, self.params.zeros) if t.value == 0.0}
        if not told and self.open is None:
            return
        for i, value in enumerate(block.value.tolist()):
            if self.open is not None:
                yield from self._follow(block, i, value)
            elif i in told and self._moved(block, told[i]):
                yield self._say(block, told[i])

    def _follow(self, block: Block, i: int, value: float) -> Iterator[Finding]:
        found, step = self.open, int(block.step[i])
        if found is None:
            return
        self.moves = self.moves + 1 if math.isfinite(value) and value != self.value else 0
        if self.moves >= MOVES:
            self.open = None
            yield resolved(found, step, f"it moves again, by step {step}")
        elif not self.moves:
            self.open = found.changed(last_step=step)

    def _moved(self, block: Block, tie: Tie) -> bool:
        """Whether the loss before was a measurement: no two alike, up and down; and, if it is 0 now, far from it."""
        view = self.series.before(block.start + tie.at + 1, self.params.ties + 4 * BEFORE)
        before: FloatArray = view.value[(view.step < tie.step) & np.isfinite(view.value)][-BEFORE:]
        if len(before) < BEFORE:
            return False
        jumps = np.diff(before)
        if (jumps == 0).any() or int((jumps[1:] * jumps[:-1] < 0).sum()) < TURNS:
            return False
        first = self.series.first[np.isfinite(self.series.first)]
        return tie.value != 0.0 or median(np.abs(before)) > SMALL * abs(median(first))

    def _say(self, block: Block, tie: Tie) -> Finding:
        self.value, self.moves = tie.value, 0
        evidence: dict[str, Any] = {"value": tie.value}
        beside = ""
        norm = self.peer("grad_norm", block, tie.at, self.params.zeros).finite
        if len(norm):
            evidence["gradient norm"] = float(norm[-1])
            beside = ", beside a gradient norm of 0" if (norm == 0).all() else ""
        ask = "" if tie.value else ": are all labels masked?"
        summary = (
            f"{self.series.tag} is exactly {short(tie.value, 6)} in every report since step {tie.step}{beside}{ask}"
        )
        self.open = self.finding(block, tie.at, summary, evidence, tie.step, tie.time)
        return self.open
