"""plot: every value has its place, whatever the values are."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmon_exporters.plot import Mark, Stroke, draw
from trainmon_exporters.plot_scale import GUTTER
from trainmon_rules.report import Curve


def curve(values, steps=None, bad=()):
    steps = steps or range(len(values))
    low = [v if math.isfinite(v) else math.inf for v in values]
    high = [v if math.isfinite(v) else -math.inf for v in values]
    mean = [v if math.isfinite(v) else 0.0 for v in values]
    return Curve("loss", "train_loss", 1, tuple(steps), tuple(low), tuple(mean), tuple(high), tuple(bad))


def lines(values, **options):
    rows = draw([Stroke([curve(values)], "train")], **{"unicode": False, **options})
    return ["".join(text for text, _ in row) for row in rows]


@given(
    st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1, max_size=300),
    st.integers(20, 200),
    st.integers(3, 20),
    st.booleans(),
)
def test_any_numbers_fit_the_frame(values, width, height, unicode):
    rows = lines(values, width=width, height=height, unicode=unicode, marks=[Mark(len(values) // 2, "1")])
    assert all(len(row) <= max(width, 16 + GUTTER + 2) for row in rows)
    body = [r for r in rows if (("│" in r or "┤" in r) if unicode else r[GUTTER + 1 : GUTTER + 2] in ("|", "+"))]
    if any(math.isfinite(v) for v in values):
        assert len(body) >= height


def test_one_spike_in_many_cells_is_seen_at_the_top():
    c = curve([1.0] * 200)
    spiked = Curve(c.tag, c.role, 1, c.steps, c.low, c.mean, (*c.high[:100], 50.0, *c.high[101:]))
    rows = draw([Stroke([spiked], "train")], width=80, unicode=False)
    top = "".join(text for text, _ in rows[0])
    assert top.strip().startswith("50 +")
    assert top[GUTTER + 2 :].strip() in ("|", "'")


def test_a_stretch_that_is_not_finite_stands_in_a_row_of_its_own():
    rows = lines([1.0] * 50 + [math.nan] * 50, width=GUTTER + 2 + 100)
    assert rows[0].startswith("  NaN/inf |")
    assert rows[0].count("x") == 50
    assert not any("x" in row for row in rows[1:])


def test_a_few_bad_points_in_a_cell_of_good_ones_are_shown():
    [first, *_] = draw([Stroke([curve([1.0, 2.0, 3.0], bad=(0, 7, 0))], "train")], width=60, unicode=False)
    assert ("x", "bad") in first


def test_nothing_but_nan_is_drawn():
    rows = lines([math.nan] * 10)
    assert rows[0].count("x") == 10
    assert len(rows) == 3  # no numbers are made up


def test_a_huge_positive_range_is_logarithmic():
    rows = lines([1e-3, 1e-1, 1e1, 1e3], width=80, height=9)
    labels = [r[:GUTTER].strip() for r in rows if r[:GUTTER].strip()[:1].isdigit()][:3]
    assert labels == ["1,000", "1", "0.001"]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.693147, 0.693161, 0.693155], ["0.693161", "0.693154", "0.693147"]),
        ([32768.0, 4.0], ["32,768", "362", "4"]),
        ([1e300, -1e300], ["1e+300", "0", "-1e+300"]),
        ([5.0], ["5.25", "5", "4.75"]),
    ],
)
def test_numbers_of_the_axis_have_enough_digits_to_differ(values, expected):
    rows = lines(values, width=60, height=5)
    assert [t for r in rows if "+" in r and not r.strip().startswith("+") and (t := r[:GUTTER].strip())] == expected


def test_the_validation_curve_has_its_own_letter():
    rows = draw(
        [Stroke([curve([3.0, 2.0, 1.0])], "train"), Stroke([curve([3.5, 2.5, 1.5])], "val", dots=True)],
        width=60,
        unicode=False,
    )
    assert sum(text.count("o") for row in rows for text, style in row if style == "val") == 3


def test_marks_that_would_overlap_take_another_row():
    rows = lines([1.0, 2.0] * 50, width=GUTTER + 2 + 100, marks=[Mark(50, "10"), Mark(51, "11")])
    assert [row.split() for row in rows[:2]] == [["11"], ["10"]]


def test_marks_that_coincide_are_one():
    rows = lines([1.0, 2.0] * 50, width=60, marks=[Mark(50, "2"), Mark(50, "1"), Mark(90, "3")])
    assert rows[0].split() == ["2,1", "3"]


def test_a_mark_far_outside_is_left_out():
    inside, outside = (lines([1.0, 2.0] * 50, width=80, marks=[Mark(step, "1")]) for step in (99, 500))
    assert len(inside) == len(outside) + 1


def test_steps_are_numbered_at_both_ends():
    rows = draw([Stroke([curve([1.0, 2.0], steps=(5, 90_000))], "train")], width=80, unicode=False, axis="iteration")
    assert "".join(t for t, _ in rows[-1]).split() == ["iteration", "5", "45003", "90000"]


def test_nothing_to_draw_is_no_plot():
    assert draw([Stroke([], "train")]) == []
