"""What the shape of a curve leads to: causes, fixes and routes of oscillation, slow, periodic and regime-shift."""

import numpy as np
import pytest

from tests.streams import batch, creeps, sorted_epochs, steps_up, thrown_about, thrown_epochs
from trainmon_rules.diagnosis import Knowledge
from trainmon_rules.engine import Session
from trainmon_rules.postmortem import report_runs
from trainmon_rules.state import Settings


def diagnosed(symptom, columns, **answers):
    """The report of the incident that has this symptom's name."""
    session = Session("run", Settings.default(answers))
    session.feed("log", batch(columns))
    session.end()
    [run] = report_runs(session, Knowledge.load())
    [i] = [i for i in run.incidents if i.symptom == symptom]
    return i


def changes(report):
    return {k: v for fix in report.fixes for k, v in (fix.change or {}).items()}


def cause(report, name):
    return next(c for c in (*report.causes, *report.ruled_out) if c.cause == name)


def primary(report):
    return report.routes[0].sheet


# ------------------------------------------------------------------ oscillation
def test_swings_that_grew_speak_for_the_rate_and_against_the_batches():
    i = diagnosed("oscillation", thrown_about(0))
    assert i.causes[0].cause == "learning rate too high"
    assert any("what the same batches gave before" in s for s in i.causes[0].evidence_for)
    assert "batch noise" in {c.cause for c in i.ruled_out}
    assert primary(i) == "learning-rate-scheduling"
    assert changes(i)["learning_rate"] == pytest.approx(3.33e-4)


def test_small_batches_stay_a_cause_where_there_was_no_calm_before():
    i = diagnosed("oscillation", thrown_epochs(0), batch_size=4)
    noise = cause(i, "batch noise")
    assert noise.evidence_for == ("the batch size is 4",)
    assert noise.evidence_against == ("validation is on the same examples each time",)
    assert changes(i)["batch_size"] == 16
    assert any("from 4 to 16" in f.action for f in i.fixes)


def test_without_a_batch_size_the_batch_is_enlarged_by_accumulation():
    assert changes(diagnosed("oscillation", thrown_epochs(0)))["accumulate_grad_batches"] == 4


def test_taking_turns_is_overshooting():
    t = np.arange(600)
    loss = 1 + np.exp(-t / 15) + 0.3 * (-1.0) ** t + np.random.default_rng(0).normal(0, 0.05, 600)
    i = diagnosed("oscillation", {"loss": loss, "lr": [1e-3] * 600})
    assert any("jumps to the other side" in s for s in cause(i, "learning rate too high").evidence_for)
    assert any("don't take turns" in s for s in cause(i, "batch noise").evidence_against)


# ------------------------------------------------------------------ slow
def flat_free(columns):
    """A creeping loss that began with a drop large enough not to be flat."""
    return {**columns, "loss": [0.72, 0.71, 0.705, 0.7, *columns["loss"]], "lr": [1e-5] * (len(columns["loss"]) + 4)}


def test_a_straight_line_speaks_for_a_rate_that_is_too_low():
    i = diagnosed("slow", flat_free(creeps(0)))
    assert i.causes[0].cause == "learning rate too low"
    assert any("straight line" in s for s in i.causes[0].evidence_for)
    assert "rate too high for detail" in {c.cause for c in i.ruled_out}
    assert changes(i)["learning_rate"] == pytest.approx(3e-5)


def test_a_broken_promise_at_the_same_rate_asks_for_a_decay():
    t = np.arange(1600)
    loss = 1 + 4 * (1 + np.minimum(t, 400) / 20) ** -0.3 - 0.05 * np.maximum(0, t - 400) / 400
    noise = np.random.default_rng(0).normal(0, 0.004, 1600)
    i = diagnosed("slow", {"loss": loss + noise, "lr": [1e-3] * 1600})
    assert i.causes[0].cause == "rate too high for detail"
    assert any("quick at first" in s for s in i.causes[0].evidence_for)
    assert any("it was quick before" in s for s in cause(i, "learning rate too low").evidence_against)
    assert changes(i)["learning_rate"] == pytest.approx(1e-4)


# ------------------------------------------------------------------ periodic
def test_a_pattern_of_an_epoch_is_shuffled_away():
    i = diagnosed("periodic", sorted_epochs(0))
    assert cause(i, "data order").evidence_for == ("the pattern is as long as an epoch, 50 steps",)
    assert changes(i)["shuffle"] is True
    assert primary(i) == "training-loop-architecture"


def test_where_the_epoch_is_unknown_it_is_asked_for_and_the_answer_tells():
    t = np.arange(1200)  # the pattern comes slowly: no epoch's first jump is a spike
    saw = 0.6 * (1 - np.exp(-t / 200)) * (0.5 - t % 50 / 50)
    run = {"loss": 0.7 + 1.5 * np.exp(-t / 150) + saw + np.random.default_rng(0).normal(0, 0.05, 1200)}
    i = diagnosed("periodic", run)
    assert any("--set dataset_size=" in f.action for f in i.fixes)
    assert i.severity == "info"
    i = diagnosed("periodic", run, dataset_size=1600, batch_size=32)
    assert cause(i, "data order").evidence_for == ("the pattern is as long as an epoch, 50 steps",)
    assert i.severity == "warning"
    i = diagnosed("periodic", run, dataset_size=16000, batch_size=32)
    assert "within the epoch, every 50 steps" in cause(i, "data order").evidence_for[0]
    assert "Find what comes every 50 steps" in i.fixes[0].action
    assert i.severity == "info"


def test_shuffling_that_is_on_is_checked_not_switched_on():
    i = diagnosed("periodic", sorted_epochs(0), shuffle=True)
    assert "shuffle" not in changes(i)
    assert any("Shuffling is on" in f.action for f in i.fixes)


# ------------------------------------------------------------------ regime-shift
def test_a_step_for_the_worse_asks_what_changed():
    i = diagnosed("regime-shift", steps_up(0))
    assert i.causes[0].cause == "something changed"
    assert i.causes[0].evidence_for == (
        "the level changed by 34 % at once, from 0.822 to 1.11, and goes on there as before",
    )
    assert "data seen before, or a leak" not in {c.cause for c in i.causes}
    assert primary(i) == "experiment-tracking"
    assert "Compare what was different at step 300" in i.fixes[0].action
    assert "checkpoint before step 300" in i.fixes[1].action


def test_a_gradient_that_rose_first_tells_a_blow_from_a_change_of_data():
    run = steps_up(0)
    run["grad_norm"][294:300] = [g * 40 for g in run["grad_norm"][294:300]]
    i = diagnosed("regime-shift", run)
    assert i.causes[0].cause == "gradient explosion"
    assert "the gradient norm rose before the loss" in cause(i, "something changed").evidence_against


def test_a_step_for_the_better_may_be_a_leak():
    t = np.arange(900)
    loss = 0.8 + 2 * np.exp(-t / 60) - 0.3 * (t >= 600) + np.random.default_rng(0).normal(0, 0.03, 900)
    i = diagnosed("regime-shift", {"loss": loss})
    assert i.causes[0].cause == "data seen before, or a leak"
    assert i.severity == "info"
    assert any("holds the answer" in f.action for f in i.fixes)
