"""Whole JSON documents: their shapes, and later versions of a rewritten file."""

import json
import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import Result, read

from trainmon.readers.documents import DocumentReader
from trainmon_rules.points import Finish, Params

STATE = {
    "epoch": 1.0,
    "global_step": 30,
    "max_steps": 30,
    "num_train_epochs": 1,
    "train_batch_size": 4,
    "best_metric": None,
    "log_history": [
        {"epoch": 0.3, "loss": 2.0, "grad_norm": float("nan"), "step": 10},
        {"epoch": 0.6, "loss": 1.5, "step": 20},
        {"epoch": 0.6, "eval_loss": 1.6, "eval_runtime": 3.0, "step": 20},
        {"epoch": 1.0, "loss": 1.0, "step": 30},
        {"epoch": 1.0, "step": 30, "train_loss": 1.5, "train_runtime": 100.0},
    ],
}


def document(value, indent=2, cuts=()):
    data = value if isinstance(value, bytes) else json.dumps(value, indent=indent).encode()
    return read(DocumentReader(), data, cuts, True)


@pytest.mark.parametrize("indent", [None, 2])
def test_trainer_state(indent):
    r = document(STATE, indent)
    assert r.axis == "step"
    assert r.steps("loss") == [10, 20, 30]
    assert r.values("grad_norm") == ["nan"]
    assert r.steps("eval_loss") == [20]
    assert r.values("final/train_loss") == [1.5]
    assert "train_loss" not in r.points
    assert r.of(Params) == [Params(0, {"max_steps": 30, "num_train_epochs": 1, "train_batch_size": 4})]
    assert [e.row for e in r.of(Finish)] == [3, 4]


def test_a_trainer_state_that_has_just_begun_is_no_problem():
    r = document({**STATE, "log_history": []})
    assert (r.count, r.problems) == (0, [])


def test_a_list_of_rows():
    r = document([{"step": 1, "loss": 1.0}, 7, {"step": 2, "loss": 2.0}])
    assert r.steps("loss") == [1, 2]
    assert r.skipped["rows that are no object"] == 1


def test_parallel_lists_go_with_the_axis_of_their_length():
    r = document(
        {
            "meta": {"config": "x.py", "lr": 0.1},
            "iters": [5, 6, 7, 8],
            "loss": [4.0, 3.0, 2.0, float("nan")],
            "val_iters": [0, 6],
            "val_loss": [5.0, 3.5],
        }
    )
    assert r.steps("loss") == [5, 6, 7, 8]
    assert r.values("loss")[3] == "nan"
    assert (r.steps("val_loss"), r.values("val_loss")) == ([0, 6], [5.0, 3.5])
    assert r.of(Params) == [Params(0, {"meta/config": "x.py", "meta/lr": 0.1})]


def test_lists_without_an_axis_count_rows():
    r = document({"loss": [3.0, 2.0, 1.0], "val_loss": [3.1, 2.1]})
    assert (r.axis, r.steps("loss"), r.steps("val_loss")) == ("row", [0, 1, 2], [0, 1])


def test_nested_lists_and_pandas_columns():
    r = document({"train": {"step": [1, 2], "loss": [2.0, 1.0]}, "val": {"step": [2], "loss": [1.5]}})
    assert (r.steps("train/loss"), r.steps("val/loss")) == ([1, 2], [2])
    r = document({"step": {"0": 5, "1": 6}, "loss": {"0": 1.0, "1": 0.5}})
    assert r.steps("loss") == [5, 6]


def test_lists_of_rows_under_keys_are_joined_by_step():
    r = document({"train": [{"step": i, "loss": 1.0} for i in range(4)], "val": [{"step": 2, "loss": 2.0}]})
    assert r.steps("train/loss") == [0, 1, 2, 3]
    assert r.points["val/loss"][0][0] == 3  # after the training row of its step


def test_one_result_is_one_record_and_settings_are_settings():
    r = document(
        {"_step": 43, "train_loss": float("nan"), "g": {"_type": "histogram", "bins": [1]}, "_wandb": {"r": 1}}
    )
    assert (r.steps("train_loss"), r.values("train_loss")) == ([43], ["nan"])
    assert r.skipped["media objects"] == 1
    r = document({"learning_rate": 0.1, "batch_size": 32, "optim": {"betas": [0.9, 0.95], "name": "adamw"}})
    assert r.count == 0
    [params] = r.of(Params)
    assert params.values["optim/name"] == "adamw"
    assert params.values["learning_rate"] == 0.1


def test_a_record_with_a_list_stays_a_record():
    assert document({"step": 3, "loss": 1.0, "bbox": [0.1, 0.2]}).values("loss") == [1.0]


def test_objects_one_after_another_are_records():
    data = b"\n".join(json.dumps({"step": i, "loss": 1.0}, indent=2).encode() for i in range(3))
    assert document(data).steps("loss") == [0, 1, 2]


@pytest.mark.parametrize("data", [b'{"log_history": [{"step": 1, "lo', b"{]", b"[" * 100_000, b'{"a": 1} x'])
def test_a_broken_document_is_one_clear_problem(data):
    r = document(data)
    [problem] = r.problems
    assert r.count == 0
    assert "broken or still being written" in problem.error


def test_a_document_without_metrics_says_so():
    [problem] = document(["a", "b"]).problems
    assert "without metrics" in problem.error


def test_a_document_over_the_cap_is_refused_in_one_line():
    reader = DocumentReader(limit=100)
    for _ in range(20):
        reader.feed(b'{"step": 1, "loss": 2.0}')
        assert sum(map(len, reader._held)) <= 100
    [problem] = reader.finish().problems
    assert "write JSON lines" in problem.error


# ---------------------------------------------------------------------- later versions
def versions(*values):
    reader = DocumentReader()
    out = [reader.replace(v if isinstance(v, bytes) else json.dumps(v).encode()) for v in values]
    return reader, out


def state(n, **more):
    return {**STATE, **more, "log_history": STATE["log_history"][:n]}


def test_a_newer_version_gives_only_what_is_new():
    reader, (first, second, same) = versions(state(2), state(4, best_metric=1.6), state(4))
    assert (first.points, second.points) == (5, 5)
    assert not same
    assert [e.row for e in second.events] == [3]
    assert reader.axis == "step"


def test_a_version_caught_in_the_middle_of_a_write_is_waited_for():
    cut = json.dumps(state(4)).encode()[:-40]
    _, (first, nothing, empty, rest) = versions(state(2), cut, b"", state(4))
    assert (first.points, rest.points) == (5, 5)
    assert not nothing
    assert not empty


@pytest.mark.parametrize(
    "changed",
    [
        state(1),
        state(3, max_steps=60),
        {**STATE, "log_history": [{"epoch": 0.3, "loss": 2.5, "step": 10}, *STATE["log_history"][1:]]},
        {**STATE, "log_history": STATE["log_history"][1:]},
    ],
)
def test_a_changed_beginning_asks_for_a_rebuild(changed):
    assert versions(state(2), changed)[1][1] is None


def test_replace_goes_on_from_what_was_read_at_first():
    reader = DocumentReader()
    reader.feed(json.dumps(state(2)).encode())
    assert reader.finish().points == 5
    reader = pickle.loads(pickle.dumps(reader))
    assert reader.replace(json.dumps(STATE).encode()).points == 5 + 3


@given(st.lists(st.integers(0, 12), max_size=5).map(sorted), st.booleans())
def test_saved_versions_add_up_to_the_whole(saved, listed):
    rows = [
        {"step": i, "loss": float("nan") if i == 5 else i / 3, **({"eval": 1} if i % 4 == 3 else {})} for i in range(12)
    ]
    if listed:
        make = lambda n: rows[:n]  # noqa: E731
    else:
        make = lambda n: {"step": [r["step"] for r in rows[:n]], "loss": [r["loss"] for r in rows[:n]]}  # noqa: E731
    reader = DocumentReader()
    batches = [b for n in [*saved, 12] if n and (b := reader.replace(json.dumps(make(n)).encode())) is not None]
    whole = document(make(12))
    got = Result(reader, batches)
    assert got.points == whole.points
    assert math.isclose(got.count, whole.count)
