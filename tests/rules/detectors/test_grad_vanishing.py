"""grad-vanishing: exact steps where the gradient is gone, and silence where there is nothing left to learn."""

import numpy as np
import pytest

from tests.streams import HEALTHY, findings, steps, vanishes
from trainmon_rules.findings import State


def rng(seed=0):
    return np.random.default_rng(seed)


def vanishing(loss, norm):
    return findings({"loss": list(loss), "grad_norm": list(norm)}, "grad-vanishing")


@pytest.mark.parametrize("seed", range(3))
def test_a_norm_that_falls_ten_thousandfold(seed):
    [f] = findings(vanishes(seed), "grad-vanishing")
    assert steps([f]) == [(300, 309, None)]
    assert f.evidence["share"] < 1e-3
    assert abs(f.evidence["loss now"] - f.evidence["loss at first"]) < 0.1


def test_it_vanishes_at_the_second_step():
    norm = np.r_[1.4, 0.0038, 0.0019, np.full(60, 0.0005)]
    assert steps(vanishing(10.47 + rng().normal(0, 0.02, 63), norm)) == [(1, 10, None)]


def test_in_the_middle_of_a_run_that_had_learned():
    t = np.arange(800)
    loss = 3.0 + 7.0 * np.exp(-t / 60) + rng().normal(0, 0.02, 800)
    norm = (0.3 + 20 * np.exp(-t / 20)) * np.exp(rng(1).normal(0, 0.2, 800))
    norm[600:] = 1e-5
    loss[600:] += 1.0
    assert steps(vanishing(loss, norm)) == [(600, 609, None)]


def test_exactly_zero_with_a_frozen_loss():
    norm = np.r_[np.full(20, 0.8), np.zeros(40)]
    loss = np.r_[2.3 + rng().normal(0, 0.01, 20), np.full(40, 2.3)]
    assert steps(vanishing(loss, norm)) == [(20, 29, None)]


def test_it_comes_back():
    run = vanishes(0)
    run["grad_norm"][400:] = [1.0] * 300
    [f] = findings(run, "grad-vanishing")
    assert (f.state, f.resolved_step) == (State.RESOLVED, 409)


# ------------------------------------------------------------------ look-alikes
def test_quiet_on_memorised_data():
    t = np.arange(600)
    assert vanishing(2.3 * np.exp(-t / 40), 1.5 * np.exp(-t / 40)) == []


def test_quiet_on_norms_printed_as_zero():
    t = np.arange(600)
    assert vanishing(2.8 - t / 5000 + rng().normal(0, 0.02, 600), np.zeros(600)) == []


def test_quiet_where_the_norm_falls_with_the_loss():
    t = np.arange(2000)
    norm = (0.15 + 40 * np.exp(-t / 100)) * np.exp(rng().normal(0, 0.2, 2000))
    assert vanishing(3.3 + 7.5 * np.exp(-t / 150) + rng(1).normal(0, 0.03, 2000), norm) == []


def test_quiet_on_a_start_that_exploded():
    norm = np.r_[3.4e10, 3e4, 120.0, 5e3, 80.0, np.full(30, 62.0)]
    assert vanishing(12 + rng().normal(0, 0.4, 35), norm) == []


def test_quiet_on_five_small_norms_in_a_row():
    run = vanishes(0)
    run["grad_norm"][305:] = [1.4] * 395
    assert findings(run, "grad-vanishing") == []


def test_quiet_without_a_training_loss():
    assert findings({"grad_norm": vanishes(0)["grad_norm"]}, "grad-vanishing") == []


@pytest.mark.parametrize("name", HEALTHY)
def test_quiet_on_healthy_runs(name):
    assert findings(HEALTHY[name](1500, 7), "grad-vanishing") == []


# ------------------------------------------------------------------ more look-alikes
@pytest.mark.parametrize("seed", range(5))
def test_quiet_where_the_loss_has_learned_since(seed):
    """A language model: the norm is a hundredth of its first because the first ones were those of a wild start."""
    t = np.arange(1500)
    norm = (0.4 + 90 * np.exp(-t / 12)) * np.exp(rng(seed).normal(0, 0.3, 1500))
    assert vanishing(3.0 + 7.8 * np.exp(-t / 60) + rng(seed + 9).normal(0, 0.05, 1500), norm) == []


@pytest.mark.parametrize("seed", range(5))
def test_quiet_on_norms_of_many_orders_of_magnitude(seed):
    """An agent's policy gradient: most updates are next to nothing, and none of them is the end."""
    norm = np.exp(rng(seed).normal(-1, 2.5, 2000))
    assert vanishing(rng(seed + 9).normal(0, 1, 2000), norm) == []


@pytest.mark.parametrize("seed", range(5))
def test_quiet_at_the_end_of_a_decay(seed):
    """Sharpness-aware runs and annealed ones end with norms of a fiftieth."""
    t = np.arange(2000)
    norm = np.maximum(0.02, 1 - t / 2000) * np.exp(rng(seed).normal(0, 0.2, 2000))
    assert vanishing(2 + 2 * np.exp(-t / 300) + rng(seed + 9).normal(0, 0.03, 2000), norm) == []


def test_a_fiftieth_is_no_hundredth():
    run = vanishes(0)
    assert vanishing(run["loss"], [1.4] * 300 + [0.05] * 400) == []
    assert len(vanishing(run["loss"], [1.4] * 300 + [0.005] * 400)) == 1


def test_quiet_where_the_loss_moved_by_more_than_a_tenth():
    run = vanishes(0)
    assert vanishing([x - 1.5 * (i >= 300) for i, x in enumerate(run["loss"])], run["grad_norm"]) == []
    assert len(vanishing([x - 0.5 * (i >= 300) for i, x in enumerate(run["loss"])], run["grad_norm"])) == 1


# ------------------------------------------------------------------ slow twin
def twin(loss, norm):
    """The rule in its obvious form, for at most 250 finite reports: where ten in a row are below a hundredth."""
    first, loss_first, later, before, run = max(norm[:5]), None, None, None, 0
    loss_first = max(np.median(loss[: k + 1][-5:]) for k in range(5))
    for i, value in enumerate(norm):
        known = [first] + ([later] if later is not None else [])
        run = run + 1 if value <= 0.01 * max(known) else 0
        n = run - 10
        if n >= 0 and (n <= 16 or not n & (n - 1)):
            top, now = max(norm[i - 9 : i + 1]), np.mean(loss[i - 9 : i + 1])
            from_first = top <= 0.01 * first and loss_first - now < 0.1 * abs(loss_first)
            from_later = later is not None and top <= 0.01 * later and before - now < 0.1 * abs(before)
            if now > 0.05 * abs(loss_first) and (from_first or from_later):
                return i
        if i + 1 in (64, 128) and not run:
            later, before = np.median(norm[: i + 1]), np.mean(loss[: i + 1][-32:])
    return None


def course(seed):
    r, t = rng(seed), np.arange(250)
    loss = 3 + r.choice([0.0, 2.0, 6.0]) * np.exp(-t / 30) + r.normal(0, 0.02, 250)
    norm = r.uniform(0.1, 50) * np.exp(r.normal(0, 0.4, 250)) + 40 * np.exp(-t / 3) * r.choice([0, 1])
    at = int(r.integers(3, 240))
    norm[at : at + int(r.integers(4, 200))] *= 10.0 ** -r.uniform(1, 5)
    return loss.tolist(), norm.tolist()


def test_the_twin_tells_some_and_leaves_some():
    assert 5 < sum(twin(*course(seed)) is not None for seed in range(30)) < 28


@pytest.mark.parametrize("seed", range(30))
def test_agrees_with_its_slow_twin(seed):
    loss, norm = course(seed)
    got = [f.detected_step for f in vanishing(loss, norm)][:1]
    assert (got or [None]) == [twin(loss, norm)]
