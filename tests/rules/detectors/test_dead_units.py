"""dead-units: shares, percent and counts, and silence on sparse layers, autoencoders' churn and pruning."""

import numpy as np
import pytest

from tests.ailing_outcomes import dying_units, learning
from tests.engine import session
from tests.streams import batch, findings, steps
from trainmon_rules.diagnosis import Knowledge
from trainmon_rules.engine import Session
from trainmon_rules.findings import Severity, State
from trainmon_rules.postmortem import report_runs
from trainmon_rules.state import Settings

RULE = "dead-units"


def rng(seed=0):
    return np.random.default_rng(seed)


def step_up(before, after, n=700, at=300, noise=0.01, seed=0):
    return np.where(np.arange(n) < at, before, after) + rng(seed).normal(0, noise, n)


def told(values, tag="dead_relu", answers=None):
    s = Session("run", Settings.default(answers))
    s.open("log")
    s.feed("log", batch({tag: list(values), "loss": learning(len(values), 0).tolist()}))
    return [f for f in s.runs[0].findings.values() if f.rule == RULE]


# ------------------------------------------------------------------ it fires
@pytest.mark.parametrize("seed", range(3))
def test_most_units_die_at_once(seed):
    [f] = findings(dying_units(seed), RULE)
    assert steps([f]) == [(300, 319, None)]
    assert f.severity is Severity.WARNING
    assert "% of the units are dead (8" in f.summary
    assert f.evidence["share dead"] == pytest.approx(0.7, abs=0.02)


def test_they_die_slowly():
    dying = 0.1 + 0.001 * np.arange(700) + rng().normal(0, 0.01, 700)
    [f] = told(dying)
    assert steps([f]) == [(396, 415, None)]


def test_percent_and_counts_of_a_known_whole():
    share = step_up(0.08, 0.7)
    for tag, values, answers in (
        ("dead_relu_pct", 100 * share, None),
        ("dead_fraction", share, None),
        ("dead_neurons", np.round(4096 * np.clip(share, 0, 1)), {"num_units": 4096}),
    ):
        [f] = told(values, tag, answers)
        assert steps([f]) == [(300, 319, None)], tag
        assert f.evidence["share dead"] == pytest.approx(0.7, abs=0.02), tag


def test_dead_from_the_start():
    [f] = told(0.95 + rng().normal(0, 0.005, 100))
    assert steps([f]) == [(0, 9, None)]


def test_half_of_those_that_lived_have_died():
    assert told(step_up(0.6, 0.7)) == []
    [f] = told(step_up(0.6, 0.85))
    assert f.onset_step == 300


def test_a_count_without_a_whole_is_listed_when_it_doubles():
    [f] = told(np.round(step_up(300, 900, noise=10)), "dead_neurons")
    assert steps([f]) == [(300, 319, None)]
    assert f.severity is Severity.INFO
    assert "has doubled" in f.summary


def test_features_of_an_autoencoder_are_only_listed():
    [f] = told(np.round(step_up(100, 12_000, noise=5)), "sparsity/dead_features", {"num_units": 16_384})
    assert f.severity is Severity.INFO


def test_zero_activations_are_listed_at_99_percent():
    [f] = told(np.clip(step_up(0.6, 0.996, noise=0.001), 0, 1), "zero_fraction")
    assert (f.severity, f.onset_step) == (Severity.INFO, 300)


def test_it_is_resolved_when_they_come_back():
    values = step_up(0.1, 0.7)
    values[500:] -= 0.5
    [f] = told(values)
    assert f.state is State.RESOLVED
    assert 500 <= f.resolved_step <= 511


@pytest.mark.parametrize(("level", "resolved"), [(0.45, None), (0.35, 511)])
def test_two_fifths_are_the_border_of_coming_back(level, resolved):
    values = step_up(0.1, 0.7, noise=0.002)
    values[500:] += level - 0.7
    assert steps(told(values)) == [(300, 319, resolved)]


@pytest.mark.parametrize(("share", "count"), [(0.45, 0), (0.55, 1)])
def test_one_half_is_the_border(share, count):
    assert len(told(step_up(0.1, share))) == count


# ------------------------------------------------------------------ it is blind
def needs(columns, answers=None):
    [report] = report_runs(session(columns, settings=Settings.default(answers)), Knowledge.load())
    return {b.rule: b.needs for b in report.blind}.get(RULE)


def test_a_count_needs_the_number_of_units():
    counts = {"dead_neurons": [float(300 + i % 7) for i in range(50)]}
    assert needs(counts) == "the number of units isn't known (--set num_units=…)"
    assert needs(counts, {"num_units": 4096}) is None
    assert needs({"dead_units": [0.1] * 50}) is None
    assert needs({"dead_units": [0.0] * 50}) is None
    assert needs({"num_zeros": [1e6] * 50}) == "no share or count of dead units is logged"
    assert needs({"num_zeros": [1e6] * 50} | counts) == "the number of units isn't known (--set num_units=…)"


# ------------------------------------------------------------------ look-alikes
@pytest.mark.parametrize("seed", range(5))
def test_quiet_on_a_share_that_settles_below_one_half(seed):
    t = np.arange(2000)
    assert told(0.1 + 0.35 * (1 - np.exp(-t / 300)) + rng(seed).normal(0, 0.02, 2000)) == []


@pytest.mark.parametrize("seed", range(5))
def test_quiet_on_short_bursts(seed):
    values = np.full(2000, 0.1) + rng(seed).normal(0, 0.01, 2000)
    for i in range(100, 2000, 90):
        values[i : i + 6] = 0.8
    assert told(values) == []


@pytest.mark.parametrize("seed", range(5))
def test_quiet_on_sparse_activations(seed):
    t = np.arange(2000)
    lazy = 0.5 + 0.45 * (1 - np.exp(-t / 500)) + rng(seed).normal(0, 0.005, 2000)
    assert told(lazy, "zero_fraction") == []
    assert told(1e6 * lazy.round(3), "num zeros") == []
    assert told(50 + 20 * np.exp(-t / 300), "metrics/l0") == []


@pytest.mark.parametrize("seed", range(5))
def test_quiet_on_features_that_die_and_are_resampled(seed):
    """Counts rise slowly and are reset every 500 reports."""
    t = np.arange(3000)
    counts = 50 + 3 * (t % 500) + rng(seed).poisson(20, 3000)
    assert [f for f in told(counts, "sparsity/dead_features") if f.severity > Severity.INFO] == []


def test_quiet_on_counts_of_nothing_or_one():
    assert told([float(i % 2) for i in range(300)], "dead_neurons") == []


def test_gaps_and_awkward_numbers_change_nothing():
    run = dying_units(0)
    for k, i in enumerate(range(5, 700, 6)):
        run["dead_relu"][i] = [None, float("nan"), 1e300][k % 3]
    [f] = findings(run, RULE)
    assert f.onset_step in range(298, 303)
    assert f.detected_step < 340


@pytest.mark.parametrize("seed", range(3))
def test_seven_in_ten_dead_from_the_first_report_on_are_a_note(seed):
    share = 0.7 + np.random.default_rng(seed).normal(0, 0.01, 300)
    tags = {
        "loss": (2 + np.random.default_rng(seed).normal(0, 0.05, 300)).tolist(),
        "dead_relu_fraction": share.tolist(),
    }
    found = [f for f in session(tags).runs[0].findings.values() if f.rule == "dead-units"]
    assert [(str(f.severity), f.onset_step) for f in found] == [("info", 0)]
