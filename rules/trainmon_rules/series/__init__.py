"""One tag's points in one attempt, and what is computed once of them and read by all detectors.

`series` holds the ring of recent points and the robust baseline, `history` the long memory, `trend` the whole curve as
of a point, `robust` the medians and quantiles they are made of.
"""

from __future__ import annotations

from trainmon_rules.series.series import (
    EMPTY,
    RELATIVE_FLOOR,
    RING,
    WINDOW,
    Baseline,
    Block,
    Series,
    View,
    block_end,
)

__all__ = ["EMPTY", "RELATIVE_FLOOR", "RING", "WINDOW", "Baseline", "Block", "Series", "View", "block_end"]
