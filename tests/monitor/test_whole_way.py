"""From real files to verdicts: resumes, siblings, twins, appended runs."""

import json
import math
import random

from tensorboard.compat.proto.event_pb2 import Event

from tests.make_samples import _record, _scalar
from trainmon import replay


def learning(step, rng, floor=0.5):
    return floor + 3 * math.exp(-step / 200) + rng.gauss(0, 0.02)


def events(path, points, start=1.7e9):
    """Write (step, tag, value) as an event file, two seconds a step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(_scalar(start + 2 * k, step, tag, v) for k, (step, tag, v) in enumerate(points)))
    return path


def test_a_clean_resume_is_a_second_attempt_and_raises_nothing(tmp_path):
    rng = random.Random(0)
    first = [(s, "train/loss", learning(s, rng)) for s in range(500)]
    second = [(s, "train/loss", learning(s, rng)) for s in range(450, 1000)]
    events(tmp_path / "run" / "events.out.tfevents.1700000000.a", first)
    events(tmp_path / "run" / "events.out.tfevents.1700009000.a", second, 1.7e9 + 9000)
    [run] = replay(tmp_path / "run").runs
    assert (run.attempts, run.verdict, run.first_step, run.last_step) == (2, "healthy", 0, 999)
    assert [i for i in run.incidents if i.severity != "info"] == []


def test_an_incident_whose_steps_were_trained_again_is_marked(tmp_path):
    rng = random.Random(1)
    rows = [{"step": s, "loss": learning(s, rng) if s < 480 else math.nan} for s in range(500)]
    rows += [{"step": s, "loss": learning(s, rng)} for s in range(400, 900)]
    log = tmp_path / "run.jsonl"
    log.write_text("".join(json.dumps(r) + "\n" for r in rows))
    [run] = replay(log).runs
    [nan] = [i for i in run.incidents if i.symptom == "nonfinite"]
    assert (nan.attempt, nan.superseded, run.attempts) == (1, True, 2)


def test_keras_siblings_are_one_run_and_overfit_is_seen_across_them(tmp_path):
    rng = random.Random(2)
    train = [(e, "epoch_loss", 0.02 + 2 * math.exp(-e / 8) + rng.gauss(0, 0.004)) for e in range(50)]
    curve = [0.5 + 1.5 * math.exp(-e / 6) + 0.03 * max(0, e - 15) for e in range(50)]
    val = [(e, "epoch_loss", v + rng.gauss(0, 0.01)) for e, v in enumerate(curve)]
    events(tmp_path / "run" / "train" / "events.out.tfevents.1700000000.a.v2", train)
    events(tmp_path / "run" / "validation" / "events.out.tfevents.1700000000.b.v2", val, 1.7e9 + 1)
    [run] = replay(tmp_path / "run").runs
    assert run.roles["train_loss"] == ["train/epoch_loss"]
    assert run.roles["val_loss"] == ["validation/epoch_loss"]
    assert {i.symptom for i in run.incidents if i.severity != "info"} == {"overfit"}


def test_a_twin_on_the_samples_axis_is_no_restart_and_no_second_loss(tmp_path):
    rng = random.Random(3)
    points = []
    for s in range(1, 400):
        loss = learning(s, rng)
        points += [(s, "lm loss", loss), (s * 256, "lm loss vs samples", loss)]
    [run] = replay(events(tmp_path / "events.out.tfevents.1.a", points)).runs
    assert (run.attempts, run.roles["train_loss"]) == (1, ["lm loss"])


def test_runs_appended_to_one_file_are_told_apart(tmp_path):
    rng = random.Random(4)
    rows = [{"step": s, "loss": learning(s, rng)} for _ in range(3) for s in range(0, 300, 10)]
    log = tmp_path / "all.jsonl"
    log.write_text("".join(json.dumps(r) + "\n" for r in rows))
    assert [r.run for r in replay(log).runs] == ["all.jsonl", "all.jsonl#2", "all.jsonl#3"]


def test_files_that_tell_the_same_run_are_one_run_with_one_incident(tmp_path):
    rng = random.Random(5)
    values = [(s, learning(s, rng) if s < 400 else math.nan) for s in range(500)]
    events(tmp_path / "run" / "events.out.tfevents.1700000000.a", [(s, "loss", v) for s, v in values])
    rows = "step,loss\n" + "".join(f"{s},{v}\n" for s, v in values[::10])
    (tmp_path / "run" / "metrics.csv").write_text(rows)
    state = {"log_history": [{"step": s, "loss": v, "epoch": s / 100} for s, v in values[::50]], "max_steps": 500}
    (tmp_path / "run" / "checkpoint-500").mkdir()
    (tmp_path / "run" / "checkpoint-500" / "trainer_state.json").write_text(json.dumps(state))
    [run] = replay(tmp_path / "run").runs
    assert len(run.sources) == 3
    assert [(i.symptom, i.onset_step) for i in run.incidents] == [("nonfinite", 400)]


def test_a_file_without_scalars_is_read_quietly(tmp_path):
    empty = tmp_path / "events.out.tfevents.1.a"
    empty.write_bytes(_record(Event(wall_time=1.7e9, file_version="brain.Event:2")))
    report = replay(empty)
    assert [(r.verdict, r.points) for r in report.runs] == [("insufficient-data", 0)]
    assert report.errors == ()
