"""loss-scale-collapse: halving away, against the healthy life of an fp16 scaler."""

import numpy as np
import pytest

from tests.engine import findings

RULE = "loss-scale-collapse"


def scales(*parts):
    """Scale values: (value, reports) pairs."""
    return np.concatenate([np.full(n, float(v)) for v, n in parts])


def halving(start, times):
    return [(start / 2**k, 1) for k in range(1, times + 1)]


def test_four_falls_after_settling_are_a_warning():
    x = scales((65536, 60), *halving(65536, 4), (4096, 10))
    assert findings(RULE, {"loss_scale": x}) == [("warning", 60, 63, "ended")]


def test_falling_to_nothing_is_critical():
    x = scales((65536, 60), *halving(65536, 30))
    assert findings(RULE, {"loss_scale": x}) == [("critical", 60, 63, "ended")]


def test_a_log_that_speaks_only_of_overflows_is_judged_by_the_low_end():
    assert findings(RULE, {"loss_scale": [32.0, 16, 8, 4, 2]})[0][0] == "critical"


@pytest.mark.parametrize("values", [[0.00049, 0.00024], [2e-320, 1e-320, 5e-321, 2.5e-321]])
def test_a_dead_scale_needs_no_history(values):
    assert findings(RULE, {"loss_scale": values})[0][0] == "critical"


def test_stuck_at_one_while_every_step_is_skipped():
    assert findings(RULE, {"loss_scale": [1.0] * 5, "skipped_steps": [1, 2, 3, 4, 5]})[0][0] == "critical"


def test_it_resolves_when_the_scale_grows_again():
    x = scales((65536, 60), *halving(65536, 5), (2048, 40), (4096, 40), (8192, 40))
    assert findings(RULE, {"loss_scale": x})[0][3] == "resolved"


@pytest.mark.parametrize(
    "values",
    [
        scales((2.0**32, 1), *halving(2.0**32, 15), (2.0**17, 200)),  # the search at the start
        np.tile(scales((65536, 400), (32768, 400)), 8),  # single falls, growing back
        scales((128, 200), (64, 100), (32, 100), (64, 100)),
        scales((65536, 500)),
        scales((1.0, 500)),  # bf16 with a scaler that does nothing
    ],
)
def test_quiet_on_a_healthy_scaler(values):
    assert findings(RULE, {"loss_scale": values}) == []


def test_a_log_that_speaks_only_of_overflows_is_settled_by_its_loss():
    overflows = [None] * 40 + [32768.0, 16384, 8192, 4096, 2048]
    losses = [2 - i / 50 for i in range(40)] + [None] * 5
    assert findings(RULE, {"loss": losses, "loss_scale": overflows}) == [("warning", 41, 44, "ended")]
    assert findings(RULE, {"loss_scale": overflows[40:]}) == []


def test_falls_without_end_that_never_settle_are_told():
    x = scales((2.0**40, 1), *[(2.0 ** (40 - k), 6) for k in range(1, 30)])
    assert findings(RULE, {"loss_scale": x}) == [("warning", 127, 145, "ended")]  # the 25th, in groups of six


def test_four_falls_far_apart_are_none():
    x = scales((65536, 60), (32768, 8), (16384, 8), (8192, 8), (4096, 60))
    assert findings(RULE, {"loss_scale": x}) == []  # 16 reports apart no more than three lie within twenty
    x = scales((65536, 60), (32768, 6), (16384, 6), (8192, 6), (4096, 60))
    assert findings(RULE, {"loss_scale": x}) == [("warning", 60, 78, "resolved")]


# ------------------------------------------------------------------ more look-alikes
@pytest.mark.parametrize("seed", range(5))
def test_quiet_where_the_log_looks_as_rarely_as_the_scale_moves(seed):
    """Every report sees a growth that overflowed and was halved, or one that held: up and down by one for ever."""
    rng = np.random.default_rng(seed)
    up = np.cumsum(rng.choice([-1, 1], 600))
    assert findings(RULE, {"loss_scale": 2.0 ** (15 + np.tile([0, -1], 300))}) == []
    assert findings(RULE, {"loss_scale": 2.0 ** (15 + np.clip(up - np.minimum.accumulate(up), 0, 1))}) == []


def test_quiet_on_a_scaler_that_is_not_restored_at_a_resume():
    x = scales((32768, 300), (65536, 1), *halving(65536, 6), (1024, 200))
    step = np.r_[np.arange(300), np.arange(250, 250 + len(x) - 300)]
    assert findings(RULE, {"loss_scale": x}, step=step) == []


def test_quiet_on_a_scale_that_is_printed_as_0_between():
    x = np.full(400, 65536.0)
    x[::3] = 0.0
    x[::7] = np.nan
    assert findings(RULE, {"loss_scale": x}) == []


# ------------------------------------------------------------------ slow twin
def twin(x):
    """The rule in its obvious form, with all falls that no rise has made up for: the report at which it is first said.

    Scales are far above 16 here, no update is said to be skipped, and the loss isn't logged.
    """
    standing, quiet, settled, total = [], 0, False, 0
    for i in range(1, len(x)):
        if x[i] < x[i - 1]:
            standing.append(i)
            quiet, total = 0, total + 1
        else:
            quiet += 1
            if x[i] > x[i - 1]:
                standing, total = standing[:-1], max(0, total - 1)
        if quiet + (len(x[:i]) == quiet) >= 20:  # the first report is one without a fall, too
            settled, total = True, 0
        recent = [k for k in standing if k > i - 20]
        if (len(recent) >= 4 and settled) or total > 24:
            return recent[0], i
    return None


def wandering(rng):
    moves = rng.choice([-1, 0, 1], 800, p=[0.02, 0.95, 0.03]) * (np.arange(800) > rng.integers(0, 60))
    moves[rng.integers(100, 700) :][:14] = rng.choice([-1, 0, 1], 14, p=[0.25, 0.6, 0.15])
    return 2.0 ** (60 + np.cumsum(moves))


def test_the_twin_tells_some_and_leaves_some():
    assert 5 < sum(twin(wandering(np.random.default_rng(seed))) is not None for seed in range(30)) < 25


@pytest.mark.parametrize("seed", range(30))
def test_agrees_with_its_slow_twin(seed):
    rng = np.random.default_rng(seed)
    x = wandering(rng)
    got = [(onset, detected) for _, onset, detected, _ in findings(RULE, {"loss_scale": x})][:1]
    assert (got or [None]) == [twin(x)]
