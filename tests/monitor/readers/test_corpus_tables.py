"""Every JSON, CSV and MLflow file of the corpus is recognised, and gives as many points as a naive count."""

import csv
import json
import math
from itertools import pairwise

import pytest
from reading import Result

from trainmon.readers import HEAD, sniff

FOLDERS = ("csv", "jsonl", "trainer_state", "wandb_history", "other")


def files(corpus):
    return [p for folder in FOLDERS for p in sorted((corpus / folder).rglob("*")) if p.is_file()]


def open_and_read(path, size=None):
    data = path.read_bytes()
    reader = sniff(path.name, data[:HEAD])
    size = size or len(data)
    return reader.format, Result(
        reader, [*(reader.feed(data[i : i + size]) for i in range(0, len(data), size)), reader.finish()]
    )


def test_every_file_is_read_whatever_the_pieces(corpus):
    for path in files(corpus):
        form, whole = open_and_read(path)
        assert open_and_read(path, 997) == (form, whole), path
        conflict = [p for p in whole.problems if "conflict" in p.error]
        assert whole.problems == conflict, path
        settings_only = "run-metrics" in path.name
        assert (whole.count > 0) != settings_only, path


def test_formats(corpus):
    forms = {str(p.relative_to(corpus)): open_and_read(p)[0] for p in files(corpus)}
    for name, form in forms.items():
        folder = name.split("/")[0]
        expected = {
            "csv": "table",
            "jsonl": "jsonl",
            "trainer_state": "json",
            "wandb_history": "jsonl",
            "other": "mlflow",
        }
        assert form == ("json" if "loss_curve" in name else expected[folder]), name


def test_tables_have_a_point_for_each_number(corpus):
    for path in sorted((corpus / "csv").rglob("*.csv")):
        text = [
            line for line in path.read_text().splitlines() if line and line[:7] not in ("<<<<<<<", "=======", ">>>>>>>")
        ]
        rows = list(csv.reader(text, delimiter=";" if ";" in text[0] else ","))
        axis = {"step", "epoch"} & {h.strip() for h in rows[0]}
        used = "step" if "step" in axis else "epoch" if axis else None
        cells = sum(1 for r in rows[1:] for h, c in zip(rows[0], r, strict=False) if c.strip() and h.strip() != used)
        assert open_and_read(path)[1].count == cells, path


def test_wandb_rows_have_a_point_for_each_number(corpus):
    for path in sorted((corpus / "wandb_history").iterdir()):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        numbers = sum(
            isinstance(v, int | float) and k not in ("_step", "_timestamp") for r in rows for k, v in r.items()
        )
        _, r = open_and_read(path)
        assert r.count == numbers, path
        assert not any(isinstance(t, str) for tag in r.points for t in r.times(tag))


def test_trainer_states_have_their_rows(corpus):
    for path in sorted((corpus / "trainer_state").rglob("*.json")):
        history = json.loads(path.read_text())["log_history"]
        _, r = open_and_read(path)
        losses = [row for row in history if "loss" in row]
        assert r.steps("loss") == [row["step"] for row in losses]
        assert r.count == sum(isinstance(v, int | float) and k != "step" for row in history for k, v in row.items())


def test_mmdetections_iteration_goes_on_through_the_epochs_of_a_run(corpus):
    [path] = (corpus / "jsonl" / "harel147__OffTheDip-Surf-Conditions-Analysis").iterdir()
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    train = [r for r in rows if r["mode"] == "train"]
    places = [(r["epoch"], r["iter"]) for r in train]
    steps = open_and_read(path)[1].steps("loss")
    assert [b <= a for a, b in pairwise(steps)] == [b <= a for a, b in pairwise(places)]


@pytest.mark.parametrize("tag", ["loss", "time_ms", "mfu_pct"])
def test_nanogpts_parallel_lists(corpus, tag):
    path = corpus / "jsonl" / "karpathy__nanoGPT" / "loss_curve_owt_sample_softmax.json"
    document = json.loads(path.read_text())
    _, r = open_and_read(path)
    assert r.steps(tag) == document["iters"]
    assert r.steps("val_loss") == document["val_iters"]
    assert not any(math.isnan(v) for v in document[tag])
