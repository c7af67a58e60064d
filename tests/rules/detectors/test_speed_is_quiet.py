"""The rules about speed and memory over healthy runs of many cadences: pauses, wander, coarse clocks, slow starts."""

import numpy as np
import pytest

from tests.engine import session
from tests.rules.detectors.speed import clock, noisy, wander
from trainmon_rules.findings import Severity

RULES = {"throughput-drop", "stall", "periodic-stall", "low-utilization", "memory-growth"}


def healthy(n, seconds, seed):
    """A loss, evaluations, checkpoints, GPU use and memory of a healthy run with steps of so many seconds."""
    rng = np.random.default_rng(seed)
    t = np.arange(n)
    step = noisy(n, seconds, seed, rng.choice([0.02, 0.1, 0.4])) * wander(n, seed, int(rng.choice([100, 1000])), 0.01)
    step[0] = min(250.0, 100 * seconds)
    evaluate, save = int(rng.choice([250, 1000])), int(rng.choice([500, 2000]))
    pause = np.where(t % evaluate == 0, 0.05 * seconds * evaluate, 0.0)
    pause += np.where(t % save == 0, min(600.0, 0.03 * seconds * save), 0.0)
    tags = {
        "loss": 2 + rng.normal(0, 0.05, n),
        "eval_loss": [2.1 if i and i % evaluate == 0 else None for i in range(n)],
        "gpu_mem_gb": 60 + rng.normal(0, 0.2, n) + 3 * (1 - np.exp(-t / rng.choice([100, 400]))),
        "gpu.0.gpu": np.clip(rng.normal(92, 6, n), 0, 100),
        **({"step_time": step} if seed % 2 else {}),
    }
    return tags, clock(step + np.where(t, pause, 0.0), resolution=float(rng.choice([0, 1])))


def loud(n, seconds, seed):
    tags, time = healthy(n, seconds, seed)
    found = session(tags, time=time).runs[0].findings.values()
    return [f.summary for f in found if f.rule in RULES and f.severity > Severity.INFO]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("seconds", [0.02, 0.3, 3.0, 60.0])
def test_no_warning_on_four_thousand_steps(seconds, seed):
    assert loud(4_000, seconds, seed) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("seconds", [0.02, 0.3, 3.0, 60.0])
def test_no_warning_on_twenty_thousand_steps(seconds, seed):
    assert loud(20_000, seconds, seed) == []
