"""Monitor: the engine for callbacks and notebooks."""

import math
import random

import trainmon
from trainmon import Monitor, replay
from trainmon_rules.points import chunk


def test_log_yields_what_is_new_and_only_that():
    monitor, rng = Monitor("run"), random.Random(0)
    events = []
    for step in range(200):
        loss = 2 + rng.gauss(0, 0.05) + (3 if 100 <= step < 106 else 0)
        events += monitor.log({"loss": loss, "lr": 1e-3}, step=step)
    assert [(e.event, e.incident.symptom, e.incident.onset_step) for e in events] == [
        ("firing", "loss-spike", 100),
        ("resolved", "loss-spike", 100),
    ]
    assert monitor.close() == []


def test_what_is_firing_ends_with_the_run():
    monitor = Monitor("run")
    for step in range(5):
        monitor.log({"loss": math.nan}, step=step)
    assert [(e.event, e.incident.state) for e in monitor.close()] == [("ended", "ended")]


def test_strings_nested_values_and_text_are_taken_as_a_log_would():
    monitor = Monitor("run")
    events = monitor.log({"train": {"loss": "nan"}, "note": "warm", "flag": True, "grad_norm": None}, step=0)
    assert [e.incident.series for e in events] == [("train/loss",)]


def test_chunks_and_records_are_the_same_engine_as_replay(tmp_path):
    values = [2.0 - i / 100 for i in range(60)] + [math.nan] * 5
    by_record, by_chunk = Monitor("run.jsonl"), Monitor("run.jsonl")
    for i, v in enumerate(values):
        by_record.log({"loss": v}, step=i)
    by_chunk.feed([chunk("loss", range(len(values)), values)])
    log = tmp_path / "run.jsonl"
    log.write_text("".join(f'{{"step": {i}, "loss": {"NaN" if v != v else v}}}\n' for i, v in enumerate(values)))
    incidents = [m.report().runs[0].incidents[0] for m in (by_record, by_chunk)]
    replayed = replay(log).runs[0].incidents[0]
    assert {i.id for i in incidents} == {replayed.id}
    assert {i.detected_step for i in incidents} == {replayed.detected_step}


def test_the_package_offers_its_parts_lazily():
    assert trainmon.__version__
    assert callable(trainmon.replay)
    assert trainmon.Report.__name__ == "Report"


def test_named_sources_wait_for_each_other_and_no_longer():
    monitor = Monitor("run", sources=("train", "val"))
    events = []
    for epoch in range(40):
        events += monitor.log({"loss": 2.0 * 0.9**epoch}, step=epoch, source="train")
        val = 1.0 + 0.8**epoch + 0.05 * max(0, epoch - 12)
        events += monitor.log({"val_loss": val}, step=epoch, source="val")
    assert next((e.event, e.incident.symptom) for e in events) == ("firing", "overfit")
    assert events[0].incident.detected_step < 25
