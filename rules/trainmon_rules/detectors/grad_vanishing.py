"""grad-vanishing: the gradient is gone, and the task isn't solved.

What it detects: ten gradient norms in a row below 1 % of the run's own reference (its first reports, or the level of
the several hundred before), while the training loss stands where it stood. A norm of exactly 0 counts only if the loss
doesn't move by a digit, or if it came at once, from a tenth of the reference or more, and the loss is no better in the
last half of 64 such reports than in the first.

Why it matters: nothing reaches the weights. Saturated or dead units, a detached graph, or a mask that drops every
token look like this.

Example: gradient norm 1.4, 0.0038, 0.0019 … 0.00017 with the loss at 10.45–10.50 over 121 steps.

When it is wrong: a vanishing norm beside a vanishing loss is memorised data, so the loss must be where it began (or
where it was before the norm fell) and not near nothing. Norms printed as 0.000 beside a moving loss are a matter of
digits. In deep networks the total norm hides vanishing in early layers: the last layers dominate it.

Fixes: look at initialisation, activations and normalisation; residual connections; check that the labels aren't all
masked and that parameters require gradients.

Source: AutoTrainer and SageMaker Debugger's vanishing rules, made relative to the run itself and gated by the loss
(AutoTrainer's gate), without which a third of healthy runs alarm.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trainmon_rules.detectors.base import Detector, Peer, Rule, resolved
from trainmon_rules.findings import Finding
from trainmon_rules.series import Block, Series
from trainmon_rules.series.robust import median
from trainmon_rules.vocabulary import RunSettings
from trainmon_rules.words import short

ZEROS = 64  # norms of exactly 0 in a row that tell beside a loss that moves
WHILE = 8  # norms before them
AT_ONCE = 0.1  # of the reference from which they must have come
SURE = 1.0  # standard errors by which the loss may have improved
EXPLODED = 100.0  # a first norm above this is an explosion, no reference


class GradVanishing(Detector):
    """Counts norms below a share of the reference; asks the loss when there are enough."""

    name: ClassVar[str] = "grad-vanishing"

    @dataclass(frozen=True, slots=True)
    class Params:
        """What counts as vanished.

        `share` of a reference norm, `reports` in a row; `loss` the share of a loss within which it still stands;
        `solved` the share of the first loss that counts as learned.
        """

        share: float = 0.01
        reports: int = 10
        loss: float = 0.1
        solved: float = 0.05

    params: Params

    def __init__(self, rule: Rule, series: Series, peer: Peer, settings: RunSettings) -> None:
        super().__init__(rule, series, peer, settings)
        self.first = math.nan  # norm of the first reports
        self.later = math.nan  # norm of the several hundred reports before
        self.before = math.nan  # loss beside those
        self.loss = math.nan  # loss of the first reports
        self.seen = 0
        self.run = 0
        self.back = 0
        self.open: Finding | None = None

    def update(self, block: Block) -> Iterator[Finding]:
        """Yield a finding when the norm has vanished, and its end when it is back."""
        finite = np.isfinite(block.value) & (block.value >= 0)
        idle = self.seen >= 5 and self.run == 0 and self.open is None
        if idle and not (finite & (block.value <= self._limit())).any():  # nearly always
            self._refresh(block)
            return
        for i, value in enumerate(block.value.tolist()):
            if finite[i]:
                yield from self._one(block, i, value)
        self._refresh(block)

    def _one(self, block: Block, i: int, value: float) -> Iterator[Finding]:
        if self.seen < 5:
            self._begin(block, i, value)
        if not value <= self._limit():
            self.run = 0
            if self.open is not None:
                self.back += 1
                if self.back >= self.params.reports:
                    step = int(block.step[i])
                    yield resolved(self.open, step, f"the norm is back at {short(value, 3)} by step {step}")
                    self.open = None
            return
        self.back = 0
        self.run += 1
        if self.open is None and self.run >= self.params.reports and self._due():
            found = self._judge(block, i, value)
            if found is not None:
                self.open = found
                yield found

    def _begin(self, block: Block, i: int, value: float) -> None:
        self.seen += 1
        if value < EXPLODED:
            self.first = value if math.isnan(self.first) else max(self.first, value)
        loss = self.peer("train_loss", block, i, 5).finite
        if len(loss):
            level = median(loss)
            self.loss = level if math.isnan(self.loss) else max(self.loss, level)

    def _due(self) -> bool:
        """Ask the loss at the tenth report in a row and at ever wider distances after it."""
        n = self.run - self.params.reports
        return n <= 16 or n & (n - 1) == 0

    def _refresh(self, block: Block) -> None:
        """At powers of two from 64 and each 256, later each 4096: the level of the last reports is a reference too."""
        end = block.start + len(block)
        due = end >= 64 and (not end & (end - 1) or end % (256 if end < 4096 else 4096) == 0)
        if not due or self.run or self.open is not None:
            return
        recent = self.series.before(end, 256).value
        recent = recent[np.isfinite(recent) & (recent > 0)]
        if len(recent) < 32:
            return
        loss = self.peer("train_loss", block, len(block) - 1, 32).finite
        self.later = median(recent)
        self.before = float(loss.mean()) if len(loss) else math.nan

    def _limit(self) -> float:
        """The larger of both references decides what is worth a look."""
        known = [r for r in (self.first, self.later) if math.isfinite(r)]
        return self.params.share * max(known) if known else -1.0

    def _judge(self, block: Block, i: int, value: float) -> Finding | None:
        p = self.params
        loss = self.peer("train_loss", block, i, p.reports).finite
        if len(loss) < 3 or not math.isfinite(self.loss):
            return None
        now = float(loss.mean())
        recent = self.series.before(block.start + i + 1, p.reports).value
        zero = bool((recent == 0).all())
        if zero and (loss != loss[0]).any() and not self._gone_at_once(block, i):
            return None  # printed with too few digits
        if now <= p.solved * abs(self.loss) or loss[-1] == 0.0:
            return None  # learned, or hidden by the trainer
        level, top = median(recent), float(recent[np.isfinite(recent)].max())
        if top <= p.share * self.first and self.loss - now < p.loss * abs(self.loss):
            reference = self.first
        elif top <= p.share * self.later and self.before - now < p.loss * abs(self.before):
            reference = self.later
        else:
            return None
        onset, time = self._onset(block.start + i + 1, p.share * reference)
        evidence = {
            "norm now": level,
            "norm before": reference,
            "share": level / reference if reference else 0.0,
            "loss at first": self.loss,
            "loss now": now,
        }
        summary = (
            f"{self.series.tag} fell from {short(reference, 3)} to {level:.2g} by step {onset} "
            f"while the loss stands at {short(now)}"
        )
        return self.finding(block, i, summary, evidence, onset, time)

    def _gone_at_once(self, block: Block, i: int) -> bool:
        """Whether the norm fell from far above any digit it is printed with to 0, and nothing is learned since."""
        if self.run < ZEROS:
            return False
        end = block.start + i + 1
        norm = self.series.before(end, min(self.run + WHILE, 512)).value
        if (norm[-ZEROS:] != 0).any():
            return False
        known = norm[np.isfinite(norm) & (norm > 0)][-WHILE:]
        if self.run < 512 - WHILE and (len(known) < WHILE or median(known) < AT_ONCE * self.later):
            return False
        x = self.peer("train_loss", block, i, ZEROS).finite
        if len(x) < ZEROS or not math.isfinite(self.later):
            return False
        a, b = x[: ZEROS // 2], x[ZEROS // 2 :]
        return float(b.mean()) >= float(a.mean()) - SURE * math.hypot(float(a.std()), float(b.std())) / math.sqrt(
            len(a)
        )

    def _onset(self, end: int, limit: float) -> tuple[int, float]:
        """The first report of the stretch below the limit, as far back as the ring goes."""
        view = self.series.before(end, min(self.run, 512))
        above = np.flatnonzero(view.value > limit)
        first = int(above[-1]) + 1 if len(above) else 0
        return int(view.step[first]), float(view.time[first])
