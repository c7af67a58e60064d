"""val-suspect: validation is implausibly good, or broken.

What it detects: on a validation loss: exactly 0 in its first three evaluations (or in five running, later) while the
training loss isn't near nothing; the same to the last digit in its first eight evaluations while the training loss
fell by a tenth; equal to the training loss to the last digit in five running; and less than half of the training loss
of the interval that followed, in eight evaluations running (`info`; a warning below a twentieth). On an accuracy, AUC,
F1, AP or the like: exactly 1 (or 100) in its first five evaluations while the training loss still stands above half of
its first level.

Why it matters: checkpoints are chosen, runs stopped and papers written by these numbers. Examples in both sets, a
label among the inputs, an empty or wrong set, a loss computed on the training batch: all of them look like success.

Example: validation accuracy 1.0 in epochs 1 to 5, training loss 0.69 → 0.65.

When it is wrong: dropout, mixup, label smoothing and strong augmentation make the training loss the higher one, at
times threefold, and other losses summed into it more than that: hence `info`, and hence the comparison with the
training loss after the evaluation, which an epoch's mean can't explain. A toy task may well be solved in one epoch:
then the training loss is down too, and this is silent. A metric that is constant or zero is `flat`'s to say.

Fixes: look for examples that are in both sets, and for the label among the inputs; evaluate an untrained model: it
must do badly; evaluate on training examples: the numbers must agree with those of training.

Source: UMLAUT's rule of a validation accuracy that is too good; the seeds' silent failures (leak between training and
validation comes first); the constants are our own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trainmon_rules.detectors.base import Detector, Peer, Rule, resolved
from trainmon_rules.detectors.val_checks import (
    Check,
    Constant,
    Evaluation,
    FarBelow,
    Perfect,
    SameAsTrain,
    Zero,
)
from trainmon_rules.findings import Finding, Severity
from trainmon_rules.roles.tags import plain
from trainmon_rules.series import Block, Series
from trainmon_rules.vocabulary import RunSettings

PERFECTIBLE = frozenset({"acc", "accuracy", "top1", "auc", "auroc", "f1", "map", "ap", "mrr", "bleu"})
SEEN = 128  # training losses looked at
OVER = 3  # evaluations in a row that end it


class ValSuspect(Detector):
    """Shows each evaluation, with the training loss around it, to a few checks."""

    name: ClassVar[str] = "val-suspect"
    across: ClassVar[bool] = True

    @dataclass(frozen=True, slots=True)
    class Params:
        """Evaluations in a row that are needed.

        `zeros` of exactly 0 from the first on (`zeros_later` afterwards), `ties` equal ones while training fell by
        `fell`, `same` that equal the training loss, `perfect` of exactly 1 while the training loss stands above
        `standing` of its first level, `low` below `share` of the training loss (a warning below `extreme`).
        """

        zeros: int = 3
        zeros_later: int = 5
        ties: int = 8
        fell: float = 0.1
        same: int = 5
        perfect: int = 5
        standing: float = 0.5
        low: int = 8
        share: float = 0.5
        extreme: float = 0.05

    params: Params

    def __init__(self, rule: Rule, series: Series, peer: Peer, settings: RunSettings) -> None:
        super().__init__(rule, series, peer, settings)
        self.checks = self._checks()
        self.seen = 0
        self.row = 0  # index in the training loss up to which the last evaluation knew it
        self.open: Finding | None = None
        self.by: Check | None = None  # who suspects
        self.good = 0  # evaluations in a row without it
        self.least = self.params.zeros

    def blind(self) -> str:
        """Return that the metric is none that is suspicious when it is perfect."""
        if not self.checks and not self.seen:
            return "no validation loss is logged, and no metric that can be too good"
        return super().blind()

    def _checks(self) -> list[Check]:
        p = self.params
        if self.series.role == "val_loss":
            return [
                Zero(early=p.zeros, later=p.zeros_later),
                Constant(ties=p.ties, fell=p.fell),
                SameAsTrain(needed=p.same),
                FarBelow(needed=p.low, share=p.share, extreme=p.extreme),
            ]
        words = plain(self.series.tag).replace("/", "_").split("_")
        fresh = self.series.attempt == 0  # a resumed run may have solved it before
        return [Perfect(needed=p.perfect, standing=p.standing)] if fresh and PERFECTIBLE.intersection(words) else []

    def update(self, block: Block) -> Iterator[Finding]:
        """Judge at each evaluation."""
        for i, value in enumerate(block.value.tolist()):
            if self.checks and math.isfinite(value):
                self.seen += 1
                yield from self._judge(block, i, self._evaluation(block, i, value))

    def _evaluation(self, block: Block, i: int, value: float) -> Evaluation:
        train = self.peer("train_loss", block, i, SEEN)
        since = train.value[max(0, self.row - train.start) :]
        self.row = train.start + len(train)
        finite = since[np.isfinite(since)]
        return Evaluation(self.seen, value, int(block.step[i]), float(block.time[i]), train.first, train.finite, finite)

    def _judge(self, block: Block, i: int, e: Evaluation) -> Iterator[Finding]:
        looked = [(check, check.look(e)) for check in self.checks]
        if self.open is not None and self.by is not None:
            self.good = 0 if self.by.holds(e) else self.good + 1
            if not self.good:
                self.open = self.open.changed(last_step=e.step)
            if self.good >= OVER:
                yield resolved(self.open, e.step, f"it looks like a validation again by step {e.step}")
                self.open = self.by = None
            return
        for check, said in looked:
            if said is not None:
                severity = Severity.INFO if said.mild else self.rule.severity
                words = f"{self.series.tag} {said.words}"
                evidence = {"suspected": said.kind, **said.evidence}
                self.open = self.finding(block, i, words, evidence, said.step, said.time, severity)
                self.by, self.good = check, 0
                yield self.open
                return
        self.checks = [check for check in self.checks if not check.settled]
