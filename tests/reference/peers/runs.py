"""Small runs for the peers, step by step."""

import numpy as np

from trainmon_reference.peers import LoggedRun, Points

NAN, INF = float("nan"), float("inf")


def points(values, first=1, every=1, seconds=None, start=0.0):
    """Return points at steps first, first + every, …; a point each `seconds`, or no wall times."""
    n = len(values)
    time = np.full(n, NAN) if seconds is None else start + seconds * np.arange(n)
    return Points(first + every * np.arange(n), np.array(values, float), time)


def run(total_steps=0, parameters=1, **series):
    """Return a run of series by role, each a list of values (one a step from 1 on) or points."""
    known = {role: s if isinstance(s, Points) else points(s) for role, s in series.items()}
    return LoggedRun(known, total_steps, parameters)


def told(peer, *args, **series):
    """Return step → meaning of a peer's alarms."""
    return {alarm.step: alarm.means for alarm in peer.alarms(run(*args, **series))}


def wobble(n, low=1.0, high=3.0):
    """Return n values that alternate: mean 2 and standard deviation 1 by default."""
    return [low, high] * (n // 2)
