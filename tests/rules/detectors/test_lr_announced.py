"""lr-warmup and lr-declared: the rate as applied beside the schedule as announced."""

import numpy as np
import pytest

from tests.ailing_rates import eight_times_too_fast, without_warmup
from tests.columns import Columns
from tests.engine import session
from tests.schedules import PLAIN, TOTAL, WARMUP, announcement, logged, rates
from tests.streams import findings
from trainmon_rules.detectors.course import Course, Pace, factor_at, whole
from trainmon_rules.diagnosis import Knowledge
from trainmon_rules.findings import Severity
from trainmon_rules.postmortem import report_runs
from trainmon_rules.schedules import Schedule
from trainmon_rules.state import Settings

PEAK = 3e-4
EVERY = 10
STEP = range(EVERY, TOTAL + 1, EVERY)


def told(lr, rule="", step=STEP, **said):
    """[(form, severity, onset, detected, resolved)] of a rate announced as a cosine, unless `said` otherwise."""
    settings = {**announcement("cosine", PEAK), **said}
    got = findings(Columns({"lr": lr}, step, settings), rule)
    return [(f.evidence["form"], str(f.severity), f.onset_step, f.detected_step, f.resolved_step) for f in got]


def paced(factor, shape="cosine", places=None, step=STEP):
    """The rate of a scheduler that is stepped `factor` times a step."""
    return rates(shape, PEAK, [min(factor * s, TOTAL) for s in step], places)


# --------------------------------------------------------------------------------------------------- the warm-up
def test_a_rate_at_its_peak_from_the_first_report_on_has_no_warm_up():
    lr = [PEAK if s < WARMUP else x for s, x in zip(STEP, rates("cosine", PEAK, STEP), strict=True)]
    assert told(lr) == [("no warm-up", "warning", 10, 50, 200)]  # the fifth report; over when it would have ended


def test_without_a_known_peak_it_is_said_when_the_warm_up_should_be_over():
    [f] = findings(without_warmup(), "lr-warmup")
    assert (f.onset_step, f.detected_step, f.resolved_step) == (0, 511, 527)


@pytest.mark.parametrize("factor", [2, 8, 30])
@pytest.mark.parametrize("places", [None, 6])
def test_a_warm_up_that_takes_too_long_is_said_with_its_factor(factor, places):
    lr = paced(1 / factor, places=places)
    [f] = findings(Columns({"lr": lr}, STEP, announcement("cosine", PEAK)), "lr-warmup")
    assert (f.severity, f.evidence["form"], f.onset_step, f.detected_step) == (
        Severity.WARNING,
        "long warm-up",
        200,
        300,
    )
    assert 1 / f.evidence["factor"] == pytest.approx(factor, rel=0.05)
    assert f"{factor} times as long" in f.summary


def test_one_that_takes_as_long_as_the_accumulation_is_an_info():
    assert told(paced(1 / 8), "lr-warmup", gradient_accumulation_steps=8)[0][:2] == ("long warm-up", "info")


def test_a_resumed_attempt_is_not_asked_for_its_warm_up():
    run = logged("constant_with_warmup", PEAK, EVERY, resume=60, settings=announcement("constant_with_warmup", PEAK))
    run["lr"][6:] = [PEAK] * len(run["lr"][6:])
    assert findings(run, "lr-warmup") == []


# ----------------------------------------------------------------------------------------------------- the pace
@pytest.mark.parametrize("shape", ["cosine", "cosine_to_a_tenth", "linear"])
@pytest.mark.parametrize("factor", [2, 8, 50])
def test_a_schedule_that_runs_too_fast_is_sure_once_training_goes_on_after_its_end(shape, factor):
    said = announcement(shape, PEAK)
    [f] = findings(Columns({"lr": paced(factor, shape)}, STEP, said), "lr-declared")
    assert (f.evidence["form"], f.severity) == ("too fast", Severity.WARNING)
    assert f.evidence["factor"] == pytest.approx(factor, rel=0.03)
    assert f.detected_step < 1.2 * TOTAL / factor + 250
    assert f"{factor} times too" in f.summary


def test_before_that_it_is_an_info_unless_something_has_the_factor():
    step = range(EVERY, 300, EVERY)
    lr = paced(8, step=step)
    [(form, severity, _, detected, _)] = told(lr, step=step)
    assert (form, severity, detected) == ("too fast", "info", 160)
    for key in ("gradient_accumulation_steps", "world_size"):
        assert told(lr, step=step, **{key: 8})[0][:2] == ("too fast", "warning")
        assert told(lr, step=step, **{key: 4})[0][:2] == ("too fast", "info")


def test_the_example_of_the_page():
    [f] = findings(eight_times_too_fast(), "lr-declared")
    assert (f.severity, f.onset_step, f.detected_step) == (Severity.WARNING, 0, 271)
    assert f.summary == (
        "lr runs through its cosine schedule 8 times too fast, as if stepped with each of the 8 micro-batches of an "
        "update: 0.000743 at step 271, where 0.000996 was announced"
    )


@pytest.mark.parametrize("shape", ["cosine", "linear"])
def test_a_schedule_that_runs_too_slowly(shape):
    lr = paced(1 / 8, shape)
    said = {"lr_scheduler_type": shape}
    assert told(lr, "lr-declared", **said) == [("too slow", "warning", 1600, 2240, None)]
    assert told(lr, "lr-declared", **said, gradient_accumulation_steps=8)[0][:2] == ("too slow", "info")


@pytest.mark.parametrize("places", [None, 6])
def test_an_end_long_before_the_planned_one(places):
    """Sparse reports: the whole schedule is gone through between the first few."""
    step = range(100, TOTAL + 1, 100)
    got = told(paced(8, "cosine_to_a_tenth", places, step), "lr-declared", step=step)
    assert ("too fast", "warning", 500, 2500, None) in got


# -------------------------------------------------------------------------------------- a rate that stands, or moves
@pytest.mark.parametrize(
    ("shape", "detected"),
    [
        ("cosine", 1880),
        ("linear", 1880),
        ("polynomial", 2480),
        ("exponential", 2480),
        ("inverse_sqrt", 1880),
        ("wsd", 4000),
    ],
)
def test_an_announced_decay_that_never_comes(shape, detected):
    lr = rates("constant_with_warmup", PEAK, STEP)
    got = told(lr, **announcement(shape, PEAK))
    assert got == [("never moves", "warning", 200, detected, None)]


@pytest.mark.parametrize("shape", ["step_decay", "on_plateau", "constant_with_warmup"])
def test_shapes_that_may_stand_are_quiet(shape):
    assert told(rates("constant_with_warmup", PEAK, STEP), **announcement(shape, PEAK)) == []


def test_a_constant_rate_that_falls_is_an_info():
    got = told(rates("linear", PEAK, STEP), lr_scheduler_type="constant_with_warmup")
    assert [g[:2] for g in got] == [("not constant", "info")]


def test_another_curve_is_an_info():
    got = told(rates("polynomial", PEAK, STEP))
    assert [g[:2] for g in got] == [("another curve", "info")]


@pytest.mark.parametrize("applied", ["linear", "cosine", "cosine_from_step_0", "cosine_to_a_tenth", "polynomial"])
@pytest.mark.parametrize("announced", ["linear", "cosine", "cosine_to_a_tenth"])
def test_one_curve_for_another_is_never_taken_for_a_wrong_pace(applied, announced):
    got = told(rates(applied, PEAK, STEP), **announcement(announced, PEAK))
    assert [g for g in got if g[0] in ("too fast", "too slow", "never moves") or g[1] != "info"] == []


@pytest.mark.parametrize("tag", ["base_lr", "initial_lr", "train/max_lr"])
def test_settings_logged_as_a_column_are_not_judged(tag):
    assert findings(Columns({tag: [PEAK] * TOTAL}, settings=announcement("cosine", PEAK)), "lr-declared") == []


def test_an_axis_that_goes_beyond_the_plan_is_quiet_there():
    step = range(TOTAL + EVERY, 2 * TOTAL, EVERY)
    assert told([PEAK] * len(step), step=step) == []


# ------------------------------------------------------------------------------------------------------- blindness
@pytest.mark.parametrize(
    ("answers", "needs"),
    [
        ({}, "the schedule's name isn't known (--set lr_schedule=cosine)"),
        ({"lr_schedule": "LambdaLR"}, "the schedule 'lambdalr' isn't one it knows (--set lr_schedule=cosine)"),
        ({"lr_schedule": "cosine"}, "the number of planned steps isn't known (--set total_steps=10000)"),
        ({"lr_schedule": "cosine", "total_steps": 100}, "fewer than 20 reports are logged"),
    ],
)
def test_what_is_missing_is_told(answers, needs):
    s = session({"lr": [1e-3] * 10}, settings=Settings.default(answers))
    [report] = report_runs(s, Knowledge.load())
    assert {b.rule: b.needs for b in report.blind}["lr-declared"] == needs


def test_it_is_not_blind_once_all_is_known():
    s = session({"lr": [1e-3] * 30}, settings=Settings.default({"lr_schedule": "cosine", "total_steps": 10_000}))
    [report] = report_runs(s, Knowledge.load())
    assert {"lr-declared", "lr-warmup"} & {b.rule for b in report.blind} == set()


# --------------------------------------------------------------------------------------------- slow twin, measures
def slow_course(step, rate):
    """The course a report at a time."""
    peak, peak_step, value, since, ties, longest = 0.0, 0, None, 0, 0, 0
    for s, r in zip(step, rate, strict=True):
        if r > peak * (1 + 1e-6):
            peak, peak_step = r, s
        if value is None or abs(r - value) > 1e-6 * peak:
            longest = max(longest, 0 if value is None else s - since)
            since, ties = s, 0
        value, ties = r, ties + 1
    return peak, peak_step, value, since, ties, longest


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("shape", ["step_decay", "warmup_in_steps", "wsd", "cosine"])
def test_a_course_taken_in_pieces_is_that_taken_report_by_report(shape, seed):
    rng = np.random.default_rng(seed)
    step = np.sort(rng.choice(np.arange(1, TOTAL), 200, replace=False))
    rate = np.array(rates(shape, PEAK, step, 6))
    course, at = Course(), 0
    while at < len(step):
        stop = at + int(rng.integers(1, 40))
        course.take(step[at:stop], rate[at:stop])
        at = stop
    got = (course.peak, course.peak_step, course.value, course.since, course.ties, course.longest)
    assert got == slow_course(step.tolist(), rate.tolist())
    assert course.count == len(step)


@pytest.mark.parametrize("shape", ["cosine", "linear"])
@pytest.mark.parametrize("factor", [0.2, 1.0, 3.0])
def test_the_factor_is_that_of_the_scheduler(shape, factor):
    plan = Schedule(shape, WARMUP, TOTAL)
    step = int(0.5 * TOTAL / max(1.0, factor))
    share = float(PLAIN[shape](np.array([factor * step]))[0])
    f = factor_at(plan, step, share, 0.0, int(WARMUP / factor)) if factor * step > WARMUP else None
    assert f is None or f.best == pytest.approx(factor, rel=0.01)
    assert factor_at(plan, step, share, 0.0, step) is None  # the peak isn't passed


def test_a_factor_that_changes_is_none():
    plan, pace = Schedule("cosine", 0, TOTAL, floor=0.0), Pace()
    straight = rates("linear", 1.0, STEP)
    assert [pace.look(plan, s, x, 0.0, 0) for s, x in zip(STEP, straight, strict=True) if s > WARMUP].count(
        None
    ) == len([s for s in STEP if s > WARMUP])


@pytest.mark.parametrize(("factor", "words"), [(8.0, "8"), (7.95, "8"), (0.125, "8"), (1.3, "1.3"), (0.4, "2.5")])
def test_a_factor_in_words(factor, words):
    assert whole(factor) == words
