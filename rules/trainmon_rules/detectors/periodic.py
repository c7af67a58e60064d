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
from trainmon_rules.detectors.phases import (
    AGAIN,
    PERIODS,
    SHORTEST,
    Cycle,
    autocorrelation,
    detrended,
    find_cycle,
    repeats,
)
from trainmon_rules.detectors.swings import first_level
from trainmon_rules.findings import Finding, Severity
from trainmon_rules.points import FloatArray, IntArray
from trainmon_rules.series import RING, Block, Series
from trainmon_rules.series.trend import Trend, whole
from trainmon_rules.vocabulary import RunSettings
from trainmon_rules.words import short

LOOK_EVERY, MOST = 1.08, 512  # the run must have grown by this factor, or these reports, before the next look
BINNED = 4  # reports: a second look at the ring averages them, so that noise hides less
CELLS = 128  # of the whole curve
SAME = 0.05  # two looks give the same period
AN_EPOCH = 0.07  # the period is an epoch


@dataclass(frozen=True, slots=True)
class Stretch:
    """Values at equal distances with the step of each, and how many reports a value stands for; the rate beside it."""

    value: FloatArray
    step: IntArray
    width: int
    rate: FloatArray


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
        self.curve, self.rates = Trend(CELLS), Trend(CELLS)  # the whole of the loss, and of the rate beside it
        self.suspect: tuple[float, int] = (math.nan, 0)  # period in reports, and the number of reports
        self.epoch: tuple[int, float] | None = None  # step and epoch at the first look
        self.best = math.inf
        self.period = math.nan  # of what is open, in reports

    def update(self, block: Block) -> Iterator[Finding]:
        """Take each block into the whole curve, and look now and then."""
        taken = whole(block)
        if taken is None:
            return
        view, y, _ = taken  # what lies above the baseline belongs to the pattern
        self.curve.extend(view, y, np.isfinite(y))
        self.rates.extend(view, np.full(len(view), self._rate(block)), np.ones(len(view), np.bool_))
        if self.curve.count < self.look_at:
            return
        self.look_at = self.curve.count + min(MOST, max(16, math.ceil((LOOK_EVERY - 1) * self.curve.count)))
        stretches = [s for s in self._stretches(block) if len(s.value) >= self.least // 2]
        if self.open is not None:
            yield from self._follow(block, stretches)
        else:
            yield from self._look(block, stretches)

    def _rate(self, block: Block) -> float:
        rate = self.peer("learning_rate", block, len(block) - 1, 1).finite
        return float(rate[-1]) if len(rate) else 0.0

    def _stretches(self, block: Block) -> Iterator[Stretch]:
        """The ring report by report, then averaged, then the last three quarters of the whole curve."""
        end = block.start + len(block)
        ring = self.series.before(end, RING)
        y = _filled(self.series.judged_of(ring.value))
        rate = self._rate_at(block, ring.step)
        if y is not None:
            yield Stretch(y, ring.step, 1, rate)
            if len(y) == RING:
                binned = y.reshape(-1, BINNED).mean(axis=1)
                yield Stretch(binned, ring.step[::BINNED], BINNED, rate[::BINNED])
        young = len(self.curve.mean) // 4
        cells = _filled(np.array(self.curve.mean[young:]))
        if self.curve.width > 1 and cells is not None:
            self.best = min(self.best, float(cells.min()))
            steps, rates = np.array(self.curve.step[young:]), np.array(self.rates.mean[young:])
            yield Stretch(cells, steps, self.curve.width, rates)

    def _rate_at(self, block: Block, step: IntArray) -> FloatArray:
        view = self.peer("learning_rate", block, len(block) - 1, RING)
        keep = np.isfinite(view.value)
        return np.interp(step, view.step[keep], view.value[keep]) if keep.any() else np.zeros(len(step))

    # ------------------------------------------------------------------ is there one
    def _look(self, block: Block, stretches: list[Stretch]) -> Iterator[Finding]:
        count = self.curve.count
        epoch = self._epoch(block)
        for s in stretches:
            known = epoch / _distance(s) if epoch else None
            cycle = find_cycle(s.value, known)
            if cycle is None or cycle.amplitude < self.params.higher * cycle.fall or _cycles(s.rate, cycle.period):
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
        keep = np.isfinite(view.value)
        if keep.any():
            return self._epoch_logged(view.step[keep], view.value[keep])
        examples, batch = self.setting("dataset_size"), self.setting("batch_size")
        return examples / batch if examples and batch else None

    def _epoch_logged(self, step: IntArray, epoch: FloatArray) -> float | None:
        if self.epoch is None:
            self.epoch = int(step[0]), float(epoch[0])
        whole_ones = bool((epoch == np.floor(epoch)).all())
        begins = np.flatnonzero(np.diff(np.floor(epoch)) > 0) + 1
        if whole_ones and len(begins) > 2:
            return float(step[begins[-1]] - step[begins[0]]) / float(epoch[begins[-1]] - epoch[begins[0]])
        passed = float(epoch[-1]) - self.epoch[1]
        enough = passed * AN_EPOCH > 1 if whole_ones else passed > 0
        return (int(step[-1]) - self.epoch[0]) / passed if enough else None

    # ------------------------------------------------------------------ what is said of it
    def _say(self, block: Block, s: Stretch, cycle: Cycle, epoch: float | None) -> Finding:
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
        an_epoch = abs(evidence.get("period in epochs", 0.0) - 1.0) < AN_EPOCH
        own = cycle.amplitude - cycle.fall
        large = evidence["share of progress"] >= p.share and own >= p.clear * cycle.noise
        return self.rule.severity if an_epoch and large and cycle.periods >= p.often else Severity.INFO

    def _words(self, s: Stretch, cycle: Cycle, epoch: float | None) -> dict[str, Any]:
        steps = cycle.period * _distance(s)
        progress = first_level(self.series) - min(self.best, float(np.median(s.value)))
        epochs = f", {short(steps / epoch, 2)} epochs" if epoch else ""
        epochs = ", once an epoch" if epoch and abs(steps / epoch - 1) < AN_EPOCH else epochs
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

    def _follow(self, block: Block, stretches: list[Stretch]) -> Iterator[Finding]:
        """Say when it has become sure; over when the last period no longer follows the pattern."""
        found, step = self.open, int(block.step[-1])
        s = next((s for s in stretches if SHORTEST * s.width <= self.period <= len(s.value) * s.width / PERIODS), None)
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


def _filled(y: FloatArray) -> FloatArray | None:
    """Return the values with gaps bridged; None if more than a quarter is missing."""
    good = np.isfinite(y)
    if good.all():
        return y
    if good.sum() < 0.75 * len(y):
        return None
    at = np.arange(len(y))
    return np.interp(at, at[good], y[good])


def _distance(s: Stretch) -> float:
    """Return the steps from one value to the next."""
    return max(1e-9, float(s.step[-1] - s.step[0]) / (len(s.step) - 1))


def _cycles(rate: FloatArray, period: float) -> bool:
    """Whether the learning rate moves with the same period."""
    if not len(rate) or float(np.ptp(rate)) <= 0.01 * float(np.abs(rate).max()):
        return False
    r, _ = detrended(rate)
    lag = round(period)
    return bool(autocorrelation(r)[lag] > AGAIN and float(np.ptp(r)) > 0.05 * float(np.abs(rate).max()))
