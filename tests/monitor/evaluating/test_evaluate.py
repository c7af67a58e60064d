"""A set of traces in which every kind of hit, miss and false alarm occurs; each figure is worked out by hand."""

import json

import pytest

from tests.monitor.evaluating.traceset import trace, write_truth
from trainmon.evaluating import evaluate
from trainmon.evaluating.intervals import wilson
from trainmon_rules.errors import BadInput
from trainmon_rules.evaluation import Estimate

GRADIENT, OVERFITTING = ["gradient-management"], ["overfitting-prevention"]
NAN = {"cause": "bad-batch", "symptoms": ["nonfinite"]}
OVERFIT = {"cause": "overfitting", "symptoms": ["overfit"]}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """Write the traces. The NaN from step 200 on is told at step 200: critical; from 396 on: a warning."""
    out = tmp_path_factory.mktemp("traces")
    for seed in (0, 1):  # found, 10 steps late
        trace(out, "late", "late", seed=seed, nan_from=200, onset=190, routes=GRADIENT, **NAN)
    trace(out, "asked", "asked", nan_from=200, onset=199, routes=OVERFITTING, questions=["precision"], **NAN)
    trace(out, "misled", "misled", nan_from=200, onset=196, routes=OVERFITTING, **NAN)
    trace(out, "early", "early", nan_from=200, onset=202, **NAN)  # less than a report early
    trace(out, "silent", "silent", onset=100, **OVERFIT)  # missed: nothing is told
    trace(out, "before", "before", nan_from=200, onset=300, **NAN)  # missed, and a false alarm
    trace(out, "other", "other", nan_from=200, onset=100, **OVERFIT)  # missed, and a false alarm
    trace(out, "tolerated", "tolerated", nan_from=200, onset=100, also=["nonfinite"], **OVERFIT)  # missed
    for seed in (0, 1):
        trace(out, "quiet", "quiet", seed=seed)
    trace(out, "paged", "paged", nan_from=200)
    trace(out, "warned", "warned", nan_from=396)
    trace(out, "excused", "excused", nan_from=396, also=["nonfinite"])
    trace(out, "labels", "labels", nan_from=200, onset=0, traceless="labels aren't logged", cause="label-noise")
    trace(out, "for-tuning", "for-tuning", half="tuning", nan_from=200, onset=196, **NAN)
    return out


@pytest.fixture(scope="module")
def found(root):
    return evaluate(root)


def test_each_run_is_what_it_was_made_for(found):
    outcomes = {t.trace.removesuffix("/seed-0"): t.outcome for t in found.trials}
    assert outcomes == {
        "late": "found", "late/seed-1": "found", "asked": "found", "misled": "found", "early": "found",
        "silent": "missed", "before": "missed", "other": "missed", "tolerated": "missed",
        "quiet": "quiet", "quiet/seed-1": "quiet", "paged": "disturbed", "warned": "disturbed", "excused": "quiet",
        "labels": "traceless",
    }  # fmt: skip
    judged = {t.scenario: [(a.symptom, a.severity, a.detected_step, a.judged) for a in t.told] for t in found.trials}
    assert judged["before"] == judged["other"] == judged["paged"] == [("nonfinite", "critical", 200, "false")]
    assert judged["tolerated"] == [("nonfinite", "critical", 200, "tolerated")]
    assert judged["warned"] == [("nonfinite", "warning", 396, "false")]
    assert judged["silent"] == []


def test_recall_and_precision(found):
    t = found.total
    assert (found.half, found.runs, t.runs, t.families, t.found, t.false_alarms) == ("test", 15, 9, 8, 5, 4)
    assert t.recall.value == pytest.approx(5 / 9)
    assert t.precision.value == pytest.approx(5 / 9)  # false: before, other, paged, warned
    assert t.recall.method == t.precision.method == "bootstrap"
    assert 0 < t.recall.low < 5 / 9 < t.recall.high < 1


def test_delays(found):
    # steps 10, 10, 1, 4, 0; rows after the onset: 192, 196 and 200; 200; 200; 200; none
    t = found.total
    assert (t.delay_steps.median.value, t.delay_steps.p90.value) == (4, 10)
    assert (t.delay_rows.median.value, t.delay_rows.p90.value) == (1, 3)
    assert (t.lead.value, t.lead_runs) == (0, 5)
    early = next(r for r in found.trials if r.trace == "early/seed-0")
    assert (early.delay_steps, early.delay_rows, early.lead) == (0, 0, 0)


def test_routes_and_questions(found):
    t = found.total
    assert (t.routed, t.by_question) == (4, 1)  # late twice, asked, misled; early names no route
    assert t.route.value == pytest.approx(3 / 4)
    assert t.asked == Estimate(1.0, *wilson(1.0, 3), "wilson")  # three families, all asking
    assert {r.trace: r.route_right for r in found.trials if r.route_right is not None} == {
        "late/seed-0": True, "late/seed-1": True, "asked/seed-0": True, "misled/seed-0": False,
    }  # fmt: skip


def test_healthy_runs(found):
    q = found.quiet
    assert (q.runs, q.families, q.steps) == (5, 4, 2000)
    assert (q.criticals, q.warnings, q.infos) == (1, 1, 0)
    assert q.critical_per_run.value == q.warning_per_run.value == pytest.approx(0.2)
    assert q.critical_per_1000_steps.value == pytest.approx(0.5)


def test_a_row_a_symptom(found):
    rows = {d.symptom: d for d in found.symptoms}
    assert list(rows) == ["nonfinite", "overfit"]
    n, o = rows["nonfinite"], rows["overfit"]
    assert (n.runs, n.found, n.false_alarms) == (6, 5, 4)
    assert n.recall.value == pytest.approx(5 / 6)
    assert n.precision.value == pytest.approx(5 / 9)
    assert (o.runs, o.found, o.false_alarms) == (3, 0, 0)
    assert o.recall == Estimate(0.0, *wilson(0.0, 3), "wilson")
    assert o.precision == Estimate()
    assert o.delay_rows.median == Estimate()


def test_a_peer_with_our_very_alarms_is_neither_behind_nor_ahead(found):
    p = next(p for p in found.peers if p.peer == "Keras TerminateOnNaN")
    assert (p.own.runs, p.own.found, p.own.our_found) == (6, 5, 5)
    assert p.own.false_alarms_per_run.value == p.own.our_false_alarms_per_run.value == pytest.approx(0.4)
    assert (p.overall.runs, p.overall.found) == (9, 5)
    assert p.overall.precision == p.overall.our_precision
    assert (p.compared, p.held, p.ahead) == (True, True, False)


def test_a_peer_that_goes_on_over_the_onset_is_heard_there(found):
    p = next(p for p in found.peers if p.peer == "Lightning Fabric SpikeDetection")
    assert (p.own.found, p.own.our_found) == (6, 5)  # the run `before` too
    assert (p.held, p.ahead) == (False, False)


def test_a_peer_that_finds_nothing_is_listed_only(found):
    p = next(p for p in found.peers if p.peer == "Lightning EarlyStopping")  # there is no validation loss
    assert (p.compared, p.own.runs, p.own.found) == (False, 9, 0)
    assert len(found.peers) == 13


def test_a_fault_without_a_trace_is_told_apart(found):
    [t] = found.traceless
    assert (t.scenario, t.why, t.runs, t.said) == ("labels", "labels aren't logged", 1, {"nonfinite": 1})


def test_bars_say_what_is_not_met(found):
    met = {b.what: (b.value, b.met) for b in found.bars}
    assert met["recall"] == (pytest.approx(5 / 9), False)
    assert met["critical false alarms a healthy run"] == (0.2, False)
    assert met["peers that find less over all"][1] is False


def test_the_halves_are_apart_and_all_is_both(root):
    tuning = evaluate(root, "tuning")
    assert [t.trace for t in tuning.trials] == ["for-tuning/seed-0"]
    assert tuning.total.recall.value == 1.0
    assert tuning.quiet.critical_per_run == Estimate()
    assert {b.what: b.met for b in tuning.bars}["warning false alarms a healthy run"] is None
    assert evaluate(root, "all").total.found == 6


def test_progress_counts_every_trace(root):
    told = []
    evaluate(root, settings=None, progress=lambda done, total: told.append((done, total)))
    assert told == [(n, 15) for n in range(1, 16)]


def test_it_is_strict_json_and_the_same_again(root, found):
    text = json.dumps(found.as_dict(), allow_nan=False)
    assert json.dumps(evaluate(root).as_dict(), allow_nan=False) == text
    assert json.loads(text)["schema"] == "trainmon.evaluation/1"


def test_a_bad_trace_is_an_error_and_the_rest_is_scored(tmp_path):
    trace(tmp_path, "good", "good", nan_from=200, onset=196, **NAN)
    (tmp_path / "bad-truth").mkdir()
    (tmp_path / "bad-truth" / "truth.json").write_text("{")
    write_truth(tmp_path / "no-log", "no-log", "no-log")
    found = evaluate(tmp_path)
    assert found.total.recall.value == 1.0
    assert [e.source for e in found.errors] == ["bad-truth/truth.json", "no-log"]


def test_nothing_to_score_is_said(tmp_path):
    trace(tmp_path, "t", "t", half="tuning")
    with pytest.raises(BadInput, match="no trace of the test half, but 1 of the other"):
        evaluate(tmp_path)
    write_truth(tmp_path / "u", "u", "u")
    with pytest.raises(BadInput, match="none of its 1 traces can be used"):
        evaluate(tmp_path / "u")
