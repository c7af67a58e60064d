"""Tables: delimiters, headers, ragged and quoted rows, conflict markers, any cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import cuts, lines, read

from trainmon.readers.table import TableReader
from trainmon_rules.points import Boundary, Params


def table(data, *args):
    return read(TableReader("tag"), data if isinstance(data, bytes) else lines(*data), *args)


@pytest.mark.parametrize("d", [",", ";", "\t", " , ", "|"])
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r\r\n", "\r"])
def test_delimiters_and_endings(d, ending):
    r = table(ending.join([f"step{d}loss", f"10{d}1.5", f"20{d}nan", ""]).encode())
    assert r.steps("loss") == [10, 20]
    assert r.values("loss") == [1.5, "nan"]
    assert not r.problems


def test_padded_header_and_cells():
    r = table(["        epoch,   train/box_loss", "            0,         0.124", "            1,         0.120"])
    assert r.axis == "epoch"
    assert r.values("train/box_loss") == [0.124, 0.120]


def test_sparse_rows():
    r = table(["epoch,step,train_loss,val_loss", "0,9,,0.5", "0,19,0.4,", "1,29,,0.3"])
    assert r.axis == "step"
    assert (r.steps("val_loss"), r.steps("train_loss")) == ([9, 29], [19])
    assert not r.skipped


def test_without_a_step_column_the_row_is_the_step():
    r = table(["val_loss,loss", "1.0,2.0", "0.9,1.9"])
    assert (r.axis, r.steps("loss")) == ("row", [0, 1])


def test_ragged_rows():
    r = table(["a,b,c", "1,2", "1,2,3,4,5,", "1"])
    assert r.values("c") == [3.0]
    assert r.values("a") == [1.0, 1.0, 1.0]
    assert dict(r.skipped) == {"cells beyond the header": 2}


def test_quoted_cells():
    r = table(b'"step","note, long","loss"\n1,"a, ""b""\nand more",0.5\n2,"",0.4\n')
    assert r.values("loss") == [0.5, 0.4]
    assert r.skipped["text values"] == 1


def test_a_quote_that_is_never_closed_costs_its_row_only():
    rows = [f"{i},{i}" for i in range(30)]
    rows[3] = '3,"3'
    r = table(["step,loss", *rows])
    assert r.steps("loss") == [i for i in range(30) if i != 3]
    assert [(p.line, p.offset) for p in r.problems] == [(5, 22)]


def test_conflict_markers_make_runs_and_one_problem():
    r = table(["loss,acc", "<<<<<<< HEAD", "1,1", "2,2", "=======", "3,3", ">>>>>>> 6.16"])
    assert r.steps("loss") == [0, 1, 0]
    assert [e.row for e in r.of(Boundary)] == [2, 3]
    assert r.skipped["conflict markers"] == 3
    assert [p.line for p in r.problems] == [2]


def test_a_header_that_comes_again_begins_a_run_with_its_own_columns():
    r = table(["epoch,loss", "0,1", "1,2", "epoch,loss,acc", "0,3,0.5"])
    assert r.of(Boundary) == [Boundary(2, "run", "the header is printed again")]
    assert r.steps("loss") == [0, 1, 0]
    assert r.values("acc") == [0.5]


def test_a_table_without_a_header():
    r = table(["1,0.5", "2,0.4"])
    assert r.values("col1") == [0.5, 0.4]


def test_header_only_and_text_only_tables_are_quiet():
    for rows in (["step,loss"], ["run,state", "a,done", "b,failed"]):
        r = table(rows)
        assert (r.count, r.problems, r.events) == (0, [], [])


def test_tensorboards_export_is_named_by_its_file():
    r = table(["Wall time,Step,Value", "1700000000.5,10,2.5"])
    assert r.points == {"tag": [(0, 10, 1700000000.5, 2.5)]}


def test_columns_of_one_name_are_told_apart():
    assert set(table(["step,loss,loss", "1,2,3"]).points) == {"loss", "loss.1"}


def test_a_line_of_something_else_is_reported():
    r = table(["step,loss", "1,2", "Killed", "3,4"])
    assert r.steps("loss") == [1, 3]
    assert [p.line for p in r.problems] == [3]


@pytest.mark.parametrize(("last", "steps"), [("2,0.4", [1, 2]), ("2", [1])])
def test_a_last_row_without_its_end_is_used_if_it_has_all_cells(last, steps):
    r = table(b"step,loss\n1,0.5\n" + last.encode())
    assert r.steps("loss") == steps


def test_a_comment_with_settings_before_the_header():
    r = table(['#{"env_id": "CartPole"}', "r,l,t", "1,2,0.1"])
    assert r.of(Params) == [Params(0, {"env_id": "CartPole"})]
    assert r.values("r") == [1.0]


def test_a_decimal_comma_between_semicolons():
    assert table(["step;loss", "1;0,25"]).values("loss") == [0.25]


row = st.one_of(
    st.lists(st.sampled_from(["", "1", "2.5", "nan", "x", '"a', '"a,b"', " 3 ", "1e400"]), max_size=5).map(",".join),
    st.sampled_from(["step,loss,acc", "<<<<<<< HEAD", "=======", "# c", "loss", "Killed", "\0"]),
)


@given(st.lists(row, max_size=14), st.sampled_from(["\n", "\r\n", "\r"]), st.booleans(), cuts)
def test_a_cut_or_a_pickled_reader_changes_nothing(rows, ending, ended, at):
    data = (ending.join(rows) + (ending if ended else "")).encode()
    assert table(data, at, True) == table(data)
