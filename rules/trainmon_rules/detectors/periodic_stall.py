"""periodic-stall: the run pauses at regular intervals.

What it detects: reports whose steps took three times as long as usual and that come at equal distances: seven of the
last eight distances within a tenth of the usual one (equal, where they are less than ten reports). The cost is what
the pauses take of the time from one to the next. From 2 % on it is `info`, from 10 % on a warning. Where validation
results are logged in them, or the run's settings announce a checkpoint or an evaluation there, it is a phase of the
loop and told only from 10 % on, as `info`.

Why it matters: pauses are rarely looked at, as each is short, and one in ten steps lost is a tenth of the bill.

Example: a garbage collection of half a second every 25 steps of 0.2 s: 9 % of the time.

When it is wrong: checkpoints that nothing announces look like any other pause, and so do evaluations that are logged to
a file of their own. Wall times with a resolution of a
second, or written in batches, hide short pauses. Where a step time is logged, pauses outside of the step don't show
in it.

Fixes: freeze and disable the garbage collector after the first step and collect at checkpoints; write checkpoints
asynchronously and less often; evaluate on fewer examples; keep the loader's workers alive between epochs.

Source: nanochat and ML training recipes (garbage collection stalls of about 500 ms).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from trainmon_rules.detectors.base import Detector, Peer, Rule, resolved
from trainmon_rules.detectors.cadence import CHECKPOINT, EVALUATION, announced
from trainmon_rules.detectors.pace import ANOTHER, Paces, by_wall_time, paces, speaks, whole_seconds
from trainmon_rules.findings import Finding, Severity
from trainmon_rules.incidents import HELD_OUT
from trainmon_rules.series import RING, Block, Series, View, block_end
from trainmon_rules.series.robust import median
from trainmon_rules.vocabulary import RunSettings
from trainmon_rules.words import short

USUAL = 64  # reports behind the usual pace
PAUSES = 9  # that are kept: eight distances
ENOUGH = 6  # distances that must all be alike while there are fewer than eight
CLOSE = 0.1  # of a distance
NEAR = 10  # reports; pauses closer than that must be exactly regular
COARSE = 0.1  # part of the gaps without any length above which wall times are too coarse
LEAST = 0.25  # seconds that a pause takes by wall times
WHOLE = 3.0  # the same where times are whole seconds
MISSED = 4.0  # periods without a pause that end it


@dataclass(frozen=True, slots=True)
class Pause:
    """A report that took too long: its place, the step and time of the one before, and its time above the usual.

    `turns` says that another epoch began in it.
    """

    index: int
    step: int
    time: float
    since_step: int
    since_time: float
    excess: float
    turns: bool = False


class PeriodicStall(Detector):
    """Long steps at equal distances."""

    name: ClassVar[str] = "periodic-stall"

    @dataclass(frozen=True, slots=True)
    class Params:
        """How many times as long as usual a pause is, and which parts of the time are told and are much."""

        times: float = 3.0
        told: float = 0.02
        much: float = 0.1

    params: Params

    def __init__(self, rule: Rule, series: Series, peer: Peer, settings: RunSettings) -> None:
        super().__init__(rule, series, peer, settings)
        self.usual = math.nan
        self.shortest = 0.0
        self.timed = False
        self.pauses: deque[Pause] = deque(maxlen=PAUSES)
        self.period = 0.0  # steps

    def blind(self) -> str:
        """Return what is missing: anything that tells how long a step takes."""
        if math.isfinite(self.usual):
            return ""
        if not by_wall_time(self.series.role):
            return "too few positive numbers are logged"
        return "wall times are too coarse" if self.timed else "no step time, throughput or wall time is logged"

    def update(self, block: Block) -> Iterator[Finding]:
        """Look at long steps; refresh the usual pace at the end of each block."""
        end, n = block.start + len(block), speaks(self.peer, block)
        if n and math.isfinite(self.usual):
            reports = paces(self.series, end, len(block))
            with np.errstate(all="ignore"):
                excess = (reports.pace - self.usual) * reports.steps
                long = (reports.pace >= self.params.times * self.usual) & (excess >= self.shortest)
            for i in np.flatnonzero(long[:n]).tolist():
                yield from self._over(int(block.step[i]))
                yield from self._pause(block, i, float(excess[i]))
            yield from self._over(int(block.step[n - 1]))
        if n < len(block) and self.open is not None:
            found, self.open = self.open, None
            yield resolved(found, int(block.step[n]), ANOTHER)
        if n and end == block_end(end - 1) and end >= USUAL // 2:
            self._refresh(paces(self.series, end, min(end, USUAL)))

    def _refresh(self, recent: Paces) -> None:
        """Take the usual pace, and how long a pause must be to show in such times."""
        known = recent.known
        self.shortest = 0.0
        if by_wall_time(self.series.role) and len(known):
            self.timed = True
            self.shortest = WHOLE if whole_seconds(known) else LEAST
            if float((known.seconds == 0).mean()) > COARSE:
                self.usual = math.nan
                return
        usual = median(known.pace) if len(known) >= USUAL // 4 else math.nan
        self.usual = usual if usual > 0 else math.nan

    # ------------------------------------------------------------------ are they regular
    def _pause(self, block: Block, at: int, over: float) -> Iterator[Finding]:
        """Take a pause; say so once they are regular and cost enough."""
        index = block.start + at
        since = self.series.before(index, 1)
        if not len(since):
            return
        last = self.pauses[-1] if self.pauses else None
        if last is not None and index - last.index <= 1:  # it goes on
            self.pauses[-1] = replace(last, index=index, excess=last.excess + over)
            return
        step, since_step = int(block.step[at]), int(since.step[0])
        turns = _turns(self.peer("epoch", block, at, USUAL), since_step, step)
        self.pauses.append(Pause(index, step, float(block.time[at]), since_step, float(since.time[0]), over, turns))
        period = regular(list(self.pauses))
        if not period:
            return
        self.period = period
        excess = np.array([p.excess for p in self.pauses])
        paused = min(float(excess.mean()), self.params.times * median(excess))  # one of them may be a hang
        share = paused / (paused + self.usual * period)
        where = self._where(block, at)
        phase = where in (EVALUATION, CHECKPOINT)
        if self.open is None and share < (self.params.much if phase else self.params.told):
            return
        much = share >= self.params.much and not phase
        severity = self.rule.severity if much else min(Severity.INFO, self.rule.severity)
        words = self._words(paused, share, where)
        if self.open is None:
            first = self.pauses[0]
            self.open = self.finding(block, at, words["summary"], words["evidence"], first.step, first.time, severity)
            yield self.open
            return
        before, self.open = (
            self.open,
            self.open.changed(severity=max(severity, self.open.severity), last_step=int(block.step[at]), **words),
        )
        if self.open.severity > before.severity:
            yield self.open

    def _over(self, step: int) -> Iterator[Finding]:
        """End it where no pause came for four periods."""
        if self.open is None or step - self.pauses[-1].step <= MISSED * self.period:
            return
        end = self.pauses[-1].step + round(self.period)
        found, self.open = self.open, None
        self.pauses.clear()
        yield resolved(found, end, "no pause any more")

    def _where(self, block: Block, at: int) -> str:
        """Return what the pauses come with: evaluation, checkpoint, a new epoch; "" if nothing tells."""
        seen = [announced(self.setting, p.since_step, p.step) for p in self.pauses]
        for phase in (EVALUATION, CHECKPOINT):
            if seen.count(phase) >= len(seen) - 1:
                return phase
        for role in sorted(HELD_OUT):
            view = self.peer(role, block, at, RING)
            inside = [
                ((view.step >= p.since_step) & (view.step <= p.step))
                | ((view.time > p.since_time) & (view.time <= p.time))
                for p in self.pauses
            ]
            seen_in = sum(bool(m.any()) for m in inside)
            between = len(np.unique(view.step[view.step >= self.pauses[0].since_step]))
            if seen_in >= len(inside) - 1 and between <= 2 * len(inside):
                return EVALUATION
        return "epoch" if sum(p.turns for p in self.pauses) >= len(self.pauses) - 1 else ""

    # ------------------------------------------------------------------ words
    def _words(self, paused: float, share: float, where: str) -> dict[str, Any]:
        period = round(self.period)
        what = {"": "", "epoch": ", with each epoch"}.get(where, f", with each {where}")
        longer = (paused + self.usual) / self.usual
        return {
            "summary": f"every {period:,} steps the run pauses for {short(longer - 1, 2)} steps' time{what}: "
            f"{100 * share:.1f} % of the time",
            "evidence": {
                "steps from pause to pause": period,
                "share of the time": share,
                "pause": paused,
                "usual pace": self.usual,
                **({"comes with": where} if where else {}),
            },
        }


def regular(pauses: Sequence[Pause]) -> float:
    """Return the distance of pauses in steps if they are regular, 0 if not."""
    steps, reports = (np.diff([getattr(p, name) for p in pauses]) for name in ("step", "index"))
    if len(steps) < ENOUGH:
        return 0.0
    period = median(steps.astype(np.float64))
    if median(reports.astype(np.float64)) < NEAR:
        close = reports == round(median(reports.astype(np.float64)))
    else:
        close = np.abs(steps - period) <= CLOSE * period
    missing = int((~close).sum())
    return period if missing <= (len(steps) == PAUSES - 1) else 0.0


def _turns(epoch: View, since: int, step: int) -> bool:
    """Whether another epoch began between two steps."""
    before, now = epoch.finite_where(epoch.step <= since), epoch.finite_where(epoch.step <= step)
    return len(before) > 0 and math.floor(now[-1]) > math.floor(before[-1])
