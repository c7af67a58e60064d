"""Feeding arrays to the real engine, for tests of detectors and incidents."""

from __future__ import annotations

import numpy as np

from trainmon_rules.engine import Session
from trainmon_rules.points import Batch, chunk
from trainmon_rules.series import block_end
from trainmon_rules.state import Settings

SETTINGS = Settings.default()


def block_ends(n, first=1):
    """Return how many points there are at the ends of blocks, where most detectors decide: `first` to `n`."""
    return [end for end in range(first, n + 1) if end == block_end(end - 1)]


def session(tags, step=None, time=None, settings=SETTINGS):
    """Feed tags (name → values; NaN is a value, None an absent point) logged in the same rows, and end."""
    n = max(len(v) for v in tags.values())
    step = np.arange(n) if step is None else np.asarray(step)
    s = Session("run", settings)
    chunks = []
    for tag, values in tags.items():
        rows = np.array([i for i, v in enumerate(values) if v is not None])
        picked = [values[i] for i in rows]
        chunks.append(chunk(tag, step[rows], picked, None if time is None else np.asarray(time)[rows], rows))
    s.feed("log", Batch(chunks))
    s.end()
    return s


def findings(rule, tags, **kwargs):
    """Return [(severity, onset, detected, state)] of one rule."""
    return [
        (str(f.severity), f.onset_step, f.detected_step, str(f.state))
        for f in session(tags, **kwargs).runs[0].findings.values()
        if f.rule == rule
    ]


def incidents(tags, **kwargs):
    """Return the incidents of the first run."""
    return session(tags, **kwargs).runs[0].incidents
