"""By how much a precursor was ahead: of the loss's first rise and of its peak, in all that is printed."""

import json

import numpy as np
import pytest

from tests.bloom import FIRST, GRADIENT_ONSET, LOSS_ONSET, LOSS_PEAK, bloom
from tests.engine import session
from tests.streams import base
from trainmon import replay
from trainmon_exporters import FORMATS, render
from trainmon_rules.diagnosis import Knowledge
from trainmon_rules.postmortem import report_runs
from trainmon_rules.report import Report

KNOWLEDGE = Knowledge.load()
BLOOM_LEAD = "the gradient norm rose 1 report before the loss, 4 before its peak"


def reported(tags, **kwargs):
    [run] = report_runs(session(tags, **kwargs), KNOWLEDGE)
    return run


# ------------------------------------------------------------------------------------------- BLOOM-176B
@pytest.mark.parametrize("seed", range(8))
def test_the_spike_of_bloom_is_one_incident_that_the_gradient_announced(seed):
    step, tags = bloom(seed)
    run = reported(tags, step=step)
    [i] = run.incidents
    assert (i.symptom, i.severity, i.state, i.grade) == ("loss-spike", "warning", "resolved", "recovered")
    assert (i.onset_step, i.detected_step) == (GRADIENT_ONSET, GRADIENT_ONSET + 1)
    assert i.evidence["peak step"] == LOSS_PEAK
    assert 31247 <= i.resolved_step <= 31255
    spike = i.precursors[0]
    assert (spike.symptom, spike.onset_step, spike.detected_step) == ("grad-spike", GRADIENT_ONSET, GRADIENT_ONSET + 1)
    assert (spike.lead_steps, spike.lead_reports) == (LOSS_ONSET - GRADIENT_ONSET, 1)
    assert (spike.peak_lead_steps, spike.peak_lead_reports) == (LOSS_PEAK - GRADIENT_ONSET, 4)
    assert spike.lead == BLOOM_LEAD


def test_while_it_goes_on_it_is_the_same_incident_all_along():
    step, tags = bloom()
    seen = []
    for last in (31216, 31218, 31219, 31225, 31235, 31260):
        n = last - FIRST + 1
        [i] = reported({k: v[:n] for k, v in tags.items()}, step=step[:n]).incidents
        seen.append((i.id, i.symptom, i.severity, i.grade))
    assert len({s[0] for s in seen}) == 1
    assert [s[1:] for s in seen] == [
        ("grad-spike", "info", None),
        ("loss-spike", "warning", None),
        ("loss-spike", "warning", None),
        ("loss-spike", "warning", None),
        ("loss-spike", "warning", None),
        ("loss-spike", "warning", "recovered"),
    ]


@pytest.mark.parametrize("form", FORMATS)
def test_both_leads_are_printed_in_every_format(form):
    step, tags = bloom()
    text = render(Report((reported(tags, step=step),)), form)
    assert BLOOM_LEAD in " ".join(text.split())


def test_the_extract_of_the_chronicle_itself(corpus):
    path = corpus / "text/bigscience-workshop__bigscience/tr11-176B_chronicles_extract.log"
    report = replay(path)
    [i] = report.runs[0].incidents
    assert (i.symptom, i.severity, i.grade, i.onset_step) == ("loss-spike", "warning", "recovered", GRADIENT_ONSET)
    assert i.evidence["peak step"] == LOSS_PEAK
    assert i.precursors[0].lead_reports == 4  # among eleven reports its first rise is within the range of the others
    assert "the gradient norm rose 4 reports before the loss" in " ".join(render(report, "text").split())


# ------------------------------------------------------------------------------------------- GLM-130B
def overflowing(seed=0, falls=5, every=2, lead=30, at=300, spikes=True):
    """A scaler that halves its scale again and again; the loss follows `lead` steps after the first fall.

    As in the training notes of GLM-130B, logs/main-log-en.md: the scale falls at about step 33710, the loss breaks out
    at about 33740.
    """
    run = {k: np.array(v) for k, v in base(seed=seed).items() if k != "eval_loss"}
    for k in range(falls):
        run["loss_scale"][at + every * k :] /= 2
    since = np.arange(len(run["loss"]) - at - lead)
    if spikes:
        run["loss"][at + lead :] += 3 * np.exp(-since / 5)
    return run


@pytest.mark.parametrize("seed", range(5))
def test_a_loss_scale_that_led_by_thirty_steps_is_a_precursor_of_the_spike(seed):
    [i] = reported(overflowing(seed)).incidents
    assert (i.symptom, i.severity, i.state) == ("loss-spike", "warning", "resolved")
    assert (i.onset_step, i.detected_step) == (300, 306)  # the fourth fall
    [scale] = i.precursors
    assert (scale.symptom, scale.onset_step, scale.lead_steps, scale.lead_reports) == (
        "loss-scale-collapse",
        300,
        30,
        30,
    )
    assert scale.lead == "the loss scale fell 30 reports before the loss"
    assert scale.summary == "loss_scale fell 5 times, from 65,536 to 2,048"
    assert i.causes[0].cause == "loss scale"
    assert i.routes[0].sheet == "batch-size-and-memory-tradeoffs"


def test_the_scale_alone_is_told_as_what_it_is():
    [i] = reported(overflowing(spikes=False)).incidents
    assert (i.symptom, i.state, i.resolved_step, i.recovery) == (
        "loss-scale-collapse",
        "resolved",
        328,
        "the scale has settled (2,048)",
    )


def test_where_the_loss_diverges_the_outcome_names_it():
    run = overflowing(spikes=False)
    run["loss"][330:] += np.minimum(5.0, 0.3 * np.arange(len(run["loss"]) - 330))
    [i] = reported(run).incidents
    assert (i.symptom, i.severity, i.precursors[0].symptom) == ("divergence", "critical", "loss-scale-collapse")


@pytest.mark.parametrize("falls", [1, 2])
def test_the_usual_rescaling_of_a_healthy_scaler_is_no_herald(falls):
    [i] = reported(overflowing(falls=falls)).incidents
    assert (i.symptom, i.precursors) == ("loss-spike", ())
    assert "loss_scale" not in i.series


# ------------------------------------------------------------------------------------------- in words
def test_leads_are_told_in_reports_and_in_steps_where_those_differ():
    run = overflowing()
    [i] = reported(run, step=np.arange(len(run["loss"])) * 10).incidents
    assert i.precursors[0].lead == "the loss scale fell 30 reports (300 steps) before the loss"
    assert (i.precursors[0].lead_steps, i.precursors[0].lead_reports) == (300, 30)


def test_json_holds_numbers_and_sentence():
    step, tags = bloom()
    report = json.loads(render(Report((reported(tags, step=step),)), "json"))
    p = report["runs"][0]["incidents"][0]["precursors"][0]
    assert (p["lead_reports"], p["peak_lead_reports"], p["peak_lead_steps"], p["lead"]) == (1, 4, 4, BLOOM_LEAD)


def test_a_precursor_of_something_without_a_peak_has_no_lead_to_one():
    run = base()
    for i in range(300, 700):
        run["grad_norm"][i] *= 40
    run["loss"][310:] = [float("nan")] * 390
    [i] = reported(run).incidents
    p = i.precursors[0]
    assert (p.lead, p.peak_lead_steps) == ("the gradient norm rose 10 reports before the loss broke", None)
