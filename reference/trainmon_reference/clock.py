"""Time as a run's log tells it: simulated, so that a trace is the same on every machine.

A CPU that trains a toy in milliseconds says nothing about a GPU's pace. So the seconds of a step are drawn from what
GPU jobs look like: a steady pace with a few per cent of jitter, pauses for evaluation and checkpoints, and what a
fault adds. Nothing is measured.
"""

from __future__ import annotations

import numpy as np

STEP = 1.0  # seconds an update of a healthy run
JITTER = 0.02  # of a step's time, as its standard deviation
EVALUATION = 8.0  # seconds an evaluation
CHECKPOINT = 5.0  # seconds a checkpoint


class Clock:
    """The seconds since the run began.

    Parameters
    ----------
    seed : int
        Of the jitter.
    now : float
        Seconds at the start, of a run that goes on.
    """

    def __init__(self, seed: int, now: float = 0.0) -> None:
        self.now = now
        self._random = np.random.default_rng([seed, 7])

    def step(self, micro_batches: int = 1) -> float:
        """Let an update of so many micro-batches pass; return its seconds."""
        return self.wait(STEP * micro_batches * float(np.exp(JITTER * self._random.standard_normal())))

    def wait(self, seconds: float) -> float:
        """Let so many seconds pass; return them."""
        self.now += seconds
        return seconds
