"""periodic: the training loss repeats a pattern, such as a sawtooth with the epoch.

What it detects: a training loss that about its own course repeats a pattern of at least four reports at least five
times, each time much like the others, and still does so when another period has passed. It looks at the last 512
reports, and at the whole run where the pattern is longer.

Why it matters: examples that come in the same order every epoch, or sorted by class, length or source, make the updates
follow the order and not the task; what was learned of one part is half forgotten in the next.

Example: the loss falls from 0.9 to 0.3 within each epoch and begins the next one at 0.9: shuffling is off.

When it is wrong: a learning rate that cycles with the same period explains it; a staircase that drops at each epoch and
is flat in between (examples seen again, or a running mean that starts over) is progress, so the pattern must be 2.5
times as high as what the loss falls in a period. Batches grouped by length are periodic on purpose. So it is `info`,
and a warning only where the period is known to be the epoch's, and the pattern without a staircase's part is 15 % of
the progress, twice the noise of a report, and has been seen six times.

Fixes: shuffle anew each epoch; set the epoch of a distributed sampler; mix the shards.

Source: the autocorrelation of the detrended loss, as formula 13 of the prototype, with a test of each period against
the mean of the others; on autocorrelated noise (0.9 to 0.995) it erred in 3 of 108,000 windows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trainmon_rules.detectors.base import Detector, Peer, Rule, resolved
from trainmon_rules.detectors.epochs import Epochs, is_one
from trainmon_rules.detectors.grids import Grid, Grids
from trainmon_rules.detectors.phases import PERIODS, SHORTEST, Cycle, find_cycle, repeats
from trainmon_rules.detectors.swings import first_level
from trainmon_rules.findings import Finding, Severity
from trainmon_rules.series import RING, Block, Series
from trainmon_rules.vocabulary import RunSettings
from trainmon_rules.words import short

LOOK_EVERY, MOST = 1.08, 512  # the run must have grown by this factor, or these reports, before the next look
SAME = 0.05  # two looks give the same period


class Periodic(Detector):
    """Looks for a pattern in the ring and in the whole curve, at points 8 % apart."""

    name: ClassVar[str] = "periodic"

    @dataclass(frozen=True, slots=True)
    class Params:
        """The pattern is `higher` times what the loss falls in a period.

        For a warning it is, without that, `share` of the progress and `clear` noises, and was seen `often`.
        """

        higher: float = 2.5
        share: float = 0.15
        clear: float = 2.0
        often: int = 6

    params: Params

    def __init__(self, rule: Rule, series: Series, peer: Peer, settings: RunSettings) -> None:
        super().__init__(rule, series, peer, settings)
        self.least = 48
        self.look_at = self.least
        self.grids = Grids()
        self.epochs = Epochs()
        self.suspect: tuple[float, int] = (math.nan, 0)  # period in reports, and the number of reports
        self.best = math.inf  # lowest level of the whole curve
        self.period = math.nan  # of what is open, in reports

    def update(self, block: Block) -> Iterator[Finding]:
        """Take each block into the whole curve, and look now and then."""
        if not self.grids.take(block, self.peer) or (count := self.grids.curve.count) < self.look_at:
            return
        self.look_at = count + min(MOST, max(16, math.ceil((LOOK_EVERY - 1) * count)))
        seen = [s for s in self.grids.seen(block, self.peer) if len(s.value) >= self.least // 2]
        self.best = min([self.best, *(float(s.value.min()) for s in seen if s.width > 1)])
        yield from self._look(block, seen, count) if self.open is None else self._follow(block, seen)

    # ------------------------------------------------------------------ is there one
    def _look(self, block: Block, seen: list[Grid], count: int) -> Iterator[Finding]:
        epoch = self._epoch(block)
        for s in seen:
            cycle = find_cycle(s.value, epoch / s.distance if epoch else None)
            if cycle is None or cycle.amplitude < self.params.higher * cycle.fall or s.rate_cycles(cycle.period):
                continue
            period = cycle.period * s.width
            before, at = self.suspect
            if abs(period - before) > SAME * before or math.isnan(before):
                self.suspect = period, count
            elif count >= at + period:
                self.period = period
                yield self._say(block, s, cycle, epoch)
            return
        if count > self.suspect[1] + 2 * self.suspect[0]:
            self.suspect = (math.nan, 0)

    def _epoch(self, block: Block) -> float | None:
        """Return the steps of an epoch, from the epoch logged or from the sizes of dataset and batch."""
        view = self.peer("epoch", block, len(block) - 1, RING)
        if len(view.finite):
            return self.epochs.length(view)
        examples, batch = self.setting("dataset_size"), self.setting("batch_size")
        return examples / batch if examples and batch else None

    # ------------------------------------------------------------------ what is said of it
    def _say(self, block: Block, s: Grid, cycle: Cycle, epoch: float | None) -> Finding:
        words = self._words(s, cycle, epoch)
        at = max(0, len(s.value) - round(cycle.periods * cycle.period))
        severity = self._severity(cycle, words["evidence"])
        self.open = self.finding(
            block, len(block) - 1, words["summary"], words["evidence"], int(s.step[at]), math.nan, severity
        )
        return self.open

    def _severity(self, cycle: Cycle, evidence: dict[str, Any]) -> Severity:
        """A warning for what is large, clear, has lasted, and comes with the epoch."""
        p = self.params
        an_epoch = is_one(evidence.get("period in epochs", 0.0))
        own = cycle.amplitude - cycle.fall
        large = evidence["share of progress"] >= p.share and own >= p.clear * cycle.noise
        return self.rule.severity if an_epoch and large and cycle.periods >= p.often else Severity.INFO

    def _words(self, s: Grid, cycle: Cycle, epoch: float | None) -> dict[str, Any]:
        steps = cycle.period * s.distance
        progress = first_level(self.series) - min(self.best, float(np.median(s.value)))
        epochs = f", {short(steps / epoch, 2)} epochs" if epoch else ""
        epochs = ", once an epoch" if epoch and is_one(steps / epoch) else epochs
        return {
            "summary": f"{self.series.tag} repeats a pattern every {short(steps, 3)} steps{epochs}: it swings by "
            f"{short(cycle.amplitude, 2)}, seen {cycle.periods} times in a row",
            "evidence": {
                "period in steps": steps,
                "period in reports": cycle.period * s.width,
                **({"period in epochs": steps / epoch} if epoch else {}),
                "amplitude": cycle.amplitude,
                "noise of a report": cycle.noise,
                "share of progress": (cycle.amplitude - cycle.fall) / progress if progress > 0 else 1.0,
                "periods": cycle.periods,
                "resemblance of the periods": cycle.alike,
            },
        }

    def _follow(self, block: Block, seen: list[Grid]) -> Iterator[Finding]:
        """Say when it has become sure; over when the last period no longer follows the pattern."""
        found, step = self.open, int(block.step[-1])
        s = next((s for s in seen if SHORTEST * s.width <= self.period <= len(s.value) * s.width / PERIODS), None)
        if found is None or s is None:  # the pattern is too long for the ring by now, and too short for the whole curve
            return
        if not repeats(s.value, self.period / s.width):
            self.open, self.suspect = None, (math.nan, 0)
            yield resolved(found, step, f"no longer repeats itself by step {step}")
            return
        epoch = self._epoch(block)
        cycle = find_cycle(s.value, self.period / s.width)
        if cycle is None:
            return
        words = self._words(s, cycle, epoch)
        self.open = found.changed(last_step=step, **words)
        severity = self._severity(cycle, words["evidence"])
        if severity > found.severity:
            self.open = self.open.changed(severity=severity)
            yield self.open
