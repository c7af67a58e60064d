"""slow: exact steps where a loss creeps or breaks its promise, and silence on every law of learning that flattens."""

import numpy as np
import pytest

from tests.streams import creeps, findings, steps
from trainmon_rules.findings import Severity, State


def rng(seed=0):
    return np.random.default_rng(seed)


def slow(**columns):
    return findings({tag: list(v) for tag, v in columns.items()}, "slow")


def broken(n=1600, seed=0, late=0.02):
    """A power law over 400 reports, and then a straight line that gains hardly anything."""
    t = np.arange(n)
    law = 1 + 4 * (1 + np.minimum(t, 400) / 20) ** -0.3 - late * np.maximum(0, t - 400) / 400
    return law + rng(seed).normal(0, 0.004, n)


@pytest.mark.parametrize(("seed", "detected"), [(0, 247), (1, 155), (2, 303), (3, 247)])
def test_a_loss_that_creeps_in_a_straight_line(seed, detected):
    [f] = findings(creeps(seed), "slow")
    assert steps([f]) == [(0, detected, None)]
    assert f.severity is Severity.INFO
    assert f.evidence["straight"] == "yes"
    assert "in a straight line" in f.summary


@pytest.mark.parametrize(("seed", "detected"), [(0, 751), (1, 751), (2, 751)])
def test_a_loss_that_breaks_its_promise(seed, detected):
    [f, *_] = slow(loss=broken(seed=seed), lr=np.full(1600, 1e-3))
    assert (f.detected_step, f.severity) == (detected, Severity.INFO)
    assert f.evidence["share of the promise"] < 0.15
    assert f.evidence["learning rate"] == 1e-3


def test_it_picks_up_and_is_resolved():
    t = np.arange(1600)
    loss = np.r_[creeps(0, 800)["loss"], 0.685 - 0.3 * (1 - np.exp(-t[:800] / 200)) + rng(1).normal(0, 0.0005, 800)]
    [f] = slow(loss=loss)
    assert f.state is State.RESOLVED
    assert 800 < f.resolved_step < 1200


def test_epochs_of_little_noise_are_judged_before_200_steps():
    loss = 0.695 - 0.00009 * np.arange(100) + rng().normal(0, 0.0002, 100)
    [f] = slow(loss=loss)
    assert f.detected_step < 100


# ------------------------------------------------------------------ look-alikes
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("power", [0.1, 0.2, 0.3, 0.5, 0.8])
def test_quiet_on_power_laws(power, seed):
    assert slow(loss=1 + 4 * (1 + np.arange(4000) / 20) ** -power + rng(seed).normal(0, 0.02, 4000)) == []


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("tau", [20, 100, 500, 1500])
def test_quiet_on_exponentials(tau, seed):
    assert slow(loss=0.5 + 2 * np.exp(-np.arange(4000) / tau) + rng(seed).normal(0, 0.002, 4000)) == []


@pytest.mark.parametrize("seed", range(4))
def test_quiet_where_the_rate_has_decayed(seed):
    rate = np.where(np.arange(1600) < 420, 1e-3, 1e-4)
    assert slow(loss=broken(seed=seed), lr=rate) == []


@pytest.mark.parametrize("seed", range(4))
def test_quiet_while_the_rate_rises(seed):
    run = creeps(seed)
    assert slow(loss=run["loss"], lr=np.linspace(1e-8, 1e-5, 1200)) == []


@pytest.mark.parametrize("seed", range(4))
def test_quiet_on_what_has_stopped_and_on_what_never_began(seed):
    assert slow(loss=broken(seed=seed, late=0.0)) == []
    assert slow(loss=2.3026 + rng(seed).normal(0, 0.02, 1200)) == []


@pytest.mark.parametrize("seed", range(4))
def test_quiet_on_a_step_within_the_last_doubling(seed):
    t = np.arange(800)
    loss = 1 + 4 * (1 + t / 20) ** -0.3 + 0.3 * (t >= 600) + rng(seed).normal(0, 0.004, 800)
    assert slow(loss=loss) == []


def test_quiet_near_zero_and_on_few_reports():
    assert slow(loss=(broken() - 2.55) / 2.5) == []
    assert slow(loss=creeps(0)["loss"][:63]) == []


# ------------------------------------------------------------------ a slow twin
def octaves(loss, n):
    """Gains of the last four doublings of the first `n` reports, from all points."""

    def level(i):
        half = max(1, i // 8)
        return np.median(loss[max(0, i - half) : min(n, i + half)]) if i < n else np.median(loss[n - n // 8 :])

    levels = [level(n // k) for k in (16, 8, 4, 2, 1)]
    return -np.diff(levels)


@pytest.mark.parametrize("seed", range(3))
def test_the_gains_said_are_those_of_all_points(seed):
    loss = broken(seed=seed)
    [f, *_] = slow(loss=loss)
    gains = octaves(loss, f.detected_step + 1)
    assert f.evidence["gain before"] == pytest.approx(gains[2], rel=0.2)
    assert f.evidence["gain of late"] == pytest.approx(gains[3], abs=0.02)


@pytest.mark.parametrize("seed", range(4))
def test_quiet_on_a_model_that_comes_trained(seed):
    """Nearly all of its progress lies in the first reports; what is left promised little, and may well end."""
    t = np.arange(1600)
    adapted = 4 * np.exp(-t / 6)
    assert slow(loss=1 + adapted + 0.05 * broken(seed=seed)) == []
    assert slow(loss=1 + 0.05 * broken(seed=seed)) != []  # by itself that is a broken promise
