"""The rules about speed and memory over one log that ails of everything, however it is cut."""

import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rules.detectors.speed import clock, noisy
from tests.rules.detectors.test_contract import story
from tests.streams import TIME, sessions

N = 2600


def ailing(seed):
    """Slower from row 900, pauses, silence, an idle GPU and a leak; step times begin at row 1400; holes everywhere."""
    rng = random.Random(seed)
    seconds = noisy(N, np.where(np.arange(N) < 900, 4.0, 7.0), seed)
    seconds[60::60] += 40
    seconds[1200] = 9000
    columns = {
        TIME: clock(seconds, resolution=rng.choice([0.0, 1.0])).tolist(),
        "loss": [1.0] * N,
        "step_time_s": [None] * 1400 + (seconds[1400:] * np.where(np.arange(1400, N) < 1900, 1, 2)).tolist(),
        "eval_loss": [1.0 if i % 120 == 0 else None for i in range(N)],
        "gpu.0.gpu": noisy(N, 30, seed, 0.1).tolist(),
        "gpu.1.gpu": noisy(N, 25, seed + 1, 0.1).tolist(),
        "gpu_mem_gb": (20 + 0.01 * np.arange(N)).tolist(),
        "epoch": (np.arange(N) / 300).tolist(),
    }
    for tag, values in columns.items():
        for i in rng.sample(range(N), 80):
            values[i] = None if tag == TIME else rng.choice([None, float("nan"), 1e300, 0.0, -1.0])
    return columns


def test_all_five_are_found():
    rules = {f.rule for f in sessions(ailing(0)).runs[0].findings.values()}
    assert {"throughput-drop", "stall", "periodic-stall", "low-utilization", "memory-growth"} <= rules


@given(st.integers(0, 5), st.lists(st.integers(1, N), max_size=40), st.booleans())
@settings(max_examples=12)
def test_cuts_and_snapshots_change_nothing(seed, cuts, pickled):
    columns = ailing(seed)
    assert story(sessions(columns, cuts[:8] if pickled else cuts, pickled=pickled)) == story(sessions(columns))
