"""What the rules about the learning rate share, and what the rate says about a rise of the loss."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from trainmon_rules.detectors.course import Course
from trainmon_rules.points import FloatArray
from trainmon_rules.series import View
from trainmon_rules.series.trend import is_rate

JUMP = 1.5  # times the rate before
PRINTED = 1e-6  # the last digit that most logs print
FEW_VALUES = 4  # different rates from which on the spacing of the printed ones shows
STEEP = 2.0  # times the last fall: a rate that was still higher than that did not come down by itself
HIGH = 1e-5  # a rate that six decimals would still show after a tenfold fall
SPARE = 1.2  # times the part of a decay that printing can hide
FINEST = 9  # decimals; a rate with more of them is a number, not a print


def restarted(lr: View) -> bool:
    """Whether a schedule started over within the view: the rate jumped up, after it had not been rising.

    A warm-up rises report by report and is none. A warm restart comes back to a rate that the run has had; a jump
    beyond it is a fault, and explains nothing away.
    """
    rate = lr.finite
    if len(rate) < 3:
        return False
    known = JUMP * np.fmax.accumulate(np.append(lr.peak, rate))
    jumps = np.flatnonzero(rate[2:] > JUMP * np.maximum(rate[1:-1], 0.0)) + 2
    return bool(((rate[jumps - 1] <= rate[jumps - 2]) & (rate[jumps] <= known[jumps])).any())


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


@dataclass(frozen=True, slots=True)
class Descent:
    """How the rate came to its first 0: the last rate, whether it fell in one report, and what printing can hide.

    `hidden` is a part of the decay, `printed` the steps for which a 0 may be a rate below the last digit.
    """

    last: float
    sudden: bool
    hidden: float
    printed: float


def descent(before: View, course: Course, step: int) -> Descent | None:
    """Return how the rate came to a 0 at `step`, from the reports before it; None where all of them are 0.

    Parameters
    ----------
    before : View
        The reports before, as many as are remembered.
    course : Course
        The rates above 0.
    step : int
        That of the first 0.
    """
    peak = course.peak
    ok = is_rate(before.value)
    rates, steps = before.value[ok], before.step[ok]
    if peak <= 0.0 or not len(rates):
        return None
    last, digit = float(rates[-1]), printed_to(rates)
    fall = float(rates[-2] - last) if len(rates) > 1 else 0.0
    small = max(HIGH, 0.01 * peak, 5.5 * digit if len(np.unique(rates)) >= FEW_VALUES else 0.0)
    hidden = 2 / math.pi * math.sqrt(min(1.0, 0.5 * digit / peak))  # of a cosine to 0, the slowest end there is
    rises = np.flatnonzero(np.diff(rates) > 0)
    began = int(steps[rises[-1] + 1]) if len(rises) else course.first_step
    printed = 2 * SPARE * hidden * (step - began)
    if last <= 5.5 * digit:  # a decay in steps goes on below the digit: as long again as it stood there, and more
        printed = max(printed, 3.0 * (step - course.since))
    return Descent(last, last >= small and last > STEEP * max(0.0, fall), SPARE * hidden, printed)
