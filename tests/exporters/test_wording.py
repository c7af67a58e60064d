"""Words for moments, names and numbers."""

import pytest

from trainmon_exporters.wording import axis_word, extent, in_short, is_back, outcome, short_name
from trainmon_rules.diagnosis.knowledge import shipped_table
from trainmon_rules.diagnosis.manual import explain
from trainmon_rules.state import Settings


@pytest.mark.parametrize(
    ("axis", "word"),
    [
        ("_step", "step"),
        ("train/global_step", "global step"),
        ("row", "row"),
        ("", "step"),
        ("__", "step"),
        ("x\x1b[2J", "x\\e[2J"),
    ],
)
def test_the_axis_in_a_word(axis, word):
    assert axis_word(axis) == word


@pytest.mark.parametrize("sheet", sorted(shipped_table().sheets))
def test_the_short_name_of_a_sheet_opens_it(sheet):
    rules = Settings.default().rules
    assert explain(short_name(sheet), rules).endswith(explain(sheet, rules))  # a cause of that name may stand before it


def test_short_names():
    names = ["gradient-management", "batch-size-and-memory-tradeoffs", "deep-rl", "ml-production"]
    assert list(map(short_name, names)) == ["gradient", "batch-size", "deep-rl", "ml-production"]


@pytest.mark.parametrize(
    ("action", "short"),
    [
        ("Clip at 1.0 (after unscaling)", "Clip at 1.0 (after unscaling)"),
        (f"Clip at 1.0 (after unscaling); {'x' * 110}", "Clip at 1.0 (after unscaling)"),
        (f"Stop early, and go back: {'the best is that of step 18 ' * 6}(patience 10)", "Stop early, and go back"),
        (f"Clip at 1.0 ({'after, before and ' * 9}unscaling)", "Clip at 1.0"),
        ("x" * 120 + ", y", "x" * 120),
        ("x" * 120, "x" * 120),
    ],
)
def test_what_to_do_in_short(action, short):
    assert in_short(action) == short


@pytest.mark.parametrize(
    ("state", "grade", "severity", "word"),
    [
        ("resolved", "recovered", "warning", "recovered"),
        ("resolved", None, "warning", "recovered"),
        ("resolved", "partly", "warning", "partly recovered"),
        ("resolved", "not", "info", "not recovered"),
        ("ended", "not", "critical", "not recovered"),
        ("ended", "partly", "critical", "partly recovered"),
        ("ended", None, "info", "to the end of the log"),
        ("firing", "partly", "warning", "still going on"),
    ],
)
def test_where_an_incident_stands(make, state, grade, severity, word):
    i = make.incident(state=state, grade=grade, severity=severity, resolved_step=1600 if state == "resolved" else None)
    assert outcome(i) == word
    assert is_back(i) == (word == "recovered")


def test_what_was_read(make):
    assert extent(make.run(axis="_step", attempts=2)) == "steps 0 to 1990, 803 points, 2 attempts (resumed once)"
    assert extent(make.run(axis="epoch", first_step=3, last_step=3, points=1)) == "epoch 3, 1 point"
    assert extent(make.run(first_step=None, points=0, status="running")) == "no steps, 0 points, still running"
