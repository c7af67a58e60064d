"""Figures with 95 % intervals that know that runs of one family are alike.

Scenarios of a family and seeds of a scenario fail together, so families are drawn, not runs: the bootstrap of Cameron,
Gelbach & Miller (2008), "Bootstrap-based improvements for inference with clustered errors", in its plain form (pairs
of clusters, percentiles). Where every family gives the same figure it has no width, and says nothing about the next
family: then each family counts as one observation, in Wilson's interval (1927) for a share, in the exact Poisson
interval (Garwood 1936) for a rate.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence

import numpy as np
from scipy.special import gammaincinv

from trainmon_rules.evaluation import Estimate
from trainmon_rules.points import FloatArray

RESAMPLES = 2000
SEED = 20_260_101
LEVEL = 0.95
TAILS = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
Z = 1.959963984540054  # of the normal distribution at 97.5 %

Observation = tuple[Hashable, float, float]
"""Family, count, and what it is counted over (1 for a trial, steps for a rate)."""


def share(observations: Iterable[Observation]) -> Estimate:
    """Return a share (its counts are at most what they are counted over) with its interval.

    Parameters
    ----------
    observations : iterable of (family, count, out of)
        One a run.
    """
    seen = [o for o in observations if o[2]]
    found, families = _drawn(seen)
    if found.value is None or found.low is not None:
        return found
    return Estimate(found.value, *wilson(found.value, families), "wilson")


def rate(observations: Iterable[Observation], per: float = 1.0) -> Estimate:
    """Return a rate, `per` so much of what it is counted over, with its interval."""
    seen = [o for o in observations if o[2]]
    found, families = _drawn(seen)
    if found.value is None:
        return found
    if found.low is not None and found.high is not None:
        return Estimate(found.value * per, found.low * per, found.high * per, found.method)
    exposure = sum(o[2] for o in seen) * families / len(seen)  # each family as one of its runs
    low, high = garwood(found.value * exposure)
    return Estimate(found.value * per, low / exposure * per, high / exposure * per, "poisson")


def quantile(values: Iterable[tuple[Hashable, float]], part: float) -> Estimate:
    """Return a quantile (a value that occurs: the inverse of the distribution) with its interval.

    Parameters
    ----------
    values : iterable of (family, value)
        One a run.
    part : float
        Which quantile, 0 to 1.
    """
    seen = sorted(values, key=lambda v: v[1])
    if not seen:
        return Estimate()
    families = {family: i for i, family in enumerate(dict.fromkeys(family for family, _ in seen))}
    of, value = np.array([families[f] for f, _ in seen]), np.array([float(v) for _, v in seen])
    point = float(_weighted(value, np.ones((1, len(seen))), part)[0])
    drawn = np.sort(_weighted(value, _draws(len(families))[:, of], part))
    low, high = float(np.quantile(drawn, TAILS[0])), float(np.quantile(drawn, TAILS[1]))
    return Estimate(point, low, high, "bootstrap") if high > low else Estimate(point)


def wilson(value: float, n: int) -> tuple[float, float]:
    """Return Wilson's interval for a share seen in `n` observations."""
    middle = (value + Z * Z / (2 * n)) / (1 + Z * Z / n)
    half = Z / (1 + Z * Z / n) * math.sqrt(value * (1 - value) / n + Z * Z / (4 * n * n))
    return max(0.0, middle - half), min(1.0, middle + half)


def garwood(count: float) -> tuple[float, float]:
    """Return the exact interval for the mean of a Poisson distribution that gave `count`."""
    low = float(gammaincinv(count, TAILS[0])) if count else 0.0
    return low, float(gammaincinv(count + 1, TAILS[1]))


def _drawn(seen: Sequence[Observation]) -> tuple[Estimate, int]:
    """Return counts over what they are counted over, with a bootstrap interval if it has a width; and the families."""
    counts, over = _by_family(seen)
    if not over.sum():
        return Estimate(), 0
    value = float(counts.sum() / over.sum())
    low, high = _resampled(counts, over)
    return (Estimate(value, low, high, "bootstrap") if high > low else Estimate(value)), len(counts)


def _by_family(observations: Sequence[Observation]) -> tuple[FloatArray, FloatArray]:
    """Return the sums of counts and of what they are over, a family each."""
    families = list(dict.fromkeys(family for family, _, _ in observations))
    counts, over = np.zeros(len(families)), np.zeros(len(families))
    for family, count, out_of in observations:
        counts[families.index(family)] += count
        over[families.index(family)] += out_of
    return counts, over


def _draws(families: int) -> FloatArray:
    """Return how often each family was drawn, shape (RESAMPLES, families); always the same draws."""
    random = np.random.default_rng(SEED)
    return random.multinomial(families, np.full(families, 1 / families), RESAMPLES).astype(np.float64)


def _resampled(counts: FloatArray, over: FloatArray) -> tuple[float, float]:
    """Return the percentiles of counts / over, over draws of families."""
    drawn = _draws(len(counts))
    ratios = np.sort(drawn @ counts / (drawn @ over))
    low, high = float(np.quantile(ratios, TAILS[0])), float(np.quantile(ratios, TAILS[1]))
    return (low, high) if ratios[-1] - ratios[0] > 1e-9 else (low, low)


def _weighted(value: FloatArray, weight: FloatArray, part: float) -> FloatArray:
    """Return the quantile of sorted values under each row of weights."""
    below = np.cumsum(weight, axis=1)
    first = np.argmax(below >= part * below[:, -1:] - 1e-9, axis=1)
    taken: FloatArray = value[first]
    return taken
