"""chance-accuracy: exact steps, every way to know the classes, and silence on late starts and other accuracies."""

import numpy as np
import pytest

from tests.ailing_outcomes import guesses
from tests.engine import session
from tests.streams import SETTINGS, batch, findings, steps
from trainmon_rules.detectors.accuracy import accuracy_of
from trainmon_rules.diagnosis import Knowledge
from trainmon_rules.engine import Session
from trainmon_rules.findings import Severity, State
from trainmon_rules.postmortem import report_runs
from trainmon_rules.state import Settings

RULE = "chance-accuracy"


def rng(seed=0):
    return np.random.default_rng(seed)


def told(columns, answers=None):
    """Findings of a run with the user's answers."""
    s = Session("run", Settings.default(answers))
    s.open("log")
    s.feed("log", batch(columns))
    return [f for f in s.runs[0].findings.values() if f.rule == RULE]


def epochs(accuracy, loss=None, tag="val_accuracy", answers=None):
    """One row an epoch, as Keras' CSVLogger writes it."""
    return told({tag: list(accuracy)} | ({"loss": list(loss)} if loss is not None else {}), answers)


def drawn(classes, n, examples, seed=0, share=None):
    p = np.full(n, 1 / classes) if share is None else share
    return rng(seed).binomial(examples, p) / examples


def at(classes, n, seed=0, noise=0.001):
    return np.log(classes) + rng(seed + 100).normal(0, noise, n)


# ------------------------------------------------------------------ it fires
@pytest.mark.parametrize("seed", range(3))
def test_two_hundred_steps_at_chance(seed):
    [f] = findings(guesses(seed), RULE)
    assert steps([f]) == [(0, 203, None)]
    assert f.severity is Severity.WARNING
    assert f.evidence["classes"] == 10
    assert "guessing among 10 classes gives 0.1" in f.summary


@pytest.mark.parametrize("classes", [2, 5, 10, 100, 1000])
def test_twelve_epochs_are_enough_where_the_first_loss_tells_the_classes(classes):
    [f] = epochs(drawn(classes, 30, 50_000), at(classes, 30))
    assert steps([f]) == [(0, 11, None)]
    assert (f.evidence["classes"], f.evidence["known from"]) == (classes, f"the first loss is ln {classes}")


@pytest.mark.parametrize("classes", [10, 1000])
def test_percent_and_errors_and_top_five(classes):
    share, loss = drawn(classes, 30, 50_000), at(classes, 30)
    for tag, values, expected in (
        ("val_acc", 100 * share, 100 / classes),
        ("val/top1_err", 1 - share, 1 - 1 / classes),
        ("val/error_rate", 100 - 100 * share, 100 - 100 / classes),
        ("val_top5_acc", drawn(classes, 30, 50_000, share=np.full(30, 5 / classes)), 5 / classes),
    ):
        [f] = epochs(values, loss, tag)
        assert (f.detected_step, f.evidence["classes"]) == (11, classes), tag
        assert f.evidence["chance"] == pytest.approx(expected), tag


def test_the_setting_goes_before_the_loss():
    share = drawn(7, 30, 5_000)
    assert epochs(share, 3 + np.exp(-np.arange(30))) == []  # a loss that is no logarithm of 7
    [f] = epochs(share, np.full(30, 1.95), answers={"num_classes": 7})
    assert f.evidence["known from"] == "the settings say so"
    assert epochs(share, at(7, 30), answers={"num_classes": 20}) == []


def test_the_loss_of_now_tells_where_the_first_one_is_too_high():
    n = 160
    loss = np.log(2) + 0.4 * np.exp(-np.arange(n) / 10) + rng().normal(0, 0.0005, n)
    [f] = epochs(drawn(2, n, 5_000), loss)
    assert f.evidence["known from"] == "the loss is ln 2"
    assert f.severity is Severity.WARNING


def test_a_constant_of_one_over_a_whole_number_is_listed_without_any_loss():
    [f] = epochs([0.3, *[0.125] * 20])
    assert (f.severity, f.evidence["classes"], f.detected_step) == (Severity.INFO, 8, 16)


def test_a_coin_is_listed_without_any_loss():
    [f] = epochs(drawn(2, 60, 2_000))
    assert (f.severity, f.evidence["classes"], f.detected_step) == (Severity.INFO, 2, 39)


def test_a_network_that_falls_back_to_guessing_is_dated_to_the_fall():
    n = 300
    share = np.where(np.arange(n) < 100, 0.8, 0.1)
    loss = np.where(np.arange(n) < 100, 0.6, np.log(10)) + rng().normal(0, 0.001, n)
    loss[:5] = np.log(10)
    [f] = epochs(drawn(10, n, 10_000, share=share), loss)
    assert f.onset_step == 100
    assert 195 <= f.detected_step <= 210  # once the mean of a hundred lies there


def test_validation_that_guesses_beside_a_loss_that_fell_is_said_where_the_classes_are_set():
    loss = 0.2 + 2.1 * np.exp(-np.arange(40) / 5)
    [f] = epochs(drawn(10, 40, 10_000), loss, answers={"num_classes": 10})
    assert f.detected_step == 11
    assert epochs(drawn(10, 40, 10_000), loss) == []  # the first loss alone is no ground for that


def test_it_is_resolved_once_it_learns():
    n = 800
    share = np.where(np.arange(n) < 400, 0.1, 0.1 + 0.6 * (1 - np.exp(-np.maximum(0, np.arange(n) - 400) / 80)))
    loss = np.log(10) - 1.5 * (1 - np.exp(-np.maximum(0, np.arange(n) - 400) / 80)) + rng(3).normal(0, 0.02, n)
    [f] = findings({"loss": loss.tolist(), "acc": drawn(10, n, 128, 1, share).tolist()}, RULE)
    assert (f.state, f.resolved_step) == (State.RESOLVED, 415)


def test_flat_and_chance_are_one_incident_with_the_telling_name():
    [incident] = session(guesses()).runs[0].incidents
    assert incident.symptom == "chance-accuracy"
    assert {f.rule for f in incident.findings} == {"flat", "chance-accuracy"}


def test_validation_in_a_source_of_its_own():
    share, loss = drawn(10, 30, 10_000), at(10, 30)
    told_by = []
    for order in (("train", "validation"), ("validation", "train")):
        s = Session("run", SETTINGS)
        for name in ("train", "validation"):
            s.open(name)
        for name in order:
            s.feed(name, batch({"loss": loss.tolist()} if name == "train" else {"val_accuracy": share.tolist()}))
        s.end()
        told_by.append([(f.onset_step, f.detected_step) for f in s.runs[0].findings.values() if f.rule == RULE])
    assert told_by[0] == told_by[1] == [(0, 11)]


# ------------------------------------------------------------------ it is blind
def needs(columns, answers=None):
    [report] = report_runs(session(columns, settings=Settings.default(answers)), Knowledge.load())
    return {b.rule: b.needs for b in report.blind}.get(RULE)


def test_without_classes_it_says_what_it_needs():
    stuck = {"val_accuracy": [0.37 + 0.01 * (i % 3) for i in range(30)], "loss": [0.9] * 30}
    assert needs(stuck) == "the number of classes isn't known (--set num_classes=…)"
    assert needs(stuck, {"num_classes": 5}) is None


def test_what_has_learned_needs_no_classes():
    assert needs({"val_accuracy": [0.3 + 0.02 * min(i, 20) for i in range(30)], "loss": [0.9] * 30}) is None


def test_a_metric_that_is_no_accuracy_is_told():
    assert needs({"val_mAP": [0.1] * 30}) == "no accuracy of a classifier is logged"


def test_too_few_evaluations_are_told():
    assert needs({"val_accuracy": [0.1] * 11, "loss": [2.3026] * 11}) == "fewer than 12 reports are logged"


# ------------------------------------------------------------------ look-alikes
@pytest.mark.parametrize("seed", range(5))
def test_quiet_on_a_run_that_has_just_started(seed):
    assert findings(guesses(seed, n=200), RULE) == []


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("classes", [100, 1000])
def test_quiet_on_the_slow_start_of_many_classes(classes, seed):
    """Evaluations of the first epochs: the loss has hardly moved, a tenth of a percent is right."""
    t = np.arange(60)
    loss = np.log(classes) - 0.02 * t + rng(seed).normal(0, 0.01, 60)
    share = 1 / classes * (1 + 0.5 * t)
    assert epochs(drawn(classes, 60, 50_000, seed, share), loss) == []


@pytest.mark.parametrize("seed", range(5))
def test_quiet_while_the_rate_warms_up(seed):
    n = 2000
    run = guesses(seed, n)
    run["lr"] = np.minimum(1e-3, 1e-3 * np.arange(1, n + 1) / 2000).tolist()
    assert findings(run, RULE) == []


@pytest.mark.parametrize("seed", range(5))
def test_quiet_on_slow_but_certain_learning(seed):
    """Two circles: 0.695 → 0.53 in 300 epochs of 700 examples; accuracy is a coin's for fifty epochs."""
    t = np.arange(300)
    loss = 0.695 - 0.0003 * np.minimum(t, 12) - 0.00012 * t - 0.15 / (1 + np.exp(-(t - 200) / 30))
    loss = loss + rng(seed).normal(0, 0.0002, 300)
    share = 0.5 + 0.3 / (1 + np.exp(-(t - 150) / 40))
    columns = {"loss": loss.tolist(), "accuracy": drawn(2, 300, 700, seed, share).tolist()}
    assert told(columns | {"val_accuracy": drawn(2, 300, 200, seed + 50, share - 0.03).tolist()}) == []


@pytest.mark.parametrize("seed", range(5))
def test_quiet_on_the_largest_of_unequal_classes(seed):
    loss = 0.56 + rng(seed).normal(0, 0.002, 60)  # the entropy of one in four
    assert epochs(drawn(2, 60, 5_000, seed, np.full(60, 0.75)), loss) == []
    assert epochs(drawn(3, 60, 5_000, seed, np.full(60, 0.6)), np.full(60, 0.95)) == []


@pytest.mark.parametrize("seed", range(5))
def test_quiet_on_a_plateau_at_one_half(seed):
    """Five classes, half of them right: 0.5 is learned, not guessed, and 0.69 would be a coin's loss."""
    t = np.arange(100)
    share = 0.2 + 0.3 * (1 - np.exp(-t / 8))
    loss = np.log(2) + 0.9 * np.exp(-t / 8) + rng(seed).normal(0, 0.005, 100)
    assert epochs(drawn(5, 100, 3_000, seed, share), loss) == []


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("share", "count"), [(0.02, 0), (0.05, 1), (0.1, 1), (0.15, 0)])
def test_what_is_too_good_or_too_bad_for_guessing_is_none(share, count, seed):
    """Always wrong is no guessing: the labels of another set, say."""
    assert len(epochs(drawn(10, 60, 20_000, seed, np.full(60, share)), at(10, 60, seed))) == count


@pytest.mark.parametrize(
    "tag",
    ["mean_token_accuracy", "eval_token_acc", "mlm_acc", "contrastive_acc", "i2t_acc", "fast_rcnn/fg_cls_accuracy",
     "rewards/accuracies", "disc_acc", "domain_accuracy", "pixel_acc", "decode.acc_seg", "mAcc", "val_f1", "val_mAP",
     "word_error_rate", "loss", "accelerate"],
)  # fmt: skip
def test_other_accuracies_are_not_judged(tag):
    assert accuracy_of(tag) is None
    assert told({"train_loss": at(10, 300, noise=0.02).tolist(), tag: [0.1] * 300}) == []


@pytest.mark.parametrize(
    ("tag", "top", "error"),
    [("acc", 1, False), ("val/Acc@1", 1, False), ("val/Acc@5", 5, False), ("metrics/accuracy_top5", 5, False),
     ("top_5_acc", 5, False), ("valAccuracy", 1, False), ("sparse_categorical_accuracy", 1, False),
     ("accuracy_2", 1, False), ("top1", 1, False), ("train/top1_err", 1, True), ("classification_error", 1, True)],
)  # fmt: skip
def test_names_of_accuracies(tag, top, error):
    kind = accuracy_of(tag)
    assert (kind.top, kind.error) == (top, error)


def test_gaps_and_awkward_numbers_change_nothing():
    run = guesses(0)
    rows = [i for i in range(700) if i % 10]
    for i in rows[::7]:
        run["accuracy"][i] = None
        run["loss"][i] = float("nan")
    [f] = findings(run, RULE)
    assert f.evidence["classes"] == 10
    assert 200 <= f.detected_step < 240
