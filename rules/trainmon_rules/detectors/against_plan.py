"""What `lr-warmup` and `lr-declared` share: the rate as logged beside the schedule as announced."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from trainmon_rules.detectors.base import Detector, Peer, Rule
from trainmon_rules.detectors.course import Course, course_of
from trainmon_rules.findings import Finding, Severity
from trainmon_rules.points import FloatArray
from trainmon_rules.roles.tags import plain
from trainmon_rules.schedules import Schedule, announced
from trainmon_rules.series import RING, Block, Series, block_end
from trainmon_rules.series.trend import is_rate, next_look
from trainmon_rules.vocabulary import RunSettings

FIXED = ("base_lr", "initial_lr", "init_lr", "max_lr", "min_lr", "peak_lr", "target_lr")  # settings logged as a column
AGREES = 0.05  # relative difference of the highest rate from the peak announced that is none
MATCH = 0.05  # relative difference within which a factor is the accumulation's or the devices'


@dataclass(frozen=True, slots=True)
class Said:
    """What a test says: the form of the fault, the sentence behind the tag, numbers, severity, and the first step."""

    form: str
    words: str
    evidence: dict[str, Any]
    severity: Severity
    onset: int


def explained(get: Callable[[str], Any], factor: float) -> tuple[str, bool]:
    """Return in words what a factor of the pace comes from, and whether the log may just count micro-batches.

    Parameters
    ----------
    get : function of a name to a value or None
        Settings in the vocabulary's names.
    factor : float
        Schedule's steps a step of the log.
    """
    micro, devices = get("accumulate_grad_batches") or 1, get("world_size") or 1
    if micro > 1 and abs(factor / micro - 1) < MATCH:
        return f", as if stepped with each of the {micro} micro-batches of an update", False
    if devices > 1 and abs(factor / devices - 1) < MATCH:
        return f", as if each of the {devices} devices stepped it", False
    if micro > 1 and abs(factor * micro - 1) < MATCH:
        return f"; the log may count the {micro} micro-batches of an update", True
    return "", False


class AgainstPlan(Detector):
    """Takes whole blocks of rates; subclasses compare at their ends, in `look`.

    `sparing` ones look only once the run has grown by a twentieth.
    """

    sparing = False

    def __init__(self, rule: Rule, series: Series, peer: Peer, settings: RunSettings) -> None:
        super().__init__(rule, series, peer, settings)
        self.course = Course()
        self.taken = 0
        self.look_at = 1  # reports that must be there for the next look
        self.looked = 0  # step of the last look
        self.fixed = plain(series.tag).rsplit("/", 1)[-1] in FIXED

    def blind(self) -> str:
        """Return which part of the announcement is missing."""
        if announced(self.setting) is not None:
            return super().blind()
        name = self.setting("lr_schedule")
        what = f"the schedule {name!r} isn't one it knows" if name else "the schedule's name isn't known"
        return f"{what} (--set lr_schedule=cosine)"

    def update(self, block: Block) -> Iterator[Finding]:
        """Take a whole block, and look."""
        end = block.start + len(block)
        if self.fixed or end != block_end(end - 1):
            return
        self.course = course_of(self.series, end)
        self.taken = end
        plan = announced(self.setting) if self.course.peak > 0 else None
        if plan is None:
            return
        step, last = self.course.step, 0.99 * (plan.total or math.inf)
        if end >= self.look_at or self.looked < last <= step:  # at the planned end in any case
            self.look_at, self.looked = next_look(end) if self.sparing else end + 1, step
            yield from self.look(block, plan, step, self.course.value)

    def look(self, block: Block, plan: Schedule, step: int, rate: float) -> Iterator[Finding]:
        """Compare the rate at the end of a block with the plan."""
        raise NotImplementedError

    def say(self, block: Block, rate: float, said: Said) -> Finding:
        """Return what was said as a finding at the end of the block."""
        evidence = {"form": said.form, "applied": rate, **said.evidence}
        summary = f"{self.series.tag} {said.words}"
        return self.finding(block, len(block) - 1, summary, evidence, said.onset, severity=said.severity)

    def recent(self, n: int = RING) -> FloatArray:
        """Return the last `n` rates."""
        values = self.series.before(self.taken, n).value
        return values[is_rate(values)]

    def saw_start(self, plan: Schedule) -> bool:
        """Whether the highest rate was seen, if the schedule is the one announced."""
        return self.course.first_step <= max(plan.warmup or 0, 0.1 * (plan.total or 0), 1)

    def reference(self, plan: Schedule) -> float | None:
        """Return the peak that shares refer to: the one applied, or the announced where that agrees or it wasn't seen.

        Groups with a scaled rate, or a rate scaled by the batch, keep the form of their schedule.
        """
        if plan.peak and (not self.saw_start(plan) or abs(self.course.peak / plan.peak - 1) < AGREES):
            return plan.peak
        return self.course.peak if self.saw_start(plan) else None

    def expected(self, plan: Schedule, step: int) -> float:
        """Return the rate that the plan has at a step; NaN if it can't be told."""
        return (self.reference(plan) or float("nan")) * float(plan.share(np.array([step]))[0])
