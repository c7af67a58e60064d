"""divergence: a level that rises and doesn't come back."""

import numpy as np
import pytest

from tests.engine import block_ends, findings, session
from trainmon_rules.detectors.levels import far_from_start, median_error

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


# ------------------------------------------------------------------ exact steps, seed by seed
@pytest.mark.parametrize(("seed", "onset", "detected"), [(0, 332, 367), (1, 341, 383), (2, 332, 367), (3, 340, 383)])
def test_a_steady_rise_is_found_within_a_look_of_the_same_step(seed, onset, detected):
    assert [f[:3] for f in findings(RULE, {"loss": rising(seed=seed)})] == [("critical", onset, detected)]


# ------------------------------------------------------------------ borders
@pytest.mark.parametrize(("share", "told"), [(0.09, 0), (0.16, 1)])
def test_twelve_percent_of_the_progress_are_the_border(share, told):
    x = learning(1200, sigma=0.002)
    x[600:] += share * 4
    assert len(findings(RULE, {"loss": x})) == told


@pytest.mark.parametrize(("share", "severity"), [(0.4, "warning"), (0.6, "critical")])
def test_half_of_the_progress_lost_is_critical(share, severity):
    x = learning(1200, sigma=0.02)
    x[600:] += share * 4
    assert [f[0] for f in findings(RULE, {"loss": x})] == [severity]


# ------------------------------------------------------------------ more look-alikes
def milder(name, seed):
    rng, i = np.random.default_rng(seed), np.arange(4000)
    x = 1.0 + 4 * np.exp(-i / 200) + rng.normal(0, 0.04, 4000)
    if name == "a harder part of the data":  # a curriculum: an eighth of the progress at most, and learned again
        return {"loss": x + 0.35 * np.exp(-np.maximum(0, i - 2000) / 150) * (i >= 2000)}
    if name == "one-cycle":
        lr = np.interp(i, [0, 1200, 3600, 4000], [1e-4, 1e-2, 1e-4, 1e-6])
        return {"loss": x + 0.3 * lr / 1e-2, "lr": lr}
    if name == "step decay":
        return {"loss": x - 0.3 * (i >= 2000) - 0.1 * (i >= 3000), "lr": np.where(i < 2000, 0.1, 0.01)}
    if name == "adversarial losses":
        return {"d_loss": 0.7 + 0.5 * np.sin(i / 400) - x, "g_loss": 1 + i / 800 + rng.normal(0, 0.3, 4000)}
    if name == "losses of a policy":
        return {"policy_loss": np.cumsum(rng.normal(0, 0.02, 4000)), "value_loss": i / 100 + rng.normal(0, 1, 4000)}
    if name == "an accuracy in percent that wobbles":
        accuracy = np.clip(75 - 50 * np.exp(-i / 500) + rng.normal(0, 2, 4000), 0, 100)
        return {"loss": x, "eval_accuracy": [a if k % 40 == 39 else None for k, a in enumerate(accuracy)]}
    if name == "a batch of another length each time":
        return {"loss": x * rng.gamma(4, 0.25, 4000)}
    if name == "a reward that explores":
        wave = np.cumsum(rng.normal(0, 1, 4000)) * 0.2
        return {"mean_reward": 30 * (1 - np.exp(-i / 800)) + wave + rng.normal(0, 8, 4000), "loss": x}
    raise ValueError(name)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "name",
    [
        "a harder part of the data",
        "one-cycle",
        "step decay",
        "adversarial losses",
        "losses of a policy",
        "an accuracy in percent that wobbles",
        "a batch of another length each time",
        "a reward that explores",
    ],
)
def test_quiet_on_what_comes_with_learning(name, seed):
    assert findings(RULE, milder(name, seed)) == []


# ------------------------------------------------------------------ slow twin
def twin(x):
    """The rule in its obvious form, for a loss of finite reports without a rate: the report at which it is first said.

    At each look the median of the last reports against the lowest median of three times as many that ended earlier.
    """
    start, best, young, looks, error, sharp = np.median(x[:5]), np.inf, [], 0, np.inf, np.inf
    for end in block_ends(len(x), 12):
        m = 5 if end < 160 else 20
        if end >= 2 * m:
            young.append((end, np.median(x[max(0, end - 3 * m) : end])))
        best = min([best, *(level for when, level in young if when <= end - m)])
        young = [y for y in young if y[0] > end - m]
        if not np.isfinite(best):
            continue
        if looks == 0:
            past = x[max(0, end - 4 * m - 100) : end - 2 * m][-100:]
            error, sharp = median_error(past, m), median_error(past, 16)
        progress = max(0.0, start - best)
        least = max(6 * error, 0.12 * progress, 0.02 * abs(best))
        large = max(0.5 * progress, 0.12 * abs(best))
        if np.median(x[end - 16 : end] if end >= 16 else x[:end]) - best > max(12 * sharp, large, 2 * least):
            return end - 1
        looks = looks + 1 if np.median(x[end - m : end]) - best > least else 0
        if looks >= (5 if end < 256 else 3 if end < 1024 else 2):
            return end - 1
    return None


def course(seed):
    """A loss that rises at some place by a step, by a slope or not at all, for a while or for good."""
    rng = np.random.default_rng(seed)
    x, t = learning(1500, seed, rng.uniform(0.01, 0.2)), np.arange(1500)
    at, over = int(rng.integers(40, 1300)), int(rng.choice([5, 40, 2000]))
    x[at : at + over] += rng.uniform(0, 4)
    return x + rng.choice([0.0, 0.0, 0.01]) * np.maximum(0, t - at)


def test_the_twin_tells_some_and_leaves_some():
    assert 5 < sum(twin(course(seed)) is not None for seed in range(30)) < 27


@pytest.mark.parametrize("seed", range(30))
def test_agrees_with_its_slow_twin(seed):
    x = course(seed)
    got = [f[2] for f in findings(RULE, {"loss": x})][:1]
    assert (got or [None]) == [twin(x)]
