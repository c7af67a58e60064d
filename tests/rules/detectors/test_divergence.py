"""divergence: a level that rises and doesn't come back."""

import numpy as np
import pytest

from tests.engine import findings, session
from trainmon_rules.detectors.levels import far_from_start

RULE = "divergence"


def learning(n=600, seed=0, sigma=0.05):
    return 0.4 + 4 * np.exp(-np.arange(n) / 60) + np.random.default_rng(seed).normal(0, sigma, n)


def rising(at=300, slope=0.02, **kwargs):
    x = learning(**kwargs)
    x[at:] += slope * np.arange(len(x) - at)
    return x


def test_a_loss_that_keeps_rising_is_found_and_becomes_critical():
    [(severity, onset, detected, state)] = findings(RULE, {"loss": rising()})
    assert (severity, state) == ("critical", "ended")
    assert 300 <= onset <= detected
    assert detected == 367


def test_a_step_up_that_stays_is_found_and_dated():
    x = learning()
    x[300:] += 1.0
    assert findings(RULE, {"loss": x}) == [("warning", 300, 351, "ended")]


def test_a_reward_that_collapses_is_found_with_the_sign_turned():
    rng = np.random.default_rng(1)
    reward = 400 * (1 - np.exp(-np.arange(500) / 80)) + rng.normal(0, 12, 500)
    reward[350:] = 10 + rng.normal(0, 3, 150)
    [(severity, onset, _, _)] = findings(RULE, {"mean_reward": reward, "loss": rng.normal(0, 1, 500)})
    assert (severity, onset) == ("critical", 350)


def test_a_signed_loss_is_judged_by_its_progress():
    x = rising() - 3.0
    assert findings(RULE, {"loss": x})[0][0] == "critical"


def test_a_short_run_that_doubles_is_a_warning():
    assert findings(RULE, {"loss": [2.77, 2.76, 2.75, 2.76, 7.3, 8.7]})[0][0] == "warning"


def test_a_saturated_softmax_is_known_by_its_value():
    assert findings(RULE, {"loss": [21.4058, 87.3365]}) == [("critical", 1, 1, "ended")]


def test_a_level_that_comes_back_resolves():
    x = learning(800)
    x[300:380] += 1.0
    [(_, onset, _, state)] = findings(RULE, {"loss": x})
    assert (onset, state) == (300, "resolved")


def test_a_new_attempt_is_judged_by_itself():
    a, b = learning(300), learning(300, seed=4) + 0.3
    s = session({"loss": np.r_[a, b]}, step=np.r_[np.arange(300), np.arange(250, 550)])
    assert [len(r.attempts) for r in s.runs] == [2]
    assert [f for f in s.runs[0].findings.values() if f.rule == RULE and f.attempt == 0] == []


def looks_alike(name, seed):
    rng = np.random.default_rng(seed)
    n, i = 4000, np.arange(4000)
    if name == "noise floor":
        return 0.3 + rng.normal(0, 0.05, n)
    if name == "autocorrelated":
        e, x = rng.normal(0, 0.05, n), np.zeros(n)
        for k in range(1, n):
            x[k] = 0.95 * x[k - 1] + e[k] * 0.31
        return 2.0 + 3 * np.exp(-i / 300) + x
    if name == "batch size 1":
        return 0.05 + rng.exponential(0.6, n) * np.exp(-i / 3000)
    if name == "warm restarts":
        lr = (1 + np.cos(np.pi * (i % 1000) / 1000)) / 2
        return 1.0 + 4 * (1 + i) ** -0.35 + 0.1 * lr + rng.normal(0, 0.04, n)
    if name == "spike that recovers":
        x = 2.0 + rng.normal(0, 0.05, n)
        x[2000:2006] += 3
        return x
    raise ValueError(name)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "name", ["noise floor", "autocorrelated", "batch size 1", "warm restarts", "spike that recovers"]
)
def test_quiet_on(name, seed):
    assert findings(RULE, {"loss": looks_alike(name, seed)}) == []


def test_a_dozen_noisy_reports_are_no_divergence():
    rng = np.random.default_rng(0)
    wrong = sum(far_from_start(1 + rng.normal(0, 0.15, 12), 6.0) is not None for _ in range(20_000))
    assert wrong < 10  # 86 where the spread is the MAD alone and a single good report counts as much as two
    heavy = sum(far_from_start(1 + 0.1 * rng.standard_t(3, 12), 6.0) is not None for _ in range(20_000))
    assert heavy < 80
