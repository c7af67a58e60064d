"""stall: silence in a log's own wall times, and the cadence that says when silence is normal."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine import block_ends, incidents, session
from tests.rules.detectors.speed import clock, found, noisy, told
from trainmon_rules.detectors.cadence import CHECKPOINT, EVALUATION, TRAINING, Cadence, announced
from trainmon_rules.state import Settings

RULE = "stall"
HOUR = 3600.0


def gaps(n=600, seconds=2.0, seed=0, **at):
    """Seconds of reports; `g300=7200` makes the gap before row 300 two hours."""
    x = noisy(n, seconds, seed, 0.1)
    for row, gap in at.items():
        x[int(row[1:])] = gap
    return x


def stalls(seconds, tags=None, **kwargs):
    return told(RULE, tags or {"loss": np.ones(len(seconds))}, time=clock(seconds), **kwargs)


def evaluated(n, every):
    """An evaluation loss in every so many rows."""
    return [1.0 if i and i % every == 0 else None for i in range(n)]


# -------------------------------------------------------------------------------------------------- it is found
def test_three_hours_of_silence_are_dated_to_the_last_record_before():
    [f] = found(RULE, {"loss": np.ones(600)}, time=clock(gaps(g300=3 * HOUR)))
    assert (f.onset_step, f.detected_step, f.resolved_step, str(f.severity)) == (299, 300, 300, "warning")
    assert f.detected_time - f.onset_time == pytest.approx(3 * HOUR)
    assert f.summary == "nothing was logged for 3 h after step 299; usually every 1.9 s"
    assert f.recovery == "the log went on after 3 h"


def test_below_half_an_hour_it_is_a_note():
    assert stalls(gaps(g300=400)) == [("info", 299, 300, 300)]
    assert stalls(gaps(g300=1790)) == [("info", 299, 300, 300)]
    assert stalls(gaps(g300=1810)) == [("warning", 299, 300, 300)]


@pytest.mark.parametrize("gap", [290, 310])
def test_five_minutes_are_the_least(gap):
    assert len(stalls(gaps(g300=gap))) == (gap > 300)


def test_a_slow_cadence_needs_a_longer_silence():
    assert stalls(gaps(seconds=600.0, g300=0.9 * 5 * 1200, g200=1200)) == []
    assert stalls(gaps(seconds=600.0, g300=3 * HOUR, g200=1200)) == [("warning", 299, 300, 300)]


def test_with_few_reports_only_an_hour_is_silence():
    assert stalls(gaps(12, 20.0, g9=0.9 * HOUR)) == []
    assert stalls(gaps(12, 20.0, g9=9 * HOUR)) == [("warning", 8, 9, 9)]
    assert stalls(gaps(12, 600.0, g9=9 * HOUR)) == []  # less than a hundred times the usual


def test_silence_within_an_evaluation_is_measured_between_its_records():
    tags = {"loss": [None if i == 350 else 1.0 for i in range(600)], "eval_loss": evaluated(600, 350)}
    assert stalls(gaps(g350=8 * HOUR), tags) == [("warning", 349, 351, 351)]  # before its result came
    [f] = found(RULE, tags, time=clock(gaps(g350=8 * HOUR)))
    assert f.evidence["phase"] == "evaluation"
    assert stalls(gaps(g350=1.5 * HOUR), tags) == []  # a first evaluation may take two


def test_a_run_of_rewards_or_components_is_heard_too():
    for tag in ("rollout/ep_rew_mean", "train/box_loss", "train/policy_loss"):
        assert stalls(gaps(g300=3 * HOUR), {tag: np.ones(600)}) == [("warning", 299, 300, 300)]
    tags = {"loss": np.ones(600), "train/box_loss": np.ones(600), "reward": np.ones(600)}
    assert len(stalls(gaps(g300=3 * HOUR), tags)) == 1


def test_results_in_the_record_after_the_silence_make_it_an_evaluation():
    tags = {"loss": np.ones(600), "eval_loss": evaluated(600, 350)}
    assert stalls(gaps(g350=1.5 * HOUR), tags) == []
    assert stalls(gaps(g350=2.5 * HOUR), tags) == [("warning", 349, 350, 350)]


# -------------------------------------------------------------------------------------------- what only looks like it
def test_the_first_steps_compile():
    assert stalls(gaps(g0=1000, g1=5000, g2=900, g3=1800)) == []


def test_checkpoints_are_learnt_from_their_length():
    x = gaps(2000)
    x[100::100] = 90
    assert stalls(x) == []
    x[100::100] = 400  # the first ones are longer than anything before, and then known
    assert stalls(x) == [("info", 99, 100, 100), ("info", 199, 200, 200)]


def test_checkpoints_and_evaluations_that_the_settings_announce():
    x = gaps(2000)
    x[100::100] = 2000
    for name in ("save_steps", "eval_steps"):
        assert stalls(x, settings=Settings.default({name: 100})) == []
        assert len(stalls(x, settings=Settings.default({name: 77}))) == 2


def test_an_evaluation_may_take_long():
    n = 2000
    x = gaps(n)
    x[201::200] = 3000
    tags = {"loss": [None if i and i % 200 == 0 else 1.0 for i in range(n)], "eval_loss": evaluated(n, 200)}
    assert stalls(x, tags) == []
    x[1201] = 5 * HOUR  # more than five times the longest
    assert stalls(x, tags) == [("warning", 1199, 1201, 1201)]


def test_one_night_of_silence_does_not_make_the_next_one_usual():
    assert len(stalls(gaps(g200=9 * HOUR, g400=9 * HOUR))) == 2
    assert len(stalls(gaps(g200=9 * HOUR, g300=9 * HOUR, g400=9 * HOUR))) == 2


@pytest.mark.parametrize("kwargs", [{"resolution": 1.0}, {"resolution": 60.0}, {"flush": 50}])
def test_coarse_times_and_flushes_in_batches(kwargs):
    assert told(RULE, {"loss": np.ones(2000)}, time=clock(gaps(2000), **kwargs)) == []
    late = told(RULE, {"loss": np.ones(2000)}, time=clock(gaps(2000, g1000=5 * HOUR), **kwargs))
    assert [s for s, *_ in late] == ["warning"]


@pytest.mark.parametrize("seed", range(3))
def test_clocks_that_are_set_and_times_that_are_missing(seed):
    time = clock(gaps(3000, seed=seed))
    time[1000:] -= 5 * HOUR
    time[2000:] += 1e9
    time[np.random.default_rng(seed).choice(3000, 600)] = np.nan
    assert told(RULE, {"loss": np.ones(3000)}, time=time) == []


def test_a_pause_between_two_attempts_is_none():
    step = np.concatenate([np.arange(300), np.arange(250, 550)])
    assert stalls(gaps(g300=20 * HOUR), step=step) == []


def test_silence_of_one_metric_is_none_while_another_is_logged():
    n = 3000
    tags = {"loss": [1.0 if i < 1000 or i > 2900 else None for i in range(n)], "eval_loss": [1.0] * n}
    assert stalls(gaps(n, 5.0), tags) == []


def test_evaluations_in_a_file_of_their_own_are_known_after_two():
    x = gaps(2000)
    x[201::200] = 1200
    assert stalls(x) == [("info", 200, 201, 201), ("info", 400, 401, 401)]


def test_silence_is_an_incident_of_its_own_in_a_run_that_is_slow_anyway():
    tags = {"loss": 2 - np.arange(600) / 600, "gpu_util": np.full(600, 30.0)}
    story = [(i.symptom, i.onset.onset_step) for i in incidents(tags, time=clock(gaps(seconds=8.0, g300=3 * HOUR)))]
    assert story == [("low-utilization", 2), ("stall", 299)]


# ------------------------------------------------------------------------------------------------- the slow twin
def twin(seconds):
    """The rule in its obvious form: one gap after the other, the usual of the last 64 as of a block's end."""
    out, learnt, odd, seen = [], 0.0, None, []
    usual = None
    ends = set(block_ends(len(seconds)))
    for row, gap in enumerate(seconds[1:], start=1):
        known = len(seen)
        if usual is not None and gap > max(60.0, 2 * usual) and known >= 3:
            limit = max(300.0, 10 * usual, 5 * learnt)
            limit = max(limit, 3600.0, 100 * usual) if known < 20 else limit
            if gap <= limit:
                learnt = max(learnt, gap)
            else:
                out.append(row)
                learnt = max(learnt, min(odd, gap)) if odd is not None else learnt
                odd = gap if odd is None else max(odd, gap)
        seen.append(gap)
        usual = float(np.median(seen[-64:])) if row + 1 in ends else usual
    return out


@given(st.integers(0, 10_000), st.sampled_from([0.5, 20.0, 90.0]), st.sampled_from([64, 600]))
def test_it_agrees_with_the_slow_twin(seed, cadence, n):
    rng = np.random.default_rng(seed)
    x = cadence * np.exp(rng.normal(0, 0.3, n))
    for row in rng.choice(np.arange(1, n), 6, replace=False):
        x[row] = 10 ** rng.uniform(1.5, 5.5)
    detected = [f.detected_step for f in found(RULE, {"loss": np.ones(n)}, time=clock(x))]
    assert detected == twin(np.diff(clock(x), prepend=0))


# ---------------------------------------------------------------------------------------------------- the cadence
def learnt(seconds):
    s = session({"loss": np.ones(len(seconds))}, time=clock(seconds))
    [t] = s.runs[0].attempts[0].tracked.values()
    return next(d for d in t.detectors if d.rule.name == RULE).cadence


def test_the_cadence_says_until_when_silence_is_normal():
    cadence = learnt(gaps())
    assert cadence.silent_until(1000.0) == 1300.0
    cadence = learnt(gaps(g300=90))
    assert cadence.silent_until(1000.0) == pytest.approx(1450.0, abs=1e-3)
    cadence.learn(EVALUATION, 200.0, too_long=False)  # who knows what it does since
    assert cadence.silent_until(1000.0) == 2000.0


def test_before_anything_is_known_a_start_may_take_two_hours():
    assert Cadence().silent_until(5.0) == 7205.0
    assert learnt([5.0, 5.0]).silent_until(0.0) == 7200.0
    assert learnt([5.0] * 8).silent_until(0.0) == 3600.0


def test_a_gap_that_was_too_long_is_learnt_when_it_comes_again():
    cadence = Cadence(gaps=100, usual=2.0)
    cadence.learn(TRAINING, 4000.0, too_long=True)
    assert cadence.limit(TRAINING) == 300.0
    cadence.learn(TRAINING, 500.0, too_long=True)
    assert cadence.limit(TRAINING) == 2500.0


def test_what_is_announced_between_two_steps():
    said = {"eval_steps": 100, "save_steps": 250}.get
    assert announced(said, 99, 100) == EVALUATION
    assert announced(said, 240, 250) == CHECKPOINT
    assert announced(said, 100, 110) == EVALUATION  # it began at 100
    assert announced(said, 101, 199) == TRAINING
    assert announced({}.get, 99, 100) == TRAINING


# ------------------------------------------------------------------------------------------------------ what it lacks
def test_what_it_lacks_is_told():
    def blind(n, time):
        [t] = session({"loss": np.ones(n)}, time=time).runs[0].attempts[0].tracked.values()
        return next(d.blind() for d in t.detectors if d.rule.name == RULE)

    assert blind(50, None) == "no wall time is logged"
    assert blind(50, np.full(50, math.nan)) == "no wall time is logged"
    assert blind(3, clock([1.0] * 3)) == "too few reports have a wall time"
    assert blind(50, clock([1.0] * 50)) == ""
