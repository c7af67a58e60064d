"""resume-jump: after a resume the loss is worse than the attempt before had left it.

What it detects: the median of the first eight reports after a resume lies above the level just below the resume step
by six standard errors, by 2 % of the level and by 0.5 % of the progress made, and that of the last three by half of it;
a smaller rise shows in the first 32. If the first three are as high as at the very start of the run, it says so.

Why it matters: something was not restored: the weights (then everything learnt is gone), the optimizer's moments (the
loss has a hump and needs hundreds of steps to come back), the schedule, or the place in the data. Each lost hour of it
is paid again at every resume.

Example: 2.31 at step 8,000; resumed there with fresh optimizer state, 2.62 in the first reports, back after 400 steps.

When it is wrong: a resume from an older checkpoint is compared with what the loss was at that step, and is quiet if
the attempt before had the same level at the same steps. A few worse reports that come back within eight are none. A
rise below 5 % of the level is an info: another order of the data does that. Resumes are told by steps that go back;
a resume at exactly the next step can't be seen.

Fixes: check that the checkpoint is found and loaded at all, and that it holds optimizer, scheduler, scaler, random
state and the place in the data.

Source: issue trackers (Lightning 4655, yolov5 292) and the chronicles of BLOOM and OPT; the test is that of
`divergence`, across the resume.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trainmon_rules.detectors.base import Detector, Peer, Rule, resolved
from trainmon_rules.detectors.resumed import Left, is_resume, left_below, told_before
from trainmon_rules.findings import Finding, Severity
from trainmon_rules.series import Block, Series, block_end
from trainmon_rules.series.robust import median
from trainmon_rules.vocabulary import RunSettings
from trainmon_rules.words import short

FIRST = 3  # reports that show whether it begins as at the start; as many show that it isn't back
LATER = 4  # times as many reports for a smaller rise
SMALL = 0.05  # of the level: a smaller rise is an info


class ResumeJump(Detector):
    """Compares the first reports of a resumed attempt with the level before it."""

    name: ClassVar[str] = "resume-jump"

    @dataclass(frozen=True, slots=True)
    class Params:
        """Standard errors, share of level and of progress; `reports` within which it may come back.

        `lost` is the share of the progress that must be gone for the loss to be as at the start.
        """

        errors: float = 6.0
        level: float = 0.02
        progress: float = 0.005
        reports: int = 8
        lost: float = 0.8

    params: Params

    def __init__(self, rule: Rule, series: Series, peer: Peer, settings: RunSettings) -> None:
        super().__init__(rule, series, peer, settings)
        self.left: Left | None = None
        self.new: list[float] = []
        self.done = series.older is None
        self.first = (0, math.nan)
        self.since = 0  # index of the first report after the resume
        self.limit = math.inf  # rise below which it is back

    def update(self, block: Block) -> Iterator[Finding]:
        """Collect the first reports, decide, and follow what was said until it is back."""
        if self.open is not None:
            yield from self._follow(block, self.open)
            return
        for i, y in enumerate(block.judged.tolist() if not self.done else ()):
            if math.isfinite(y) and not self.done:
                yield from self._report(block, i, y)

    def _report(self, block: Block, i: int, y: float) -> Iterator[Finding]:
        if not self.new:
            self.first, self.since = (int(block.step[i]), float(block.time[i])), block.start + i
            self.left = left_below(self.series, self.first[0])
        self.new.append(y)
        n, left = len(self.new), self.left
        if left is None or (n == FIRST and not is_resume(self.series, block.start + i)):
            self.done = True
        elif n in (self.params.reports, LATER * self.params.reports):
            self.done = n > self.params.reports
            least, rise = self._least(left, n), median(np.array(self.new)) - left.level
            late = median(np.array(self.new[-max(FIRST, n // 4) :])) - left.level
            if rise > least + self._was_as_high(left, int(block.step[i])) and late > 0.5 * least:
                yield self._say(block, i, left, least)

    # ------------------------------------------------------------------ how much is a rise
    def _least(self, left: Left, n: int) -> float:
        p = self.params
        progress = max(0.0, left.start - left.level)
        return max(p.errors * left.error(n), p.level * abs(left.level), p.progress * progress)

    def _was_as_high(self, left: Left, step: int) -> float:
        """Return by how much the attempt before itself was higher at the steps that are trained again."""
        told = told_before(self.series)
        y = self.series.judged_of(told.mean[(told.step >= self.first[0]) & (told.step <= step)])
        y = y[np.isfinite(y)]
        return max(0.0, median(y) - left.level) if len(y) >= FIRST else 0.0

    def _as_at_the_start(self, left: Left, now: float) -> bool:
        progress = left.start - left.level
        large = progress > max(2 * self.params.errors * left.noise, 0.1 * abs(left.start))
        return large and now - left.level >= self.params.lost * progress

    # ------------------------------------------------------------------ what it says
    def _say(self, block: Block, i: int, left: Left, least: float) -> Finding:
        self.done, self.limit = True, 0.5 * least
        step, time = self.first
        sign = self.series.direction or 1
        level_now = median(np.array(self.new))
        anew = self._as_at_the_start(left, min(self.new[:FIRST]))
        how = f" (as at the start: {short(sign * left.start)})" if anew else ""
        after = f"after the resume at step {step}, {short(sign * level_now)}{how}"
        summary = f"{self.series.tag} is higher {after}, than it was before, {short(sign * left.level)}"
        evidence: dict[str, Any] = {
            "level before": sign * left.level,
            "level after": sign * level_now,
            "rise": level_now - left.level,
            "least rise": least,
            "first level": sign * left.start,
            "form": "as at the start" if anew else "above",
        }
        large = anew or level_now - left.level > SMALL * abs(left.level)
        severity = self.rule.severity if large else Severity.INFO
        self.open = self.finding(block, i, summary, evidence, step, time, severity)
        return self.open

    def _follow(self, block: Block, found: Finding) -> Iterator[Finding]:
        """See, at the ends of blocks, whether as many reports as it took are back at the level."""
        end = block.start + len(block)
        n = max(len(self.new), self.params.reports)
        if self.left is None or end != block_end(end - 1) or end == block_end(found.index):
            return
        step = int(block.step[-1])
        self.open = found.changed(last_step=step)
        y = self.series.judged_of(self.series.before(end, min(n, end - self.since)).value)
        y = y[np.isfinite(y)]
        if len(y) < n // 2 or median(y) - self.left.level >= self.limit:
            return
        level = short(median(y) * (self.series.direction or 1))
        yield resolved(self.open, step, f"back at {level} by step {step}, {end - self.since} reports after the resume")
        self.open = None
