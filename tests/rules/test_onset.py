"""An incident begins no later than it is detected, whatever its findings are."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.streams import AILING, sessions
from trainmon_rules.findings import Finding, Severity
from trainmon_rules.incidents import HEADLINE, group

FAMILIES = ("instability", "learning", "generalization", "speed", "schedule", "units", "memory")


def begins_in_time(incidents):
    return [(i.symptom, i.onset.onset_step, i.detected.detected_step) for i in incidents if late(i)] == []


def late(incident):
    return incident.onset.onset_step > incident.detected.detected_step


@pytest.mark.parametrize("name", AILING)
def test_of_each_fault(name):
    incidents = sessions(AILING[name](0)).end()[0].incidents
    assert incidents
    assert begins_in_time(incidents)


@given(st.lists(st.sampled_from(sorted(AILING)), min_size=2, max_size=3), st.integers(0, 3))
@settings(max_examples=10)
def test_of_faults_together(names, seed):
    columns = {f"{n}/{tag}": v for n in names for tag, v in AILING[n](seed).items() if tag != "time"}
    assert begins_in_time(sessions(columns).end()[0].incidents)


@st.composite
def findings(draw):
    onset = draw(st.integers(0, 300))
    detected = onset + draw(st.integers(0, 300))
    return Finding(
        draw(st.sampled_from("abc")), draw(st.sampled_from(HEADLINE)), draw(st.sampled_from(FAMILIES)),
        draw(st.sampled_from(Severity)), "log", draw(st.sampled_from("xyz")), "train_loss", 0,
        onset, detected, detected, detected, detected, 1, "",
    )  # fmt: skip


@given(st.lists(findings(), min_size=1, max_size=8))
@settings(max_examples=300)
def test_of_any_findings(found):
    assert begins_in_time(group("run", found))


def test_what_the_naming_one_explains_may_have_been_detected_first():
    """A loss that is flat from the start, and not a number later, is one incident since the start."""
    where = ("log", "loss", "train_loss", 0)
    flat = Finding("flat", "flat", "learning", Severity.WARNING, *where, 0, 4, 4, 4, 4, 1, "")
    nan = Finding("nan", "nonfinite", "instability", Severity.CRITICAL, *where, 15, 16, 16, 16, 16, 1, "")
    [incident] = group("run", [flat, nan])
    assert (incident.symptom, incident.onset.onset_step, incident.detected.detected_step) == ("nonfinite", 0, 4)
