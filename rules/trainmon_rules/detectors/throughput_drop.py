"""throughput-drop: the run is lastingly slower than its own past.

What it detects: a rise of the time a step by a half over the last 8 stretches, by a quarter over 12, by 15 % over 20,
or by 4 % over 64 (or over the last eighth of a longer run), against the level of at least as many before. A stretch is
14 to 28 seconds of reports and a good half of the 64 must be slow, so 5 % are told after 10 to 20 minutes. The rise
must also be six times its standard error, which follows from the run's own noise, and half as large again as what the
pace has gone up and down before.

Why it matters: nothing else shows it, and it is paid on every device until somebody looks.

Example: BLOOM-176B on 384 GPUs, iteration 42783: 105.2 s a step became 111.1 s (5.4 % of the throughput) and stayed.

When it is wrong: a change of the work in a step that isn't logged, such as longer sequences. A logged change of batch
size, sequence length, tokens a step or number of workers explains it, and it is quiet. After a resume, and where
rewards are logged (episodes grow as the policy learns), it is `info`. So is a slowdown of 15 % until it has lasted for
20 stretches, and a smaller one until it has for 192 (an hour or more): clocks and neighbours wander by a few percent.
Never `critical`: a slow run still learns, and nobody must stop it at once.

Fixes: compare GPU clocks, temperatures and the nodes' step times with those before; look at what else uses the
storage and the network; profile a few steps.

Source: Marin's throughput rule (median of 15 minutes below 95 % of the hour before) and BLOOM's chronicles.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trainmon_rules.detectors.base import Detector, Peer, Rule, resolved
from trainmon_rules.detectors.levels import median_error
from trainmon_rules.detectors.pace import ANOTHER, Paces, as_logged, by_wall_time, paces, speaks
from trainmon_rules.detectors.slowdown import level_of, recovered, turning, works_more
from trainmon_rules.detectors.stretches import GROUP, RECENT, Stretches
from trainmon_rules.findings import Finding, Severity
from trainmon_rules.points import FloatArray
from trainmon_rules.series import RING, Block, Series
from trainmon_rules.series.robust import median
from trainmon_rules.vocabulary import RunSettings
from trainmon_rules.words import short

LASTS, LASTS_CLEAR = 192, 20  # stretches from which a slowdown is a warning, and a clear one
LAST = 8  # stretches that must be slow still
PASTS = {8: 2, 12: 1, 20: 1, 64: 1}  # how many times as many stretches before, by the number of slow ones
ROOM = 3  # windows in the past that tell how it wanders: where it is shorter, they are
FEW_CELLS = 16
WANDER = 1.5  # times what the pace has gone up and down before


class ThroughputDrop(Detector):
    """Level shift of the pace, told on four lengths."""

    name: ClassVar[str] = "throughput-drop"

    @dataclass(frozen=True, slots=True)
    class Params:
        """Rise of the time a step that counts over 8, 12, 20 and 64 stretches; `errors` is the number of its errors."""

        sudden: float = 0.5
        large: float = 0.25
        clear: float = 0.15
        lasting: float = 0.04
        errors: float = 6.0

    params: Params

    def __init__(self, rule: Rule, series: Series, peer: Peer, settings: RunSettings) -> None:
        super().__init__(rule, series, peer, settings)
        self.past = Stretches(series.role, series.tag)
        self.inherited = 0  # stretches of the attempt before
        self.usual = self.rise = self.now = self.said = 0.0
        self.length = 0  # stretches by which it was told
        self.opened = 0  # count of stretches at that time
        self.onset = 0  # the same of the onset
        self.first_step = 0
        self.resumed = False  # whether it began with the attempt
        self.mild = False  # whether it may well be meant
        self.slow_before: list[tuple[float, int]] = []  # rise and length of slowdowns that ended

    def blind(self) -> str:
        """Return what is missing: anything that tells how long a step takes, or enough of it."""
        if self.past.count:
            return "" if self.past.count > 24 or self.open else "too few reports tell how long a step takes"
        if by_wall_time(self.series.role):
            return "no step time, throughput or wall time is logged"
        return "no positive numbers are logged"

    def update(self, block: Block) -> Iterator[Finding]:
        """Take the reports whose pace is known, and look whenever stretches are complete."""
        n = speaks(self.peer, block)
        if n and not block.start:
            self.first_step = int(block.step[0])
            if self.series.older is not None:
                self._inherit(self.series.older)
        if n:
            yield from self._take(block, n)
        if n < len(block) and self.open is not None:
            found, self.open = self.open, None
            yield resolved(found, int(block.step[n]), ANOTHER)

    def _take(self, block: Block, n: int) -> Iterator[Finding]:
        reports = paces(self.series, block.start + len(block), len(block))
        known = np.flatnonzero(np.isfinite(reports.pace[:n]))
        a = 0
        while a < len(known):
            b = min(len(known), a + self.past.room())
            if self.past.extend(reports.picked(known[a:b]), self.open is None):
                found = self._look(block, int(known[b - 1]))
                if found is not None:
                    yield found
            a = b

    def _inherit(self, older: Series) -> None:
        """Begin with what the attempt before was like, up to where this one resumes."""
        reports: Paces = paces(older, older.count, min(older.count, RING))
        known = reports.picked(np.isfinite(reports.pace) & (reports.step < self.first_step))
        a = 0
        while a < len(known):
            b = min(len(known), a + self.past.room())
            self.past.extend(known.picked(slice(a, b)))
            a = b
        self.past.drop()
        self.inherited = self.past.count

    # ------------------------------------------------------------------ is it slow
    def _look(self, block: Block, at: int) -> Finding | None:
        if self.open is not None:
            return self._follow(block, at)
        past = self.past
        if self._is_even():
            return None
        p = self.params
        for length, share in zip(PASTS, (p.sudden, p.large, p.clear, p.lasting), strict=True):
            before = past.level[:-length]
            if len(before) < PASTS[length] * length:
                return None
            usual = min(median(before), self._usual_cells(int(past.step[-length])))
            if rise := self._rise(before, past.level[-length:], usual, math.log1p(share)):
                i = turning(past.level, usual + rise / 2, rise)
                self.usual, self.rise, self.length = usual, rise, length
                return self._open(block, at, int(past.step[i]), float(past.time[i]), len(past.level) - i)
        return self._crept(block, at)

    def _crept(self, block: Block, at: int) -> Finding | None:
        """Judge the last eighth of a long run against all before: noisy or gradual slowdowns."""
        cells = np.array(self.past.cells)
        k = len(cells) // 8
        if len(cells) < FEW_CELLS:
            return None
        usual = median(cells[:-k])
        rise = self._rise(cells[:-k], cells[-k:], usual, math.log1p(self.params.lasting))
        if not rise or median(self.past.level) - usual < rise / 2:
            return None
        i = turning(cells, usual + rise / 2, rise)
        self.usual, self.rise, self.length = usual, rise, RECENT
        lasted = (len(cells) - i) * GROUP * self.past.cell_size
        return self._open(block, at, self.past.cell_step[i], math.nan, lasted)

    def _usual_cells(self, step: int) -> float:
        """Return the level of all that lies before a step, infinite where that is too little."""
        n = bisect_left(self.past.cell_step, step)  # the last of them may reach beyond it
        return median(np.array(self.past.cells[: n - 1])) if n > FEW_CELLS // 2 else math.inf

    def _is_even(self) -> bool:
        """Whether the last stretches are so near to the usual ones that nothing need be looked at closer."""
        level = self.past.level
        last = max(median(level[-LAST:]), median(level[-2 * LAST :]))
        low = float(np.partition(level, len(level) // 4)[len(level) // 4])
        usual = min(low, self._usual_cells(int(self.past.step[-1])))
        return last - usual < math.log1p(self.params.lasting) / 2

    def _rise(self, before: FloatArray, window: FloatArray, usual: float, least: float) -> float:
        """Return by how much a window, its end too, is above the usual level; 0 if that isn't enough."""
        m = len(window)
        rise = median(window) - usual
        if rise < least or median(window[-max(LAST, m // 4) :]) - usual < rise / 2:
            return 0.0
        n = max(LAST, min(m, len(before) // ROOM))  # shorter windows are noisier: it errs on the quiet side
        error = median_error(level_of(before) if m == LAST else before, n)
        return rise if rise >= max(self.params.errors * error, WANDER * recovered(before, n)) else 0.0

    # ------------------------------------------------------------------ its life
    def _open(self, block: Block, at: int, step: int, time: float, lasted: int) -> Finding | None:
        """Say it, unless it is what the run has had before, or other work explains it."""
        past = self.past
        if any(self.rise < WANDER * r and lasted < 2 * n for r, n in self.slow_before):
            return None
        if works_more(self.peer, block, at, step, self.rise):
            past.restart(lasted)
            return None
        self.opened, self.onset = past.count, past.count - lasted
        self.now = self.said = median(past.level[-self.length :]) - self.usual
        self.resumed = self.onset <= self.inherited
        if self.resumed:
            step = self.first_step
        self.mild = self.resumed or len(self.peer("reward", block, at, 1)) > 0
        words = self._words(step)
        self.open = self.finding(block, at, words["summary"], words["evidence"], step, time, self._severity())
        return self.open

    def _severity(self) -> Severity:
        clear = self.rise >= math.log1p(self.params.clear)
        lasts = self.past.count - self.onset >= (LASTS_CLEAR if clear else LASTS)
        return self.rule.severity if lasts and not self.mild else min(Severity.INFO, self.rule.severity)

    def _follow(self, block: Block, at: int) -> Finding | None:
        found, past = self.open, self.past
        if found is None or past.count - self.opened < self.length // 2:
            return None
        step = int(block.step[at])
        self.now = median(past.level[-self.length :]) - self.usual
        if self.now < self.rise / 2:
            since = past.level[-min(len(past.level), past.count - self.onset) :]
            calm = len(past.level) - len(since) + turning(-since, -(self.usual + self.rise / 2), self.rise)
            self.open = None
            self.slow_before = [*self.slow_before, (self.rise, past.count - self.onset)][-LAST:]
            calm = min(calm, len(past.level) - 1)
            self.now = median(past.level[calm:]) - self.usual
            back = self._value(self.usual + self.now)
            end = max(int(past.step[calm]), found.detected_step)
            return resolved(found.changed(last_step=step), end, f"back at {back} since step {end}")
        self.rise = max(self.rise, self.now)
        severity = max(found.severity, self._severity())
        self.open = found.changed(last_step=step, severity=severity, **self._words(found.onset_step))
        if severity == found.severity and self.now <= WANDER * self.said:
            return None
        self.said = max(self.said, self.now)
        return self.open

    # ------------------------------------------------------------------ words
    def _value(self, level: float) -> str:
        return short(as_logged(self.series.role, math.exp(level)), 4)

    def _words(self, onset: int) -> dict[str, Any]:
        then, now = self._value(self.usual), self._value(self.usual + self.now)
        longer, lost = 100 * math.expm1(self.now), -100 * math.expm1(-self.now)
        since = "since the run was resumed" if self.resumed else f"since step {onset}"
        if self.series.role == "step_time":
            text = f"{self.series.tag} rose from {then} to {now}: a step takes {longer:.1f} % longer {since}"
        elif by_wall_time(self.series.role):
            text = f"a step takes {now} s instead of {then} s by the log's wall times, {longer:.1f} % longer, {since}"
        else:
            text = f"{self.series.tag} fell from {then} to {now}, by {lost:.1f} %, {since}"
        evidence: dict[str, Any] = {
            "pace before": as_logged(self.series.role, math.exp(self.usual)),
            "pace now": as_logged(self.series.role, math.exp(self.usual + self.now)),
            "slowdown": math.expm1(self.now),
            "throughput lost": -math.expm1(-self.now),
        }
        return {"summary": text, "evidence": evidence}
