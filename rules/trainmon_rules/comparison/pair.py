"""One quantity in two runs: held together step by step, and told in a sentence."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from trainmon_rules.comparison.parting import LEAST, Course, Pairs, broken_from, paired, parted_from, same_until
from trainmon_rules.comparison.quantities import Looked
from trainmon_rules.points import FloatArray
from trainmon_rules.report import SeriesComparison
from trainmon_rules.series.robust import median, quantile
from trainmon_rules.words import short

PRINTED = 0.02  # relative difference allowed to a learning rate that was read between two points


def compare_pair(
    role: str,
    here: tuple[str, Course | None],
    there: tuple[str, Course | None],
    look: Looked,
    direction: int,
    doubted: Collection[str] = (),
) -> SeriesComparison:
    """Return how a tag of one run compares with one of another.

    Parameters
    ----------
    role : str
        What both tags mean.
    here, there : tuple of str and Course
        Tag and course in each run; None for a course that was too long to be kept.
    look : Looked
        How the role is compared.
    direction : int
        +1 where rising is bad, −1 where falling is, 0 where neither is.
    doubted : collection of str
        "run", "against" or both, where that run's series is broken: its level is then no better, whatever it says.
    """
    (tag, one), (other_tag, other) = here, there
    if one is None or other is None:
        return SeriesComparison(role, tag, other_tag, "unknown", "too many points to be kept and compared", 0)
    p = paired(one, other)
    if not len(p):
        why = f"no common steps: {_span(one)} here, {_span(other)} there"
        return SeriesComparison(role, tag, other_tag, "unknown", why, 0)
    found = _exact(p, look) if look.exact else _noisy(p, look)
    level, against = found.levels()
    worse = (level - against) * direction if found.at is not None else 0.0
    better = "against" if worse > 0 else "run" if worse < 0 else None
    better = None if better in doubted else better
    return SeriesComparison(
        role,
        tag,
        other_tag,
        found.outcome,
        found.summary(level, against, better),
        len(p),
        int(p.step[0]),
        int(p.step[-1]),
        found.step(found.same - 1) if found.same else None,
        found.step(found.at),
        found.step(found.back),
        level,
        against,
        better,
    )


def _span(c: Course) -> str:
    return f"{c.step[0]} to {c.step[-1]}" if len(c.step) else "none"


def _exact(p: Pairs, look: Looked) -> Found:
    """Find the first pair that differs, and the one from which none does any more."""
    size = np.maximum(np.abs(p.one), np.abs(p.other))
    peak = float(np.max(size, initial=0.0, where=np.isfinite(size)))
    allowed = (look.matters if p.exact else PRINTED) * size + 1e-5 * peak
    differs = ~((np.abs(p.one - p.other) <= allowed) | (np.isnan(p.one) & np.isnan(p.other)) | (p.one == p.other))
    if not differs.any():
        return Found(p, len(p), None, None, "same", len(p))
    first, after = int(differs.argmax()), len(p) - int(differs[::-1].argmax())
    return Found(p, first, first, after if after < len(p) else None, "parted", len(p))


def _noisy(p: Pairs, look: Looked) -> Found:
    """Find the first pair from which the two differ for good."""
    same = same_until(p) if p.exact else 0
    if same == len(p):
        return Found(p, same, None, None, "same", same)
    same = same if same >= LEAST else 0
    one, other = (np.log(p.one), np.log(p.other)) if look.log else (p.one, p.other)
    judged = np.flatnonzero(np.isfinite(one[same:]) & np.isfinite(other[same:])) + same
    at = broken_from(p)
    if len(judged) >= LEAST:
        floor = look.matters if look.log else look.matters * _size(other[judged])
        found = parted_from(one[judged] - other[judged], floor)
        at = at if found is None else int(judged[found]) if at is None else min(at, int(judged[found]))
    outcome = "parted" if at is not None else "together" if len(judged) >= LEAST else "unknown"
    return Found(p, same, at, None, outcome, len(judged))


def _size(values: FloatArray) -> float:
    """Return the level of a course in its second half, or how far it ranges there if that is more (about zero)."""
    half = values[len(values) // 2 :]
    return max(median(np.abs(half)), quantile(half, 0.95) - quantile(half, 0.05))


@dataclass(frozen=True, slots=True)
class Found:
    """What was found of two courses.

    `same` is the number of pairs at the beginning that are the same, `at` the pair from which they differ, `back` the
    one from which they don't any more; `outcome` is the word for it; `judged` is the number of pairs it rests on.
    """

    pairs: Pairs
    same: int
    at: int | None
    back: int | None
    outcome: str
    judged: int

    def step(self, i: int | None) -> int | None:
        """Return the step of a pair."""
        return None if i is None else int(self.pairs.step[i])

    def levels(self) -> tuple[float, float]:
        """Return the level of each course: of the last quarter after the parting, or while they differed."""
        p, first = self.pairs, self.at or 0
        stop = len(p) if self.back is None else self.back
        if self.back is None:
            first = stop - max(1, (stop - first) // 4)
        return _level(p.one[first:stop]), _level(p.other[first:stop])

    def summary(self, level: float, against: float, better: str | None) -> str:
        """Return it as a sentence."""
        p = self.pairs
        where = (
            f"{len(p):,} common steps" if p.exact else f"{len(p):,} steps, read between the points of the denser one"
        )
        if self.outcome == "same":
            return f"the same over {where}, to step {p.step[-1]}"
        begin = f"the same to step {self.step(self.same - 1)}, " if self.same else ""
        if self.outcome == "unknown":
            return f"{begin}too few common steps with a finite value to say ({self.judged})"
        now = _against(level, against)
        if self.outcome == "together":
            return f"{begin}together over {where}, to step {p.step[-1]}: {now}"
        parts = f"parts at step {self.step(self.at)}"
        if self.back is not None:
            parts = f"differs from step {self.step(self.at)} to {self.step(self.back - 1)}"
        verdict = {"run": ", better", "against": ", worse", None: ""}[better]
        return f"{begin}{parts}: {now}{verdict}"


def _level(values: FloatArray) -> float:
    """Return the median of the finite values, or the last of the others if those are more."""
    finite = values[np.isfinite(values)]
    return median(finite) if 2 * len(finite) >= len(values) else float(values[~np.isfinite(values)][-1])


def _against(level: float, against: float) -> str:
    """Return two levels in words: "2.41 against 2.05 (18 % higher)"."""
    text = f"{short(level)} against {short(against)}"
    if not (math.isfinite(level) and math.isfinite(against)) or level == against:
        return text
    word = "higher" if level > against else "lower"
    share = (level - against) / abs(against) if against else math.inf
    if against > 0 and share >= 1:
        return f"{text} ({short(level / against, 3)} times as high)"
    if level > 0 and against >= 10 * level:
        return f"{text} ({short(against / level, 2)} times smaller)"
    if not math.isfinite(share) or level * against <= 0:
        return f"{text} ({short(abs(level - against), 2)} {word})"
    return f"{text} ({short(100 * abs(share), 2)} % {word})"
