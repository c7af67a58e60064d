"""val-suspect: exact steps for each thing that can be wrong with validation, silence on what only looks so."""

import numpy as np
import pytest

from tests.ailing_outcomes import learning, perfect_validation
from tests.streams import SETTINGS, batch, findings, steps
from trainmon_rules.engine import Session
from trainmon_rules.findings import Severity, State
from trainmon_rules.points import Batch, chunk

RULE = "val-suspect"


def rng(seed=0):
    return np.random.default_rng(seed)


def run(val, tag="eval_loss", n=700, every=20, seed=0, train=None):
    """A run that learns, with an evaluation every twentieth row: `val` gives it from row number and training loss."""
    loss = learning(n, seed) if train is None else train
    return {
        "loss": [float(x) for x in loss],
        tag: [float(val(i, loss[i])) if i % every == every - 1 else None for i in range(n)],
    }


def epochs(val, train, tag="val_loss"):
    return findings({tag: list(val), "loss": list(train)}, RULE)


# ------------------------------------------------------------------ it fires
@pytest.mark.parametrize("seed", range(3))
def test_a_loss_of_exactly_0_from_the_first_evaluation_on(seed):
    [f] = findings(perfect_validation(seed), RULE)
    assert steps([f]) == [(19, 59, None)]
    assert (f.severity, f.evidence["suspected"]) == (Severity.WARNING, "zero")


def test_a_loss_that_becomes_0_later_needs_five():
    [f] = findings(run(lambda i, x: x + 0.1 if i < 200 else 0.0), RULE)
    assert steps([f]) == [(219, 299, None)]


def test_a_loss_that_never_moves_while_training_learns():
    [f] = findings(run(lambda i, x: 1.2345), RULE)
    assert steps([f]) == [(19, 159, None)]
    assert f.evidence["suspected"] == "constant"
    assert "fell from" in f.summary


def test_the_training_loss_under_another_name():
    [f] = findings(run(lambda i, x: x), RULE)
    assert steps([f]) == [(19, 99, None)]
    assert f.evidence["suspected"] == "same"


def test_far_below_training_is_listed_and_very_far_is_said():
    [f] = findings(run(lambda i, x: 0.3 * x), RULE)
    assert steps([f]) == [(19, 179, None)]
    assert (f.severity, f.evidence["suspected"]) == (Severity.INFO, "far-below")
    assert f.evidence["share of training loss"] == pytest.approx(0.31, abs=0.02)
    [f] = findings(run(lambda i, x: 0.02 * x), RULE)
    assert (f.severity, f.detected_step) == (Severity.WARNING, 179)


@pytest.mark.parametrize(("tag", "top"), [("val_acc", 1.0), ("eval/accuracy", 100.0), ("val_auc", 1.0)])
def test_a_metric_that_is_perfect_before_anything_was_learned(tag, top):
    train = 0.7 - 0.0003 * np.arange(700) + rng().normal(0, 0.01, 700)
    [f] = findings(run(lambda i, x: top, tag, train=train), RULE)
    assert steps([f]) == [(19, 99, None)]
    assert (f.severity, f.evidence["suspected"]) == (Severity.WARNING, "perfect")


def test_it_is_resolved_by_three_evaluations_that_look_right():
    [f] = findings(run(lambda i, x: 0.0 if i < 200 else x + 0.1), RULE)
    assert (f.state, f.resolved_step) == (State.RESOLVED, 259)
    [f] = findings(run(lambda i, x: 0.3 * x if i < 400 else x + 0.1), RULE)
    assert (f.state, f.resolved_step) == (State.RESOLVED, 479)


def test_validation_in_a_source_of_its_own():
    columns = run(lambda i, x: x)
    told = []
    for order in (("train", "validation"), ("validation", "train")):
        s = Session("run", SETTINGS)
        for name in ("train", "validation"):
            s.open(name)
        for name in order:
            tag = "loss" if name == "train" else "eval_loss"
            s.feed(name, batch({tag: columns[tag]}))
        s.end()
        told.append([(f.onset_step, f.detected_step) for f in s.runs[0].findings.values() if f.rule == RULE])
    assert told[0] == told[1] == [(19, 99)]


# ------------------------------------------------------------------ look-alikes
@pytest.mark.parametrize("seed", range(5))
def test_quiet_on_regularised_training(seed):
    """Dropout, mixup and label smoothing: the training loss stands at 1.7 times validation's, lastingly."""
    assert findings(run(lambda i, x: 0.6 * x + rng(seed + i).normal(0, 0.01), seed=seed), RULE) == []


@pytest.mark.parametrize("seed", range(5))
def test_quiet_on_an_epochs_mean_that_lags(seed):
    """In the first epochs training falls tenfold within one: its mean is far above what follows."""
    t = np.arange(30)
    now = 2.3 * 0.45**t + 0.01
    mean_of_epoch = np.concatenate([[2.3], now[:-1]]) * 0.6 + 0.4 * now
    assert epochs(now * (1 + rng(seed).normal(0, 0.02, 30)), mean_of_epoch) == []


@pytest.mark.parametrize("seed", range(5))
def test_quiet_on_a_toy_task_that_is_solved_at_once(seed):
    train = 0.7 * np.exp(-np.arange(700) / 8) + 0.01 + rng(seed).normal(0, 0.002, 700)
    assert findings(run(lambda i, x: 1.0, "val_acc", train=train), RULE) == []


def test_quiet_on_a_resumed_or_cut_log_of_a_solved_task():
    rows = range(50_000, 50_700)
    columns = run(lambda i, x: 1.0, "val_acc", train=np.full(700, 0.02) + rng().normal(0, 0.001, 700))
    s = Session("run", SETTINGS)
    val = [(i, v) for i, v in zip(rows, columns["val_acc"], strict=True) if v is not None]
    chunks = [chunk("loss", rows, columns["loss"]), chunk("val_acc", [i for i, _ in val], [v for _, v in val])]
    s.feed("log", Batch(chunks))
    assert [f for f in s.runs[0].findings.values() if f.rule == RULE] == []


def test_quiet_on_a_solved_task_whose_losses_both_print_as_0():
    train = np.round(0.7 * np.exp(-np.arange(700) / 20), 3)
    assert findings(run(lambda i, x: np.round(0.5 * x, 3), train=train, every=5), RULE) == []


def test_quiet_on_two_losses_that_agree_to_two_digits():
    train = np.round(learning(700, 0), 2)
    assert findings(run(lambda i, x: x, train=train), RULE) == []


def test_quiet_on_a_constant_validation_of_a_run_that_learns_nothing():
    train = 2.3 + rng().normal(0, 0.01, 700)
    assert findings(run(lambda i, x: 2.3026, train=train), RULE) == []


@pytest.mark.parametrize("tag", ["val_recall", "val_precision", "success_rate"])
def test_quiet_on_metrics_that_may_well_be_1(tag):
    assert findings(run(lambda i, x: 1.0, tag, train=np.full(700, 0.7)), RULE) == []


def test_quiet_on_a_negative_validation_loss():
    assert findings(run(lambda i, x: -4 - 0.001 * i), RULE) == []


def test_quiet_on_seven_hundred_noisy_evaluations():
    loss = 0.3 + np.exp(-np.arange(700) / 100)
    for seed in range(5):
        noise = np.exp(rng(seed).normal(0, 0.2, (2, 700)))
        assert epochs(loss * noise[0], loss * noise[1]) == []


def test_gaps_and_nan_between_evaluations_change_nothing():
    columns = run(lambda i, x: 0.0)
    columns["loss"][30:50] = [float("nan")] * 20
    columns["loss"][5:10] = [None] * 5
    columns["eval_loss"][119] = float("nan")
    [f] = findings(columns, RULE)
    assert steps([f]) == [(19, 59, None)]


def test_a_hundred_thousand_evaluations_stay_small():
    n = 20_000
    s = Session("run", SETTINGS)
    s.feed("log", batch({"val_loss": (1 + rng().normal(0, 0.1, n)).tolist(), "loss": [1.0] * n}))
    [d] = [d for t in s.runs[0].attempts[0].tracked.values() for d in t.waiting if d.name == RULE]
    assert sum(len(c.values) for c in d.checks if hasattr(c, "values")) <= 5
    assert sum(len(c.ratios) for c in d.checks if hasattr(c, "ratios")) <= 8
