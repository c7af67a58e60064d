"""lr-declared: the decay that is applied isn't the one that was announced.

What it detects: with the schedule's name, peak and planned steps from the log's settings (or `--set`): a rate
that stands still while it should long have moved; a schedule that runs through its steps at the wrong pace, by a
constant factor, which is computed; a schedule that is over long before the end. As an info also a rate that moves
although it was announced as constant, a highest rate that isn't the one announced, and a curve of another form.

Why it matters: a schedule that isn't applied is the common silent bug: the loss still falls, only worse, and nobody
looks at the rate. The classic is a scheduler that is stepped once a micro-batch, a process or an epoch instead of
once an update.

Example: cosine over 1,000 steps with 8 micro-batches an update: the rate is at its end after 125 steps.

When it is wrong: the settings count other steps than the log does (micro-batches or epochs against updates). So a
schedule that seems too fast is an info until the factor is that of the accumulation or of the devices, or
training goes on after its end; and one that seems too slow by just the accumulation is an info. Where the peak, or the
end of the decay, isn't known, what is usual is allowed (ends of 0 to a tenth of the peak). Shapes that depend on
more than steps (steps, cycles, plateaus, WSD) are at most asked whether they move at all. Parameter groups with a
scaled rate are judged by their own peak. Without the schedule's name and the planned steps it is blind.

Fixes: step the scheduler once an update, and give it the number of updates; log the rate that the optimizer uses.

Source: peers' wish list (pytorch 60265, transformers 27749, gpt-neox 1029); the tests are our own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trainmon_rules.detectors.against_plan import AGREES, AgainstPlan, Said, explained
from trainmon_rules.detectors.base import Peer, Rule
from trainmon_rules.detectors.course import Pace, off_by, whole
from trainmon_rules.detectors.schedule import printed_to
from trainmon_rules.findings import Finding, Severity
from trainmon_rules.schedules import MOVING, PEAKED, Schedule, announced
from trainmon_rules.series import Block, Series
from trainmon_rules.vocabulary import RunSettings
from trainmon_rules.words import short

TOLD = ("linear", "cosine")  # shapes whose decay follows from its end alone
PRINTS = 64  # reports whose spacing shows how they are printed
LOOKS = 5  # in a row that show another curve


class LrDeclared(AgainstPlan):
    """Asks whether the rate falls as announced."""

    name: ClassVar[str] = "lr-declared"
    sparing = True

    @dataclass(frozen=True, slots=True)
    class Params:
        """How much must be wrong.

        `moved` is the share of the peak by which the rate should have moved while it stood still for `still` of the
        planned steps; `off` the distance from the curve, as a share of the peak; `reports` how many must be there.
        """

        moved: float = 0.25
        still: float = 0.4
        off: float = 0.1
        reports: int = 20

    params: Params

    def __init__(self, rule: Rule, series: Series, peer: Peer, settings: RunSettings) -> None:
        super().__init__(rule, series, peer, settings)
        self.least = self.params.reports
        self.pace = Pace()
        self.off, self.off_since = 0, 0  # looks in a row off the curve, and the step of the first
        self.form = ""  # of what was said and goes on
        self.peak_said = False

    def blind(self) -> str:
        """Return which part of the announcement is missing."""
        plan = announced(self.setting)
        if plan is not None and plan.total is None and plan.shape in (*MOVING, "wsd") and plan.shape != "inverse-sqrt":
            return "the number of planned steps isn't known (--set total_steps=10000)"
        return super().blind()

    def look(self, block: Block, plan: Schedule, step: int, rate: float) -> Iterator[Finding]:
        """Say the first thing that is wrong; of the peak beside it."""
        if self.form and self.open is not None:
            yield from self._later(self.open, plan, step, rate)
            return
        top, start = self.reference(plan), self.course.peak_step if self.saw_start(plan) else plan.warmup or 0
        said = self._not_constant(plan, step, rate)
        if said is None and top is not None:
            said = self._stands(plan, step, rate, top)
            if said is None and plan.shape in TOLD and plan.total and start < step <= plan.total:
                said = self._ended(plan.total, top, step, rate) or self._wrong_pace(plan, step, rate, top, start)
                said = said or self._off_curve(plan, plan.total, step, rate / top, start)
        if said is not None:
            self.form = said.form
        else:
            said = self._wrong_peak(plan, step, rate)
            self.peak_said |= said is not None
        if said is not None:
            self.open = self.say(block, rate, said)
            yield self.open

    # ------------------------------------------------------------------ the decay
    def _stands(self, plan: Schedule, step: int, rate: float, top: float) -> Said | None:
        c, p, total = self.course, self.params, plan.total or 0
        since = max(c.since, plan.warmup or 0)
        if c.ties < p.reports or step - since < p.still * total or rate < 0.5 * top:
            return None
        expected = self.expected(plan, step)
        if plan.shape in TOLD or plan.shape == "inverse-sqrt":
            moved = abs(self.expected(plan, since) - expected) / top >= p.moved
        elif plan.shape == "wsd":
            moved = bool(total) and step >= 0.99 * total and since <= 0.5 * total
        else:
            moved = plan.shape in MOVING and bool(total) and step >= 0.6 * total
        if not moved:
            return None
        planned = f" over {total} steps" if total else ""
        an = "an" if plan.shape[0] in "aeiou" else "a"
        words = f"has stood at {short(rate)} since step {c.since}; announced was {an} {plan.shape} schedule{planned}"
        evidence = {"announced": expected} if math.isfinite(expected) else {}
        return Said("never moves", words, {**evidence, "planned": total}, self.rule.severity, since)

    def _wrong_pace(self, plan: Schedule, step: int, rate: float, top: float, start: int) -> Said | None:
        factor = self.pace.look(plan, step, rate / top, 0.5 * printed_to(self.recent(PRINTS)) / top, start)
        if factor is None:
            return None
        cause, counts_otherwise = explained(self.setting, factor.best)
        expected, fast = self.expected(plan, step), factor.best > 1
        pace = f"{whole(factor.best)} times too {'fast' if fast else 'slowly'}"
        words = (
            f"runs through its {plan.shape} schedule {pace}{cause}: "
            f"{short(rate, 3)} at step {step}, where {short(expected, 3)} was announced"
        )
        sure = bool(cause) if fast else not counts_otherwise
        evidence = {"factor": factor.best, "announced": expected, "planned": plan.total}
        severity = self.rule.severity if sure else Severity.INFO
        return Said("too fast" if fast else "too slow", words, evidence, severity, start)

    def _ended(self, total: int, top: float, step: int, rate: float) -> Said | None:
        """The decay was over long before the planned end, and training goes on: that is so whatever the steps count."""
        c = self.course
        still = step - c.since
        over = c.ties >= self.params.reports and still >= 0.1 * c.since and still >= 2 * c.longest
        if rate >= 0.5 * top or not c.peak_step < c.since <= 0.8 * total or not over:
            return None
        factor = total / c.since
        words = (
            f"was at the end of its schedule ({short(rate, 3)}) at step {c.since} of {total}, "
            f"{whole(factor)} times too early{explained(self.setting, factor)[0]}"
        )
        evidence = {"factor": factor, "planned": total, "end": c.since}
        return Said("too fast", words, evidence, self.rule.severity, c.since)

    # ------------------------------------------------------------------ what may be meant
    def _not_constant(self, plan: Schedule, step: int, rate: float) -> Said | None:
        c, warmup = self.course, plan.warmup or 0
        fell = rate < (1 - AGREES) * c.peak and warmup <= c.peak_step < step
        if plan.shape != "constant" or c.count < self.params.reports or not fell:
            return None
        words = f"has fallen from {short(c.peak)} to {short(rate)}, though it was announced as constant"
        return Said("not constant", words, {"announced": c.peak}, Severity.INFO, c.peak_step)

    def _off_curve(self, plan: Schedule, total: int, step: int, share: float, start: int) -> Said | None:
        stands = self.course.ties >= self.params.reports  # that is said in other words, once it has stood for long
        if stands or step <= (plan.warmup or 0) or not off_by(plan, step, share, start) > self.params.off:
            self.off = 0
            return None
        self.off += 1
        self.off_since = step if self.off == 1 else self.off_since
        soon = self.off < LOOKS or step - self.off_since < 0.1 * total or self.course.count < self.params.reports
        if soon or self.pace.seen is not None:
            return None
        expected = self.expected(plan, step)
        words = f"isn't on the announced {plan.shape} curve, which has {short(expected, 3)} at step {step}"
        return Said("another curve", words, {"announced": expected, "planned": total}, Severity.INFO, self.off_since)

    def _wrong_peak(self, plan: Schedule, step: int, rate: float) -> Said | None:
        c, n, total = self.course, self.params.reports, plan.total or 0
        rises = plan.warmup if plan.warmup is not None else 0.2 * total
        rises = 0.5 * total if plan.shape == "one-cycle" else rises
        past = step > max(rises, c.peak_step) and (rate < 0.98 * c.peak or (c.ties >= n and rises > 0))
        judged = plan.shape in (*PEAKED, "one-cycle") and past and c.count >= n and self.saw_start(plan)
        if self.peak_said or not judged or not plan.peak:
            return None
        late = plan.shape in TOLD and c.peak_step == c.first_step >= (plan.warmup or 0)  # the log begins after the peak
        ratio = c.peak / (plan.peak * (max(0.5, float(plan.share(np.array([c.peak_step]))[0])) if late else 1.0))
        if abs(ratio - 1) <= 2 * AGREES:
            return None
        words = (
            f"is at most {short(c.peak)}, {short(ratio, 3)} times what was announced with a peak of {short(plan.peak)}"
        )
        return Said("another peak", words, {"announced": plan.peak, "ratio": ratio}, Severity.INFO, c.peak_step)

    # ------------------------------------------------------------------ its life
    def _later(self, found: Finding, plan: Schedule, step: int, rate: float) -> Iterator[Finding]:
        """What only seemed too fast is sure once training goes on after the schedule's end."""
        self.open, top = found.changed(last_step=step), self.reference(plan)
        if self.form not in ("too fast", "another curve") or found.severity >= self.rule.severity:
            return
        ended = self._ended(plan.total, top, step, rate) if plan.total and top and step <= plan.total else None
        if ended is not None:
            self.form = ended.form
            evidence = {**found.evidence, **ended.evidence, "form": ended.form, "applied": rate}
            summary = f"{self.series.tag} {ended.words}"
            self.open = self.open.changed(severity=ended.severity, summary=summary, evidence=evidence)
            yield self.open
