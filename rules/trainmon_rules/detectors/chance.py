"""chance-accuracy: the accuracy is that of guessing, one over the number of classes.

What it detects: an accuracy (or one minus an error rate) whose last 100 reports (as many as there are; at least 40, or
12 evaluations) have a mean that is one over the number of classes, give or take a fifth of that and three standard
errors, and so steady that a quarter more would have shown, while the training loss doesn't lie below the logarithm of
that number. Top-5 is compared with five over it, percent with percent. The number of classes is, in this order: the
setting `num_classes`; e to the power of the first training losses, or of the loss now, where that is a whole number
to 3 % (1 %) and the accuracy fits it; of an accuracy that is exactly one over a whole number in twelve reports
(`info`), or one half in the mean of 40 (`info`).

Why it matters: the model answers at random or always the same. No further epoch cures that: labels don't belong to
their inputs, the loss doesn't see them, or the gradient doesn't arrive.

Example: accuracy 0.0986 in the mean of 60 epochs, loss 2.3022, ln 10 = 2.3026: ten classes, nothing learnt.

When it is wrong: learning starts late with a thousand classes or a long warm-up; so it is silent while the rate still
rises, before 200 steps, and while the loss falls or is lower than guessing beyond its noise and a thousandth.
With classes of unequal size guessing gives the largest one's share; that isn't 1/C and nothing is said (`flat` will).
Where the setting says C and the loss is far below, accuracy and loss contradict each other, and that is said.
Accuracies of tokens, pairs, boxes, pixels and adversaries are not judged. If accuracy leaves chance it is resolved.

Fixes: overfit one batch; print a batch with its labels as the model sees it; check that the loss gets what it expects
(logits or probabilities, indices or one-hot).

Source: formula 12 of the prototype; TheDeepChecker's and AnyMAL's check of the first loss against ln C.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trainmon_rules.detectors.accuracy import Accuracy, accuracy_of
from trainmon_rules.detectors.base import Detector, Peer, Rule, resolved
from trainmon_rules.detectors.classes import FIRST, Guess, guesses
from trainmon_rules.findings import Finding, Severity
from trainmon_rules.points import FloatArray
from trainmon_rules.series import Block, Series, View, block_end
from trainmon_rules.series.robust import median
from trainmon_rules.series.trend import Rate
from trainmon_rules.vocabulary import RunSettings
from trainmon_rules.words import short

EVALUATED = ("eval_metric", "eval_error")
PERCENT = 1.5  # a value above this is no share
LEARNED = 0.7  # share of ln C below which a loss has clearly learned
LAST = 10  # reports whose mean may leave chance
MEAN_DIFFERENCE = 0.886  # standard deviation in mean differences of neighbours


class ChanceAccuracy(Detector):
    """Compares the mean of the last accuracies with one over the number of classes, at block ends."""

    name: ClassVar[str] = "chance-accuracy"
    across: ClassVar[bool] = True

    @dataclass(frozen=True, slots=True)
    class Params:
        """Evidence needed.

        `window` reports are averaged, at least `reports` of them (`evaluations` of a validation metric) and over
        `steps` steps, unless each report is itself surer than `quiet` of chance. The mean may lie `above` chance by
        that part of it (`above_half` of two classes); `sure` is the part of it that three standard errors may be;
        `low` the part of chance below which it isn't guessing but always wrong; `negligible` the part of ln C that
        the loss may lie below it.
        """

        window: int = 100
        reports: int = 40
        evaluations: int = 12
        steps: int = 200
        quiet: float = 0.1
        above: float = 0.2
        above_half: float = 0.05
        sure: float = 0.25
        low: float = 0.3
        negligible: float = 0.001

    params: Params

    def __init__(self, rule: Rule, series: Series, peer: Peer, settings: RunSettings) -> None:
        super().__init__(rule, series, peer, settings)
        self.kind: Accuracy | None = accuracy_of(series.tag)
        self.rate = Rate()
        self.scale = 1.0  # 100 where it is logged in percent
        self.best = 0.0  # highest mean share of the last ten so far
        self.since = 0  # first step
        self.guess: Guess | None = None
        self.open: Finding | None = None
        if self.kind is not None:
            self.least = self.params.evaluations if series.role in EVALUATED else self.params.reports

    def update(self, block: Block) -> Iterable[Finding]:
        """Yield one finding when accuracy is at chance beyond doubt, and its end when it leaves."""
        return () if self.kind is None else self._look(self.kind, block)

    def blind(self) -> str:
        """Return that the number of classes isn't known, unless it has learned, so that it doesn't matter."""
        if self.kind is None:
            return "no accuracy of a classifier is logged"
        if too_few := super().blind():
            return too_few
        known = self.open is not None or self.guess is not None or self.setting("num_classes")
        learned = self.best > 1.2 * self._begun(self.kind, 3)
        return "" if known or learned else "the number of classes isn't known (--set num_classes=…)"

    def _begun(self, kind: Accuracy, reports: int) -> float:
        """The share of right answers in the first reports."""
        first = self.series.first[np.isfinite(self.series.first)][:reports]
        return float(kind.shares(first, self.scale).mean()) if len(first) else 0.0

    def _look(self, kind: Accuracy, block: Block) -> Iterator[Finding]:
        end = block.start + len(block)
        if not block.start:
            self.since = int(block.step[0])
        if ((block.value > PERCENT) & (block.value <= 100)).any():
            self.scale = 100.0
        if end != block_end(end - 1):
            return
        view = self.series.before(end, self.params.window)
        if len(view.finite) < self.least:
            return
        if self.open is not None:
            yield from self._follow(kind, block, kind.shares(view.finite[-LAST:], self.scale))
            return
        share = kind.shares(view.finite, self.scale)
        self.best = max(self.best, float(share[-LAST:].mean()))
        self.rate.look(self.peer("learning_rate", block, len(block) - 1, 512), end)
        warm = not self.rate.known or end - self.rate.risen_at >= max(self.least, end // 4)
        if warm and (found := self._judge(kind, block, view, share)) is not None:
            yield found

    def _judge(self, kind: Accuracy, block: Block, view: View, share: FloatArray) -> Finding | None:
        loss = self.peer("train_loss", block, len(block) - 1, self.params.window)
        rose = self._begun(kind, LAST) < 0.75 * float(share.mean())
        for guess in guesses(self.setting("num_classes"), loss, share if kind.top == 1 else share[:0], rose):
            self.guess = guess
            if not self._not_learned(guess, loss.finite):
                continue
            for scale in self._scales(kind, guess, loss.finite):
                if self._at_chance(kind.shares(view.finite, scale), kind.chance(guess.classes), view):
                    self.scale = scale
                    return self._say(kind, block, guess, view.finite, loss.finite)
        return None

    def _scales(self, kind: Accuracy, guess: Guess, loss: FloatArray) -> tuple[float, ...]:
        """Of many classes a percentage at chance is below 1: then the loss must vouch for it."""
        stands = len(loss) and abs(float(loss.mean()) / math.log(guess.classes) - 1) < FIRST
        small = self.scale == 1.0 and 100 * kind.chance(guess.classes) < PERCENT
        return (1.0, 100.0) if small and stands else (self.scale,)

    # ------------------------------------------------------------------ is it chance
    def _at_chance(self, share: FloatArray, chance: float, view: View) -> bool:
        p, row = self.params, float(share.std())
        error = row / math.sqrt(len(share))
        evaluated = self.series.role in EVALUATED
        long_enough = evaluated or view.step[-1] - self.since >= p.steps or row < p.quiet * chance
        if not long_enough or not 3 * error <= p.sure * chance:
            return False
        half = len(share) // 2
        if abs(float(share[:half].mean()) - float(share[half:].mean())) > 8 * error:
            return False  # it is on its way from one level to another
        off = float(share.mean()) - chance
        if chance == 0.5:
            return abs(off) <= p.above_half * chance + 3 * error
        return -(1 - p.low) * chance <= off <= p.above * chance + 3 * error

    def _not_learned(self, guess: Guess, loss: FloatArray) -> bool:
        """The training loss neither lies below ln C nor falls, by more than its noise and a trifle.

        Where the settings say C it may lie far below: then accuracy doesn't show what was learned.
        """
        log, half = math.log(guess.classes), len(loss) // 2
        if half < 2:
            return True
        now = float(loss[half:].mean())
        trifle = self.params.negligible * log
        error = float(np.abs(np.diff(loss)).mean()) * MEAN_DIFFERENCE / math.sqrt(len(loss))
        fall = float(loss[:half].mean()) - now
        if guess.given and now < LEARNED * log:
            return True
        return log - now <= max(5 * error, trifle) and fall <= max(6 * error, trifle)

    # ------------------------------------------------------------------ what is said
    def _say(self, kind: Accuracy, block: Block, guess: Guess, values: FloatArray, loss: FloatArray) -> Finding:
        chance, mean, log = kind.chance(guess.classes), float(values.mean()), math.log(guess.classes)
        logged = self.scale * (1 - chance if kind.error else chance)
        evidence: dict[str, Any] = {"mean": mean, "chance": logged, "classes": guess.classes, "known from": guess.how}
        evidence |= {"reports": len(values), "standard error": float(values.std()) / math.sqrt(len(values))}
        beside = ""
        if len(loss):
            evidence |= {"loss now": median(loss), "ln C": log}
            beside = f"; the training loss is {short(median(loss))}, ln {guess.classes} is {log:.4g}"
        summary = (
            f"{self.series.tag} is {short(mean)} in the mean of {len(values)} reports: "
            f"guessing among {guess.classes} classes gives {short(logged)}{beside}"
        )
        onset, time = self._onset(kind, chance, block.start + len(block))
        severity = self.rule.severity if guess.sure else Severity.INFO
        self.open = self.finding(block, len(block) - 1, summary, evidence, onset, time, severity)
        return self.open

    def _onset(self, kind: Accuracy, chance: float, end: int) -> tuple[int, float]:
        """The report after the last three running that were clearly better, as far back as the ring goes."""
        view = self.series.before(end, 512)
        share = kind.shares(view.value, self.scale)
        better = share > chance + max(4 * float(np.nanstd(share[-self.params.window :])), 0.5 * chance)
        runs = np.flatnonzero(better[2:] & better[1:-1] & better[:-2]) if len(better) > 2 else np.zeros(0, np.int64)
        first = min(int(runs[-1]) + 3, len(view) - 1) if len(runs) else 0
        return int(view.step[first]), float(view.time[first])

    def _follow(self, kind: Accuracy, block: Block, share: FloatArray) -> Iterator[Finding]:
        """Over when the mean of the last ten is half as good again as chance, beyond their noise."""
        found = self.open
        if found is None:
            return
        step, mean = int(block.step[-1]), float(share.mean())
        error = float(share.std()) / math.sqrt(len(share))
        chance = kind.chance(found.evidence["classes"])
        if mean > min(1.5 * chance, 0.5 * (1 + chance)) and mean - chance > 5 * error:
            self.open = None
            yield resolved(found.changed(last_step=step), step, f"{short(100 * mean, 3)} % are right by step {step}")
        else:
            self.open = found.changed(last_step=step)
