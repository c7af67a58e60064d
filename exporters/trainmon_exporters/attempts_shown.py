"""Several attempts at the same steps as one line: where they overlap, one of them is drawn."""

from __future__ import annotations

from collections.abc import Sequence

from trainmon_rules.report import Curve


def one_line(curves: Sequence[Curve], keep: int) -> tuple[list[Curve], bool]:
    """Return the curves with no step drawn twice, and whether something was left out.

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
    left_out = False
    for curve in order:
        free = [all(n == curve.attempt or not a <= s <= b for a, b, n in taken) for s in curve.steps]
        left_out |= not all(free)
        out += _pieces(curve, free)
        taken.append((min(curve.steps), max(curve.steps), curve.attempt))
    return sorted(out, key=lambda c: c.steps[0]), left_out


def _pieces(curve: Curve, free: Sequence[bool]) -> list[Curve]:
    """Cut a curve where its steps are taken, so that no line bridges the gap."""
    if all(free):
        return [curve]
    out = []
    start = None
    for i, ok in enumerate([*free, False]):
        if ok and start is None:
            start = i
        elif not ok and start is not None:
            out.append(_slice(curve, start, i))
            start = None
    return out


def _slice(c: Curve, a: int, b: int) -> Curve:
    return Curve(c.tag, c.role, c.attempt, c.steps[a:b], c.low[a:b], c.mean[a:b], c.high[a:b], c.bad[a:b])
