"""stall: nothing is logged for far longer than usual.

What it detects: a gap in the log's own wall times beyond five times the longest that this phase of the loop has had
(training, or evaluation where validation results lie in it), ten times the usual gap, and 300 s; with fewer than
twenty reports an hour and a hundred times the usual gap. It is told when the next record comes and dated to the last
one before; `info` below half an hour.

Why it matters: a hang in a collective or a data loader costs every device of the job until somebody looks.

Example: BLOOM-176B hung in an evaluation without any error, and 18 hours were lost.

When it is wrong: a suspended laptop, a queue that paused the job, an evaluation that logs nothing or to a file of its
own: silence is all that a log shows. What comes again is told twice at most, as it is known then. Silence between two
attempts is no stall, and a gap of 30 days is a clock that was set.

Fixes: dump the stacks of all ranks before anything is killed; look at the disk, the loader's workers and the network;
set a timeout for collectives; resume from the last checkpoint.

Source: nvidia-resiliency-ext's timeouts learnt from observed intervals, DLRover's allowances for a first step.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trainmon_rules.detectors.base import Detector, Peer, Rule, resolved
from trainmon_rules.detectors.cadence import EVALUATION, STARTED, Cadence, announced
from trainmon_rules.detectors.pace import TOO_LONG, speaks
from trainmon_rules.findings import Finding, Severity
from trainmon_rules.incidents import HELD_OUT
from trainmon_rules.series import Block, Series, block_end
from trainmon_rules.series.robust import median
from trainmon_rules.vocabulary import RunSettings
from trainmon_rules.words import duration

SPEAKERS = ("train_loss", "loss_component", "rl_loss", "adversarial_loss", "reward")  # the first that is logged
RECENT = 65  # points whose gaps are the usual ones
EVALUATIONS = 256  # points looked at within a gap


class Stall(Detector):
    """Silence between two reports, against the cadence learnt so far."""

    name: ClassVar[str] = "stall"

    @dataclass(frozen=True, slots=True)
    class Params:
        """Seconds of silence from which it is more than an info."""

        lost: float = 1800.0

    params: Params

    def __init__(self, rule: Rule, series: Series, peer: Peer, settings: RunSettings) -> None:
        super().__init__(rule, series, peer, settings)
        self.cadence = Cadence()
        self.last_time, self.last_step = math.nan, 0

    def blind(self) -> str:
        """Return what is missing to know a cadence."""
        if self.cadence.gaps >= STARTED:
            return ""
        return "too few reports have a wall time" if math.isfinite(self.last_time) else "no wall time is logged"

    def update(self, block: Block) -> Iterator[Finding]:
        """Look at the gaps; refresh the usual one at the end of each block."""
        timed = np.flatnonzero(np.isfinite(block.time[: speaks(self.peer, block, SPEAKERS)]))
        if len(timed):
            yield from self._gaps(block, timed)
        end = block.start + len(block)
        if end == block_end(end - 1) and self.cadence.gaps:
            gaps = np.diff(self.series.before(end, RECENT).time)
            gaps = gaps[(gaps >= 0) & (gaps < TOO_LONG)]
            self.cadence.usual = median(gaps) if len(gaps) else self.cadence.usual

    def _gaps(self, block: Block, timed: np.ndarray) -> Iterator[Finding]:
        time, step = block.time[timed], block.step[timed]
        with np.errstate(all="ignore"):
            gaps = np.diff(time, prepend=self.last_time)
        fine = (gaps >= 0) & (gaps < TOO_LONG)
        known = self.cadence.gaps
        for i in np.flatnonzero(fine & (gaps > self.cadence.long)).tolist():
            before = (float(time[i - 1]), int(step[i - 1])) if i else (self.last_time, self.last_step)
            found = self._silence(block, int(timed[i]), *before, known + int(fine[:i].sum()))
            if found is not None:
                yield found
        self.cadence.gaps = known + int(fine.sum())
        self.last_time, self.last_step = float(time[-1]), int(step[-1])

    def _silence(self, block: Block, at: int, since: float, step: int, known: int) -> Finding | None:
        """Learn a long gap, or tell of it."""
        now = float(block.time[at])
        marks, evaluated = self._marks(block, at, since, now)
        parts = [b - a for a, b in itertools.pairwise(marks)]
        silence = max(parts)
        phase = EVALUATION if evaluated else announced(self.setting, step, int(block.step[at]))
        limit = self.cadence.limit(phase, known)
        if known >= STARTED:
            self.cadence.learn(phase, silence, silence > limit)
        if silence <= limit:
            return None
        usual = self.cadence.usual
        text = f"nothing was logged for {duration(silence)} after step {step}; usually every {duration(usual)}"
        evidence = {
            "silent for seconds": silence,
            "usual seconds between reports": usual,
            "normal up to seconds": limit,
            "phase": phase,
        }
        severity = self.rule.severity if silence >= self.params.lost else min(Severity.INFO, self.rule.severity)
        begun = marks[parts.index(silence)]
        found = self.finding(block, at, text, evidence, step, begun, severity)
        return resolved(found, int(block.step[at]), f"the log went on after {duration(silence)}")

    def _marks(self, block: Block, at: int, since: float, now: float) -> tuple[list[float], bool]:
        """Return the times of what was logged from one report to the next, and whether validation results were.

        Where those fill a view they have been coming for longer than it shows: there was no silence before.
        """
        times, evaluated = {since, now}, False
        for role in sorted(HELD_OUT):
            view = self.peer(role, block, at, EVALUATIONS)
            within = view.time[(view.time > since) & (view.time <= now)]
            times.update(within.tolist())
            evaluated = evaluated or len(within) > 0
            if len(view) == EVALUATIONS and since < view.time[0] < now:
                times.discard(since)
        return sorted(times), evaluated
