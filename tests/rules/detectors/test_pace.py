"""The pace of a run and its stretches, against a slow twin that takes one report at a time."""

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmon_rules.detectors.pace import Paces, paces
from trainmon_rules.detectors.stretches import FIRST, Stretches
from trainmon_rules.points import chunk
from trainmon_rules.series import Series

NAN = math.nan


def series(role, value, time=None, step=None, tag="t"):
    s = Series(tag, role, "log", 0)
    s.extend(chunk(tag, range(len(value)) if step is None else step, value, time))
    return s


def test_a_step_time_is_the_pace_and_a_throughput_one_over_it():
    value = [2.0, 4.0, 0.0, -1.0, NAN, math.inf, 1e300, 5e-324]
    assert paces(series("step_time", value), 8, 8).pace.tolist()[:2] == [2.0, 4.0]
    assert np.isnan(paces(series("step_time", value), 8, 8).pace[2:]).all()
    assert paces(series("throughput", value), 8, 2).pace.tolist() != [0.5, 0.25]  # the last two: absurd
    assert paces(series("throughput", value), 2, 2).pace.tolist() == [0.5, 0.25]


def test_wall_times_give_seconds_a_step():
    p = paces(series("train_loss", [1.0] * 4, [100, 120, 150, 150], [0, 10, 20, 30]), 4, 4)
    assert p.pace.tolist()[1:] == [2.0, 3.0, 0.0]
    assert math.isnan(p.pace[0])


@pytest.mark.parametrize("later", [90, NAN, math.inf, 100 + 1e9])
def test_a_clock_that_is_set_or_missing_says_nothing(later):
    p = paces(series("train_loss", [1.0] * 3, [100, later, later + 1 if later == 90 else 101]), 3, 3)
    assert math.isnan(p.pace[1])


def test_repeated_steps_have_no_pace():
    assert np.isnan(paces(series("train_loss", [1.0] * 3, [0, 1, 2], [5, 5, 5]), 3, 3).pace).all()


def test_any_stretch_of_points_gives_the_same_paces():
    rng = np.random.default_rng(0)
    s = series("train_loss", np.ones(300), np.cumsum(rng.exponential(1, 300)), np.cumsum(rng.integers(1, 9, 300)))
    whole = paces(s, 300, 300)
    for end, n in [(300, 1), (200, 64), (100, 100), (7, 7)]:
        part = paces(s, end, n)
        assert np.array_equal(part.pace, whole.pace[end - n : end], equal_nan=True)


# ------------------------------------------------------------------------------------------------- stretches
def stretched(role, reports, cuts=(), tag="t"):
    past = Stretches(role, tag)
    a = 0
    bounds = sorted({*cuts, len(reports)})
    while a < len(reports):
        b = min(a + past.room(), next(c for c in bounds if c > a))
        past.extend(reports.picked(slice(a, b)))
        a = b
    return past


def slow_twin(role, reports, width):
    """Levels of the complete stretches: the median of medians of 16, or time over steps, a report at a time."""
    part = min(width, 16)
    levels, parts, one = [], [], []
    for pace, steps, seconds in zip(reports.pace, reports.steps, reports.seconds, strict=True):
        one.append((pace, steps, seconds))
        if len(one) < part:
            continue
        if role == "train_loss":
            parts.append((sum(s for _, _, s in one), sum(n for _, n, _ in one)))
        else:
            parts.append((statistics.median(p for p, _, _ in one), 1))
        one = []
        if len(parts) == width // part:
            levels.append(math.log(sum(t for t, _ in parts) / sum(n for _, n in parts)))
            parts = []
    return levels


def random_reports(rng, n, each):
    pace = each * np.exp(rng.normal(0, 0.05, n))
    steps = np.full(n, 2.0)
    return Paces(pace, steps, pace * steps, np.arange(n) * 2, 1e9 + np.cumsum(pace * steps))


@given(st.sampled_from(["train_loss", "step_time"]), st.sampled_from([20.0, 3.0, 0.3, 0.02]), st.integers(0, 99))
def test_stretches_are_what_the_slow_twin_says_however_they_are_cut(role, each, seed):
    rng = np.random.default_rng(seed)
    reports = random_reports(rng, 3000, each)
    past = stretched(role, reports, rng.integers(1, 3000, 40).tolist())
    whole = stretched(role, reports)
    assert past.width == whole.width
    assert np.array_equal(past.level, whole.level)
    assert past.cells == whole.cells
    twin = slow_twin(role, reports, past.width)[: whole.count]
    assert whole.level.tolist() == pytest.approx(twin[-len(whole.level) :])


@pytest.mark.parametrize(("each", "width"), [(60.0, 1), (10.0, 1), (1.0, 8), (0.1, 128), (1e-6, 4096)])
def test_a_stretch_is_about_twenty_seconds(each, width):
    past = stretched("step_time", random_reports(np.random.default_rng(0), 5000, each))
    assert past.width == pytest.approx(width, rel=1.0)


def test_without_any_length_of_time_a_stretch_is_four_reports():
    reports = random_reports(np.random.default_rng(0), 400, 1.0)
    reports = Paces(reports.pace, reports.steps, np.full(400, NAN), reports.step, np.full(400, NAN))
    assert stretched("throughput", reports).width == 4
    assert stretched("step_time", reports, tag="step_time_ms").width == 4096


def test_pauses_are_no_part_of_a_stretch_by_wall_times():
    reports = random_reports(np.random.default_rng(1), 1600, 1.0)
    seconds = reports.seconds.copy()
    seconds[50::100] += 600
    paused = Paces(seconds / reports.steps, reports.steps, seconds, reports.step, reports.time)
    assert stretched("train_loss", paused).level == pytest.approx(stretched("train_loss", reports).level, abs=0.05)


def test_whole_seconds_and_flushes_in_batches_keep_the_mean_pace():
    n = 3200
    time = 1.7e9 + 0.3 * np.arange(1, n + 1)
    for shown in (np.floor(time), 1.7e9 + 0.3 * 10 * np.ceil(np.arange(1, n + 1) / 10)):
        seconds = np.diff(shown, prepend=1.7e9)
        past = stretched("train_loss", Paces(seconds, np.ones(n), seconds, np.arange(n), shown))
        assert np.exp(np.median(past.level)) == pytest.approx(0.3, rel=0.03)


def test_the_whole_past_stays_in_cells():
    reports = random_reports(np.random.default_rng(2), 40_000, 30.0)
    past = stretched("step_time", reports)
    assert past.count == 40_000
    assert 64 <= len(past.cells) <= 128
    assert past.cell_step[0] == 0
    assert np.exp(past.cells) == pytest.approx(30.0, rel=0.02)


def test_nothing_is_said_of_fewer_than_sixteen_reports():
    assert stretched("step_time", random_reports(np.random.default_rng(0), FIRST - 1, 60.0)).count == 0
