"""grad-growth: a norm that grows by a few percent a report, which no baseline shows."""

import itertools

import numpy as np
import pytest

from tests.engine import findings
from tests.streams import HEALTHY, growing

RULE = "grad-growth"


def norm(n=1000, seed=0, sigma=0.2):
    return 0.5 * np.exp(np.random.default_rng(seed).normal(0, sigma, n))


def loss(n=1000, seed=0):
    return 2.2 + np.random.default_rng(100 + seed).normal(0, 0.05, n)


def grown(at, pace, top, n=1000):
    """Factor that grows by `pace` a report from `at` on, up to e^top."""
    return np.exp(np.clip(pace * (np.arange(n) - at), 0, top))


@pytest.mark.parametrize(("seed", "onset", "detected"), [(0, 413, 463), (1, 424, 479), (2, 443, 495)])
def test_five_percent_a_report_is_found_at_a_multiple_of_sixteen(seed, onset, detected):
    assert findings(RULE, growing(seed)) == [("warning", onset, detected, "ended")]


@pytest.mark.parametrize("pace", [0.012, 0.02])
@pytest.mark.parametrize("seed", range(4))
def test_one_or_two_percent_a_report_over_hundreds_are_found_at_a_multiple_of_sixty_four(pace, seed):
    [(_, onset, at, end)] = findings(
        RULE, {"loss": loss(seed=seed), "grad_norm": norm(seed=seed) * grown(500, pace, 9)}
    )
    assert 500 <= onset <= 700
    assert (at + 1) % 64 == 0
    assert at < 900
    assert end == "ended"


def test_a_norm_that_stays_below_thirty_times_is_a_note_and_is_over_when_it_is_half_way_back():
    factor = grown(400, 0.05, np.log(12)) / grown(600, 0.05, np.log(12))
    assert findings(RULE, {"loss": loss(), "grad_norm": norm() * factor}) == [("info", 413, 463, "resolved")]


def test_a_loss_that_is_not_finite_meanwhile_takes_nothing_away():
    x = loss()
    x[480:] = np.nan
    assert [f[2] for f in findings(RULE, {"loss": x, "grad_norm": norm() * grown(400, 0.05, 9)})] == [463]


def looks_alike(name, seed):
    t, g, x = np.arange(1000), norm(seed=seed), loss(seed=seed)
    if name == "learning starts":
        return {"loss": x - np.clip((t - 400) / 40, 0, 1), "grad_norm": g * grown(400, 0.06, np.log(20))}
    if name == "warm-up":
        return {"loss": x, "grad_norm": g * grown(0, 0.02, np.log(30)), "lr": 1e-3 * np.minimum(1, t / 400)}
    if name == "creeps up over the run":
        return {"loss": x, "grad_norm": g * grown(0, 0.003, 9)}
    if name == "spike":
        g[500:520] *= 40
        return {"loss": x, "grad_norm": g}
    if name == "jump":
        return {"loss": x, "grad_norm": g * np.where(t < 480, 1, 20)}
    if name == "wild norms":
        return {"loss": x, "grad_norm": norm(seed=seed, sigma=1.5)}
    if name == "comes back to where it was":
        return {
            "loss": x,
            "grad_norm": g * np.where(t < 300, 20, 20 * np.exp(-np.minimum(3, (t - 300) * 0.05))) * grown(600, 0.05, 3),
        }
    return {"grad_norm": g * grown(400, 0.05, 5)}  # "no loss logged"


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "name",
    [
        "learning starts",
        "warm-up",
        "creeps up over the run",
        "spike",
        "jump",
        "wild norms",
        "comes back to where it was",
        "no loss logged",
    ],
)
def test_quiet_on(name, seed):
    assert findings(RULE, looks_alike(name, seed)) == []


@pytest.mark.parametrize("name", sorted(HEALTHY))
def test_quiet_on_long_healthy_runs(name):
    assert all(not findings(RULE, HEALTHY[name](5000, seed)) for seed in range(2))


def twin(y, x):
    """The rule in its obvious form, for norms that are all positive and a loss in every report; no rate."""
    levels, found = [], []
    for end in range(16, len(y) + 1, 16):
        levels.append(float(np.median(np.log(y[end - 16 : end]))))
        last = levels[-5:]
        if len(last) < 5 or len(levels) < 6:
            continue
        steady = all(b - a >= (last[-1] - last[0]) / 12 for a, b in itertools.pairwise(last))
        before, now = x[end - 80 : end - 64], x[end - 16 : end]
        spread = max(1.4826 * np.median(np.abs(v - np.median(v))) for v in (before, now))
        better = np.median(now) < np.median(before) - spread
        if steady and last[-1] - last[0] >= np.log(8) and last[-1] > max(levels[:-5]) and not better:
            found.append(end - 1)
    return found[:1]


def bursts(seed):
    """A norm that grows for a while now and then, at paces on both sides of what is told."""
    rng, y = np.random.default_rng(seed), norm(seed=seed)
    for at in (200, 450, 700):
        y[at : at + 200] *= grown(0, rng.uniform(0.02, 0.07), rng.uniform(1.5, 4), 200)
    return y


@pytest.mark.parametrize("seed", range(12))
def test_agrees_with_its_slow_twin(seed):
    y, x = bursts(seed), loss(seed=seed)
    assert [f[2] for f in findings(RULE, {"loss": x, "grad_norm": y})][:1] == twin(y, x)


def test_the_twin_tells_some_and_leaves_some():
    told = [bool(twin(bursts(seed), loss(seed=seed))) for seed in range(12)]
    assert 2 < sum(told) < 12
