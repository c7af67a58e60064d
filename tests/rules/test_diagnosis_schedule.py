"""Diagnosis of lr-schedule and resume-jump: real runs, and what the causes and fixes say of them."""

import pytest

from tests.ailing_rates import (
    eight_times_too_fast,
    jumping_rate,
    rate_starts_over,
    weights_lost,
    without_warmup,
    zero_rate,
)
from tests.columns import Columns
from tests.schedules import TOTAL, announcement, logged, rates, with_loss
from tests.streams import sessions
from trainmon_rules.diagnosis import Knowledge
from trainmon_rules.postmortem import report_runs

PEAK = 3e-4
STEP = range(10, TOTAL + 1, 10)


def diagnosed(columns, symptom="lr-schedule"):
    """The report of the only incident in which the symptom was seen."""
    session = sessions(columns)
    session.end()
    [report] = report_runs(session, Knowledge.load())
    [incident] = [i for i in report.incidents if symptom in (i.symptom, *(s for s, _ in i.others))]
    return incident


def cosine(lr, **said):
    return Columns({"lr": lr}, STEP, {**announcement("cosine", PEAK), **said})


def paced(factor):
    return rates("cosine", PEAK, [min(TOTAL, factor * s) for s in STEP])


def causes(report):
    return [c.cause for c in report.causes]


def changes(report):
    return {k: v for fix in report.fixes for k, v in (fix.change or {}).items()}


def said(report):
    return " ".join([*report.causes[0].evidence_for, *(f.action for f in report.fixes)])


@pytest.mark.parametrize(
    ("columns", "cause", "change"),
    [
        (zero_rate(), "rate is zero", {}),
        (jumping_rate(), "something raised the rate", {"resume_from": 300}),
        (without_warmup(), "schedule not applied", {"warmup_steps": 500}),
        (eight_times_too_fast(), "scheduler stepped at the wrong moments", {"total_steps": 51_200}),
        (rate_starts_over(), "schedule not restored", {"resume_from": 360}),
        (cosine(rates("constant_with_warmup", PEAK, STEP)), "schedule not applied", {"lr_schedule": "cosine"}),
        (cosine(rates("polynomial", PEAK, STEP)), "schedule not applied", {}),
        (cosine(paced(2)), "scheduler stepped at the wrong moments", {"total_steps": 2 * TOTAL}),
    ],
)
def test_each_form_has_its_cause_and_its_change(columns, cause, change):
    report = diagnosed(columns)
    assert causes(report)[0] == cause
    assert changes(report) == change
    assert report.routes[0].sheet == "learning-rate-scheduling"
    assert "training-loop-architecture" in [r.sheet for r in report.routes]


def test_a_factor_is_told_with_what_has_it():
    assert "8 is the number of micro-batches an update" in said(diagnosed(eight_times_too_fast()))
    report = diagnosed(cosine(paced(2), world_size=2))
    assert "2 is the number of devices" in said(report)
    assert "once in each of the 2 processes" in said(report)


def test_a_warm_up_that_takes_too_long_is_given_fewer_steps():
    report = diagnosed(Columns({"lr": rates("linear", PEAK, [s / 4 for s in STEP])}, STEP, announcement("wsd", PEAK)))
    assert "takes 4 times as long as the 200 steps announced" in said(report)
    assert changes(report)["warmup_steps"] == 50


def test_a_log_that_may_count_micro_batches_speaks_against_a_wrong_pace():
    report = diagnosed(cosine(paced(1 / 8), gradient_accumulation_steps=8))
    assert report.severity == "info"
    [cause] = [c for c in report.causes if c.cause == "scheduler stepped at the wrong moments"]
    assert cause.evidence_against == ("8 is the number of micro-batches an update: the log may simply count those",)


def test_a_rate_of_0_is_its_own_cause_though_a_rate_was_announced():
    lr = [PEAK if s < 500 else 0.0 for s in STEP]
    report = diagnosed(Columns({"lr": lr}, STEP, {"learning_rate": PEAK}))
    assert causes(report) == ["rate is zero"]
    assert "it fell there from 0.0003 in one report" in said(report)


def test_a_peak_scaled_by_the_devices_is_told_as_such():
    report = diagnosed(cosine([8 * r for r in rates("cosine", PEAK, STEP)]))
    assert report.severity == "info"
    assert "8 times the one announced: scaled by the batch or the number of devices?" in said(report)


# ------------------------------------------------------------------------------------------------- resume-jump
def resumed(change):
    run = with_loss(logged("cosine", resume=3000))
    run["loss"][3000:] = [change(x, i) for i, x in enumerate(run["loss"][3000:])]
    return run


def test_a_model_from_nothing_means_that_the_weights_were_not_loaded():
    report = diagnosed(weights_lost(), "resume-jump")
    assert report.symptom == "resume-jump"
    assert causes(report)[0] == "weights not loaded"
    assert "optimizer state lost" in [c.cause for c in report.ruled_out]
    assert changes(report) == {"resume_from": 360}
    assert report.routes[0].sheet == "training-loop-architecture"


def test_a_hump_means_that_the_optimizers_state_was_lost():
    report = diagnosed(resumed(lambda x, i: x + (0.4 if i < 200 else 0.0)), "resume-jump")
    assert causes(report)[0] == "optimizer state lost"
    assert "weights not loaded" in [c.cause for c in report.ruled_out]


def test_a_rise_that_stays_means_other_data():
    report = diagnosed(resumed(lambda x, i: x + 0.4), "resume-jump")
    assert causes(report)[0] == "other data after the resume"


def test_a_rate_off_its_curve_goes_before_them():
    run = resumed(lambda x, i: x + 0.4)
    run["lr"][3000:] = run["lr"][: len(run["lr"]) - 3000]
    report = diagnosed(run, "resume-jump")
    assert report.symptom == "resume-jump"
    assert causes(report)[0] == "schedule not restored"
    assert "lr-schedule" in [p.symptom for p in report.precursors]


def test_a_jump_of_the_rate_explains_the_spike_that_follows():
    run = with_loss(logged("cosine"))
    run["lr"][2000:2040] = [10 * r for r in run["lr"][2000:2040]]
    run["loss"][2003:2060] = [x + 2 for x in run["loss"][2003:2060]]
    report = diagnosed(run)
    assert report.symptom == "loss-spike"
    cause = report.causes[0]
    assert cause.cause == "something raised the rate"
    assert cause.evidence_for[0].startswith("the rate went from 0.0001")
    assert report.fixes[0].action.startswith("Find what set it")


def test_a_spike_long_after_the_jump_is_an_incident_of_its_own():
    run = with_loss(logged("cosine"))
    run["lr"][1000:] = [10 * r for r in run["lr"][1000:]]
    run["loss"][3000:3010] = [x + 2 for x in run["loss"][3000:3010]]
    assert [i.symptom for i in sessions(run).runs[0].incidents] == ["lr-schedule", "loss-spike"]
