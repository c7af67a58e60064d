"""lr-jump: the learning rate jumps above everything it was before.

What it detects: two reports at more than 1.5 times the highest rate so far, reached in one report, after twenty in
which the rate did not rise. Each parameter group is judged by itself.

Why it matters: the optimizer's state belongs to the smaller steps; a jump like that is a common reason for a loss that
spikes or diverges, and mostly nobody meant it (a second scheduler, a rate scaled by the new number of devices, a
resume that forgot where it was).

Example: 6e-5 for thousands of steps, 3e-4 from one report to the next.

When it is wrong: a warm restart comes back to at most the earlier peak, a cyclic or one-cycle schedule rises report
by report, and a rate that falls in steps never rises: all of them are silent. A warm-up in steps (one an epoch) jumps
too, so a rate that has never fallen yet counts as warming up, and nothing is said before twice the warm-up or a
quarter of the planned steps is over (`--set total_steps=…` where the log doesn't say). In a log that begins late it is
an info: the highest rate may not stand in it. A rate raised by hand is found as well; then it is no fault, but it
belongs into the records.

Fixes: find what set it (scheduler, scaling by batch or devices, a hand); go back to the checkpoint before the jump if
the loss followed it.

Source: formula 10 and trap 10 of the prototype.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trainmon_rules.detectors.base import Detector, Peer, Rule, resolved
from trainmon_rules.detectors.resumed import earlier
from trainmon_rules.detectors.schedule import JUMP, printed_to
from trainmon_rules.findings import Finding, Severity
from trainmon_rules.points import FloatArray
from trainmon_rules.schedules import announced
from trainmon_rules.series import RING, Block, Series
from trainmon_rules.series.trend import is_rate
from trainmon_rules.vocabulary import RunSettings
from trainmon_rules.words import short

SAME = 1.001  # times the rate before: less is no rise
FALLEN = 0.95  # of the peak: then the warm-up is over
BACK = 3  # reports at the old level that end it


class LrJump(Detector):
    """Compares each rate with the highest before it."""

    name: ClassVar[str] = "lr-jump"

    @dataclass(frozen=True, slots=True)
    class Params:
        """How much of a jump it must be, after how many reports that did not rise.

        `begun` is the part of the planned steps after which a rate that has never fallen isn't warming up any more.
        """

        jump: float = JUMP
        calm: int = 20
        begun: float = 0.25

    params: Params

    def __init__(self, rule: Rule, series: Series, peer: Peer, settings: RunSettings) -> None:
        super().__init__(rule, series, peer, settings)
        self.least = self.params.calm + 2
        self.peak = 0.0
        self.last = 0.0
        self.calm = 0  # reports in a row that did not rise
        self.at: tuple[int, float, float] | None = None  # step, time and rate before of a jump that isn't confirmed
        self.back = 0
        self.first_step = 1 << 62  # of the attempts before

    def update(self, block: Block) -> Iterator[Finding]:
        """Look report by report where one of them is above the highest before the block; else only take them in."""
        if block.start == 0:
            self._remember()
        good = np.flatnonzero(is_rate(block.value))
        rate = block.value[good]
        if not len(rate):
            return
        if self.at is None and self.open is None and float(rate.max()) <= self.params.jump * self.peak:
            self._take(rate)
            return
        for i, value in zip(good.tolist(), rate.tolist(), strict=True):
            if self.open is not None:
                yield from self._follow(block, i, value)
            elif self.at is not None:
                yield from self._confirm(block, i, value)
            elif self.calm >= self.params.calm and self._is_above(block.start + i, value):
                self.at = int(block.step[i]), float(block.time[i]), value
            else:
                self._take(np.array([value]))

    def _remember(self) -> None:
        """The highest rate so far is that of all attempts."""
        for older in earlier(self.series):
            high = older.history.whole()[3]
            self.peak = max(self.peak, float(high.max(initial=0.0, where=is_rate(high))))
            self.first_step = min(self.first_step, int(older.history.first_step[0]))

    def _is_above(self, index: int, value: float) -> bool:
        """Whether a rate is above the highest so far, by more than printing can make of it."""
        if not value > self.params.jump * self.peak > 0:
            return False
        recent = self.series.before(index + 1, RING).value
        digit = printed_to(recent[is_rate(recent)])
        return value - digit > self.params.jump * (self.peak + digit)

    def _take(self, rate: FloatArray) -> None:
        rises = np.flatnonzero(rate > SAME * np.concatenate([[self.last], rate[:-1]]))
        self.calm = len(rate) - 1 - int(rises[-1]) if len(rises) else self.calm + len(rate)
        self.peak, self.last = max(self.peak, float(rate.max())), float(rate[-1])

    def _confirm(self, block: Block, i: int, value: float) -> Iterator[Finding]:
        """A second report up there makes it a jump; a single one is a slip of the log."""
        if self.at is None:
            return
        step, time, first = self.at
        self.at = None
        if value <= self.params.jump * self.peak:
            self._take(np.array([value]))
            return
        if not self._is_past_warmup(step):
            self._take(np.array([first, value]))
            return
        ratio = first / self.peak
        summary = (
            f"{self.series.tag} jumped from {short(self.last)} to {short(first)}, "
            f"{short(ratio, 3)} times the highest rate before"
        )
        evidence = {"form": "jump", "rate before": self.last, "rate": first, "peak before": self.peak, "ratio": ratio}
        severity = self.rule.severity if self._saw_the_peak(step) else Severity.INFO
        self.open, self.back = self.finding(block, i, summary, evidence, step, time, severity), 0
        yield self.open

    def _is_past_warmup(self, step: int) -> bool:
        """Whether the rate has come down from its peak once, or a good part of the run is over."""
        plan = announced(self.setting)
        warmup = (plan.warmup if plan else None) or self.setting("warmup_steps") or 0
        if step <= 1.1 * warmup:
            return False
        total, doubled = self.setting("total_steps") or 0, bool(warmup) and step >= 2 * warmup
        return self.last < FALLEN * self.peak or doubled or bool(total and step >= self.params.begun * total)

    def _saw_the_peak(self, step: int) -> bool:
        """Whether more of the run was seen than had passed before the log begins."""
        first = min(self.first_step, int(self.series.history.first_step[0]))
        return first <= max(1, step - first)

    def _follow(self, block: Block, i: int, value: float) -> Iterator[Finding]:
        if self.open is None:
            return
        step = int(block.step[i])
        if value > self.params.jump * self.peak:
            self.open, self.back = self.open.changed(last_step=step), 0
            return
        self.back += 1
        if self.back >= BACK:
            yield resolved(self.open, step, f"back at {short(value)} by step {step}")
            self.open, self.calm, self.last = None, 0, value
