"""Several attempts at the same steps as one line: where they overlap, one of them is drawn."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from trainmon_rules.report import Curve


def one_line(curves: Sequence[Curve], keep: int) -> tuple[list[Curve], bool]:
    """Return the curves with no step drawn twice, and whether one was cut.

    Parameters
    ----------
    curves : sequence of Curve
        One tag's curves, of any attempts.
    keep : int
        The attempt that is drawn whole; where others overlap, the later one is drawn.
    """
    order = sorted(curves, key=lambda c: (c.attempt != keep, -c.attempt))
    out: list[Curve] = []
    taken: list[tuple[int, int, int]] = []  # first step, last step, attempt
    cut = False
    for curve in order:
        spans = [(a, b) for a, b, attempt in taken if attempt != curve.attempt]
        pieces = _pieces(curve, spans)
        cut |= pieces != [curve]
        out += pieces
        taken.append((min(curve.steps), max(curve.steps), curve.attempt))
    return sorted(out, key=lambda c: c.steps[0]), cut


def _pieces(curve: Curve, taken: Sequence[tuple[int, int]]) -> list[Curve]:
    """Cut a curve where its steps are taken, so that no line bridges what another attempt draws."""
    free = [not any(a <= s <= b for a, b in taken) for s in curve.steps]
    starts = [i for i, ok in enumerate(free) if ok and (i == 0 or not free[i - 1] or _across(curve, i, taken))]
    out = []
    for start, following in itertools.pairwise([*starts, len(free)]):
        end = next((i for i in range(start, following) if not free[i]), following)
        out.append(_slice(curve, start, end))
    return out


def _across(curve: Curve, i: int, taken: Sequence[tuple[int, int]]) -> bool:
    """Whether the line to a point would pass over steps that are taken."""
    return any(curve.steps[i - 1] < a and b < curve.steps[i] for a, b in taken)


def _slice(c: Curve, a: int, b: int) -> Curve:
    if (a, b) == (0, len(c.steps)):
        return c
    return Curve(c.tag, c.role, c.attempt, c.steps[a:b], c.low[a:b], c.mean[a:b], c.high[a:b], c.bad[a:b])
