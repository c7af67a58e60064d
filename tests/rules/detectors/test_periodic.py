"""periodic: exact steps where a pattern is sure, and silence on cycles of the rate, staircases and wandering noise."""

import numpy as np
import pytest

from tests.streams import findings, sorted_epochs, steps
from trainmon_rules.detectors.phases import autocorrelation, detrended, find_cycle
from trainmon_rules.engine import Session
from trainmon_rules.findings import Severity, State
from trainmon_rules.points import Batch, chunk
from trainmon_rules.state import Settings


def rng(seed=0):
    return np.random.default_rng(seed)


def periodic(**columns):
    return findings({tag: list(v) for tag, v in columns.items()}, "periodic")


def sawtooth(n=1200, length=50.0, height=0.6, noise=0.05, seed=0):
    t = np.arange(n)
    return 0.7 + 1.5 * np.exp(-t / 150) + height * (0.5 - t / length % 1.0) + rng(seed).normal(0, noise, n)


@pytest.mark.parametrize("seed", range(4))
def test_a_sawtooth_with_the_epoch_is_a_warning(seed):
    [f] = findings(sorted_epochs(seed), "periodic")
    assert (f.onset_step, f.detected_step, f.severity) == (36, 335, Severity.WARNING)
    assert f.evidence["period in steps"] == pytest.approx(50, abs=1)
    assert f.evidence["period in epochs"] == pytest.approx(1, abs=0.02)
    assert f.evidence["amplitude"] == pytest.approx(0.55, abs=0.05)
    assert "every 50 steps, once an epoch:" in f.summary


@pytest.mark.parametrize("length", [4, 7, 23, 37.5, 100])
def test_any_period_is_found_and_is_a_note_where_no_epoch_is_known(length):
    [f] = periodic(loss=sawtooth(2000, length))
    assert f.severity is Severity.INFO
    assert f.evidence["period in steps"] == pytest.approx(length, rel=0.02)
    assert "period in epochs" not in f.evidence


def test_a_period_longer_than_the_ring_is_found_in_the_whole_curve():
    [f] = periodic(loss=sawtooth(8000, 400.0), epoch=np.arange(8000) / 400)
    assert f.evidence["period in epochs"] == pytest.approx(1, abs=0.05)
    assert f.severity is Severity.WARNING
    assert f.detected_step < 4000


def test_noise_as_high_as_the_pattern_hides_it_only_for_a_while():
    [f] = periodic(loss=sawtooth(3000, 80.0, noise=0.3))
    assert f.evidence["period in steps"] == pytest.approx(80, rel=0.05)


def test_sizes_of_dataset_and_batch_tell_the_epoch():
    session = Session("run", Settings.default({"dataset_size": 1600, "batch_size": 32}))
    session.feed("log", Batch([chunk("loss", range(1200), sawtooth())]))
    [f] = [f for f in session.runs[0].findings.values() if f.rule == "periodic"]
    assert f.evidence["period in epochs"] == pytest.approx(1, abs=0.02)
    assert f.severity is Severity.WARNING


@pytest.mark.parametrize("count", [np.arange(1200) // 50, np.arange(1200) / 50])
def test_epochs_are_read_whole_or_in_parts(count):
    [f] = periodic(loss=sawtooth(), epoch=count)
    assert f.evidence["period in epochs"] == pytest.approx(1, abs=0.05)


def test_a_pattern_within_the_epoch_is_a_note():
    [f] = periodic(loss=sawtooth(), epoch=np.arange(1200) / 400)
    assert f.severity is Severity.INFO
    assert f.evidence["period in epochs"] == pytest.approx(1 / 8, rel=0.05)


def test_shuffled_from_then_on_is_resolved():
    loss = sawtooth(2000)
    loss[1200:] = 0.7 + rng(1).normal(0, 0.05, 800)
    [f] = periodic(loss=loss)
    assert f.state is State.RESOLVED
    assert 1200 < f.resolved_step < 1600


def test_gaps_are_bridged():
    loss = sawtooth()
    loss[rng(2).choice(1200, 150, replace=False)] = np.nan
    [f] = periodic(loss=loss)
    assert f.evidence["period in steps"] == pytest.approx(50, rel=0.02)


# ------------------------------------------------------------------ look-alikes
@pytest.mark.parametrize("seed", range(5))
def test_quiet_where_the_rate_goes_round(seed):
    t = np.arange(3000)
    phase = t % 200 / 200
    cosine, triangle = 1e-5 + 5e-4 * (1 + np.cos(np.pi * phase)), 1e-4 + 9e-4 * np.abs(1 - 2 * phase)
    settled = 1 + 1.5 * (1 + t / 50) ** -0.5 + rng(seed).normal(0, 0.03, 3000)
    assert periodic(loss=settled + 0.5 * np.exp(-phase * 6), lr=cosine) == []
    assert periodic(loss=settled + 0.3 * np.abs(1 - 2 * phase), lr=triangle) == []
    assert periodic(loss=settled + 0.3 * np.abs(1 - 2 * phase), lr=np.full(3000, 1e-3)) != []


@pytest.mark.parametrize("seed", range(5))
def test_quiet_on_a_staircase_of_examples_seen_again(seed):
    t = np.arange(2000)
    stairs = 0.2 + 1.8 * np.exp(-(t // 100) / 6) + rng(seed).normal(0, 0.05, 2000)
    assert periodic(loss=stairs, epoch=t / 100) == []
    assert periodic(loss=stairs) == []


@pytest.mark.parametrize("seed", range(5))
def test_quiet_on_a_running_mean_that_starts_over(seed):
    raw = 0.4 + 1.8 * np.exp(-np.arange(2000) / 300) + rng(seed).normal(0, 0.3, 2000)
    mean = np.concatenate([np.cumsum(raw[i : i + 100]) / np.arange(1, 101) for i in range(0, 2000, 100)])
    assert periodic(loss=mean, epoch=np.arange(2000) // 100) == []


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("memory", [0.0, 0.8, 0.9, 0.95, 0.98])
def test_quiet_on_noise_that_wanders(memory, seed):
    z, e = np.zeros(4000), rng(seed).normal(0, 0.05, 4000)
    for i in range(1, 4000):
        z[i] = memory * z[i - 1] + e[i]
    assert periodic(loss=2 + 2 * np.exp(-np.arange(4000) / 200) + z) == []


@pytest.mark.parametrize("seed", range(5))
def test_quiet_on_two_sources_in_turn(seed):
    t = np.arange(1500)
    assert periodic(loss=1 + 2 * np.exp(-t / 200) + 0.1 * (-1.0) ** t + rng(seed).normal(0, 0.02, 1500)) == []


def test_wandering_noise_hardly_ever_repeats_itself():
    wrong, e = 0, rng(0).normal(0, 1, (2000, 400))
    for row in e:
        z = np.zeros(400)
        for i in range(1, 400):
            z[i] = 0.9 * z[i - 1] + row[i]
        wrong += find_cycle(z[200:]) is not None
    assert wrong <= 1


# ------------------------------------------------------------------ slow twins
def test_the_autocorrelation_is_that_of_its_definition():
    r, _ = detrended(rng(1).normal(0, 1, 90).cumsum())
    slow = [np.mean(r * r)] + [np.mean(r[:-lag] * r[lag:]) for lag in range(1, 90)]
    assert np.allclose(autocorrelation(r), np.array(slow) / slow[0])


@pytest.mark.parametrize("period", [5.0, 12.5, 40.0])
def test_the_shape_is_the_mean_of_each_phase(period):
    t = np.arange(400)
    y = np.sin(2 * np.pi * t / period) + rng(2).normal(0, 0.1, 400)
    cycle = find_cycle(y)
    assert cycle.period == pytest.approx(period, rel=0.01)
    r, _ = detrended(y)
    phases = len(cycle.shape)
    whole = [i for i in range(400) if (i - 400) / cycle.period + cycle.periods >= 0]
    by_hand = [[] for _ in range(phases)]
    for i in whole:
        by_hand[round((i - 400) / cycle.period % 1.0 * phases * 1e6) // 1_000_000 % phases].append(r[i])
    assert np.allclose(cycle.shape, [np.mean(p) for p in by_hand], atol=0.03)


@pytest.mark.parametrize("seed", range(5))
def test_numbers_beyond_all_measure_are_no_pattern(seed):
    loss = np.ones(2600)
    loss[rng(seed).choice(2600, 80, replace=False)] = rng(seed).choice([1e300, 0.0, -1.0, np.nan], 80)
    assert periodic(loss=loss, epoch=np.arange(2600) / 300) == []


def test_a_constant_has_no_pattern():
    assert find_cycle(np.full(200, 0.5)) is None
    assert steps(periodic(loss=np.full(600, 0.5))) == []
