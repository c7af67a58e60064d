"""overfit: validation gets worse while training goes on getting better (or stands still).

What it detects: the last three evaluations all lie above the best level by four times the evaluations' own noise
and by 2 % of the best (5 % with fewer than twelve evaluations), while the training loss is lower than it was at the
best evaluation (eight evaluations where it merely stands still). On noisy evaluations: the mean of the last
eight is above that of the eight around the best by 10 % and by 3.5 standard errors, beside a training loss down by a
fifth. More than 64 evaluations are judged in groups, so that the best of many is not taken for a level.

Why it matters: the best checkpoint is behind you and may soon be rotated away; every further step fits noise.

Example: validation loss 0.949 at step 200, 1.76 at step 900, training loss 1.62 → 0.022.

When it is wrong: a validation set far from the training data may worsen while the metric you care about still
improves (accuracy can rise on a rising, overconfident loss). If the training loss rises too, it is divergence and
this is silent. Without a training loss it is `info`, and only from 20 % on.

Fixes: keep the checkpoint of the best evaluation and stop early; more data or augmentation, dropout, weight decay;
fewer epochs.

Source: SageMaker Debugger's overfit rule (patience), AnyMAL (three evaluations) and UMLAUT (training still falls);
the noise is estimated from second differences, as formula 7 of the prototype.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trainmon_rules.detectors.base import Detector, Peer, Rule, resolved
from trainmon_rules.detectors.evaluations import (
    FEW,
    SHIFT,
    Group,
    Part,
    absurd,
    has_shifted,
    lowest,
    merged,
    noise,
    row_noise,
)
from trainmon_rules.findings import Finding, Severity
from trainmon_rules.points import FloatArray
from trainmon_rules.series import Block, Series
from trainmon_rules.vocabulary import RunSettings
from trainmon_rules.words import short

SAMPLES = 8  # times that the training loss is looked at for a group
GROUPS = 64  # evaluations or groups of evaluations that are kept


class Overfit(Detector):
    """Compares the last three evaluations, or groups of them, with the best."""

    name: ClassVar[str] = "overfit"
    across: ClassVar[bool] = True

    @dataclass(frozen=True, slots=True)
    class Params:
        """How much worse counts.

        `noises` times the noise of an evaluation, and `rise` of the best level (`rise_few` with fewer than twelve
        evaluations), in `last` evaluations running, `patience` where the training loss isn't lower than it was at
        the best; `alone` is the rise needed where no training loss is logged.
        """

        last: int = 3
        patience: int = 8
        noises: float = 4.0
        rise: float = 0.02
        rise_few: float = 0.05
        alone: float = 0.2

    params: Params

    def __init__(self, rule: Rule, series: Series, peer: Peer, settings: RunSettings) -> None:
        super().__init__(rule, series, peer, settings)
        self.groups: list[Group] = []
        self.width = 1
        self.part = Part()
        self.row = -1  # index in the training loss up to which it was read
        self.open: Finding | None = None
        self.said = 0.0

    def update(self, block: Block) -> Iterator[Finding]:
        """Judge at each evaluation, or at the last of each group."""
        for i, value in enumerate(block.judged.tolist()):
            if not math.isfinite(value) or absurd(block, value):
                continue
            if self._take(block, i, value) and len(self.groups) > self.params.last:
                yield from self._judge(block, i)

    # ------------------------------------------------------------------ what is remembered
    def _take(self, block: Block, i: int, value: float) -> bool:
        """Remember an evaluation; whether a group is complete with it."""
        part = self.part
        part.add(value, int(block.step[i]))
        if part.count % max(1, self.width // SAMPLES) == 0:
            part.add_train(*self._train_level(block, i))
        if part.count < self.width:
            return False
        self.groups.append(part.mean(float(block.time[i])))
        self.part = Part()
        if len(self.groups) == GROUPS:
            pairs = zip(self.groups[0::2], self.groups[1::2], strict=True)
            self.groups = [merged(a, b) for a, b in pairs]
            self.width *= 2
        return True

    def _train_level(self, block: Block, i: int) -> tuple[float, float]:
        """Mean (not median: small batches are skewed) of the training losses since the last evaluation."""
        view = self.peer("train_loss", block, i, 50)
        if not len(view):
            return math.nan, math.nan
        end = view.start + len(view)
        fresh = end - self.row if self.row >= 0 else len(view)
        self.row = end
        values = view.finite[-min(50, max(3, fresh)) :]
        if not len(values):
            return math.nan, math.nan
        spread = row_noise(values)
        return float(values.mean()), spread / math.sqrt(len(values))

    # ------------------------------------------------------------------ what is said
    def _judge(self, block: Block, i: int) -> Iterator[Finding]:
        values = np.array([g.value for g in self.groups])
        k = self.params.last
        past = values[:-k]
        at, level = lowest(past)
        best = self.groups[at]
        if self.open is not None:
            yield from self._follow(block, i, best, level, values)
            return
        known = math.isfinite(self.groups[-1].train) and math.isfinite(best.train)
        sound = noise(values)
        if not self._rises(values, at, level, sound, known):
            return
        words = self._words(best, level, float(values[-k:].mean()), known)
        severity = self.rule.severity if known else Severity.INFO
        self.said = float(values[-k:].mean()) - level
        onset = self._onset(at, level, sound)
        self.open = self.finding(
            block, i, words["summary"], words["evidence"], onset.step, onset.time, severity=severity
        )
        yield self.open

    def _rises(self, values: FloatArray, at: int, level: float, sound: float, known: bool) -> bool:
        p, best, now = self.params, self.groups[at], self.groups[-1]
        share = p.alone if not known else p.rise_few if len(values) < FEW else p.rise
        over = values > level + max(p.noises * sound, share * abs(level))
        if not known:
            return bool(over[-p.last :].all())
        error = math.hypot(now.error, best.error)
        if now.train < best.train - error:
            lower = now.train < 0.8 * best.train
            return bool(over[-p.last :].all()) or (lower and has_shifted(values, at))
        if now.train > best.train + 2 * error + 0.01 * abs(best.train):
            return False  # both rise: that is for divergence to say
        return len(values) - at > p.patience and bool(over[-p.patience :].all())

    def _onset(self, at: int, level: float, sound: float) -> Group:
        """The first evaluation after the best from which all lie above it by more than noise."""
        first = len(self.groups)
        while first - 1 > at and self.groups[first - 1].value > level + 2 * sound:
            first -= 1
        if len(self.groups) - first < self.params.last:  # it was the eights that showed it
            first = len(self.groups) - SHIFT
        return self.groups[first]

    def _follow(self, block: Block, i: int, best: Group, level: float, values: FloatArray) -> Iterator[Finding]:
        """Say again when the gap has doubled; over when an evaluation is as good as the best was."""
        found = self.open
        if found is None:
            return
        step = int(block.step[i])
        if values[-1] <= found.evidence["best"] * (self.series.direction or 1):
            self.open = None
            yield resolved(found, step, f"validation is as good as its best again at step {step}")
            return
        rise = float(values[-3:].mean()) - level
        known = math.isfinite(self.groups[-1].train) and math.isfinite(best.train)
        self.open = found.changed(last_step=step, **self._words(best, level, level + rise, known))
        if rise > 2 * self.said:
            self.said = rise
            yield self.open

    def _words(self, best: Group, level: float, now: float, known: bool) -> dict[str, Any]:
        sign = self.series.direction or 1
        single = self.width == 1  # each evaluation by itself: then the numbers are those of the log
        if single:
            level, now = best.value, self.groups[-1].value
        rise = 100 * (now - level) / abs(level) if level else math.inf
        evidence: dict[str, Any] = {
            "best": sign * level,
            "best at step": best.step,
            "last": sign * now,
            "rise in %": rise,
        }
        train = "no training loss to compare"
        if known:
            last = self.groups[-1]
            evidence |= {"training loss then": best.train, "training loss now": last.train}
            evidence["gap"] = sign * now - last.train
            train = f"training loss about {short(best.train)} → {short(last.train)}"
        return {
            "summary": f"{self.series.tag} rose from {short(sign * level)} (best, step {best.step}) "
            f"to {short(sign * now)}; {train}",
            "evidence": evidence,
        }
