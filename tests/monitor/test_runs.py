"""discover: from a directory tree to runs and their sources."""

import contextlib
import gzip
import json
import os
import tempfile
from pathlib import Path

import pytest
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

from trainmon import replay
from trainmon.discovery.eventfiles import EventFile, chains, is_event_file, probe
from trainmon.discovery.folders import MAX_DEPTH
from trainmon.discovery.runs import RunSpec, SourceSpec, discover, distinct
from trainmon_rules.errors import BadInput

BEGAN = 1_700_000_000.0


def events(path, first=BEGAN, seconds=100.0, points=11, tag="loss", filler=0):
    """A real event file, written by TensorBoard's own writer at wall times we choose."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as f:
        writer = RecordWriter(f)
        writer.write(Event(wall_time=first, file_version="brain.Event:2").SerializeToString())
        for i in range(points):
            value = Summary.Value(tag=tag, simple_value=2.0 - i / 100)
            time = first + seconds * i / max(1, points - 1)
            writer.write(Event(wall_time=time, step=i, summary=Summary(value=[value])).SerializeToString())
            if filler:
                image = Summary.Value(tag="image", image=Summary.Image(encoded_image_string=bytes(filler)))
                writer.write(Event(wall_time=time, step=i, summary=Summary(value=[image])).SerializeToString())
        writer.flush()
    return path


def lines(path, rows=20, **extra):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps({"step": i, "loss": 2.0 - i / 100, **extra}) + "\n" for i in range(rows)))
    return path


def layout(path):
    """Runs and sources as plain data, files by their names."""
    return {
        run.name: [(s.prefix, s.rank, [p.relative_to(path).as_posix() for p in s.paths]) for s in run.sources]
        for run in discover(str(path))
    }


# ---------------------------------------------------------------------- event files
def test_event_files_that_follow_each_other_are_one_source_in_the_order_they_were_written(tmp_path):
    events(tmp_path / "run/z.tfevents", BEGAN)
    events(tmp_path / "run/a.tfevents", BEGAN + 500)
    events(tmp_path / "run/m.tfevents", BEGAN + 200)
    assert layout(tmp_path) == {"run": [("", 0, ["run/z.tfevents", "run/m.tfevents", "run/a.tfevents"])]}


def test_event_files_written_side_by_side_are_two_sources_of_one_run(tmp_path):
    events(tmp_path / "run/rank0", BEGAN)
    events(tmp_path / "run/rank1", BEGAN + 50)
    events(tmp_path / "run/later", BEGAN + 300)
    assert layout(tmp_path) == {"run": [("", 0, ["run/rank0", "run/later"]), ("", 0, ["run/rank1"])]}


def test_a_marker_inside_the_time_of_another_file_is_no_parallel_writer(tmp_path):
    events(tmp_path / "run/events.out.tfevents.1.host", BEGAN)
    events(tmp_path / "run/events.out.tfevents.2.host.profile-empty", BEGAN + 20, points=0)
    [source] = next(iter(discover(str(tmp_path)))).sources
    assert [p.name for p in source.paths] == ["events.out.tfevents.1.host", "events.out.tfevents.2.host.profile-empty"]
    assert [source.shown(i) for i in range(2)] == [f"run/{p.name}" for p in source.paths]


def test_keras_siblings_are_one_run_with_prefixes(tmp_path):
    events(tmp_path / "keras/train/events.v2", tag="epoch_loss")
    events(tmp_path / "keras/validation/events.v2", tag="epoch_loss")
    assert layout(tmp_path) == {
        "keras": [("train/", 0, ["keras/train/events.v2"]), ("validation/", 0, ["keras/validation/events.v2"])]
    }


def test_an_estimators_eval_directory_belongs_to_the_run_above_it(tmp_path):
    events(tmp_path / "model/events.1")
    events(tmp_path / "model/eval/events.1")
    events(tmp_path / "model/test_final/events.1")
    assert layout(tmp_path) == {
        "model": [
            ("", 0, ["model/events.1"]),
            ("eval/", 0, ["model/eval/events.1"]),
            ("test_final/", 0, ["model/test_final/events.1"]),
        ]
    }


def test_experiments_that_happen_to_be_called_train_stay_runs_of_their_own(tmp_path):
    for name in ("train", "train2", "train10"):
        events(tmp_path / "detect" / name / "events.1")
        lines(tmp_path / "detect" / name / "results.csv")
    assert list(layout(tmp_path)) == ["detect/train", "detect/train2", "detect/train10"]


def test_a_validation_directory_alone_keeps_its_name_as_prefix(tmp_path):
    file = events(tmp_path / "validation/events.1")
    assert [s.prefix for s in discover(str(tmp_path / "validation"))[0].sources] == ["validation/"]
    assert [s.prefix for s in discover(str(file))[0].sources] == ["validation/"]


def test_torch_hyperparameter_directories_and_hugging_face_runs_belong_to_the_run_above(tmp_path):
    events(tmp_path / "torch/events.1")
    events(tmp_path / "torch/1700000100.25/events.1", BEGAN + 100, points=1)
    lines(tmp_path / "hf/trainer_log.jsonl")
    events(tmp_path / "hf/runs/Nov14_host/events.1")
    events(tmp_path / "hf/runs/Nov15_host/events.1", BEGAN + 90_000)
    assert layout(tmp_path) == {
        "hf": [
            ("", 0, ["hf/runs/Nov14_host/events.1", "hf/runs/Nov15_host/events.1"]),
            ("", 1, ["hf/trainer_log.jsonl"]),
        ],
        "torch": [("", 0, ["torch/events.1", "torch/1700000100.25/events.1"])],
    }


def test_what_is_framed_alike_but_holds_no_events_is_no_event_file(tmp_path):
    with (tmp_path / "data").open("wb") as f:
        RecordWriter(f).write(b"\x0a\x80\x01" + bytes(200))  # a TFRecord of tf.train.Example
    assert not is_event_file((tmp_path / "data").read_bytes())


def test_a_flipped_bit_in_the_first_header_hides_no_event_file(tmp_path):
    path = events(tmp_path / "events.out.tfevents.1600000000.host")
    broken = bytearray(path.read_bytes())
    assert is_event_file(bytes(broken))
    broken[0] ^= 1
    broken[12] ^= 1
    path.write_bytes(broken)
    assert is_event_file(bytes(broken))
    assert probe(path, bytes(broken)) == EventFile(path, 1.6e9, BEGAN + 100)


@pytest.mark.parametrize("filler", [0, 100_000])
def test_the_last_wall_time_is_found_from_the_end(tmp_path, filler):
    path = events(tmp_path / "events", seconds=1000.0, filler=filler)
    head = path.read_bytes()[:65536]
    found = probe(path, head)
    assert (found.first, found.last) == (BEGAN, BEGAN + 1000)
    with path.open("r+b") as f:  # a record cut in the middle of its payload still has its wall time
        f.truncate(path.stat().st_size - 10)
    assert probe(path, head).last == BEGAN + 1000
    with path.open("ab") as f:
        f.write(bytes(300_000))
    assert probe(path, head).last == BEGAN + 1000
    assert chains([found]) == [[found]]


# ---------------------------------------------------------------------- sources that tell the same run
def test_logs_that_tell_the_same_run_are_ranked_the_richest_first(tmp_path):
    events(tmp_path / "v0/events.1")
    for name in ("trainer_state.json", "metrics.csv", "metrics.jsonl", "log.txt"):
        lines(tmp_path / "v0" / name)
    assert layout(tmp_path)["v0"] == [
        ("", 0, ["v0/events.1"]),
        ("", 1, ["v0/metrics.jsonl"]),
        ("", 2, ["v0/metrics.csv"]),
        ("", 3, ["v0/trainer_state.json"]),
        ("", 4, ["v0/log.txt"]),
    ]


def test_the_trainer_state_that_tells_most_is_taken(tmp_path):
    for step in (500, 1000):
        lines(tmp_path / f"out/checkpoint-{step}/trainer_state.json")
    assert layout(tmp_path) == {"out": [("", 0, ["out/checkpoint-1000/trainer_state.json"])]}
    (tmp_path / "out/trainer_state.json").write_text(
        '{"global_step": 1000, "loss": 1}\n{"global_step": 1001, "loss": 1}\n'
    )
    assert layout(tmp_path) == {"out": [("", 0, ["out/trainer_state.json"])]}


def test_a_trainer_that_was_started_again_continues_its_time_stamped_log(tmp_path):
    for name in ("20240102_000000.log.json", "20240101_000000.log.json"):
        lines(tmp_path / "work" / name)
    assert layout(tmp_path) == {"work": [("", 0, ["work/20240101_000000.log.json", "work/20240102_000000.log.json"])]}


def test_other_logs_are_runs_of_their_own_beside_it(tmp_path):
    for name in ("a", "b", "c10", "c9"):
        lines(tmp_path / f"{name}.jsonl")
    lines(tmp_path / "deep/er/metrics.jsonl")
    assert list(layout(tmp_path)) == ["a.jsonl", "b.jsonl", "c9.jsonl", "c10.jsonl", "deep/er"]


def test_mlflow_files_of_one_run_are_one_run(tmp_path):
    metrics = tmp_path / "mlruns/0/abc/metrics"
    for tag in ("loss", "val/loss"):
        file = metrics / tag
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"170000000{i}000 {2 - i / 10} {i}\n" for i in range(5)))
    (tmp_path / "mlruns/0/abc/params").mkdir()
    (tmp_path / "mlruns/0/abc/params/lr").write_text("0.001")
    assert layout(tmp_path / "mlruns") == {
        "0/abc": [("", 0, ["0/abc/metrics/loss"]), ("val/", 0, ["0/abc/metrics/val/loss"])]
    }


# ---------------------------------------------------------------------- what is no log
def test_files_that_are_no_log_are_passed_over(tmp_path):
    lines(tmp_path / "log.jsonl")
    lines(tmp_path / ".hidden/log.jsonl")
    lines(tmp_path / "__pycache__/log.jsonl")
    (tmp_path / "README.md").write_text("# loss: 2.0\n")
    (tmp_path / "config.json").write_text('{"lr": 0.001, "loss": 3}')
    (tmp_path / "model.safetensors").write_bytes(b'{"step": 1, "loss": 2}\n' * 9)
    (tmp_path / "scores").write_text('{"loss": 0.5, "accuracy": 0.9}')
    (tmp_path / "dataset.jsonl").write_text('{"prompt": "a", "id": 7}\n{"prompt": "b", "id": 9}\n')
    (tmp_path / "state.pickled").write_bytes(bytes(range(256)))
    (tmp_path / "empty.jsonl").write_text("")
    os.mkfifo(tmp_path / "pipe")
    assert list(layout(tmp_path)) == [tmp_path.name]
    assert replay(tmp_path).errors == ()


def test_links_are_never_followed(tmp_path):
    outside = lines(tmp_path / "outside/secret.jsonl")
    inside = tmp_path / "root"
    lines(inside / "run-1/metrics.jsonl")
    (inside / "latest").symlink_to("run-1")
    (inside / "loop").symlink_to(inside)
    (inside / "stolen").symlink_to(outside.parent)
    (inside / "stolen.jsonl").symlink_to(outside)
    assert list(layout(inside)) == ["run-1"]
    (tmp_path / "only").mkdir()
    (tmp_path / "only/stolen").symlink_to(outside.parent)
    with pytest.raises(BadInput, match=r"holds no training log; links in it are not followed"):
        discover(str(tmp_path / "only"))


def test_the_depth_is_bounded(tmp_path):
    lines(tmp_path.joinpath(*["d"] * MAX_DEPTH, "metrics.jsonl"))
    assert len(layout(tmp_path)) == 1
    lines(tmp_path.joinpath(*["e"] * (MAX_DEPTH + 1), "metrics.jsonl"))
    assert len(layout(tmp_path)) == 1


def test_a_directory_without_logs_says_so_and_the_others_are_read(tmp_path):
    (tmp_path / "empty").mkdir()
    report = replay(tmp_path / "empty", lines(tmp_path / "good.jsonl"))
    assert [r.run for r in report.runs] == ["good.jsonl"]
    assert [(e.error, e.fatal) for e in report.errors] == [("holds no training log", True)]


# ---------------------------------------------------------------------- names
def test_names_are_relative_and_safe_to_show(tmp_path, monkeypatch):
    odd = os.fsencode(tmp_path) + b"/\xff\x1b[31m.jsonl"
    Path(os.fsdecode(odd)).write_bytes(b'{"step": 1, "loss": 2}\n')
    [run] = discover(str(tmp_path))
    assert run.name == "\ufffd\ufffd[31m.jsonl"
    monkeypatch.chdir(tmp_path)
    lines(tmp_path / "here/metrics.jsonl")
    lines(tmp_path / "metrics.jsonl")
    assert [r.name for r in discover(".")] == [tmp_path.name, "\ufffd\ufffd[31m.jsonl", "here"]


def test_equal_names_from_several_roots_are_told_apart(tmp_path):
    a, b = lines(tmp_path / "a/log.jsonl"), lines(tmp_path / "b/log.jsonl")
    assert [r.run for r in replay(a, b).runs] == ["a/log.jsonl", "b/log.jsonl"]
    source = (SourceSpec("x", (a,)),)
    twice = [RunSpec("x", source, "r"), RunSpec("x", source, "r"), RunSpec("y", source)]
    assert [r.name for r in distinct(twice)] == ["r/x", "r/x (2)", "y"]


# ---------------------------------------------------------------------- reading them
def test_a_file_that_breaks_off_is_named_and_the_rest_of_the_chain_is_read(tmp_path):
    for day, start in (("1", 0), ("2", 20)):
        rows = [{"step": start + i, "loss": 2.0} for i in range(20)]
        text = "".join(json.dumps(r) + "\n" for r in rows).encode()
        (tmp_path / f"2024010{day}_000000.json").write_bytes(text + b"{broken}\n")
    packed = tmp_path / "20231231_000000.json.gz"
    packed.write_bytes(gzip.compress(b'{"step": 0, "loss": 3.0}\n{"step": 1, "loss": 3.0}\n')[:-8] + b"garbage!")
    report = replay(tmp_path)
    [run] = report.runs
    assert run.last_step == 39
    named = [(e.source, e.line, e.fatal) for e in report.errors]
    assert ("20240101_000000.json", 21, False) in named
    assert ("20240102_000000.json", 21, False) in named
    assert ("20231231_000000.json.gz", None, True) in named


def test_each_run_of_a_chain_names_the_files_that_hold_it(tmp_path):
    for day, start in ((1, 0), (2, 20), (3, 0)):  # begun, continued, begun again
        rows = [{"step": start + i, "loss": 2.0} for i in range(20)]
        (tmp_path / f"2024010{day}_000000.json").write_text("".join(json.dumps(r) + "\n" for r in rows))
    first, second = replay(tmp_path).runs
    assert (first.run, first.sources) == (tmp_path.name, ("20240101_000000.json", "20240102_000000.json"))
    assert (second.run, second.sources) == (f"{tmp_path.name}#2", ("20240103_000000.json",))


def test_a_log_without_a_number_is_a_run_of_which_nothing_can_be_said(tmp_path):
    (tmp_path / "log.jsonl").write_text('{"note": "nothing yet"}\n')
    report = replay(tmp_path / "log.jsonl")
    assert [(r.run, r.sources, r.points, r.verdict) for r in report.runs] == [
        ("log.jsonl", ("log.jsonl",), 0, "insufficient-data")
    ]
    assert report.errors == ()


@pytest.fixture
def unprivileged():
    """A directory of our own, and the rights of somebody who is not root (root may read everything)."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        root = os.geteuid() == 0
        try:
            if root:
                os.seteuid(65534)
            yield Path(folder)
        finally:
            if root:
                os.seteuid(0)
            for path in Path(folder).rglob("*"):
                with contextlib.suppress(OSError):
                    path.chmod(0o700)


def test_what_may_not_be_read_is_an_error_and_the_others_go_on(unprivileged):
    lines(unprivileged / "good.jsonl")
    lines(unprivileged / "locked.jsonl").chmod(0)
    lines(unprivileged / "closed/log.jsonl")
    (unprivileged / "closed").chmod(0)
    report = replay(unprivileged)
    assert [r.run for r in report.runs] == ["good.jsonl"]
    assert {(e.source, e.fatal) for e in report.errors} == {("locked.jsonl", True), ("closed", True)}
    assert all("permission denied" in e.error for e in report.errors)


def test_an_unreadable_event_file_is_an_error_of_its_run(unprivileged):
    events(unprivileged / "run/events.out.tfevents.1.host")
    events(unprivileged / "run/events.out.tfevents.2.host").chmod(0)
    [run] = discover(str(unprivileged))
    assert [s.name for s in run.sources] == ["run/events.out.tfevents.1.host", "run/events.out.tfevents.2.host"]


def test_of_sources_that_tell_the_same_run_the_richest_speaks(tmp_path):
    rows = [{"step": i, "loss": 2.0 if i < 30 else float("nan")} for i in range(40)]
    grads = [
        {"step": i, "train/loss": r["loss"], "grad_norm": 1.0 if i < 20 else float("inf")} for i, r in enumerate(rows)
    ]
    for name, records in (("metrics.jsonl", rows), ("log.txt", grads)):
        (tmp_path / name).write_text("".join(json.dumps(r) + "\n" for r in records))
    [run] = replay(tmp_path).runs
    assert run.sources == ("metrics.jsonl", "log.txt")
    told = {tag for i in run.incidents for tag in i.series}
    assert told == {"loss", "grad_norm"}  # not train/loss: that is the loss again


def test_a_source_that_ended_early_leaves_the_word_to_the_next(tmp_path):
    lines(tmp_path / "metrics.jsonl", rows=20)
    rows = [{"step": i, "train/loss": 2.0 if i < 30 else float("nan")} for i in range(40)]
    (tmp_path / "log.txt").write_text("".join(json.dumps(r) + "\n" for r in rows))
    [run] = replay(tmp_path).runs
    assert [i.series for i in run.incidents] == [("train/loss",)]


def test_the_event_files_of_the_corpus(corpus):
    found = {r.name: r.sources for r in discover(str(corpus / "tfevents"))}
    assert len(found) == 24
    [many] = found["harel147__OffTheDip-Surf-Conditions-Analysis"]
    assert len(many.paths) == 9
    assert [s.prefix for s in found["tensorflow__tensorboard/functionaltests"]] == ["", "eval/"]
    assert [(s.prefix, len(s.paths)) for s in found["Wardat-ISU__DeepLocalize"]] == [("train/", 2), ("validation/", 1)]


def test_keras_siblings_are_read_as_one_run_whose_roles_come_from_the_directory(tmp_path):
    events(tmp_path / "train/events.v2", tag="epoch_loss")
    events(tmp_path / "validation/events.v2", tag="epoch_loss")
    [run] = replay(tmp_path).runs
    assert run.roles == {"train_loss": ["train/epoch_loss"], "val_loss": ["validation/epoch_loss"]}
