"""Grouping: one event, one incident; a function of the findings, whatever their order."""

import random
from dataclasses import replace

import pytest

from trainmon_rules.findings import Finding, Severity, State
from trainmon_rules.incidents import group


def finding(rule, onset, detected=None, severity=Severity.WARNING, family="instability", tag="loss", **more):
    detected = onset if detected is None else detected
    base = Finding(
        rule=rule, symptom=rule, family=family, severity=severity, source="log", tag=tag, role="train_loss", attempt=0,
        onset_step=onset, detected_step=detected, last_step=detected, index=detected, row=detected, interval=1,
        summary=f"{rule} at {onset}", state=State.RESOLVED, resolved_step=detected + 5,
    )  # fmt: skip
    return replace(base, **more)


GRAD = finding("grad-spike", 100, 101, Severity.INFO, tag="grad_norm", resolved_step=130)
LOSS = finding("loss-spike", 104, 105, resolved_step=120)
NAN = finding("nonfinite", 140, severity=Severity.CRITICAL)
PLATEAU = finding("plateau", 150, severity=Severity.INFO, family="learning")
LATER = finding("loss-spike", 400)


def test_findings_of_one_event_are_one_incident_with_precursors():
    [event, plateau, later] = group("run", [GRAD, LOSS, NAN, PLATEAU, LATER])
    assert event.symptom == "nonfinite"
    assert event.severity is Severity.CRITICAL
    assert [p.symptom for p in event.precursors] == ["grad-spike", "loss-spike"]
    assert event.onset is GRAD
    assert plateau.symptom == "plateau"
    assert later.findings == (LATER,)


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_the_findings_does_not_matter(seed):
    findings = [GRAD, LOSS, NAN, PLATEAU, LATER]
    expected = group("run", findings)
    random.Random(seed).shuffle(findings)
    assert group("run", findings) == expected


def test_the_id_comes_from_the_first_finding_and_stays():
    first = group("run", [GRAD])[0].id
    assert group("run", [GRAD, LOSS])[0].id == first
    assert (
        group("run", [replace(GRAD, severity=Severity.WARNING, onset_step=90, state=State.RESOLVED), NAN])[0].id
        == first
    )


def test_other_attempts_and_far_ones_stay_apart():
    other = replace(LOSS, attempt=1)
    assert len(group("run", [LOSS, other])) == 2
    assert len(group("run", [LOSS, finding("loss-spike", 120 + 51)])) == 2
    assert len(group("run", [LOSS, finding("loss-spike", 120 + 50)])) == 1


def test_whatever_begins_while_it_goes_on_belongs_to_it():
    assert len(group("run", [replace(LOSS, state=State.FIRING, resolved_step=None), finding("nonfinite", 900)])) == 1


def test_sparse_reports_join_over_eight_of_them():
    a, b = replace(LOSS, interval=100), replace(finding("divergence", 900), interval=100)
    assert len(group("run", [a, b])) == 1


def test_it_fires_while_anything_in_it_does():
    done = replace(LOSS, state=State.RESOLVED, resolved_step=150)
    assert group("run", [replace(GRAD, state=State.FIRING), done])[0].state is State.FIRING
    assert group("run", [replace(GRAD, state=State.RESOLVED), done])[0].state is State.RESOLVED


# ------------------------------------------------------------------------------- one cause, one incident
BROKEN = replace(finding("divergence", 300), state=State.FIRING, resolved_step=None)


def flat(onset, **more):
    return finding("flat", onset, onset + 60, family="learning", **more)


def test_what_a_broken_run_no_longer_learns_is_no_second_incident():
    [event] = group("run", [BROKEN, flat(900), finding("overfit", 700, family="generalization", tag="eval_loss")])
    assert (event.symptom, {f.rule for f in event.findings}) == ("divergence", {"divergence", "flat", "overfit"})


def test_a_rate_of_zero_explains_a_run_that_never_learns():
    rate = finding("lr-schedule", 0, 20, family="schedule", tag="lr", resolved_step=None, state=State.FIRING)
    [event] = group("run", [rate, flat(0)])
    assert event.symptom == "lr-schedule"


@pytest.mark.parametrize(
    ("cause", "effect"),
    [
        (BROKEN, flat(100)),  # it had stopped learning long before
        (replace(BROKEN, severity=Severity.INFO), flat(900)),  # too weak to explain anything
        (replace(BROKEN, role="val_loss", tag="eval_loss"), flat(900)),  # says nothing about training
        (replace(BROKEN, resolved_step=400, state=State.RESOLVED), flat(900)),  # it was over
        (BROKEN, finding("throughput-drop", 900, family="speed")),  # another matter
        (flat(0, resolved_step=None), finding("loss-spike", 900)),  # the wrong way round
    ],
)
def test_what_is_not_explained_stays_an_incident_of_its_own(cause, effect):
    assert len(group("run", [cause, effect])) == 2


def test_an_evaluation_that_collapsed_explains_its_own_standstill():
    fell = replace(BROKEN, role="eval_metric", tag="acc")
    assert len(group("run", [fell, flat(900, role="eval_metric", tag="acc")])) == 1


def test_a_spike_that_is_over_does_not_explain_a_standstill_seen_later():
    over = replace(LOSS, resolved_step=120)
    assert len(group("run", [over, flat(110)])) == 2  # seen at 170
    assert len(group("run", [over, finding("flat", 110, 124, family="learning")])) == 1  # its end was not yet known


def test_a_spike_that_did_not_come_back_explains_the_standstill_that_began_with_it():
    lost = replace(LOSS, resolved_step=250, evidence={"recovery": "not"})
    [event] = group("run", [lost, finding("flat", 90, 800, family="learning", resolved_step=None, state=State.ENDED)])
    assert (event.symptom, event.grade, event.onset) == ("loss-spike", "not", lost)  # the standstill can't be graded
    assert len(group("run", [lost, finding("flat", 400, 800, family="learning")])) == 2


def rate(onset, **more):
    going_on = {"state": State.FIRING, "resolved_step": None}
    return finding(
        "lr-schedule", onset, onset + 1, family="schedule", tag="lr", role="learning_rate", **going_on | more
    )


@pytest.mark.parametrize("jump", [rate(100), rate(100, severity=Severity.INFO), rate(100, resolved_step=103)])
def test_a_rate_that_jumped_leads_to_the_spike_that_follows_soon(jump):
    [event] = group("run", [jump, finding("loss-spike", 110, 111)])
    assert event.symptoms == {"lr-schedule", "loss-spike"}
    [event] = group("run", [jump, finding("divergence", 290, 300, severity=Severity.CRITICAL)])
    assert (event.symptom, [p.symptom for p in event.precursors]) == ("divergence", ["lr-schedule"])


def test_a_rate_that_is_not_as_declared_does_not_swallow_every_spike_of_the_run():
    assert len(group("run", [rate(100), finding("loss-spike", 2_000), finding("loss-spike", 9_000)])) == 3


def test_a_silent_run_and_the_slowness_around_it_are_one():
    silence = finding("stall", 500, 501, family="speed", severity=Severity.CRITICAL, resolved_step=501)
    around = [
        finding("throughput-drop", 501, 520, family="speed"),
        finding("low-utilization", 500, 510, family="speed", tag="gpu"),
    ]
    [event] = group("run", [silence, *around])
    assert event.symptom == "stall"


def test_a_standstill_dated_back_before_its_cause_is_neither_the_onset_nor_a_precursor():
    [event] = group("run", [BROKEN, flat(290)])
    assert (event.onset.rule, event.precursors) == ("divergence", ())
    assert "flat" in event.symptoms


# ------------------------------------------------------------------------------- how it ended
def graded(rule, onset, grade, **more):
    return finding(rule, onset, evidence={"recovery": grade}, **more)


@pytest.mark.parametrize(
    ("findings", "grade"),
    [
        ([graded("loss-spike", 100, "recovered")], "recovered"),
        ([LOSS], "recovered"),  # one that doesn't grade what is over
        ([graded("loss-spike", 100, "partly"), graded("grad-spike", 99, "recovered", tag="grad_norm")], "partly"),
        ([graded("loss-spike", 100, "partly"), graded("divergence", 110, "recovered")], "recovered"),  # seen last
        ([graded("loss-spike", 100, "recovered"), graded("divergence", 110, "not", resolved_step=None)], "not"),
        ([graded("loss-spike", 100, "recovered"), graded("grad-spike", 99, "not", tag="g", severity=Severity.INFO)],
         "recovered"),
        ([replace(LOSS, state=State.FIRING, resolved_step=None)], None),
    ],
)  # fmt: skip
def test_an_incident_is_graded_by_what_was_seen_last_on_each_series_the_worst_of_all(findings, grade):
    [event] = group("run", findings)
    assert event.grade == grade


def test_what_has_not_come_back_names_the_incident_before_what_has():
    back, lasting = graded("divergence", 110, "recovered"), graded("grad-explosion", 111, "not", tag="grad_norm")
    [event] = group("run", [back, lasting])
    assert event.symptom == "grad-explosion"


def test_the_outcome_names_it_before_the_loss_scale_that_announced_it():
    scale = finding("loss-scale-collapse", 100, 103, tag="loss_scale", role="loss_scale")
    [event] = group("run", [scale, finding("loss-spike", 130, 131)])
    assert (event.symptom, [p.symptom for p in event.precursors]) == ("loss-spike", ["loss-scale-collapse"])
