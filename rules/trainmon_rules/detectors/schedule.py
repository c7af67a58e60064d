"""What the rules about the learning rate share, and what the rate says about a rise of the loss."""

from __future__ import annotations

import numpy as np

from trainmon_rules.points import BoolArray, FloatArray
from trainmon_rules.series import View
from trainmon_rules.series.trend import ABSURD_RATE

JUMP = 1.5  # times the rate before
PRINTED = 1e-6  # the last digit that most logs print
FEW_VALUES = 4  # different rates from which on the spacing of the printed ones shows
FINEST = 9  # decimals; a rate with more of them is a number, not a print


def restarted(lr: View) -> bool:
    """Whether the rate jumped up, after it had not been rising, within the view.

    A warm-up rises report by report and is none; a warm restart comes back to at most the earlier peak, which the
    schedule rule checks, not this.
    """
    rate = lr.finite
    if len(rate) < 3:
        return False
    jumps = np.flatnonzero(rate[2:] > JUMP * np.maximum(rate[1:-1], 0.0)) + 2
    return bool((rate[jumps - 1] <= rate[jumps - 2]).any())


def is_rate(value: FloatArray) -> BoolArray:
    """Return which values can be a learning rate."""
    return (value >= 0) & (value < ABSURD_RATE)


def printed_to(rates: FloatArray) -> float:
    """Return the last digit to which rates are printed, 0 if they are printed in full.

    A log with six decimals shows 0.000000 for all that is below 5e-7, which says nothing about the schedule.
    """
    values = np.unique(rates[rates > 0])
    decimals = range(3, FINEST + 1) if len(values) >= FEW_VALUES else (6,)
    for places in decimals:
        scaled = values * 10.0**places
        if (np.abs(scaled - np.round(scaled)) <= 1e-6 * np.maximum(scaled, 1.0)).all():
            return float(10.0**-places)
    return 0.0
