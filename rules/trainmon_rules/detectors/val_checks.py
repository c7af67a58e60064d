"""What `val-suspect` looks for: small counters, each shown one evaluation after the other."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trainmon_rules.points import FloatArray
from trainmon_rules.series.robust import median
from trainmon_rules.words import short

LAST = 10  # training losses behind their level now
SOLVED = 0.05  # share of its first level below which nothing is left of a training loss
DIGITS = 3  # significant digits with which two losses may well be equal by chance


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One evaluation: its number (from 1), value and moment, the training losses so far, and those since the last."""

    number: int
    value: float
    step: int
    time: float
    first: FloatArray
    train: FloatArray
    since: FloatArray

    @property
    def level(self) -> float:
        """The training loss now, NaN if none is logged."""
        return float(self.train[-LAST:].mean()) if len(self.train) else math.nan

    @property
    def begun(self) -> float:
        """The training loss of the first reports."""
        return median(self.first[np.isfinite(self.first)][:5])


@dataclass(frozen=True, slots=True)
class Suspicion:
    """What is wrong: in one word, and in words behind the tag's name; numbers, since when; `mild` is only listed."""

    kind: str
    words: str
    evidence: dict[str, Any]
    step: int
    time: float
    mild: bool = False


@dataclass(slots=True)
class InARow:
    """How many evaluations running something was so, and since when."""

    count: int = 0
    step: int = 0
    time: float = math.nan
    number: int = 0  # of the first of them

    def take(self, e: Evaluation, so: bool) -> int:
        """Count one more, or begin anew."""
        if not so:
            self.count = 0
            return 0
        if not self.count:
            self.step, self.time, self.number = e.step, e.time, e.number
        self.count += 1
        return self.count


@dataclass(slots=True, kw_only=True)
class Check:
    """Something that can be wrong with evaluations; `settled` once nothing will come of it any more."""

    row: InARow = field(default_factory=InARow)
    settled: bool = False

    def look(self, e: Evaluation) -> Suspicion | None:
        """Take the next evaluation; return what is wrong once there is enough of it."""
        raise NotImplementedError

    def holds(self, e: Evaluation) -> bool:
        """Return whether an evaluation that was looked at goes on like that."""
        raise NotImplementedError


@dataclass(slots=True, kw_only=True)
class Zero(Check):
    """A loss of exactly 0 while training has one."""

    early: int
    later: int

    def look(self, e: Evaluation) -> Suspicion | None:
        """Three from the first on, or five later."""
        count = self.row.take(e, e.value == 0.0)
        if count < (self.early if self.row.number == 1 else self.later) or not e.level > SOLVED * e.begun:
            return None
        words = f"is exactly 0 in {count} evaluations running while the training loss is {short(e.level)}"
        return Suspicion("zero", words, {"value": 0.0, "training loss": e.level}, self.row.step, self.row.time)

    def holds(self, e: Evaluation) -> bool:
        """Return whether it is 0."""
        return e.value == 0.0


@dataclass(slots=True, kw_only=True)
class Constant(Check):
    """The same loss to the last digit from the first evaluation on, while training learns."""

    ties: int
    fell: float
    first: float = math.nan

    def look(self, e: Evaluation) -> Suspicion | None:
        """Eight, beside a training loss that is down by a tenth."""
        self.first = e.value if e.number == 1 else self.first
        count = self.row.take(e, e.value == self.first and e.value != 0.0)
        self.settled = count < e.number
        if count < self.ties or self.settled or not e.level < (1 - self.fell) * e.begun:
            return None
        words = (
            f"is {e.value:.6g} to the last digit in all {count} evaluations while the training loss fell "
            f"from {short(e.begun)} to {short(e.level)}"
        )
        evidence = {"value": e.value, "first loss": e.begun, "loss now": e.level}
        return Suspicion("constant", words, evidence, self.row.step, self.row.time)

    def holds(self, e: Evaluation) -> bool:
        """Return whether it is still the same."""
        return e.value == self.first


@dataclass(slots=True, kw_only=True)
class SameAsTrain(Check):
    """A validation loss that is the training loss."""

    needed: int
    values: tuple[float, ...] = ()

    def look(self, e: Evaluation) -> Suspicion | None:
        """Five running, of at least three values with more digits than are equal by chance."""
        count = self.row.take(e, self.holds(e))
        self.values = (*self.values, e.value)[-min(count, self.needed) :] if count else ()
        if count < self.needed or len(set(self.values)) < 3 or all(v == float(f"{v:.{DIGITS}g}") for v in self.values):
            return None
        words = f"equals the training loss to the last digit in {count} evaluations running ({e.value:.6g} now)"
        return Suspicion("same", words, {"value": e.value, "equal evaluations": count}, self.row.step, self.row.time)

    def holds(self, e: Evaluation) -> bool:
        """Return whether the two are equal."""
        return bool(len(e.train)) and e.value == e.train[-1]


@dataclass(slots=True, kw_only=True)
class FarBelow(Check):
    """A validation loss far below the training loss of the interval that followed."""

    needed: int
    share: float
    extreme: float
    before: Evaluation | None = None
    ratios: list[float] = field(default_factory=list)  # of those in a row

    def look(self, e: Evaluation) -> Suspicion | None:
        """Eight running; each is judged when the next one comes."""
        past, self.before = self.before, e
        if past is None or not len(e.since):
            return None
        ratio = self._ratio(past, e)
        count = self.row.take(past, ratio < self.share)
        self.ratios = [*self.ratios, ratio][-self.needed :] if count else []
        if count < self.needed:
            return None
        usual, level = median(np.array(self.ratios)), float(e.since.mean())
        words = (
            f"is {short(usual, 3)} of the training loss in {count} evaluations running "
            f"({short(past.value)} beside {short(level)} after it)"
        )
        evidence = {"share of training loss": usual, "value": past.value, "training loss": level}
        return Suspicion("far-below", words, evidence, self.row.step, self.row.time, mild=usual >= self.extreme)

    def holds(self, e: Evaluation) -> bool:
        """Return whether the last one that could be judged was too low."""
        return self.row.count > 0

    @staticmethod
    def _ratio(past: Evaluation, e: Evaluation) -> float:
        level = float(e.since.mean())
        return past.value / level if past.value > 0 and level > 0 else math.nan


@dataclass(slots=True, kw_only=True)
class Perfect(Check):
    """A metric of exactly 1 (or 100) from the first evaluation on, while training has hardly begun to learn."""

    needed: int
    standing: float

    def look(self, e: Evaluation) -> Suspicion | None:
        """The first five, in a log that saw the start."""
        count = self.row.take(e, self.holds(e))
        self.settled = count < e.number or count >= self.needed
        saw_the_start = self.row.step <= max(1, e.step - self.row.step)
        if count != self.needed or e.number != count or not saw_the_start or not e.level > self.standing * e.begun:
            return None
        words = (
            f"is exactly {e.value:g} in its first {count} evaluations while the training loss still is "
            f"{short(e.level)} ({short(e.begun)} at first)"
        )
        evidence = {"value": e.value, "first loss": e.begun, "loss now": e.level}
        return Suspicion("perfect", words, evidence, self.row.step, self.row.time)

    def holds(self, e: Evaluation) -> bool:
        """Return whether it is perfect."""
        return e.value in (1.0, 100.0)
