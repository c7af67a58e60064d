"""lr-zero: the learning rate is 0 while training goes on.

What it detects: a rate of exactly 0. Three reports of it are enough where it fell from far above in one report, or
came down before 95 % of the planned steps; else it takes 20 reports and a tenth of the run, and 40 where it was 0
from the first report on.

Why it matters: nothing is trained any more, and every further hour is lost. Nothing else in the log shows it but a
loss that stands still.

Example: a linear decay over 1,000 steps in a run of 8,000: the scheduler counts micro-batches, and the rate is 0
after an eighth of the run.

When it is wrong: a rate printed with six decimals is 0.000000 near the end of every decay, and while a long warm-up
begins. So the spacing of the printed rates is measured, and for as long as the decay could be hidden below it
(a share of the run, or of the cycle, that follows from the peak) nothing is said. A first report of 0 before the
warm-up's first step, updates skipped while the loss scale is found, and the one 0 between two cycles are no fault
either. A rate that was 0 from the start while the loss clearly falls is one of several (a frozen group), or a print.

Fixes: tell the scheduler the real number of updates and step it once an update; build it after the optimizer and
over the same parameter groups.

Source: formula 10 and trap 9 of the prototype; the share hidden by printing is our own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trainmon_rules.detectors.against_plan import explained
from trainmon_rules.detectors.base import Detector, Peer, Rule, resolved
from trainmon_rules.detectors.course import Course
from trainmon_rules.detectors.evaluations import row_noise
from trainmon_rules.detectors.resumed import told_before
from trainmon_rules.detectors.schedule import PRINTED, Descent, descent
from trainmon_rules.findings import Finding
from trainmon_rules.schedules import announced
from trainmon_rules.series import RING, Block, Series
from trainmon_rules.series.robust import median
from trainmon_rules.series.trend import is_rate, next_look
from trainmon_rules.vocabulary import RunSettings
from trainmon_rules.words import short

WARMUP = 0.1  # of the planned steps: the longest usual warm-up


class LrZero(Detector):
    """Counts reports of 0 and asks how the rate got there."""

    name: ClassVar[str] = "lr-zero"

    @dataclass(frozen=True, slots=True)
    class Params:
        """Reports of 0.

        `sure` where the rate can't have come down by itself or the plan says that it is too early; `reports` else, with
        `share` of the steps before; `start` where it was 0 from the first report on. `end` is the part of the planned
        steps after which 0 is no fault.
        """

        sure: int = 3
        reports: int = 20
        start: int = 40
        share: float = 0.1
        end: float = 0.95

    params: Params

    def __init__(self, rule: Rule, series: Series, peer: Peer, settings: RunSettings) -> None:
        super().__init__(rule, series, peer, settings)
        self.least = self.params.sure
        self.course = Course()
        self.zeros = 0  # reports of 0 in a row
        self.since = (0, math.nan)  # step and time of the first of them
        self.came: Descent | None = None
        self.look_at = 0  # how many of them must be there for the next look

    def update(self, block: Block) -> Iterator[Finding]:
        """Follow the zeros report by report; blocks without any only raise the peak."""
        ok = is_rate(block.value)
        if not self.zeros and not (block.value == 0.0).any():
            self.course.take(block.step[ok], block.value[ok])
            return
        for i in np.flatnonzero(ok).tolist():
            if block.value[i] == 0.0:
                yield from self._zero(block, i)
            else:
                yield from self._alive(block, i)

    def _alive(self, block: Block, i: int) -> Iterator[Finding]:
        self.course.take(block.step[i : i + 1], block.value[i : i + 1])
        self.zeros = 0
        if self.open is not None:
            step = int(block.step[i])
            yield resolved(self.open, step, f"the rate is {short(float(block.value[i]))} again at step {step}")
            self.open = None

    def _zero(self, block: Block, i: int) -> Iterator[Finding]:
        self.zeros += 1
        step = int(block.step[i])
        if self.zeros == 1:
            self.since, self.look_at = (step, float(block.time[i])), self.params.sure
            before = self.series.before(block.start + i, RING)
            self.came = descent(before, self.course, step)
        if self.open is not None:
            evidence = {**self.open.evidence, "reports of 0": self.zeros}
            self.open = self.open.changed(last_step=step, evidence=evidence)
        elif self.zeros >= self.look_at or self.zeros in (self.params.reports, self.params.start):
            self.look_at = next_look(self.zeros)
            said = self._from_the_start(block, i) if self.came is None else self._came_down(self.came, step)
            if said is not None:
                self.open = self.finding(block, i, *said, *self.since)
                yield self.open

    # ------------------------------------------------------------------ is it a fault?
    def _came_down(self, came: Descent, step: int) -> tuple[str, dict[str, Any]] | None:
        p, total, start = self.params, self.setting("total_steps") or 0, self.since[0]
        evidence: dict[str, Any] = {"rate before": came.last, "peak": self.course.peak, "reports of 0": self.zeros}
        if came.sudden:
            fell = f"fell from {short(came.last)} to 0 at step {start}"
            return f"{self.series.tag} {fell} and stays there: nothing is trained", {**evidence, "form": "zero at once"}
        if step - start <= came.printed:
            return None
        summary = f"{self.series.tag} came down to 0 at step {start}"
        if total and start < (p.end - came.hidden) * total:
            factor = total / max(1, start)
            part = f"after {100 * start / total:.2g} % of the {total} steps planned{explained(self.setting, factor)[0]}"
            evidence |= {"form": "zero too early", "planned": total, "factor": factor}
            return f"{summary}, {part}, and training goes on", evidence
        over = step - start > (p.share + 2 * came.hidden) * max(1, start)
        if self.zeros >= p.reports and over and step > total:
            summary = f"{summary}, and training still went on {self.zeros} reports later"
            return summary, {**evidence, "form": "zero at the end"}
        return None

    def _from_the_start(self, block: Block, i: int) -> tuple[str, dict[str, Any]] | None:
        step = int(block.step[i])
        if self.zeros < self.params.start or self._warms_up(step) or self._was_zero(step):
            return None
        learns, plan = self._learns(block, i), self.setting("warmup_steps") or self.setting("total_steps")
        if learns or (learns is None and not (plan and self.setting("learning_rate"))):
            return None
        summary = f"{self.series.tag} was 0 in all of the first {self.zeros} reports: nothing is trained"
        return summary, {"reports of 0": self.zeros, "form": "zero from the start"}

    def _warms_up(self, step: int) -> bool:
        """Whether a warm-up (as announced, or a tenth of the planned steps) may still be below what is printed."""
        plan = announced(self.setting)
        warmup = (plan.warmup if plan else None) or self.setting("warmup_steps")
        peak = self.setting("learning_rate") or 0.0
        if peak and peak <= 2 * PRINTED:
            return True
        if not warmup:
            return step < WARMUP * (self.setting("total_steps") or 0)
        return bool(step < warmup and (not peak or peak * step / warmup < 2 * PRINTED))

    def _was_zero(self, step: int) -> bool:
        """Whether a resumed attempt goes on where the one before had (nearly) come to 0."""
        near = told_before(self.series).around(step) if self.series.older is not None else None
        return near is not None and near[0] <= 2 * PRINTED

    def _learns(self, block: Block, i: int) -> bool | None:
        """Whether the training loss fell while the rate was 0; None where there is no loss to tell."""
        view = self.peer("train_loss", block, i, RING)
        y = view.finite_where(view.step >= self.since[0])
        k = len(y) // 3
        if k < 5:
            return None
        gain, error = median(y[:k]) - median(y[-k:]), 1.25 * row_noise(y) * math.sqrt(2.0 / k)
        return gain > max(4 * error, 0.01 * abs(median(y[:k])))
