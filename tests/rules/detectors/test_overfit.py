"""overfit: exact steps where validation turns, and silence on noise, divergence and slight rises."""

import numpy as np
import pytest

from tests.streams import SETTINGS, findings, overfits, sessions, steps
from trainmon_rules.detectors.evaluations import noise
from trainmon_rules.engine import Session
from trainmon_rules.findings import Severity, State
from trainmon_rules.points import Batch, chunk


def rng(seed=0):
    return np.random.default_rng(seed)


def epochs(val, train):
    """One row an epoch, as Keras' CSVLogger writes it."""
    return findings({"val_loss": list(val), "loss": list(train)}, "overfit")


@pytest.mark.parametrize(("seed", "onset", "detected"), [(0, 419, 499), (1, 399, 499), (2, 419, 459)])
def test_validation_turns_while_training_falls(seed, onset, detected):
    [f] = findings(overfits(seed), "overfit")
    assert steps([f]) == [(onset, detected, None)]
    assert f.severity is Severity.WARNING
    assert f.evidence["training loss now"] < f.evidence["training loss then"]
    assert f.evidence["rise in %"] > 2


def test_eight_evaluations_are_enough():
    val = [1.20, 0.98, 0.95, 1.10, 1.32, 1.55, 1.70, 1.76]
    train = [1.6, 1.0, 0.7, 0.4, 0.2, 0.1, 0.05, 0.02]
    [f] = epochs(val, train)
    assert steps([f]) == [(3, 6, None)]
    assert (f.evidence["best"], f.evidence["best at step"]) == (0.95, 2)


def test_noisy_evaluations_are_compared_by_eights():
    t = np.arange(40)
    val = 1.25 + 0.9 * np.exp(-t / 3) + 0.018 * np.maximum(0, t - 12) + rng(4).normal(0, 0.08, 40)
    assert noise(val) > 0.05
    [f] = epochs(val, 2.0 * np.exp(-t / 12))
    assert f.detected_step == 33


def test_as_good_as_the_best_again_is_resolved():
    val = [2.0, 1.5, 1.2, 1.0, 1.6, 2.0, 2.4, 2.0, 1.5, 1.0, 0.9, 0.8]
    train = np.linspace(2.0, 0.2, 12)
    [f] = epochs(val, train)
    assert f.state is State.RESOLVED
    assert steps([f]) == [(4, 6, 9)]


def test_validation_in_a_source_of_its_own():

    run = overfits(0)
    val = [(i, v) for i, v in enumerate(run["eval_loss"]) if v is not None]
    a = [chunk("loss", range(800), run["loss"], np.arange(800.0))]
    b = [chunk("eval_loss", [i for i, _ in val], [v for _, v in val], [i + 0.5 for i, _ in val])]
    told = []
    for order in (("train", "validation"), ("validation", "train")):
        session = Session("run", SETTINGS)
        for name in ("train", "validation"):
            session.open(name)
        for name in order:
            session.feed(name, Batch(a if name == "train" else b))
        session.end()
        told.append([(f.onset_step, f.detected_step) for f in session.runs[0].findings.values() if f.rule == "overfit"])
    assert told[0] == told[1] == [(419, 499)]


def test_without_a_training_loss_only_a_large_rise_is_listed():
    val = [1.20, 0.98, 0.95, 1.10, 1.32, 1.55, 1.70, 1.76]
    [f] = findings({"val_loss": val}, "overfit")
    assert f.severity is Severity.INFO
    assert findings({"val_loss": [1.2, 0.98, 0.95, 1.0, 1.02, 1.03, 1.04, 1.05]}, "overfit") == []


# ------------------------------------------------------------------ look-alikes
def test_quiet_on_converged_noise_beside_falling_training():
    loud = 0
    for seed in range(100):
        t = np.arange(60)
        val = 1.0 + np.exp(-t / 4) + rng(seed).normal(0, 0.06, 60)
        loud += len(epochs(val, 2.0 * np.exp(-t / 15)))
    assert loud <= 1


@pytest.mark.parametrize("seed", range(5))
def test_quiet_on_seven_hundred_noisy_evaluations(seed):
    t = np.arange(700)
    val = 0.3 + np.exp(-t / 50) + rng(seed).normal(0, 0.05, 700)
    assert epochs(val, 0.1 + np.exp(-t / 200)) == []


def test_quiet_when_both_rise():
    t = np.arange(60)
    course = np.exp(-t / 10) + 0.05 * np.maximum(0, t - 30)
    assert epochs(1.0 + course, 0.8 + course) == []


def test_quiet_on_a_slight_late_rise():
    t = np.arange(40)
    val = 0.29 + 0.1 * np.exp(-t / 4) + 0.0002 * np.maximum(0, t - 20) + rng().normal(0, 0.001, 40)
    assert epochs(val, 0.1 * np.exp(-t / 10)) == []


def test_quiet_on_a_bump_of_two_evaluations():
    val = 1.0 + np.exp(-np.arange(40) / 5)
    val[25:27] += 0.5
    assert epochs(val, 1.5 * np.exp(-np.arange(40) / 12)) == []


def test_a_hundred_thousand_evaluations_stay_in_64_groups():
    n = 20_000
    session = sessions({"val_loss": (1 + rng().normal(0, 0.1, n)).tolist(), "loss": [1.0] * n})
    [d] = [d for t in session.runs[0].attempts[0].tracked.values() for d in t.waiting if d.name == "overfit"]
    assert len(d.groups) < 64
    assert d.width * len(d.groups) <= n < d.width * (len(d.groups) + 1)
