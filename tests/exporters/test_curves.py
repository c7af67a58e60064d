"""Which curves are shown, how attempts are told apart, and what is said of levels."""

import math
from dataclasses import replace

import pytest

from trainmon_exporters.curves import in_values, levels, picture
from trainmon_exporters.story import telling


def drawn(run):
    return picture(run, telling(run))


def test_the_loss_is_shown_where_the_main_incident_is_about_it(make):
    shown = drawn(make.run())
    assert {c.tag for c in shown.main} == {"train/loss"}
    assert {c.tag for c in shown.val} == {"val/loss"}


def test_else_the_series_of_the_main_incident(make):
    norm = make.curve("train/grad_norm", "grad_norm", range(0, 2000, 10), float)
    other = make.curve("reward", "reward", range(0, 2000, 10), float)
    worst = make.incident(symptom="grad-explosion", series=("train/grad_norm",))
    run = make.run(incidents=(worst,), curves=(other, *make.run().curves, norm))
    assert ({c.tag for c in drawn(run).main}, drawn(run).val) == ({"train/grad_norm"}, ())


def test_the_worst_incident_that_lasts_is_the_main_one(make):
    early = make.incident(id="a" * 12, state="resolved", onset_step=100, series=("reward",))
    last = make.incident(id="b" * 12, onset_step=900)
    mild = make.incident(id="c" * 12, severity="warning", onset_step=50)
    assert telling(make.run(incidents=(early, last, mild))).main.incident is last


def attempts(make, *spans):
    return [
        make.curve("train/loss", "train_loss", range(*span, 10), lambda s, n=n: n + s / 1000, attempt=n)
        for n, span in enumerate(spans, 1)
    ]


def test_attempts_at_the_same_steps_are_drawn_once(make):
    curves = attempts(make, (0, 1000), (500, 1500))
    run = make.run(attempts=2, curves=tuple(curves), incidents=(make.incident(attempt=2, onset_step=1200),))
    shown = drawn(run)
    assert [(c.attempt, c.steps[0], c.steps[-1]) for c in shown.main] == [(1, 0, 490), (2, 500, 1490)]
    assert shown.remark == "attempt 2 where attempts overlap"
    steps = [s for c in shown.main for s in c.steps]
    assert steps == sorted(set(steps))


def test_the_attempt_of_the_incident_is_drawn_whole_and_a_hole_is_not_bridged(make):
    curves = attempts(make, (0, 1500), (500, 1000))
    run = make.run(attempts=2, curves=tuple(curves), incidents=(make.incident(attempt=2, onset_step=700),))
    assert [(c.attempt, c.steps[0], c.steps[-1]) for c in drawn(run).main] == [
        (1, 0, 490),
        (2, 500, 990),
        (1, 1000, 1490),
    ]
    run = make.run(attempts=2, curves=tuple(curves), incidents=(make.incident(attempt=1, onset_step=700),))
    assert [(c.attempt, c.steps[0], c.steps[-1]) for c in drawn(run).main] == [(1, 0, 1490)]


def test_no_line_passes_over_an_attempt_between_two_points(make):
    sparse = make.curve("train/loss", "train_loss", (0, 10, 900, 910, 920), float)
    between = make.curve("train/loss", "train_loss", range(300, 600, 10), float, attempt=2)
    run = make.run(attempts=2, curves=(sparse, between), incidents=(make.incident(attempt=2, onset_step=400),))
    assert [c.steps[0] for c in drawn(run).main] == [0, 300, 900]
    assert drawn(run).remark == "attempt 2 where attempts overlap"


def test_attempts_one_after_the_other_need_no_remark(make):
    run = make.run(attempts=2, curves=tuple(attempts(make, (0, 500), (500, 1000))))
    assert drawn(run).remark == ""


def test_an_onset_in_a_part_that_is_not_drawn_is_not_marked(make):
    curves = attempts(make, (0, 1500), (500, 2000))
    lost = make.incident(id="a" * 12, attempt=1, onset_step=1000, superseded=True)
    run = make.run(attempts=2, curves=tuple(curves), incidents=(lost, make.incident(attempt=2, onset_step=1800)))
    assert [m.step for m in drawn(run).marks] == [1800]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([1.5, math.nan], "x: 1.5 at step 0, not finite at step 1"),
        ([0.0] * 9, "x: 0 from step 0 to 8"),
        ([math.nan] * 9, "x: not finite at any step from step 0 to 8"),
        ([2.0] * 8 + [math.nan], "x: 2 from step 0 to 8, and not finite in 1 row"),
    ],
)
def test_what_is_not_worth_a_plot_in_words(make, values, said):
    curve = make.curve("x", "train_loss", range(len(values)), values.__getitem__)
    run = make.run(curves=(curve,), incidents=(make.incident(series=("x",)),))
    assert not drawn(run).worth_it
    assert in_values([curve], "step") == said


def test_many_rows_at_two_steps_are_no_plot_and_not_one_value(make):
    steps = [10198] * 5 + [10199] * 8
    scale = dict(enumerate([0.5 / 2**n for n in range(13)]))
    curve = make.curve("loss_scale", "loss_scale", range(13), scale.__getitem__)
    curve = replace(curve, steps=tuple(steps))
    run = make.run(curves=(curve,), incidents=(make.incident(series=("loss_scale",), onset_step=10199),))
    assert not drawn(run).worth_it
    said = in_values([curve], "step")
    assert said == "loss_scale: 0.5 → 0.0001221, between 0.0001221 and 0.5 from step 10198 to 10199"


def test_levels_are_medians_and_a_single_point_changes_nothing(make):
    noisy = [9.0, *[2.0] * 50, *[1.0] * 49, 7.0]
    curve = make.curve("loss", "train_loss", range(101), noisy.__getitem__)
    assert levels(make.run(curves=(curve,), roles={})) == ["loss 2 → 1"]


@pytest.mark.parametrize(
    ("role", "first", "last", "said"),
    [
        ("val_loss", 1.0, 2.0, "x 1 → 2 (higher at the end than at the start)"),
        ("val_loss", 2.0, 1.0, "x 2 → 1"),
        ("reward", 2.0, 1.0, "x 2 → 1 (lower at the end than at the start)"),
        ("train_metric", 1.0, 2.0, "x 1 → 2"),
    ],
)
def test_a_level_that_got_worse_is_said(make, role, first, last, said):
    curve = make.curve("x", role, range(100), lambda s: first if s < 50 else last)
    assert levels(make.run(curves=(curve,), roles={})) == [said]


def test_of_few_points_the_last_is_compared_with_the_first(make):
    curve = make.curve("x", "val_loss", range(3), [1.467, 1.46, 1.502].__getitem__)
    assert levels(make.run(curves=(curve,), roles={})) == ["x 1.467 → 1.502 (higher at the end than at the start)"]


def test_within_the_noise_nothing_got_worse(make):
    curve = make.curve("x", "val_loss", range(100), lambda s: 1.0 + s % 2 + s / 1000)
    [said] = levels(make.run(curves=(curve,), roles={}))
    assert "higher" not in said


def test_nothing_is_said_of_attempts_where_none_was_cut(make):
    [curve] = attempts(make, (0, 1000))
    run = make.run(curves=(replace(curve, ends=(1.0, 2.0)),), incidents=(make.incident(onset_step=700),))
    assert drawn(run).remark == ""
