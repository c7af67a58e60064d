"""val-oscillation: exact steps where evaluations are thrown about, and silence on noisy ones of a run that learned."""

import itertools

import numpy as np
import pytest

from tests.streams import SETTINGS, findings, steps, thrown_epochs
from trainmon_rules.detectors.evaluations import noise
from trainmon_rules.engine import Session
from trainmon_rules.findings import Severity, State
from trainmon_rules.points import Batch, chunk


def rng(seed=0):
    return np.random.default_rng(seed)


def epochs(val, train=None, tag="val_loss", **more):
    """One row an epoch, as Keras' CSVLogger writes it."""
    columns = {tag: list(val), **({} if train is None else {"loss": list(train)}), **more}
    return findings(columns, "val-oscillation")


@pytest.mark.parametrize(("seed", "onset", "detected"), [(0, 4, 11), (1, 4, 11), (2, 4, 11), (3, 4, 11)])
def test_a_validation_loss_that_is_thrown_about(seed, onset, detected):
    [f] = findings(thrown_epochs(seed), "val-oscillation")
    assert steps([f]) == [(onset, detected, None)]
    assert f.severity is Severity.WARNING
    assert f.evidence["large jumps in %"] > 25


def test_it_is_a_note_before_36_evaluations():
    def severity(rows):
        run = {tag: values[:rows] for tag, values in thrown_epochs(0).items()}
        return [f.severity for f in findings(run, "val-oscillation")]

    assert severity(11) == []
    assert severity(12) == severity(35) == [Severity.INFO]
    assert severity(36) == [Severity.WARNING]


def test_without_a_training_loss_it_stays_a_note():
    [f] = epochs(thrown_epochs(0)["val_loss"])
    assert f.severity is Severity.INFO


def test_a_metric_is_a_note():
    accuracy = np.clip(0.55 + rng().normal(0, 0.09, 60), 0, 1)
    [f] = epochs(accuracy, 0.95 + rng(1).normal(0, 0.05, 60), "val_accuracy")
    assert (f.detected_step, f.severity) == (14, Severity.INFO)
    assert f.evidence["level"] == pytest.approx(0.55, abs=0.03)


@pytest.mark.parametrize(("after", "resolved"), [(0.92, 67), (0.5, 67)])
def test_settled_is_resolved(after, resolved):
    run = thrown_epochs(0)
    val = [*run["val_loss"], *(after + rng(2).normal(0, 0.01, 30))]
    train = [*run["loss"], *(0.95 + rng(3).normal(0, 0.06, 30))]
    [f] = epochs(val, train)
    assert f.state is State.RESOLVED
    assert f.resolved_step == resolved


def test_training_in_a_source_of_its_own():
    run = thrown_epochs(0)
    session = Session("run", SETTINGS)
    for source in ("train", "val"):
        session.open(source)
    times = np.arange(60.0)
    session.feed("val", Batch([chunk("val_loss", range(60), run["val_loss"], times + 0.5)]))
    assert session.runs[0].findings == {}  # it waits for the other one
    session.feed("train", Batch([chunk("loss", range(60), run["loss"], times)]))
    session.end()
    [f] = [f for f in session.runs[0].findings.values() if f.rule == "val-oscillation"]
    assert (f.detected_step, f.severity) == (11, Severity.WARNING)


# ------------------------------------------------------------------ look-alikes
@pytest.mark.parametrize("seed", range(8))
def test_quiet_on_noisy_evaluations_of_a_run_that_learned(seed):
    t = np.arange(120)
    val = 0.6 + 2 * np.exp(-t / 10) + rng(seed).normal(0, 0.15, 120)
    assert noise(val) > 0.1
    assert epochs(val, 0.5 + 2 * np.exp(-t / 10) + rng(seed + 1).normal(0, 0.02, 120)) == []


@pytest.mark.parametrize("seed", range(8))
def test_quiet_while_training_falls(seed):
    t = np.arange(60)
    val = 1.0 + rng(seed).normal(0, 0.15, 60)
    assert epochs(val, 0.1 + 2 * np.exp(-t / 10)) == []
    assert epochs(val, 2.0 + 0 * t) != []


@pytest.mark.parametrize("seed", range(8))
def test_quiet_on_small_noise_of_a_run_that_never_learned(seed):
    val = 2.303 + rng(seed).normal(0, 0.03, 60)
    assert epochs(val, 2.303 + rng(seed + 1).normal(0, 0.01, 60)) == []


@pytest.mark.parametrize("seed", range(8))
def test_quiet_on_a_noisy_overfit(seed):
    t = np.arange(60)
    val = 1 + 0.8 * np.exp(-t / 4) + 0.01 * t + rng(seed).normal(0, 0.12, 60)
    assert epochs(val, 0.05 + 2 * np.exp(-t / 10)) == []


@pytest.mark.parametrize("seed", range(8))
def test_quiet_where_the_rate_goes_round(seed):
    t = np.arange(60)
    val = 0.9 + 0.3 * (t % 4 < 2) + rng(seed).normal(0, 0.02, 60)
    rate = np.where(t % 4 < 2, 1e-2, 1e-4)
    assert epochs(val, 0.95 + 0 * t, lr=list(rate)) == []


# ------------------------------------------------------------------ a slow twin
def slow_detection(val):
    """The rule as it reads, an evaluation at a time (training doesn't move)."""
    for n in range(12, len(val) + 1):
        y = val[n // 3 : n]
        half, level, spread = len(y) // 2, np.median(y), noise(np.array(y))
        gain = np.median(y[:half]) - np.median(y[half:])
        jumps = [abs(b - a) >= 0.1 * level for a, b in itertools.pairwise(y)]
        back = [(b - a) * (c - b) < 0 for a, b, c in zip(y, y[1:], y[2:], strict=False)]
        far = spread >= 0.5 * (np.median(val[:5]) - level)
        if gain < 1.25 * spread * (4 / len(y)) ** 0.5 and np.mean(jumps) >= 0.25 and np.mean(back) >= 0.5 and far:
            return n - 1
    return None


@pytest.mark.parametrize("seed", range(6))
def test_the_rule_read_slowly_gives_the_same_step(seed):
    val = (1.0 + 0.5 * np.exp(-np.arange(60) / 6) + rng(seed).normal(0, 0.12, 60)).tolist()
    found = epochs(val, [1.0] * 60)
    assert (found[0].detected_step if found else None) == slow_detection(val)
