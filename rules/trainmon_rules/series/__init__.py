"""One tag's points in one attempt, and what is computed once of them and read by all detectors.

`series` holds the ring of recent points, `baseline` says what is normal, `history` is the long memory, `trend` the
whole curve as of a point, `view` a stretch of points, `robust` the medians and quantiles they are made of.
"""

from __future__ import annotations

from trainmon_rules.series.baseline import RELATIVE_FLOOR, Baseline
from trainmon_rules.series.series import RING, WINDOW, Block, Series, block_end, block_start
from trainmon_rules.series.view import EMPTY, View

__all__ = [
    "EMPTY",
    "RELATIVE_FLOOR",
    "RING",
    "WINDOW",
    "Baseline",
    "Block",
    "Series",
    "View",
    "block_end",
    "block_start",
]
