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
