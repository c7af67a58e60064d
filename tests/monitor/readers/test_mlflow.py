"""MLflow metric files."""

import math

from hypothesis import given
from hypothesis import strategies as st
from reading import cuts, lines, read

from trainmon.readers.mlflow import MlflowReader


def mlflow(data, *args):
    return read(MlflowReader("loss"), data, *args)


def test_three_fields():
    r = mlflow(lines("1664364007310 3.25 0", "1664364007320 nan 10", "1664364007330 1.7976931348623157e308 20"))
    assert r.axis == "step"
    assert r.steps("loss") == [0, 10, 20]
    assert r.values("loss") == [3.25, "nan", math.inf]
    assert r.times("loss")[0] == 1664364007.31


def test_five_fields_and_an_exact_step():
    r = mlflow(lines(f"1664364007310 1 {2**53 + 1} train abc123"))
    assert r.steps("loss") == [2**53 + 1]


def test_two_fields_make_the_row_the_step():
    r = mlflow(lines("1664364007310 1", "1664364007320 2"))
    assert (r.axis, r.steps("loss")) == ("row", [0, 1])


def test_a_bad_line_is_reported_and_a_cut_last_line_counted():
    r = mlflow(b"1664364007310 1 0\nhello there world\n1664364007320 2 1\n1664364007")
    assert r.steps("loss") == [0, 1]
    assert [(p.line, p.offset) for p in r.problems] == [(2, 18)]
    assert r.skipped["cut last line"] == 1


line = st.sampled_from(["1664364007310 1.5 3", "1664364007311 -inf 4 a b", "1664364007312 2", "x y z", "", "1 2 3"])


@given(st.lists(line, max_size=8), st.booleans(), cuts)
def test_a_cut_or_a_pickled_reader_changes_nothing(rows, ended, at):
    data = "\n".join(rows).encode() + (b"\n" if ended else b"")
    assert mlflow(data, at, True) == mlflow(data)
