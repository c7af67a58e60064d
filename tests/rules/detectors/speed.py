"""Step times, wall times and findings for the tests of the rules about speed and memory."""

from __future__ import annotations

import numpy as np
from scipy.signal import lfilter

from tests.engine import session

MEGATRON = "elapsed time per iteration (s)"


def noisy(n, seconds, seed=0, noise=0.03):
    """Seconds a step of `n` steps, log-normal about a level (a number, or an array of that length)."""
    return seconds * np.exp(np.random.default_rng(seed).normal(0, noise, n))


def wander(n, seed, steps, share):
    """A factor that wanders about 1 by a share, forgetting itself over so many steps."""
    rng, a = np.random.default_rng(1000 + seed), 1 - 1 / steps
    e = rng.normal(0, share * np.sqrt(1 - a * a), n)
    return np.exp(lfilter([1], [1, -a], e))


def clock(seconds, resolution=0.0, flush=1):
    """Wall times of reports that took so many seconds, at a resolution, written in batches of `flush`."""
    time = 1.7e9 + np.cumsum(seconds)
    time = np.floor(time / resolution) * resolution if resolution else time
    last = np.minimum((np.arange(len(time)) // flush + 1) * flush - 1, len(time) - 1)
    return time[last]


def found(rule, tags, **kwargs):
    """The findings of a rule over tags logged in the same rows."""
    run = session(tags, **kwargs).runs[0]
    return [f for f in run.findings.values() if f.rule == rule]


def told(rule, tags, **kwargs):
    """The same as (severity, onset, detected, resolved)."""
    return [(str(f.severity), f.onset_step, f.detected_step, f.resolved_step) for f in found(rule, tags, **kwargs)]
