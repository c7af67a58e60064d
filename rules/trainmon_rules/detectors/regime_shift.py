"""regime-shift: the loss stepped to another level and goes on there as before.

What it detects: a level that changes by six standard errors, 2.5 standard deviations of a report and 2 % within five
reports, and then holds for 24 reports (12 in a short log) with the noise it had. For the worse, or for the better
after the run had learned more than the step.

Why it matters: learning doesn't do that. The data, the configuration or the code changed at that step, or a leak
began; what was measured before and after can't be compared.

Example: a language model at 2.20 ± 0.02 whose loss is 2.35 ± 0.02 from one report to the next, and stays there, because
a new shard of the data has begun.

When it is wrong: a change of the learning rate at that place explains it (the drop of a step decay), as does a hole in
the log, and for the better the border of an epoch (data seen before). A rise that loses half of the progress, or goes
on, is `divergence`; one that comes back was a `loss-spike`, also if it did so only after a while; a jump at a resume
`resume-jump`. Where no epoch is logged, the second epoch of a small dataset looks like a step for the better: `info`,
as all steps for the better, small ones (below 5 % of the level), those of a reward and those at the border of an
epoch. The others are a warning once they have lasted twice as long: a loss whose noise is autocorrelated wanders off
for a while.

Fixes: compare data, configuration, code and hardware on both sides of the step.

Source: a change-point test on medians with Marin's floor rule in mind; quickness, levelness and equal noise are what
sets a step apart from learning and from divergence.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trainmon_rules.detectors.base import Detector, Peer, Rule, resolved
from trainmon_rules.detectors.steps import EDGE, LEAST, LEFT, PAST, Step, hold_of, is_step, place
from trainmon_rules.detectors.swings import first_level
from trainmon_rules.findings import Finding, Recovery, Severity
from trainmon_rules.points import FloatArray, IntArray
from trainmon_rules.series import RELATIVE_FLOOR, RING, Block, Series, block_end
from trainmon_rules.series.robust import median
from trainmon_rules.vocabulary import RunSettings
from trainmon_rules.words import short

LASTING = 150  # reports after which it is the new level: learning may then lead anywhere from it
MOST = 256  # reports between two looks
HOLE = 8  # times the usual distance between reports
CHANGED = 1.2  # times as high, or as low, is another learning rate
DENSE = 0.5  # epochs a report, below which the border of an epoch means something


class RegimeShift(Detector):
    """Looks for a step that has lasted, at the end of each block."""

    name: ClassVar[str] = "regime-shift"

    @dataclass(frozen=True, slots=True)
    class Params:
        """A lasting rise by `sure` of the level is a warning; one by `lost` of the progress is a divergence."""

        sure: float = 0.05
        lost: float = 0.5

    params: Params

    def __init__(self, rule: Rule, series: Series, peer: Peer, settings: RunSettings) -> None:
        super().__init__(rule, series, peer, settings)
        self.least = 3 * hold_of(0)
        self.step: Step | None = None
        self.with_epoch = False
        self.since = 0  # index before which all steps are told
        self.began = self.looked = 0  # number of points when it was said, and at the last look

    def update(self, block: Block) -> Iterator[Finding]:
        """Compare the last reports with those before them."""
        end = block.start + len(block)
        if end < self.least or end != block_end(end - 1):
            return
        slack, self.looked = end - max(self.looked, end - MOST), end
        hold = hold_of(end)
        now = self._level(end, hold)
        if self.step is not None and end - self.began < LASTING:
            yield from self._follow(block, end, now, self.step)
        elif abs(now - (before := self._level(end - hold - slack, hold))) > RELATIVE_FLOOR * abs(before):
            yield from self._look(block, end, hold, slack)  # hardly ever

    def _level(self, end: int, n: int) -> float:
        y = self.series.judged_of(self.series.before(end, n).value)
        return median(y[np.isfinite(y)])

    def _look(self, block: Block, end: int, hold: int, slack: int) -> Iterator[Finding]:
        ring = self.series.before(end, PAST + hold + slack)
        y = self.series.judged_of(ring.value)
        keep = np.isfinite(y)
        y, steps = y[keep], ring.step[keep]
        if len(y) < hold + slack + LEAST:
            return
        at = place(y, hold, slack)
        fits = hold <= at <= len(y) - hold and ring.start + int(np.flatnonzero(keep)[at]) >= self.since
        step = is_step(y[:at], y[at:]) if fits else None
        if step is None or not self._is_news(step) or self._explained(block, steps, at):
            return
        self.with_epoch = self._begins_an_epoch(block, steps, at)
        if step.size < 0 and self.with_epoch:
            return
        if self.open is not None:
            yield resolved(self.open, int(steps[at]), f"another step followed at step {int(steps[at])}")
        self.step, self.began = step, end
        words = self._words(step, int(steps[at]))
        self.open = self.finding(
            block, len(block) - 1, words["summary"], words["evidence"], int(steps[at]), float(ring.time[keep][at]),
            Severity.INFO,
        )  # fmt: skip
        yield self.open

    # ------------------------------------------------------------------ what else it may be
    def _is_news(self, step: Step) -> bool:
        """Whether it is more than learning (for the better) and less than a divergence (for the worse)."""
        progress = first_level(self.series) - step.before
        if step.size < 0:
            return self.series.role != "reward" and -step.size <= progress
        return step.size < self.params.lost * progress

    def _explained(self, block: Block, steps: IntArray, at: int) -> bool:
        """Whether the log has a hole there, or the learning rate changed."""
        gaps = np.diff(steps)
        if gaps[at - EDGE : at + EDGE].max() > HOLE * max(1.0, float(np.median(gaps))):
            return True
        rate = self._around("learning_rate", block, int(steps[at - EDGE]), int(steps[at + EDGE]))
        return bool(len(rate) and rate.max() > CHANGED * max(0.0, float(rate.min())))

    def _begins_an_epoch(self, block: Block, steps: IntArray, at: int) -> bool:
        """Whether an epoch of many reports began there, or a few reports before (a running mean starts over slowly)."""
        epoch = self._around("epoch", block, int(steps[at - LEAST]), int(steps[at + 2]))
        dense = len(epoch) > 1 and 0 < epoch[-1] - epoch[0] < DENSE * len(epoch)
        return dense and math.floor(epoch[0]) < math.floor(epoch[-1])

    def _around(self, role: str, block: Block, first: int, last: int) -> FloatArray:
        """Return what a companion logged from the value that held at one step to another step."""
        view = self.peer(role, block, len(block) - 1, RING)
        keep = np.isfinite(view.value)
        start, stop = np.searchsorted(view.step[keep], [first, last], "right").tolist()
        return view.value[keep][max(0, start - 1) : stop]

    # ------------------------------------------------------------------ its life
    def _follow(self, block: Block, end: int, now: float, step: Step) -> Iterator[Finding]:
        """A warning when it has lasted twice as long; over when it is back."""
        found, at = self.open, int(block.step[-1])
        if found is None:
            return
        level = short(now * (self.series.direction or 1))
        if (now - step.before) / step.size < LEFT:
            self.open, self.step, self.since = None, None, end
            spiked = step.size > 0 and self.series.role != "reward"
            symptom = "loss-spike" if spiked else found.symptom  # a level that didn't last
            evidence = {**found.evidence, "recovery": str(Recovery.RECOVERED)}
            yield resolved(found.changed(evidence=evidence, symptom=symptom), at, f"back at {level} by step {at}")
        else:
            self.open = found.changed(last_step=at)
            large = step.size >= self.params.sure * abs(step.before) and not self.with_epoch
            large = large and self.series.role != "reward"
            settled = now - step.before > 0.5 * step.size  # it may go on learning from there
            if large and settled and found.severity < self.rule.severity and end - self.began >= hold_of(end):
                self.open = self.open.changed(severity=self.rule.severity)
                yield self.open

    def _words(self, step: Step, at: int) -> dict[str, Any]:
        sign = self.series.direction or 1
        before, after = sign * step.before, sign * step.after
        progress = first_level(self.series) - step.before
        return {
            "summary": f"{self.series.tag} stepped from {short(before)} to {short(after)} at step {at} and has stayed "
            "there",
            "evidence": {
                "level before": before,
                "level after": after,
                "change": after - before,
                "change in %": 100 * (after - before) / abs(before) if before else math.inf,
                "for the better": "yes" if step.size < 0 else "no",
                "noise of a report": step.noise,
                **({"recovery": str(Recovery.NOT)} if step.size > 0 else {}),
                **({"share of progress": abs(step.size) / progress} if progress > 0 else {}),
            },
        }


class ValRegimeShift(RegimeShift):
    """The same on validation losses, beside a learning rate that may live in another source."""

    name: ClassVar[str] = "val-regime-shift"
    across: ClassVar[bool] = True
