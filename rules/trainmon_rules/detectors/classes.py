"""How many classes a run has, from what its log says: the setting, the loss of a guesser, the accuracy itself."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from trainmon_rules.points import FloatArray
from trainmon_rules.series import View
from trainmon_rules.series.robust import median

FIRST = 0.03  # share of a first loss within which it is the logarithm of a whole number
NOW = 0.01  # of a later one
ROUND = 1e-3  # share within which an accuracy printed with few digits is exactly 1/C
MANY = 100_000  # classes; beyond that a loss tells no number
COIN = 0.025  # about one half within which an accuracy may be that of two classes
TIES = 12  # equal accuracies that make a constant
LONG = 40  # reports behind a mean that stands for itself


@dataclass(frozen=True, slots=True)
class Guess:
    """A number of classes and how it is known; `sure` if that is good for more than a note."""

    classes: int
    how: str
    sure: bool = True
    given: bool = False  # by the settings


def guesses(given: int | None, loss: View, share: FloatArray, rose: bool) -> Iterator[Guess]:
    """Yield the numbers of classes that a run may have, the best known first.

    Parameters
    ----------
    given : int or None
        What the settings say; then nothing else is believed.
    loss : View
        The training loss up to now.
    share : float64 array, shape (n,)
        The last accuracies as shares of right answers, oldest first; empty for a top-n accuracy.
    rose : bool
        Whether they were clearly lower at first: then they have left chance, whatever that was.
    """
    if given is not None:
        if given > 1:
            yield Guess(given, "the settings say so", given=True)
        return
    if (classes := whole(median(loss.first[np.isfinite(loss.first)][:5]), FIRST)) is not None:
        yield Guess(classes, f"the first loss is ln {classes}")
    if rose:
        return
    if (classes := whole(median(loss.finite), NOW)) is not None:
        yield Guess(classes, f"the loss is ln {classes}")
    last = share[-TIES:]
    if len(last) == TIES and (last == last[0]).all() and 1 / MANY < last[0] <= 0.5:
        classes = round(1 / float(last[0]))
        if abs(last[0] * classes - 1) < ROUND:
            yield Guess(classes, f"the accuracy is exactly 1/{classes}", sure=False)
    elif len(share) >= LONG and abs(float(share.mean()) - 0.5) <= COIN:
        yield Guess(2, "the accuracy is that of a coin", sure=False)


def whole(level: float, tolerance: float) -> int | None:
    """Return the number of classes of which a loss is the logarithm, None if that isn't a whole number."""
    if not 0.5 < level < math.log(MANY):
        return None
    classes = round(math.exp(level))
    return classes if abs(level - math.log(classes)) <= tolerance * math.log(classes) else None
