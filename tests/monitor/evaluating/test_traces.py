"""Traces read from files: the engine's incidents, steps counted on over resumes, the peers' alarms joined."""

import pytest

from tests.monitor.evaluating.traceset import losses, row, trace, write_log, write_truth
from trainmon.evaluating.alarms import Alarm, joined
from trainmon.evaluating.traces import find_traces, read_trace, truths
from trainmon_reference.peers import PEERS
from trainmon_reference.peers import Alarm as PeerAlarm
from trainmon_rules.errors import BadInput
from trainmon_rules.state import Settings

SETTINGS = Settings.default()
ALL = ("divergence",)


def read(root):
    [(folder, name, labelled)], [] = truths(root, find_traces(root))
    return read_trace(folder, name, labelled, SETTINGS)


def test_a_trace_is_what_the_engine_and_the_peers_say_of_its_log(tmp_path):
    trace(tmp_path, "nan", "f", nan_from=200, cause="bad-batch", onset=196, symptoms=["nonfinite"])
    found = read(tmp_path)
    assert found.name == "nan/seed-0"
    assert (found.interval, found.steps, found.since, found.nonfinite) == (4, 400, 192, 200)
    assert found.rows.tolist() == list(range(4, 401, 4))
    assert found.ours == (Alarm(("nonfinite",), "critical", 200, "gradient-management", ("precision",)),)
    assert set(found.peers) == {p.name for p in PEERS}
    assert found.peers["Keras TerminateOnNaN"] == (Alarm(("nonfinite",), "alarm", 200),)
    assert found.peers["SageMaker VanishingGradient"] == ()


def test_a_trace_may_be_given_itself(tmp_path):
    folder = trace(tmp_path, "quiet", "f")
    assert read(folder).name == "seed-0"
    assert read(folder).ours == ()


def test_a_resume_is_counted_on_from_where_it_stopped(tmp_path):
    points = list(losses(0))
    again = [row(s, float("nan") if s >= 260 else v) for s, v in points if s >= 204]
    write_log(tmp_path / "r", [*(row(*p) for p in points if p[0] <= 300), *again])
    write_truth(tmp_path / "r", "r", "f", cause="bad-batch", onset=300, symptoms=["nonfinite"])
    found = read(tmp_path)
    # step 204 comes again after step 300 and counts as 304: 100 more, for all that follows
    assert found.rows.tolist() == list(range(4, 501, 4))
    assert [(a.step, a.symptoms[0]) for a in found.ours if a.severity == "critical"] == [(360, "nonfinite")]
    assert found.nonfinite == 360
    assert found.peers["Keras TerminateOnNaN"] == (Alarm(("nonfinite",), "alarm", 360),)


def test_a_run_that_starts_over_is_counted_on_too(tmp_path):
    fresh = [row(*p) for p in losses(1, nan_from=100)]
    write_log(tmp_path / "r", [*(row(*p) for p in losses(0)), *fresh])
    write_truth(tmp_path / "r", "r", "f", cause="bad-batch", onset=400, symptoms=["nonfinite"])
    found = read(tmp_path)
    assert found.rows.tolist() == list(range(4, 801, 4))
    assert (500, "nonfinite") in [(a.step, a.symptoms[0]) for a in found.ours]
    assert found.nonfinite == 500


def test_validation_rows_are_rows_of_the_log(tmp_path):
    rows = [row(s, v) for s, v in losses(0)]
    rows.insert(50, {"step": 202, "val_loss": 2.5})
    write_log(tmp_path / "r", rows)
    write_truth(tmp_path / "r", "r", "f")
    assert 202 in read(tmp_path).rows.tolist()


def test_components_speak_for_a_loss_without_a_total(tmp_path):
    rows = [{"step": s, "train/box_loss": v, "train/cls_loss": v} for s, v in losses(0, nan_from=200)]
    write_log(tmp_path / "r", rows)
    write_truth(tmp_path / "r", "r", "f")
    found = read(tmp_path)
    assert found.nonfinite == 200
    assert found.peers["Keras TerminateOnNaN"] == (Alarm(("nonfinite",), "alarm", 200),)


def test_the_steps_planned_come_from_the_log(tmp_path):
    loss = [1.0] * 100 + [3.0] * 5  # a spike for KillLossSpike's window of 100; 5 % of 4000 steps are 200
    for name, config in (("short", {"total_steps": 105}), ("long", {"total_steps": 4000})):
        write_log(tmp_path / name, [row(i, v) for i, v in enumerate(loss, 1)], config)
        write_truth(tmp_path / name, name, "f", cause="x", onset=90, symptoms=["loss-spike"])
    assert [a.step for a in read(tmp_path / "short").peers["llm-foundry KillLossSpike"]] == [105]
    assert read(tmp_path / "long").peers["llm-foundry KillLossSpike"] == ()


# ------------------------------------------------------------------------------- joining a peer's alarms
def test_alarms_of_one_kind_that_follow_each_other_are_one():
    alarms = [PeerAlarm(s, ALL) for s in (100, 150, 200, 251)]
    assert [a.step for a in joined(alarms, 1, -5)] == [100, 251]  # 50 steps, or 8 reports
    assert [a.step for a in joined(alarms, 10, -5)] == [100]


def test_alarms_of_two_kinds_are_two():
    alarms = [PeerAlarm(100, ALL), PeerAlarm(101, ("nonfinite",)), PeerAlarm(102, ALL)]
    assert [(a.step, a.symptoms) for a in joined(alarms, 1, -5)] == [(100, ALL), (101, ("nonfinite",))]


def test_one_that_goes_on_over_the_onset_is_told_anew_there():
    alarms = [PeerAlarm(s, ALL) for s in (100, 110, 120, 130)]
    assert [a.step for a in joined(alarms, 1, 115)] == [100, 120]


# ------------------------------------------------------------------------------------------- bad traces
def test_what_is_no_folder_or_holds_no_trace_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    for path, word in ((tmp_path / "gone", "no such folder"), (tmp_path / "file", "no folder"), (tmp_path, "no trace")):
        with pytest.raises(BadInput, match=word):
            find_traces(path)


def test_a_trace_without_a_log_or_with_nothing_in_it_is_refused(tmp_path):
    write_truth(tmp_path / "a", "a", "f")
    with pytest.raises(BadInput, match="no training log"):
        read(tmp_path / "a")
    write_log(tmp_path / "b", [{"step": 1, "note": "hello"}] * 5)
    write_truth(tmp_path / "b", "b", "f")
    with pytest.raises(BadInput):
        read(tmp_path / "b")
