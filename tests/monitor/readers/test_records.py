"""Records: the axis, the clock, names, numbers, and what ends a run."""

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import Result

from trainmon.readers.records import MAX_PROBLEMS, Records
from trainmon.readers.values import clean_name, number, numbers, parse_time, wall_time, whole
from trainmon_rules.points import Boundary, Finish, Params

NAN = float("nan")


class Reading:
    """Reads rows through Records, taking the batch after each `every` rows."""

    offset = 0

    def __init__(self, rows, every=10**9, **options):
        self.records = Records(**options)
        batches = []
        for i, row in enumerate(rows):
            row(self.records) if callable(row) else self.records.add(row)
            if i % every == every - 1:
                batches.append(self.records.take())
        batches.append(self.records.finish())
        self.result = Result(self, batches)

    skipped = property(lambda self: self.records.skipped)
    axis = property(lambda self: self.records.axis)


def result(*rows, every=10**9, **options):
    return Reading(rows, every, **options).result


# ---------------------------------------------------------------------- the axis
@pytest.mark.parametrize(
    ("keys", "axis"),
    [
        (("loss", "global_step"), "global_step"),
        (("loss", "_step", "epoch"), "_step"),
        (("Step", "Value"), "Step"),
        (("episode", "steps", "return"), "episode"),
        (("train/global_step", "train/loss"), "train/global_step"),
        (("total timesteps", "return"), "total timesteps"),
        (("current_steps", "loss", "epoch"), "current_steps"),
    ],
)
def test_the_best_step_like_key_is_the_axis(keys, axis):
    r = result(dict.fromkeys(keys, 7), dict.fromkeys(keys, 8))
    assert r.axis == axis
    assert all(r.steps(k) == [7, 8] for k in keys if k != axis)
    assert axis not in r.points


def test_whole_epochs_are_the_axis():
    r = result(*({"epoch": i, "loss": 1.0} for i in range(3)))
    assert (r.axis, r.steps("loss")) == ("epoch", [0, 1, 2])


def test_train_and_validation_rows_of_one_epoch_do_not_repeat_it():
    rows = [{"epoch": e, "lr": 0.1, f"{d}_loss": 1.0} for e in (1, 2) for d in ("train", "val")]
    r = result(*rows)
    assert (r.axis, r.steps("val_loss"), r.steps("lr")) == ("epoch", [1, 2], [1, 1, 2, 2])


@pytest.mark.parametrize("epochs", [(0.0, 0.1, 0.2), (0, 0, 0), (0.53, 0.53, 0.53), (0.0, 0.0, 0.01)])
def test_fractional_or_repeated_epochs_make_the_row_the_axis(epochs):
    r = result(*({"loss": 1.0, "epoch": e} for e in epochs))
    assert (r.axis, r.steps("loss")) == ("row", [0, 1, 2])
    assert len(r.points["epoch"]) == 3


def test_without_any_axis_the_row_is_the_step_and_rows_without_numbers_do_not_count():
    r = result({"loss": 1.0}, {"note": "x"}, {"loss": 2.0})
    assert (r.axis, r.steps("loss")) == ("row", [0, 1])


def test_a_first_record_without_axis_is_settings_when_the_next_has_one():
    r = result({"lr": 0.1, "model": "x", "layers": [1]}, {"step": 1, "loss": 2.0})
    assert r.of(Params) == [Params(0, {"lr": 0.1, "model": "x"})]
    assert set(r.points) == {"loss"}


def test_a_table_has_no_settings_row():
    r = result({"loss": 1.0}, {"step": 5, "loss": 2.0}, settings_first=False)
    assert r.values("loss") == [1.0, 2.0]


def test_a_fractional_step_is_no_axis():
    assert result({"step": 0.25, "loss": 1.0}, {"step": 0.5, "loss": 1.0}).axis == "row"


def test_records_without_the_axis_key_stand_at_the_last_step_or_at_its_other_name():
    r = result({"step": 4, "a": 1}, {"b": 2}, {"iter": 6, "b": 3}, {"episode": 1, "b": 4}, {"step": None, "b": 5})
    assert r.steps("b") == [4, 6, 6, 6]


def test_one_record_alone_is_read():
    assert result({"loss": 1.0}).values("loss") == [1.0]
    assert result({"epoch": 3, "loss": 1.0}).steps("loss") == [3]


def test_an_iteration_that_starts_over_each_epoch_is_unrolled():
    rows = [{"mode": "train", "epoch": e, "iter": i, "loss": 1.0} for e in (1, 2) for i in (10, 20)]
    rows.append({"mode": "val", "epoch": 2, "iter": 256, "mAP": 0.5, "val_x": 1.0})
    rows += [{"mode": "train", "epoch": 2, "iter": 10, "loss": 1.0}]  # resumed within the epoch
    rows += [{"mode": "train", "epoch": 1, "iter": 10, "loss": 1.0}]  # another run
    r = result(*rows)
    assert r.steps("loss") == [10, 20, 30, 40, 30, 10]
    assert r.steps("val/mAP") == [40]
    assert "val_x" in r.points
    assert not r.skipped


def test_a_resume_at_an_earlier_epoch_goes_back_to_where_that_epoch_began():
    seen = [(1, 10), (1, 20), (2, 10), (2, 20), (3, 10), (2, 10)]
    r = result(*({"epoch": e, "iter": i, "loss": 1.0} for e, i in seen))
    assert r.steps("loss") == [10, 20, 30, 40, 50, 30]


def test_a_global_iteration_beside_an_epoch_is_left_alone():
    r = result(*({"epoch": 1 + i // 3, "iter": 10 * i, "loss": 1.0} for i in range(9)))
    assert r.steps("loss") == [10 * i for i in range(9)]


def test_an_evaluation_beside_a_global_iteration_does_not_start_it_over():
    rows = [
        {"iter": 10, "epoch": 0, "loss": 1.0},
        {"iter": 10, "epoch": 1, "val": 1.0},
        {"iter": 20, "epoch": 1, "loss": 1.0},
    ]
    r = result(*rows)
    assert (r.steps("loss"), r.steps("val")) == ([10, 20], [10])


def test_one_report_an_epoch_is_unrolled():
    r = result(*({"iter": 50, "epoch": e, "loss": 1.0} for e in (1, 2, 3)))
    assert r.steps("loss") == [50, 100, 150]


def test_a_number_of_steps_among_settings_is_no_axis():
    r = result({"steps": 400, "lr": 0.1}, {"step": 1, "loss": 1.0})
    assert (r.axis, r.of(Params)) == ("step", [Params(0, {"steps": 400, "lr": 0.1})])
    assert result({"steps": 400, "loss": 1.0}, {"steps": 800, "loss": 1.0}).steps("loss") == [400, 800]


# ---------------------------------------------------------------------- values
def test_steps_are_exact():
    big = 2**53 + 1
    r = result({"step": big, "loss": 1}, {"step": str(big + 2), "loss": 1}, {"step": 2**70, "loss": 1})
    assert r.steps("loss") == [big, big + 2, big + 2]


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("nan", NAN), ("NaN", NAN), ("inf", math.inf), ("-Infinity", -math.inf), (" 1.5 ", 1.5), ("1e400", math.inf),
        (1.797693134862315e308, math.inf), (-1.7976931348623157e308, -math.inf), (10**400, math.inf), (3, 3.0),
        ("1_000", None), ("none", None), ("", None), (True, None), (None, None), ([1], None), ("２", None),
    ],
)  # fmt: skip
def test_number(raw, value):
    found = number(raw)
    assert found == value or (math.isnan(value) and math.isnan(found))


mixed = st.one_of(
    st.floats(), st.integers(), st.none(), st.booleans(), st.sampled_from([1.797e308, 10**400, [1]]),
    st.sampled_from(["nan", "1", "-inf", "1e5", "x", "", "1_0", "\u0661", " 2"]), st.text(max_size=3),
)  # fmt: skip


@given(st.one_of(st.lists(mixed, min_size=1), st.lists(st.sampled_from(["1", " 2", "nan", "x"]), min_size=1)))
def test_columns_are_converted_as_single_values_are(column):
    skipped = Counter()
    values, kept = numbers(tuple(column), skipped)
    slow = [(i, v) for i, raw in enumerate(column) if (v := number(raw)) is not None]
    assert [repr(v) for v in values.tolist()] == [repr(v) for _, v in slow]
    assert (kept if kept is not None else list(range(len(column)))) == [i for i, _ in slow]
    assert skipped.total() == len(column) - len(slow)


def test_what_is_no_number_is_counted_by_kind():
    r = result({"step": 1, "a": None, "b": [1], "c": True, "d": "text", "e": 1})
    assert dict(r.skipped) == {"nulls": 1, "lists": 1, "booleans": 1, "text values": 1}


@pytest.mark.parametrize(
    ("raw", "seconds"),
    [(1.7e9, 1.7e9), (1700000000123, 1700000000.123), (1.7e15, 1.7e9), (1.7e18, 1.7e9), (0.47, None),
     ("2024-01-01 00:00:00,500", 1704067200.5), ("2024-01-01T00:00:00Z", 1704067200.0), ("0:01:04", None)],
)  # fmt: skip
def test_wall_times(raw, seconds):
    assert wall_time(raw) == pytest.approx(seconds)


def test_a_time_that_is_a_duration_stays_a_metric():
    r = result({"iter": 1, "time": 0.5, "timestamp": 1.7e9}, {"iter": 2, "time": 0.6, "timestamp": 1.7e9 + 1})
    assert r.values("time") == [0.5, 0.6]
    assert r.times("time") == [1.7e9, 1.7e9 + 1]
    assert parse_time("9999-99-99 00:00") is None


def test_whole_reads_what_steps_look_like():
    assert [whole(x) for x in (3, 3.7, "4", "5.0", "x", NAN, None, True)] == [3, 3, 4, 5, None, None, None, None]


def test_names_are_made_safe_once():
    bad = "a\x1b[31m\ud800\u202eb" + "x" * 400
    assert clean_name(bad).startswith("a\ufffd[31m\ufffd\ufffdb")
    r = result({"step": 1, bad: 1.0}, {"step": 2, bad: 2.0})
    [tag] = r.points
    assert len(tag) == 256
    tag.encode()


def test_keys_over_the_limit_are_counted():
    r = result({"step": 1, **{f"k{i}": i for i in range(5000)}})
    assert r.count == 4095
    assert r.skipped["keys over the limit"] == 905


# ---------------------------------------------------------------------- order, events
def test_records_of_different_keys_keep_their_order_within_a_tag():
    rows = [{"step": i, "loss": i, **({"acc": i} if i % 3 else {})} for i in range(20)]
    r = result(*rows)
    assert r.values("loss")[1:] == r.steps("loss")[1:] == list(range(1, 20))
    assert [row for row, *_ in r.points["loss"]] == list(range(20))


def test_held_out_rows_get_tags_of_their_own():
    r = result(*({"step": i, "split": s, "loss": 1.0} for i in (1, 2) for s in ("train", "validation", "Test")))
    assert set(r.points) == {"loss", "val/loss", "test/loss"}


def test_the_closing_summary_ends_training_and_is_no_live_loss():
    r = result({"step": 9, "loss": 0.5}, {"step": 10, "epoch": 1.0, "train_loss": 3.0, "train_runtime": 60.0})
    assert [e.row for e in r.of(Finish)] == [1]
    assert "train_loss" not in r.points
    assert r.values("final/train_loss") == [3.0]
    assert "epoch" in r.points


def test_the_planned_number_of_steps_ends_training_once():
    rows = [{"step": i, "total_steps": 3, "loss": 1.0} for i in range(6)]
    r = result(*rows)
    assert r.of(Params) == [Params(1, {"total_steps": 3})]
    assert r.of(Finish) == [Finish(3, "step 3 of 3")]


def test_a_counter_called_total_steps_is_no_plan():
    r = result(*({"step": i, "total_steps": i, "loss": 1.0} for i in range(1, 6)), {"step": 7, "total_steps": 7})
    assert r.events == []


def test_a_boundary_starts_the_rows_again_but_not_before_any_record():
    def marker(records):
        records.boundary("marker")

    r = result(marker, {"loss": 1.0}, {"loss": 2.0}, marker, marker, {"loss": 3.0})
    assert r.of(Boundary) == [Boundary(2, "run", "marker")]
    assert r.steps("loss") == [0, 1, 0]


def test_problems_without_end_are_counted():
    def bad(records):
        records.problem("bad", 1)

    r = result(*[bad] * (MAX_PROBLEMS + 5))
    assert len(r.problems) == MAX_PROBLEMS
    assert r.skipped["problems not listed"] == 5


row = st.dictionaries(
    st.sampled_from(["step", "iter", "epoch", "loss", "mode", "max_steps", "timestamp", "a"]),
    st.one_of(st.integers(-2, 9), st.sampled_from([0.5, NAN, 1.7e9, "val", "3", None, [1]])),
    max_size=5,
)


@given(st.lists(row, max_size=12), st.integers(1, 4), st.booleans())
def test_when_batches_are_taken_does_not_matter(rows, every, first):
    assert result(*rows, every=every, settings_first=first) == result(*rows, settings_first=first)
