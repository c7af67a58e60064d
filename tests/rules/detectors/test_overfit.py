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


# ------------------------------------------------------------------ borders
def test_training_that_stands_still_needs_eight_evaluations():
    val = np.r_[1.15, 1.1, 1.05, 1.0, np.full(16, 1.3)]
    [f] = epochs(val, np.full(20, 0.5))
    assert f.detected_step == 11  # the eighth of them
    [f] = epochs(val, 0.5 * 0.9 ** np.arange(20))
    assert f.detected_step == 6  # where it falls, the third


@pytest.mark.parametrize(("rise", "told"), [(1.04, 0), (1.06, 1)])
def test_among_few_evaluations_five_percent_are_the_border(rise, told):
    val = [1.15, 1.1, 1.05, 1.0, rise, rise, rise, rise]
    assert len(epochs(val, np.linspace(2, 0.2, 8))) == told


# ------------------------------------------------------------------ more look-alikes
@pytest.mark.parametrize("seed", range(5))
def test_quiet_on_waves_of_a_percent(seed):
    t = np.arange(60)
    val = 1.0 + np.exp(-t / 6) + 0.008 * np.sin(t / 8) + rng(seed).normal(0, 0.01, 60)
    assert epochs(val, 1.5 * np.exp(-t / 15)) == []


@pytest.mark.parametrize("seed", range(5))
def test_quiet_where_the_rate_goes_up_again(seed):
    """A warm restart lifts training and validation together; both come back lower."""
    t = np.arange(80)
    lift = 0.5 * np.exp(-(t % 20) / 3) * (t >= 20)
    course = 1.5 * np.exp(-t / 25)
    assert epochs(1.0 + course + lift + rng(seed).normal(0, 0.01, 80), 0.5 + course + lift) == []


@pytest.mark.parametrize("seed", range(5))
def test_quiet_on_small_validation_sets_of_another_sample_each_time(seed):
    t = np.arange(40)
    val = (0.5 + np.exp(-t / 6)) * np.exp(rng(seed).normal(0, 0.12, 40))
    assert epochs(val, 0.4 + np.exp(-t / 6)) == []


# ------------------------------------------------------------------ slow twin
def twin(val, train):
    """The rule in its obvious form, for fewer than 64 evaluations, a training loss beside each: the first detection."""
    for n in range(4, len(val) + 1):
        y, now = val[:n], train[n - 1]
        past = y[: n - 3]
        if len(past) < 12:
            at, level = int(np.argmin(past)), min(past)
        else:
            means = [np.mean(past[i : i + 3]) for i in range(len(past) - 2)]
            level, i = min((m, i) for i, m in enumerate(means))
            at = i + int(np.argmin(past[i : i + 3]))
        second = [abs(y[i + 2] - 2 * y[i + 1] + y[i]) for i in range(n - 2)]
        sound = 1.4826 * np.median(second) / 6**0.5
        least = level + max(4 * sound, (0.05 if n < 12 else 0.02) * abs(level))
        if now < train[at]:
            early, late = y[max(0, at - 4) :][:8], y[-8:]
            apart = max(0, at - 4) + 8 <= n - 8
            error = ((np.var(early, ddof=1) + np.var(late, ddof=1)) / 8) ** 0.5 if apart else 0.0
            shifted = apart and np.mean(late) - np.mean(early) > max(3.5 * error, 0.1 * abs(np.mean(early)))
            if min(y[-3:]) > least or (shifted and now < 0.8 * train[at]):
                return n - 1
        elif now <= 1.01 * train[at] and n - at > 8 and min(y[-8:]) > least:
            return n - 1
    return None


def course(seed):
    """Validation that turns at some place, at some pace and with some noise, beside training that goes on falling."""
    r, t = rng(seed), np.arange(60)
    turn, pace, spread = r.integers(5, 50), r.uniform(0, 0.05), r.choice([0.002, 0.03, 0.12])
    val = 1 + np.exp(-t / 6) + pace * np.maximum(0, t - turn) + r.normal(0, spread, 60)
    return val.tolist(), (0.2 + 1.8 * np.exp(-t / r.uniform(3, 20))).tolist()


def test_the_twin_tells_some_and_leaves_some():
    assert 5 < sum(twin(*course(seed)) is not None for seed in range(30)) < 28


@pytest.mark.parametrize("seed", range(30))
def test_agrees_with_its_slow_twin(seed):
    val, train = course(seed)
    got = [f.detected_step for f in epochs(val, train)][:1]
    assert (got or [None]) == [twin(val, train)]
