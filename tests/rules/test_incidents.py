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
