"""lr-warmup: the announced warm-up doesn't happen, or doesn't end.

What it detects: with the schedule's name and its warm-up from the log's settings (or `--set`): a rate that stands at
its peak from the first report on, and one that still rises at 1.5 times the announced length.

Why it matters: the first updates are the least reliable ones; at full rate they can ruin a transformer for good. A
warm-up that goes on and on trains far below the rate that was tuned.

Example: warmup_steps 500 in the settings, and a rate of 3e-4 in each of the first reports.

When it is wrong: the settings count other steps than the log does. Where the factor is just that of the
accumulation, it is an info. Schedules that rise by nature (one-cycle, cyclic) aren't asked, nor are resumed attempts,
nor a log that begins after half of the warm-up. Without a schedule's name it is blind.

Fixes: step the scheduler once an update; check that warm-up steps and ratio aren't both set, and that the scheduler
isn't replaced after the optimizer was built.

Source: "a warm-up declared, the rate constant" of the wish lists (transformers 27749); the tests are our own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trainmon_rules.detectors.against_plan import AgainstPlan, Said, explained
from trainmon_rules.detectors.base import resolved
from trainmon_rules.detectors.course import whole
from trainmon_rules.detectors.schedule import printed_to
from trainmon_rules.findings import Finding, Severity
from trainmon_rules.schedules import PEAKED, Schedule
from trainmon_rules.series import RING, Block
from trainmon_rules.series.trend import is_rate
from trainmon_rules.words import short

FLAT = 0.99  # lowest over highest rate: above it nothing has risen
STEADY = 3  # reports that show that it goes on rising
LONGEST = 4  # times the warm-up: what doesn't rise then will not
TOP = 0.95  # of the announced peak: there the warm-up is over


class LrWarmup(AgainstPlan):
    """Asks whether the rate rises as announced, and stops rising."""

    name: ClassVar[str] = "lr-warmup"

    @dataclass(frozen=True, slots=True)
    class Params:
        """Reports that show whether a rate rises, and the factor by which a warm-up is too long."""

        reports: int = 5
        longer: float = 1.5

    params: Params
    done = False

    def look(self, block: Block, plan: Schedule, step: int, rate: float) -> Iterator[Finding]:
        """Say it once; a missing warm-up is over when it would have ended, a long one when the rate stops rising."""
        warmup = plan.warmup or 0
        if self.open is not None:
            yield from self._follow(self.open, warmup, step, rate)
        elif not self.done and plan.shape in PEAKED and warmup >= self.params.reports and not self.series.attempt:
            said = self._missing(plan, warmup, step, rate) or self._long(plan, warmup, step, rate)
            if said is not None:
                self.open = self.say(block, rate, said)
                yield self.open
            self.done = said is not None or step > LONGEST * warmup

    def _follow(self, found: Finding, warmup: int, step: int, rate: float) -> Iterator[Finding]:
        missing = found.evidence["form"] == "no warm-up"
        self.open = found.changed(last_step=step)
        if step < warmup if missing else self._rises(step, rate):
            return
        how = "the warm-up would be over" if missing else f"it no longer rises, {short(rate)}"
        yield resolved(self.open, step, f"{how} by step {step}")
        self.open = None

    def _missing(self, plan: Schedule, warmup: int, step: int, rate: float) -> Said | None:
        c, n = self.course, self.params.reports
        if c.low < FLAT * c.peak or c.count < n or 2 * c.first_step > warmup or c.first_step + n > warmup:
            return None
        at_peak = plan.peak is not None and rate >= 0.9 * plan.peak and 2 * step <= warmup
        if not at_peak and step < warmup:
            return None  # a warm-up in steps begins with a stretch at the same rate, too
        if rate <= 10 * printed_to(self.recent()):
            return None  # it may rise below the last digit
        words = f"is {short(rate)} from the first report on: the warm-up of {warmup} steps announced doesn't happen"
        return Said("no warm-up", words, {"warm-up": warmup}, self.rule.severity, c.first_step)

    def _long(self, plan: Schedule, warmup: int, step: int, rate: float) -> Said | None:
        if step < self.params.longer * warmup or not self._rises(step, rate):
            return None
        share = rate / plan.peak if plan.peak else 1.0
        longer = step / (warmup * share)
        if longer < self.params.longer or (plan.peak and share > TOP):
            return None
        cause, counts_otherwise = explained(self.setting, 1 / longer)
        times = f"{'' if plan.peak else 'at least '}{whole(longer)} times as long as the {warmup} steps announced"
        words = f"still rises at step {step} ({short(rate)}): the warm-up takes {times}{cause}"
        evidence: dict[str, Any] = {"warm-up": warmup, "factor": 1 / longer}
        evidence |= {"announced": plan.peak} if plan.peak else {}
        severity = Severity.INFO if counts_otherwise else self.rule.severity
        return Said("long warm-up", words, evidence, severity, warmup)

    def _rises(self, step: int, rate: float) -> bool:
        """Whether the rate rose steadily over the last fifth of the steps; a printed one does so in small stairs."""
        view = self.series.before(self.taken, RING)
        late = is_rate(view.value) & (view.step >= 0.8 * step)
        recent = view.value[late]
        if len(recent) < STEADY or view.step[0] > 0.82 * step:
            return False
        return bool((np.diff(recent) >= 0).all()) and 0.6 * rate < recent[0] < 0.95 * rate
