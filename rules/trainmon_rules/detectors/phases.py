"""Does a series repeat itself, with which period, and how much of it: what `periodic` measures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainmon_rules.points import FloatArray, IntArray
from trainmon_rules.series.robust import quantile

SHORTEST = 4  # values in a period
PERIODS = 5  # of them at least, so that chance doesn't look like one
KNOWN_PERIODS = 4  # where the period needn't be searched
PEAK, DIP, AGAIN = 0.5, 0.1, 0.35  # of the autocorrelation: at the period, before it, and at twice the period
ALIKE, MOSTLY_ALIKE = 0.7, 0.5  # correlation of a period with the others: on average, and of all but one
FAR = 5.0  # times the middle half's width away from it: an outlier, however many there are
PHASES = 16  # parts of a period at most


@dataclass(frozen=True, slots=True)
class Cycle:
    """A pattern that repeats: its period in values, how often it was seen, and its shape over the phases.

    `alike` is the mean correlation of a period with the mean of the others; `noise` the standard deviation of a
    value about the pattern; `fall` how far the trend below it fell in a period.
    """

    period: float
    periods: int
    shape: FloatArray
    alike: float
    noise: float
    fall: float

    @property
    def amplitude(self) -> float:
        """From the lowest to the highest phase."""
        return float(self.shape.max() - self.shape.min())


def detrended(y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the values about a parabola, outliers clipped, and the parabola."""
    t = np.linspace(-1.0, 1.0, len(y))
    low, high = quantile(y, 0.25), quantile(y, 0.75)
    reach = FAR * (high - low)
    clipped = np.clip(y, max(quantile(y, 0.02), low - reach), min(quantile(y, 0.98), high + reach))
    power = np.polynomial.polynomial
    curve = np.asarray(power.polyval(t, power.polyfit(t, clipped, 2)), np.float64)
    return clipped - curve, curve


def autocorrelation(r: FloatArray) -> FloatArray:
    """Return the autocorrelation at lags 0 to n - 1, each from the pairs that there are; zeros of a constant."""
    n = len(r)
    power = np.abs(np.fft.rfft(r, 2 * n)) ** 2
    a = np.fft.irfft(power)[:n] / np.arange(n, 0, -1)
    return a / a[0] if a[0] > 0 and np.isfinite(a).all() else np.zeros(n)


def find_cycle(y: FloatArray, known: float | None = None) -> Cycle | None:
    """Return the pattern that the values repeat; None if they don't.

    The period is the first local peak of the autocorrelation above 0.5 that comes back at its double and is
    separated from lag 0 by a dip, as in an epoch's sawtooth and not in noise that is merely autocorrelated. Then
    each period must resemble the mean of the others.

    Parameters
    ----------
    y : float64 array, shape (n,)
        Finite values at equal distances, oldest first.
    known : float, optional
        A period that is tested too; a shorter one that is found goes first, as it may repeat in the longer one.
    """
    r, curve = detrended(y)
    fall = abs(float(curve[0] - curve[-1])) / len(y)
    a = autocorrelation(r)
    period = _period(a)
    cycle = None if period is None else _fold(r, _refined(a, period), fall)
    if known is None or not SHORTEST <= known <= len(y) / KNOWN_PERIODS or (cycle is not None and cycle.period < known):
        return cycle
    return _fold(r, known, fall) or cycle


def repeats(y: FloatArray, period: float) -> bool:
    """Return whether one of the last two periods still follows the pattern of the others."""
    r, _ = detrended(y)
    folded = _folded(r, period)
    last = [_resemblance(folded, i) for i in range(len(folded) - 2, len(folded))]
    return len(folded) < KNOWN_PERIODS or max(last) >= AGAIN


def _period(a: FloatArray) -> int | None:
    if any(a[p] > PEAK and a[1:p].min() < DIP for p in range(2, SHORTEST)):
        return None  # it takes turns: that is shorter than a pattern
    most = len(a) // PERIODS
    lags = np.arange(SHORTEST, most + 1)
    peaks = lags[(a[lags] > PEAK) & (a[lags] >= a[lags - 1]) & (a[lags] >= a[lags + 1])]
    for p in peaks.tolist():
        if a[1:p].min() < DIP and a[2 * p - 1 : 2 * p + 2].max() > AGAIN:
            return int(p)
    return None


def _refined(a: FloatArray, period: int) -> float:
    """Sharpen the period at its multiples: the fourth peak tells a quarter of a value."""
    fine = float(period)
    for m in range(2, PERIODS):
        at = round(fine * m)
        slack = max(1, at // 16)
        if at + slack >= len(a):
            break
        near = a[at - slack : at + slack + 1]
        if near.max() < AGAIN:
            break
        fine = (at - slack + int(near.argmax())) / m
    return fine


def _phase(n: int, period: float) -> tuple[IntArray, int]:
    """Return which phase each of `n` values belongs to, counted on from the first whole period, and phases a period.

    The last period ends with the last value; what stands before the first whole one is negative.
    """
    phases = min(PHASES, int(period))
    at = (np.arange(n) - n) / period + int(n / period)
    return np.floor(at * phases + 1e-6).astype(np.int64), phases


def _folded(r: FloatArray, period: float) -> FloatArray:
    """Return the mean of each phase (columns) of each whole period (rows); each row about 0."""
    cell, phases = _phase(len(r), period)
    r, cell = r[cell >= 0], cell[cell >= 0]
    size = int(cell[-1]) // phases * phases + phases
    mean = np.bincount(cell, r, size) / np.maximum(np.bincount(cell, minlength=size), 1)
    folded: FloatArray = mean.reshape(-1, phases)
    folded -= folded.mean(axis=1, keepdims=True)
    return folded


def _resemblance(folded: FloatArray, i: int) -> float:
    one, others = folded[i], folded.sum(axis=0) - folded[i]
    size = float(np.sqrt((one @ one) * (others @ others)))
    return float(one @ others) / size if size > 0 else 0.0


def _fold(r: FloatArray, period: float, fall: float) -> Cycle | None:
    folded = _folded(r, period)
    alike = np.sort([_resemblance(folded, i) for i in range(len(folded))])
    if not (alike[1] >= MOSTLY_ALIKE and float(alike.mean()) >= ALIKE):  # also where they are no numbers
        return None
    shape = folded.mean(axis=0)
    cell, phases = _phase(len(r), period)
    noise = float(np.std(r - shape[cell % phases]))
    return Cycle(period, len(folded), shape, float(alike.mean()), noise, fall * period)
