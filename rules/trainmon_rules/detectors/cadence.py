"""How long a log is silent while all is well, learnt from the log itself.

nvidia-resiliency-ext's rule, from outside the process: five times the longest silence seen in the same phase of the
loop. What the phases are is told by the log: training between two reports, an evaluation where validation results
were logged in between or the settings announce one, a checkpoint where they announce that, and the start, before the
first reports, which compiles and fills caches. Checkpoints that nothing announces show as the longest gaps of training.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

FLOOR = 300.0  # seconds; writers flush every two minutes
USUAL = 10.0  # times the usual gap
LONGEST = 5.0  # times the longest gap of the phase
FEW = 20  # gaps below which little is known
FEW_FLOOR, FEW_USUAL = 3600.0, 100.0
STARTED = 3  # gaps below which nothing is known
START = 7200.0  # seconds that the first step may take, and a first evaluation or checkpoint
LONG, LONG_USUAL = 60.0, 2.0  # shorter gaps, in seconds and times the usual, change no limit

TRAINING, EVALUATION, CHECKPOINT = "training", "evaluation", "checkpoint"


@dataclass(slots=True)
class Cadence:
    """The gaps between a log's reports so far: their number, the usual one, and the longest of each phase.

    A gap that was too long is learnt only when one of its kind comes again: a night's silence must not make the
    next one usual, but a checkpoint that takes an hour must be told twice at most.
    """

    gaps: int = 0
    usual: float = math.nan
    longest: dict[str, float] = field(default_factory=dict)
    odd: dict[str, float] = field(default_factory=dict)  # the longest that was too long, not learnt yet

    def limit(self, phase: str, gaps: int | None = None) -> float:
        """Return how many seconds of silence are normal in a phase; infinite while nothing is known.

        Parameters
        ----------
        phase : str
            `TRAINING`, `EVALUATION` or `CHECKPOINT`.
        gaps : int, optional
            Gaps known by then, all by default.
        """
        known = self.gaps if gaps is None else gaps
        if known < STARTED or not math.isfinite(self.usual):
            return math.inf
        longest = LONGEST * self.longest.get(TRAINING, 0.0)
        limit = max(FLOOR, USUAL * self.usual, longest)
        if known < FEW:
            limit = max(limit, FEW_FLOOR, FEW_USUAL * self.usual)
        if phase != TRAINING:
            seen = self.longest.get(phase)
            limit = max(limit, START if seen is None else LONGEST * seen)
        return limit

    def silent_until(self, last: float) -> float:
        """Return until when silence is normal, as a wall time.

        Parameters
        ----------
        last : float
            Wall time of the last record. What the loop is doing since isn't known, so the longest phase counts, and
            before the first reports the time that a start may take.
        """
        limit = max(self.limit(phase) for phase in {TRAINING, *self.longest})
        return last + (limit if math.isfinite(limit) else START)

    @property
    def long(self) -> float:
        """Seconds from which a gap is worth a look; shorter ones change no limit."""
        return max(LONG, LONG_USUAL * self.usual if math.isfinite(self.usual) else 0.0)

    def learn(self, phase: str, silence: float, too_long: bool) -> None:
        """Take a long gap."""
        if not too_long:
            self.longest[phase] = max(self.longest.get(phase, 0.0), silence)
            return
        if phase in self.odd:
            self.longest[phase] = max(self.longest.get(phase, 0.0), min(self.odd[phase], silence))
        self.odd[phase] = max(self.odd.get(phase, 0.0), silence)


def announced(setting: Callable[[str], Any], before: int, now: int) -> str:
    """Return which pause a run's settings announce from one step to another; `TRAINING` if none.

    Parameters
    ----------
    setting : callable
        Gives a setting of the vocabulary, or None.
    before, now : int
        Steps of two reports, one after the other.
    """
    for phase, name in ((EVALUATION, "eval_steps"), (CHECKPOINT, "save_steps")):
        every = setting(name)
        if every and now // every > (before - 1) // every:
            return phase
    return TRAINING
