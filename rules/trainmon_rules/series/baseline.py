"""What is normal for a series: one robust level, scale and threshold.

The baseline is the published recipe that stays quiet on healthy streams and survives bad points: median and
MAD about a line over the last 64 accepted points, where non-finite and flagged points are left out
(OLMo-core's rolling window, with the exclusion of Lightning Fabric and metaseq), never extrapolating a fall; a
second memory of isolated outliers raises the threshold on heavy-tailed series.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainmon_rules.points import FloatArray
from trainmon_rules.series.robust import mad_sigma, median, quantile

MIN_POINTS = 6  # fewer accepted points give no baseline
SIGMAS = 6.0
SIGMAS_SHORT = 12.0  # with fewer than 12 points the scale itself is uncertain
RELATIVE_FLOOR = 0.02  # of the level: smaller moves are never flagged
LOG_FLOOR = 0.1  # the same for series judged by their logarithm
OUTLIER_MARGIN = 1.3  # above the isolated outliers that the series has anyway


@dataclass(frozen=True, slots=True)
class Baseline:
    """What is normal for a block, in judged units (sign turned and logarithm taken, see `Series.judged`).

    `level` is the value expected now, `median` the centre of the newer half of the window, `slope` the change
    a point, `scale` the robust standard deviation, `threshold` the excess over `level` at which a point is
    flagged, `count` the number of points behind it.
    """

    level: float
    median: float
    slope: float
    scale: float
    threshold: float
    count: int


def fit(window: FloatArray, log: bool, outlier: float) -> Baseline | None:
    """Return the baseline of the accepted points; None of fewer than six.

    Parameters
    ----------
    window : float64 array, shape (n,)
        Accepted points in judged units, oldest first.
    log : bool
        Whether the units are logarithms.
    outlier : float
        Excess of the largest isolated outlier that the series has had lately, 0 for none.
    """
    n = len(window)
    if n < MIN_POINTS:
        return None
    half = n // 2
    older, newer = median(window[:half]), median(window[half:])
    slope = (newer - older) / (n / 2)
    level = newer + max(0.0, slope) * n / 4  # a fall is never extrapolated
    residual = window - (newer + slope * (np.arange(n) - (half + (n - half - 1) / 2)))
    scale = max(mad_sigma(residual), quantile(residual, 0.9) / 1.2816, 1e-12)
    threshold = max(
        (SIGMAS if n >= 12 else SIGMAS_SHORT) * scale,
        3.0 * quantile(residual, 0.95),
        LOG_FLOOR if log else RELATIVE_FLOOR * abs(level),
        OUTLIER_MARGIN * outlier,
    )
    return Baseline(level, newer, slope, scale, threshold, n)
