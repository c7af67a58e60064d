"""Device counters of a healthy job, simulated: there is no device to ask, and a trace must be the same everywhere."""

from __future__ import annotations

import numpy as np

UTILIZATION = 93.0  # per cent
MEMORY = 60.0  # GB
CAPACITY = 80.0  # GB


def healthy(seed: int, step: int, seconds: float) -> dict[str, float]:
    """Return GPU utilisation in per cent and memory in GB at a step.

    Parameters
    ----------
    seed, step : int
        Of the noise.
    seconds : float
        The step's time; what is beyond its usual length, the device waits.
    """
    noise = np.random.default_rng([seed, step, 11]).standard_normal(2)
    busy = min(1.0, 1.0 / max(seconds, 1e-9))
    return {
        "gpu_util": float(np.clip((UTILIZATION + 2.0 * noise[0]) * min(1.0, busy * 1.05), 0.0, 100.0)),
        "gpu_mem": float(MEMORY + 0.05 * noise[1]),
    }
