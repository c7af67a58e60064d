"""lr-resume: after a resume the learning rate isn't on the curve of the attempt before.

What it detects: three reports in a row whose rate is more than 5 % off what the attempts before applied at the same
steps (between their neighbouring reports). It says whether the schedule has started over (the run's very first rates
come again), stands at its peak again, or is off by a factor.

Why it matters: a scheduler whose state isn't restored warms up a second time, or goes back to the peak with weights
that need a small rate; the loss jumps, and the planned decay never ends where it should.

Example: resumed at step 8,000 of 10,000 with a rate of 3e-5; the log shows 0, 1e-6, 2e-6: the warm-up from step 0.

When it is wrong: a rate lowered on purpose, or a warm-up put in front of a resume on purpose, is an info. So is
a run that is extended after its schedule had ended. Where the earlier attempts did not log near these steps a
difference counts only from 1.5 times on.

Fixes: save and restore the scheduler's state (or its last step) with the optimizer's; check that the optimizer's own
rate isn't overwritten when its state is loaded.

Source: wishes in issue trackers (Lightning 4655 and 5455, DeepSpeed 5788, yolov5 292); the test is our own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trainmon_rules.detectors.base import Detector, Peer, Rule, resolved
from trainmon_rules.detectors.resumed import Told, earlier, is_resume, told_before
from trainmon_rules.detectors.schedule import printed_to
from trainmon_rules.findings import Finding, Severity
from trainmon_rules.points import FloatArray
from trainmon_rules.series import Block, Series
from trainmon_rules.series.trend import is_rate
from trainmon_rules.vocabulary import RunSettings
from trainmon_rules.words import short

WATCHED = 512  # reports after the resume in which the rate is compared
HIGHER = 1.2  # times the rate before: from here on it is no small correction
ENDED = 0.1  # of the peak: there the schedule was over
AGAIN = 0.05  # relative difference within which rates are the same
FIRST = 6  # reports compared with the last rate told, if the attempts before did not come so far
BACK = 8  # reports on the curve that end it


@dataclass(frozen=True, slots=True)
class Off:
    """A report that is off the curve: the rate, the nearest one that would be on it, and where it stands."""

    step: int
    time: float
    rate: float
    before: float

    @property
    def higher(self) -> bool:
        """Whether it is above the curve."""
        return self.rate > self.before


class LrResume(Detector):
    """Compares the first rates of a resumed attempt with those of the attempts before."""

    name: ClassVar[str] = "lr-resume"

    @dataclass(frozen=True, slots=True)
    class Params:
        """Relative difference that is none (`far` beyond what the attempts before logged), and reports it takes."""

        same: float = 0.05
        far: float = 0.5
        reports: int = 3

    params: Params

    def __init__(self, rule: Rule, series: Series, peer: Peer, settings: RunSettings) -> None:
        super().__init__(rule, series, peer, settings)
        self.told: Told | None = None
        self.digit = self.peak = 0.0
        self.off: list[Off] = []
        self.back = 0
        self.overlaps = False  # whether a report has been compared at a step that the attempts before reached

    def update(self, block: Block) -> Iterator[Finding]:
        """Compare report by report, until there is nothing more to compare with."""
        if self.series.older is None or block.start >= WATCHED:
            return
        told = self._told()
        for i, value in enumerate(block.value.tolist()):
            if block.start + i < WATCHED and len(told) and is_rate(block.value[i : i + 1])[0]:
                yield from self._report(block, i, value, told)

    def _told(self) -> Told:
        if self.told is None:
            told = told_before(self.series)
            self.told = told.where((told.low >= 0) & is_rate(told.high))
            self.digit = printed_to(self.told.mean[-64:])
            self.peak = float(self.told.high.max(initial=0.0))
        return self.told

    def _report(self, block: Block, i: int, value: float, told: Told) -> Iterator[Finding]:
        step = int(block.step[i])
        near = told.around(step)
        if near is None:
            return
        known = step <= told.step[-1]
        self.overlaps |= known
        if not known and (self.open is not None or block.start + i >= FIRST or (self.overlaps and not self.off)):
            return
        off = self._off(step, float(block.time[i]), value, near, self.params.same if known else self.params.far)
        if self.open is not None:
            yield from self._follow(step, off)
            return
        if off is None or (self.off and off.higher != self.off[-1].higher):
            self.off = []
        if off is not None:
            self.off.append(off)
        if len(self.off) == self.params.reports and is_resume(self.series, block.start + i):
            self.open = self._say(block, i)
            yield self.open

    def _off(self, step: int, time: float, rate: float, near: tuple[float, float], same: float) -> Off | None:
        low, high = near
        if rate > (1 + same) * high + self.digit:
            return Off(step, time, rate, high)
        return Off(step, time, rate, low) if rate < low / (1 + same) - self.digit else None

    # ------------------------------------------------------------------ what it is
    def _say(self, block: Block, i: int) -> Finding:
        first = self.off[0]
        rates = np.array([o.rate for o in self.off])
        form, words, severity = self._form(first, rates)
        summary = (
            f"{self.series.tag} is {short(first.rate)} at step {first.step}, after a resume, "
            f"where the attempt before had {short(first.before)}: {words}"
        )
        evidence: dict[str, Any] = {"form": form, "rate": first.rate, "rate before": first.before, "peak": self.peak}
        if first.before > 0:
            evidence["ratio"] = first.rate / first.before
        return self.finding(block, i, summary, evidence, first.step, first.time, severity)

    def _form(self, first: Off, rates: FloatArray) -> tuple[str, str, Severity]:
        if self._starts_over(rates):
            return "resume: over again", "the schedule has started over", self.rule.severity
        if not first.higher:
            if bool((np.diff(rates) > 0).all()) and first.rate < 0.5 * first.before:
                return "resume: warm-up", "it warms up again", Severity.INFO
            return "resume: lower", f"{short(first.rate / first.before, 3)} times as high", Severity.INFO
        if first.before <= ENDED * self.peak:
            return "resume: extended", "that schedule was at its end", Severity.INFO
        if abs(first.rate - self.peak) <= AGAIN * self.peak:
            return "resume: peak", "back at the peak", self.rule.severity
        ratio = first.rate / first.before
        words = f"{short(ratio, 3)} times as high"
        return "resume: higher", words, self.rule.severity if ratio > HIGHER else Severity.INFO

    def _starts_over(self, rates: FloatArray) -> bool:
        """Whether the run's very first rates come again, and rise (or stay) as they did."""
        root = [*earlier(self.series)][-1]
        first = root.first[is_rate(root.first)][: len(rates)]
        if len(first) < len(rates) or first[-1] <= 0:
            return False
        return bool((np.abs(rates - first) <= AGAIN * first + self.digit).all()) and float(first.max()) != float(
            first.min()
        )

    # ------------------------------------------------------------------ its life
    def _follow(self, step: int, off: Off | None) -> Iterator[Finding]:
        found = self.open
        if found is None:
            return
        if off is None:
            self.back += 1
            if self.back >= BACK and found.evidence["form"] != "resume: over again":  # that one only crosses the curve
                yield resolved(found, step, f"on the curve of the attempt before again by step {step}")
                self.open, self.off = None, []
            return
        self.back = 0
        self.open = found.changed(last_step=step)
        above = off.higher and off.rate > HIGHER * off.before > HIGHER * ENDED * self.peak
        if above and found.severity < self.rule.severity and found.evidence["form"] != "resume: extended":
            self.open = self.open.changed(severity=self.rule.severity)
            yield self.open
