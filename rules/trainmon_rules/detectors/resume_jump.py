"""resume-jump: after a resume the loss is worse than the attempt before had left it.

What it detects: the median of the first eight reports after a resume, and that of the last four of them, lies above
the level just below the resume step by six standard errors, by 2 % of the level and by 0.5 % of the progress made.
Three reports are enough where the loss stands as high as at the very start.

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
from trainmon_rules.detectors.levels import median_error
from trainmon_rules.detectors.resumed import earlier, is_resume, told_before
from trainmon_rules.findings import Finding, Severity
from trainmon_rules.points import FloatArray
from trainmon_rules.series import RING, Block, Series, block_end
from trainmon_rules.series.robust import median
from trainmon_rules.vocabulary import RunSettings
from trainmon_rules.words import short

BELOW = 16  # reports below the resume step that make the level
LEAST = 6  # of them without which there is no level
NOISE = 128  # reports that its noise is read from
QUICK = 3  # reports that are enough at the level of the start
RECENT = 5  # reports whose median is the level now
SMALL = 0.05  # of the level: a smaller rise is an info


@dataclass(frozen=True, slots=True)
class Left:
    """What the attempts before left: the level below the resume step, the least rise that counts, the first level."""

    level: float
    least: float
    start: float


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

    def update(self, block: Block) -> Iterator[Finding]:
        """Collect the first reports, decide, and follow what was said until it is back."""
        if self.open is not None:
            yield from self._follow(block)
            return
        if self.done or self.series.older is None:
            return
        for i, y in enumerate(block.judged.tolist()):
            if math.isfinite(y) and not self.done:
                yield from self._report(block, i, y)

    def _report(self, block: Block, i: int, y: float) -> Iterator[Finding]:
        if not self.new:
            self.first, self.since = (int(block.step[i]), float(block.time[i])), block.start + i
            self.left = self._what_was_left(self.first[0])
            self.done = self.left is None
        self.new.append(y)
        if len(self.new) == QUICK and not is_resume(self.series, block.start + i):
            self.done = True
        if self.left is None or self.done:
            return
        if len(self.new) == QUICK and self._as_at_the_start(self.left, min(self.new)):
            self.done = True
            yield self._say(block, i, self.left, True)
        elif len(self.new) == self.params.reports:
            self.done = True
            now, late = median(np.array(self.new)), median(np.array(self.new[-4:]))
            if min(now, late) - self.left.level > self._least(block, i, self.left):
                yield self._say(block, i, self.left, self._as_at_the_start(self.left, late))

    # ------------------------------------------------------------------ what was before
    def _what_was_left(self, step: int) -> Left | None:
        told = told_before(self.series)
        past = self.series.judged_of(told.mean[told.step < step])
        past = past[np.isfinite(past)][-NOISE:]
        if len(past) < LEAST:
            return None
        level = median(past[-BELOW:])
        points = self._points(step)
        error = math.hypot(median_error(past, min(BELOW, len(past))), median_error(points, self.params.reports // 2))
        root = [*earlier(self.series)][-1]
        head = self.series.judged_of(root.first[:5])
        head = head[np.isfinite(head)]
        start = median(head) if len(head) else math.nan
        p = self.params
        progress = max(0.0, start - level) if math.isfinite(start) else 0.0
        return Left(level, max(p.errors * error, p.level * abs(level), p.progress * progress), start)

    def _points(self, step: int) -> FloatArray:
        """Return single reports: what lies below the step may be remembered as means of many, which are less noisy."""
        older = self.series.older
        if older is None:
            return np.zeros(0)
        ring = older.tail(RING)
        y = self.series.judged_of(ring.value)
        below = y[np.isfinite(y) & (ring.step < step)]
        return (below if len(below) >= 2 * BELOW else y[np.isfinite(y)])[-NOISE:]

    def _least(self, block: Block, i: int, left: Left) -> float:
        """The rise that counts; more where the attempt before was itself as high at these steps."""
        told = told_before(self.series)
        same = (told.step >= self.first[0]) & (told.step <= int(block.step[i]))
        y = self.series.judged_of(told.mean[same])
        y = y[np.isfinite(y)]
        return left.least + (max(0.0, median(y) - left.level) if len(y) >= QUICK else 0.0)

    def _as_at_the_start(self, left: Left, now: float) -> bool:
        progress = left.start - left.level
        large = progress > max(left.least, 0.1 * abs(left.start))
        return large and now - left.level >= self.params.lost * progress

    # ------------------------------------------------------------------ what it says
    def _say(self, block: Block, i: int, left: Left, anew: bool) -> Finding:
        step, time = self.first
        sign = self.series.direction or 1
        now, level = sign * median(np.array(self.new)), sign * left.level
        rise = abs(now - level)
        how = f" (as at the start: {short(sign * left.start)})" if anew else ""
        after = f"after the resume at step {step}, {short(now)}{how}"
        summary = f"{self.series.tag} is higher {after}, than it was before, {short(level)}"
        evidence: dict[str, Any] = {
            "level before": level,
            "level after": now,
            "rise": rise,
            "least rise": left.least,
            "first level": sign * left.start,
            "form": "as at the start" if anew else "above",
        }
        large = anew or rise > SMALL * abs(level)
        severity = self.rule.severity if large else Severity.INFO
        self.open = self.finding(block, i, summary, evidence, step, time, severity)
        return self.open

    def _follow(self, block: Block) -> Iterator[Finding]:
        """See, at the ends of blocks, whether it is back."""
        end = block.start + len(block)
        if self.open is None or self.left is None or end != block_end(end - 1):
            return
        step = int(block.step[-1])
        self.open = self.open.changed(last_step=step)
        y = self.series.judged_of(self.series.before(end, min(RING, max(RECENT, end - self.open.index))).value)
        y = y[np.isfinite(y)][-RECENT:]
        if len(y) < RECENT or median(y) - self.left.level >= 0.5 * self.left.least:
            return
        level = short(median(y) * (self.series.direction or 1))
        yield resolved(self.open, step, f"back at {level} by step {step}, {end - self.since} reports after the resume")
        self.open = None
