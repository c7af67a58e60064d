"""What the learning rate says about a rise of the loss: warm restarts explain one."""

from __future__ import annotations

import numpy as np

from trainmon_rules.series import View

JUMP = 1.5  # times the rate before


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
