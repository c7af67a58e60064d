"""val-oscillation: a validation loss or metric is thrown back and forth, and nothing is gained.

What it detects: over the last two thirds of the evaluations (twelve at least in all) neither validation nor training
improves; one evaluation differs from the next by 10 % of the level in a quarter of the cases; they turn back in every
other case; and the noise is at least half of all that was ever gained.

Why it matters: a validation set is the same each time, so it is the weights that are thrown about: the updates are too
large for the model to settle anywhere.

Example: 60 epochs with a validation loss between 0.65 and 1.54 and an accuracy between 0.37 and 0.76, while the
training loss stands at 0.95 from the second epoch on.

When it is wrong: an evaluation on a few random batches, or on a few dozen examples, is as noisy by itself. So metrics,
which are quantised and noisy, are `info` only, and the noise is held against the run's own progress: a run that has
learned much and is measured noisily stays quiet. A validation loss is a warning from 36 evaluations on, if the training
loss is logged too and surely gained less than 10 % meanwhile. While the rate restarts, it says nothing.

Fixes: lower the rate 3-10 times; clip the gradient norm; evaluate on more examples.

Source: AUTOTRAINER's oscillating loss (swings of at least 0.03 in 20 % of the epochs, wrong on most healthy runs),
with the level and the progress as scales and the training loss as a second witness.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trainmon_rules.detectors.base import Detector, Peer, Rule, resolved
from trainmon_rules.detectors.evaluations import noise
from trainmon_rules.detectors.levels import median_error
from trainmon_rules.detectors.schedule import restarted
from trainmon_rules.detectors.swings import OF_SIGMA, first_level
from trainmon_rules.findings import Finding, Severity
from trainmon_rules.points import FloatArray
from trainmon_rules.series import Block, Series, View, block_end
from trainmon_rules.series.robust import median
from trainmon_rules.series.trend import LOOK_EVERY
from trainmon_rules.vocabulary import RunSettings
from trainmon_rules.words import short

MOST = 128  # evaluations that are looked at
NEWEST, CALM = 12, 4  # evaluations that tell whether it goes on; evaluations of calm that end it
MEDIAN_ERROR = 1.25  # standard error of a median in that of the mean


@dataclass(frozen=True, slots=True)
class Thrown:
    """Evaluations in numbers: level, noise, what was gained over them, share of large jumps and of turns."""

    level: float
    noise: float
    gain: float
    error: float
    jumps: float
    turns: float


@dataclass(frozen=True, slots=True)
class Trained:
    """What the training loss gained over a stretch, with its standard error, and its level."""

    gain: float
    error: float
    level: float


class ValOscillation(Detector):
    """Compares the noise of evaluations with their level and with the run's progress."""

    name: ClassVar[str] = "val-oscillation"
    across: ClassVar[bool] = True

    @dataclass(frozen=True, slots=True)
    class Params:
        """What it takes.

        `evaluations` in all, `sure` for a warning; `jump` as a share of the level in `often` of the steps from one to
        the next; `turns` as a share of the evaluations; the noise as a share of the `progress`.
        """

        evaluations: int = 12
        sure: int = 36
        jump: float = 0.1
        often: float = 0.25
        turns: float = 0.5
        progress: float = 0.5

    params: Params

    def __init__(self, rule: Rule, series: Series, peer: Peer, settings: RunSettings) -> None:
        super().__init__(rule, series, peer, settings)
        self.least = self.params.evaluations
        self.look_at = self.least
        self.level = math.nan  # at which it was said
        self.calm = 0  # number of evaluations up to the last one that wasn't calm

    def update(self, block: Block) -> Iterator[Finding]:
        """Look at each evaluation; where there are many, when there are 5 % more."""
        end = block.start + len(block)
        if end < self.look_at or end != block_end(end - 1):
            return
        self.look_at = max(end + 1, math.ceil(end * LOOK_EVERY) if end > MOST else 0)
        view = self.series.before(end, min(MOST, end - end // 3))
        y = self.series.judged_of(view.value)
        keep = np.isfinite(y)
        if keep.sum() < max(0.75 * len(y), 8):
            return
        now = _thrown(y[keep], self.params.jump)
        if self.open is not None:
            yield from self._follow(block, now, view)
        elif self._is_thrown(now) and noise(y[keep][-NEWEST:]) > 0.5 * now.noise and not self._excused(block, view):
            words = self._words(now)
            self.level, self.calm = now.level, end
            self.open = self.finding(
                block, len(block) - 1, words["summary"], words["evidence"], int(view.step[0]), float(view.time[0]),
                self._severity(block, view),
            )  # fmt: skip
            yield self.open

    def _is_thrown(self, now: Thrown) -> bool:
        p = self.params
        return (
            now.gain < now.error
            and now.jumps >= p.often
            and now.turns >= p.turns
            and now.noise >= p.progress * (first_level(self.series) - now.level)
        )

    def _excused(self, block: Block, view: View, errors: float = 2.0) -> bool:
        """Whether the training loss still falls, by so many standard errors, or the rate restarts."""
        at = len(block) - 1
        if restarted(self.peer("learning_rate", block, at, 512)):
            return True
        train = self._train(block, view)
        return train is not None and train.gain > max(errors * train.error, 0.02 * abs(train.level))

    def _train(self, block: Block, view: View) -> Trained | None:
        """What the training loss gained since the first of these evaluations; None of too few reports."""
        train = self.peer("train_loss", block, len(block) - 1, 512)
        y = train.finite_where(train.step >= view.step[0])
        third = len(y) // 3
        if third < 2:
            return None
        error = math.sqrt(2) * median_error(y, third)
        return Trained(median(y[:third]) - median(y[-third:]), error, median(y))

    def _severity(self, block: Block, view: View) -> Severity:
        """A warning needs enough evaluations of a loss, and a training loss that surely has gained next to nothing."""
        train = self._train(block, view)
        enough = block.start + len(block) >= self.params.sure and self.series.role == "val_loss"
        stands = train is not None and train.gain + 2 * train.error < self.params.jump * abs(train.level)
        return self.rule.severity if enough and stands else Severity.INFO

    def _follow(self, block: Block, now: Thrown, view: View) -> Iterator[Finding]:
        """A warning once it is sure; over when it has improved by more than its noise, or calmed down."""
        found = self.open
        if found is None:
            return
        end, step = block.start + len(block), int(block.step[-1])
        y = self.series.judged_of(view.value)
        last = y[np.isfinite(y)][-NEWEST:]
        better = self.level - median(last) > now.noise or self._excused(block, view, 4.0)
        if not better and noise(last) >= now.noise / 3:
            self.calm = end
        if end >= self.calm + CALM:
            self.open = None
            yield resolved(found, step, f"settled by step {step}")
            return
        self.open = found.changed(last_step=step, **self._words(now))
        if found.severity < self._severity(block, view) and self._is_thrown(now):
            self.open = self.open.changed(severity=self.rule.severity)
            yield self.open

    def _words(self, now: Thrown) -> dict[str, Any]:
        sign = self.series.direction or 1
        gained = first_level(self.series) - now.level
        evidence: dict[str, Any] = {
            "swing": OF_SIGMA * now.noise,
            "level": sign * now.level,
            "noise of an evaluation": now.noise,
            "gain over them": now.gain,
            "large jumps in %": 100 * now.jumps,
            "turns in %": 100 * now.turns,
        }
        if gained > 0:
            evidence["share of progress"] = OF_SIGMA * now.noise / gained
        return {
            "summary": f"{self.series.tag} is thrown back and forth around {short(sign * now.level)} (noise "
            f"{short(now.noise, 2)}, jumps of {100 * self.params.jump:.0f} % in {100 * now.jumps:.0f} % of the "
            "evaluations) and gains nothing",
            "evidence": evidence,
        }


def _thrown(y: FloatArray, jump: float) -> Thrown:
    half = len(y) // 2
    spread = noise(y)
    level = median(y)
    d = np.diff(y)
    gain = median(y[:half]) - median(y[half:])
    error = MEDIAN_ERROR * spread * math.sqrt(4.0 / len(y))
    jumps = float((np.abs(d) >= jump * abs(level)).mean())
    return Thrown(level, spread, gain, error, jumps, float((d[1:] * d[:-1] < 0).mean()))
