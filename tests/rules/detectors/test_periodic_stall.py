"""periodic-stall: pauses at equal distances, what they come with, what they cost."""

import math

import numpy as np
import pytest

from tests.engine import block_ends, session
from tests.rules.detectors.speed import clock, found, noisy, told
from trainmon_rules.detectors.periodic_stall import Pause, regular
from trainmon_rules.state import Settings

RULE = "periodic-stall"
N = 3000


def paused(every, pause, seconds=0.2, n=N, seed=0, first=None):
    """Seconds a step with a pause at each multiple of `every`."""
    x = noisy(n, seconds, seed, 0.1)
    x[every if first is None else first :: every] += pause
    return x


def by_wall(x, tags=None, **kwargs):
    return told(RULE, tags or {"loss": np.ones(len(x))}, time=clock(x), **kwargs)


# -------------------------------------------------------------------------------------------------- it is found
def test_a_garbage_collection_every_25_steps_is_told_with_its_cost():
    [f] = found(RULE, {"loss": np.ones(N)}, time=clock(paused(25, 0.5)))
    assert (f.onset_step, f.detected_step, str(f.severity)) == (50, 200, "info")  # the usual pace is known from 32 on
    assert f.evidence["steps from pause to pause"] == 25
    assert f.evidence["share of the time"] == pytest.approx(0.5 / (25 * 0.2 + 0.5), abs=0.005)
    assert f.summary == "every 25 steps the run pauses for 2.6 steps' time: 9.4 % of the time"


def test_from_a_tenth_of_the_time_on_it_is_a_warning():
    assert by_wall(paused(25, 0.8)) == [("warning", 50, 200, None)]
    assert by_wall(paused(50, 10.0)) == [("warning", 50, 350, None)]


@pytest.mark.parametrize("tag", ["step_time", "tokens_per_sec"])
def test_logged_step_times_and_throughputs_show_it_too(tag):
    x = paused(40, 2.0)
    assert told(RULE, {tag: x if tag == "step_time" else 1e4 / x}) == [("warning", 40, 280, None)]


def test_reports_may_be_sparse():
    x = paused(100, 60.0, n=20_000)
    [f] = found(RULE, {"loss": np.ones(2000)}, time=clock(x)[::10], step=np.arange(0, 20_000, 10))
    assert f.evidence["steps from pause to pause"] == 100
    assert f.evidence["share of the time"] == pytest.approx(0.75, abs=0.01)


def test_pauses_of_two_reports_are_one():
    x = paused(60, 2.0)
    x[61::60] += 2.0
    [f] = found(RULE, {"step_time": x})
    assert f.evidence["steps from pause to pause"] == 60
    assert f.evidence["share of the time"] == pytest.approx(4 / 16, abs=0.02)


def test_it_ends_when_no_pause_comes_any_more():
    x = paused(25, 0.8)
    x[1510:] = noisy(N - 1510, 0.2)
    assert by_wall(x) == [("warning", 50, 200, 1525)]


def test_one_pause_may_be_missing_among_eight():
    x = paused(50, 5.0)
    x[600] = 0.2
    assert by_wall(x) == [("warning", 50, 350, None)]


# ------------------------------------------------------------------------------------------- what the pauses come with
def with_evaluation(every=200, n=N):
    return {"loss": np.ones(n), "eval_loss": [1.0 if i and i % every == 0 else None for i in range(n)]}


@pytest.mark.parametrize(("pause", "known", "unknown"), [(4.0, [], ["info"]), (8.0, ["info"], ["warning"])])
def test_evaluations_are_a_phase_and_told_from_a_tenth_of_the_time_on(pause, known, unknown):
    x = paused(200, pause)
    assert [s for s, *_ in by_wall(x, with_evaluation())] == known
    assert [s for s, *_ in by_wall(x)] == unknown


def test_what_they_come_with_is_said():
    [f] = found(RULE, with_evaluation(), time=clock(paused(200, 8.0)))
    assert f.evidence["comes with"] == "evaluation"
    assert ", with each evaluation: 17.0 %" in f.summary
    epoch = np.arange(N) / 150
    [f] = found(RULE, {"loss": np.ones(N), "epoch": epoch}, time=clock(paused(150, 6.0)))
    assert (f.evidence["comes with"], str(f.severity)) == ("epoch", "warning")
    steps = {"save_steps": 200}
    [f] = found(RULE, {"loss": np.ones(N)}, time=clock(paused(200, 8.0)), settings=Settings.default(steps))
    assert (f.evidence["comes with"], str(f.severity)) == ("checkpoint", "info")


def test_evaluations_more_frequent_than_the_pauses_do_not_explain_them():
    [f] = found(RULE, with_evaluation(10), time=clock(paused(50, 5.0)))
    assert "comes with" not in f.evidence


# -------------------------------------------------------------------------------------------- what only looks like it
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("noise", [0.1, 0.7])
def test_noise_has_no_period(seed, noise):
    assert told(RULE, {"step_time": noisy(20_000, 1.0, seed, noise)}) == []


@pytest.mark.parametrize("seed", range(10))
def test_rare_long_steps_at_random_have_none(seed):
    rng = np.random.default_rng(seed)
    x = noisy(20_000, 1.0, seed)
    x[rng.random(20_000) < 0.02] *= 20
    assert told(RULE, {"step_time": x}) == []


def test_pauses_that_cost_next_to_nothing():
    assert by_wall(paused(500, 1.0, n=8000)) == []


def test_a_slow_last_batch_of_each_epoch_is_no_pause():
    x = noisy(N, 0.2)
    x[99::100] *= 2.5
    assert told(RULE, {"step_time": x}) == []


@pytest.mark.parametrize("kwargs", [{"resolution": 1.0}, {"resolution": 60.0}, {"flush": 20}, {"flush": 2}])
def test_coarse_wall_times_and_flushes_look_regular_and_are_none(kwargs):
    assert told(RULE, {"loss": np.ones(N)}, time=clock(noisy(N, 0.7), **kwargs)) == []


def test_whole_seconds_show_pauses_of_many_seconds():
    [f] = found(RULE, {"loss": np.ones(N)}, time=clock(paused(50, 40.0, 2.0), resolution=1.0))
    assert f.evidence["steps from pause to pause"] == 50


def test_two_attempts_are_two_stories():
    x = paused(50, 5.0, n=400)
    step = np.concatenate([np.arange(200), np.arange(100, 300)])
    assert by_wall(x, step=step) == []  # four pauses each


# ------------------------------------------------------------------------------------------------------- the parts
def pauses(*index):
    return [Pause(i, 10 * i, 0.0, 0, 0.0, 1.0) for i in index]


@pytest.mark.parametrize(
    ("index", "period"),
    [
        ((0, 20, 40, 60, 80, 100, 120), 200.0),
        ((0, 21, 40, 61, 80, 101, 120), 200.0),  # within a tenth
        ((0, 20, 40, 60, 80, 100), 0.0),  # too few
        ((0, 20, 40, 60, 80, 100, 130), 0.0),
        ((0, 20, 40, 60, 80, 100, 120, 140, 180), 200.0),  # one of eight
        ((0, 5, 10, 15, 20, 25, 30), 50.0),
        ((0, 5, 10, 15, 20, 25, 31), 0.0),  # close ones must be exact
    ],
)
def test_what_is_regular(index, period):
    assert regular(pauses(*index)) == pytest.approx(period, rel=0.06)


def test_what_it_lacks_is_told():
    def blind(tag, values, time=None):
        [t] = session({tag: values}, time=time).runs[0].attempts[0].tracked.values()
        return next(d.blind() for d in t.detectors if d.rule.name == RULE)

    assert blind("loss", np.ones(99)) == "no step time, throughput or wall time is logged"
    assert blind("loss", np.ones(99), clock(noisy(99, 0.3), 1.0)) == "wall times are too coarse"
    assert blind("step_time", np.zeros(99)) == "too few positive numbers are logged"
    assert blind("step_time", np.ones(99)) == ""


# ------------------------------------------------------------------------------------------------------ slow twin
def twin(x):
    """The rule in its obvious form, for logged step times: the report at which pauses are first told."""
    usual, pauses, ends = math.nan, [], set(block_ends(len(x)))
    for i, v in enumerate(x):
        if v >= 3 * usual:
            if pauses and i - pauses[-1][1] <= 1:
                pauses[-1][1:] = i, pauses[-1][2] + v - usual
            else:
                pauses = [*pauses, [i, i, v - usual]][-9:]
                first, last, excess = (np.array(column) for column in zip(*pauses, strict=True))
                steps, reports = np.diff(first), np.diff(last)
                if len(steps) >= 6:
                    period = np.median(steps)
                    near = np.median(reports) < 10
                    off = reports != round(np.median(reports)) if near else abs(steps - period) > 0.1 * period
                    cost = min(excess.mean(), 3 * np.median(excess))
                    if off.sum() <= (len(steps) == 8) and cost / (cost + usual * period) >= 0.02:
                        return i
        if i + 1 in ends and i + 1 >= 32:
            usual = np.median(x[max(0, i - 63) : i + 1])
    return None


def loop(seed):
    """Pauses at some distance, of some length, some of them missing or late, among steps that vary."""
    rng = np.random.default_rng(seed)
    x = noisy(900, 1.0, seed, 0.2)
    at = np.arange(rng.integers(5, 90), 895, rng.integers(5, 70))
    at = at[rng.random(len(at)) > rng.choice([0.0, 0.05, 0.3])]
    at = at + rng.integers(0, 1 + rng.choice([0, 1, 5]), len(at))
    x[at] += rng.uniform(1, 8)
    return x


def test_the_twin_tells_some_and_leaves_some():
    assert 5 < sum(twin(loop(seed)) is not None for seed in range(30)) < 27


@pytest.mark.parametrize("seed", range(30))
def test_agrees_with_its_slow_twin(seed):
    x = loop(seed)
    got = [detected for _, _, detected, _ in told(RULE, {"step_time": x})][:1]
    assert (got or [None]) == [twin(x)]


def test_two_percent_of_the_time_are_told_and_less_is_not():
    assert len(by_wall(paused(100, 0.3))) == 0  # 1.5 %
    assert len(by_wall(paused(100, 0.6))) == 1  # 2.9 %
