"""throughput-drop: lasting slowdowns, and what only looks like one."""

import re

import numpy as np
import pytest

from tests.engine import session
from tests.rules.detectors.speed import MEGATRON, clock, found, noisy, told, wander
from trainmon_rules.detectors.levels import median_error
from trainmon_rules.detectors.slowdown import level_of, recovered, turning
from trainmon_rules.engine import Session
from trainmon_rules.points import Batch, chunk
from trainmon_rules.series.robust import medians
from trainmon_rules.state import Settings

RULE = "throughput-drop"
N = 3000


def stepped(before, after, n=N, at=N // 2, seed=0, noise=0.03):
    return noisy(n, np.where(np.arange(n) < at, before, after), seed, noise)


# -------------------------------------------------------------------------------------------------- it is found
BLOOM = [105.16, 105.17, 106.25, 110.17, 111.14]  # seconds of the iterations 42780 to 42784, tr11-176B, 2022-04-28


def bloom(seed, recorded=BLOOM, after=111.0):
    """The recorded iterations in a stretch of their level and noise (0.4 %, now and then 1.5 % more)."""
    rng = np.random.default_rng(seed)
    before = 105.2 * np.exp(rng.normal(0, 0.004, 780)) * np.where(rng.random(780) < 0.02, 1.015, 1.0)
    return np.concatenate([before, recorded, after * np.exp(rng.normal(0, 0.004, 700))])


@pytest.mark.parametrize("seed", range(8))
def test_the_lasting_five_percent_of_bloom_are_found_and_dated(seed):
    steps = 42_000 + np.arange(1485)
    [f] = found(RULE, {MEGATRON: bloom(seed), "lm loss": np.full(1485, 2.11)}, step=steps)
    assert f.onset_step == 42_783
    assert f.detected_step == 42_815  # 33 iterations, 61 minutes later
    assert str(f.severity) == "warning"
    assert f.resolved_step is None
    assert f.evidence["throughput lost"] == pytest.approx(0.052, abs=0.003)
    assert re.search(r"rose from 105\.\d to 11[01](\.\d)?: a step takes 5\.\d % longer since step 42783", f.summary)


def test_it_is_a_note_until_it_has_lasted():
    tags = {MEGATRON: bloom(0)[: 783 + 150], "lm loss": np.full(783 + 150, 2.11)}
    assert told(RULE, tags) == [("info", 783, 815, None)]


@pytest.mark.parametrize(("share", "detected"), [(1.05, 4095), (1.08, 4095)])
@pytest.mark.parametrize("seed", range(3))
def test_five_percent_of_a_short_run_are_told_after_some_minutes(seed, share, detected):
    x = stepped(0.5, 0.5 * share, 5000, 2500, seed, noise=0.02)
    [(severity, onset, at, end)] = told(RULE, {"step_time": x})
    assert (severity, end) == ("info", None)
    assert abs(onset - 2500) <= 64
    assert at <= detected  # 14 minutes


@pytest.mark.parametrize("seed", range(3))
def test_forty_percent_of_a_few_minutes_are_told(seed):
    [(severity, onset, at, end)] = told(RULE, {"step_time": stepped(0.5, 0.7, 1000, 500, seed, noise=0.02)})
    assert (severity, end) == ("info", None)
    assert abs(onset - 500) <= 32
    assert at < 800


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n", [600, 1200, 3000, 6000])
def test_a_short_run_whose_pace_wanders_is_quiet(seed, n):
    assert told(RULE, {"step_time": 0.5 * wander(n, seed, 200, 0.02) * noisy(n, 1.0, seed)}) == []


def test_the_iterations_of_the_corpus_itself(corpus):
    path = corpus / "text/bigscience-workshop__bigscience/tr11-176B_chronicles_extract.log"
    text = path.read_text()
    line = re.compile(r"iteration +(\d+)/.*?elapsed time per iteration \(s\): ([\d.]+)")
    seconds = {int(i): float(s) for i, s in line.findall(text)}
    recorded = [seconds[i] for i in range(42_780, 42_785)]
    assert recorded == BLOOM
    x = bloom(0, recorded, seconds[45_000])
    assert told(RULE, {MEGATRON: x}, step=42_000 + np.arange(len(x))) == [("warning", 42_783, 42_815, None)]


@pytest.mark.parametrize(
    ("before", "after", "detected"),
    [(30.0, 60.0, 1519), (30.0, 36.0, 1519), (30.0, 31.8, 1535)],
)
def test_how_long_it_must_last_follows_from_its_size(before, after, detected):
    [f] = found(RULE, {"step_time_s": stepped(before, after, noise=0.01)})
    assert (f.onset_step, f.detected_step) == (1500, detected)


def test_noise_decides_how_long_it_must_last():
    quiet, loud = (found(RULE, {"step_time_s": stepped(30, 39, noise=s)})[0] for s in (0.02, 0.2))
    assert quiet.detected_step < loud.detected_step < 1700
    assert abs(loud.onset_step - 1500) < 20


def test_units_do_not_matter():
    x = stepped(30, 36)
    assert told(RULE, {"step_time_s": x}) == told(RULE, {"step_time_ms": 1000 * x}) != []


@pytest.mark.parametrize("tag", ["tokens_per_sec", "samples/s", "TFLOPs", "mfu"])
def test_a_throughput_that_falls(tag):
    [f] = found(RULE, {tag: 40.0 / stepped(1.0, 1.25), "loss": np.ones(N)}, time=clock(stepped(30, 37.5)))
    assert (f.onset_step, str(f.severity)) == (1500, "warning")
    assert f.summary.startswith(f"{tag} fell from 40")


@pytest.mark.parametrize("kwargs", [{}, {"resolution": 1.0}, {"flush": 4}])
def test_wall_times_of_the_training_loss(kwargs):
    seconds = stepped(3.0, 3.9, 6000, 3000)
    [f] = found(RULE, {"loss": np.ones(6000)}, time=clock(seconds, **kwargs))
    assert abs(f.onset_step - 3000) <= 16
    assert str(f.severity) == "warning"
    assert "by the log's wall times" in f.summary


def test_reports_may_be_far_apart():
    [f] = found(RULE, {"loss": np.ones(N)}, time=clock(stepped(30, 36)), step=np.arange(0, 50 * N, 50))
    assert f.onset_step == 75_000
    assert "a step takes 0.72" in f.summary


def test_a_run_that_gets_slower_and_slower():
    seconds = noisy(40, 25.0 + 4 * np.arange(40), noise=0.05)
    [f] = found(RULE, {"loss": np.ones(40)}, time=clock(seconds))
    assert f.detected_step <= 30
    assert str(f.severity) == "warning"
    creeping = found(RULE, {"step_time_s": noisy(20_000, 2.0 * np.linspace(1, 1.3, 20_000), noise=0.05)})
    assert [str(f.severity) for f in creeping] == ["warning"]


def test_it_ends_when_the_pace_comes_back():
    x = noisy(N, 30.0)
    x[1000:1500] *= 1.3
    [f] = found(RULE, {"step_time_s": x})
    assert (f.onset_step, f.resolved_step) == (1000, 1500)
    assert f.recovery.startswith("back at 29.77 ")


def test_a_slowdown_that_came_back_once_must_last_twice_as_long_to_be_told_again():
    once, twice, longer = (noisy(N, 30.0) for _ in range(3))
    once[600:700] *= 1.3
    twice[600:700] *= 1.3
    twice[1200:1300] *= 1.3
    longer[600:700] *= 1.3
    longer[1200:1600] *= 1.3
    onsets = [[f.onset_step for f in found(RULE, {"step_time_s": x})] for x in (once, twice, longer)]
    assert onsets == [[600], [600], [600, 1200]]


def test_a_run_that_is_slower_after_a_resume_is_a_note():
    x = stepped(30, 36)
    step = np.where(np.arange(N) < 1500, np.arange(N), np.arange(N) - 100)
    [f] = found(RULE, {"step_time_s": x, "loss": np.ones(N)}, step=step)
    assert (f.attempt, f.onset_step, str(f.severity)) == (1, 1400, "info")
    assert "since the run was resumed" in f.summary


def test_a_run_that_learns_from_rewards_gets_a_note():
    [f] = found(RULE, {"time/fps": 900 / stepped(1, 1.3), "rollout/ep_rew_mean": np.ones(N)})
    assert str(f.severity) == "info"


# ------------------------------------------------------------------------------------------- who speaks for the pace
def test_a_step_time_speaks_before_throughput_and_wall_times():
    slow, even = stepped(30, 39), noisy(N, 30.0)
    tags = {"step_time_s": even, "tokens_per_sec": 1e4 / slow, "loss": np.ones(N)}
    assert found(RULE, tags, time=clock(slow)) == []
    del tags["step_time_s"]
    assert [f.tag for f in found(RULE, tags, time=clock(even))] == ["tokens_per_sec"]


def test_a_better_measure_that_appears_later_takes_over():
    slow = stepped(30, 39, at=1000)
    tags = {"loss": [1.0] * N, "step_time_s": [None] * 2000 + slow[2000:].tolist()}
    [f] = found(RULE, tags, time=clock(slow))
    assert (f.tag, f.onset_step, f.resolved_step) == ("loss", 1000, 2000)


# -------------------------------------------------------------------------------------------- what only looks like it
def quiet(tags, **kwargs):
    assert told(RULE, tags, **kwargs) == []


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("noise", [0.01, 0.05, 0.2, 0.7])
def test_noise_is_none(seed, noise):
    quiet({"step_time_s": noisy(20_000, 30.0, seed, noise)})


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("steps", [30, 300, 3000])
def test_clocks_and_neighbours_wander(seed, steps):
    quiet({"step_time_s": noisy(10_000, 30.0, seed) * wander(10_000, seed, steps, 0.015)})


@pytest.mark.parametrize("seed", range(3))
def test_a_daily_rhythm_is_a_note_at_most(seed):
    day = 1 + 0.03 * np.sin(np.arange(10_000) * 2 * np.pi / 2880)
    assert all(s == "info" for s, *_ in told(RULE, {"step_time_s": noisy(10_000, 30.0, seed) * day}))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("resolution", [0.0, 1.0])
def test_evaluations_and_checkpoints_are_phases(seed, resolution):
    seconds = noisy(10_000, 0.5, seed)
    seconds[199::200] += 20
    seconds[999::1000] += 90
    quiet({"loss": np.ones(10_000)}, time=clock(seconds, resolution))
    quiet({"loss": np.ones(10_000), "step_time": seconds}, time=clock(seconds, resolution))


@pytest.mark.parametrize("seed", range(3))
def test_an_evaluation_after_every_other_report(seed):
    seconds = noisy(2000, 30.0, seed)
    seconds[::2] += 25
    quiet({"loss": np.ones(2000)}, time=clock(seconds))


def test_a_slow_start_and_a_slow_batch_at_the_end_of_each_epoch():
    seconds = noisy(2000, 30.0)
    seconds[:5] = [900, 300, 60, 50, 40]
    seconds[99::100] *= 2.5
    quiet({"step_time_s": seconds})
    quiet({"loss": np.ones(2000)}, time=clock(seconds))


def test_a_running_average_settles():
    average = np.cumsum(np.concatenate([[900.0], noisy(2999, 30.0)])) / np.arange(1, N + 1)
    quiet({"step_avg": average})
    quiet({"time/fps": 1e4 / average})


def test_a_hiccup_of_a_minute_is_none():
    seconds = noisy(20_000, 0.1)
    seconds[9000:9300] *= 2
    quiet({"loss": np.ones(20_000)}, time=clock(seconds))


def test_a_short_slowdown_of_a_few_percent_is_none():
    x = noisy(N, 30.0, noise=0.005)
    x[1500:1520] *= 1.06
    quiet({"step_time_s": x})


@pytest.mark.parametrize(
    ("tag", "before", "after"),
    [("global batch size", 1024, 2048), ("seq_length", 2048, 4096), ("world_size", 64, 48)],
)
def test_other_work_explains_it(tag, before, after):
    work = np.where(np.arange(N) < 1500, before, after)
    quiet({MEGATRON: stepped(30, 45), tag: work, "loss": np.ones(N)})
    assert told(RULE, {MEGATRON: stepped(30, 45), tag: np.full(N, before), "loss": np.ones(N)}) != []


def test_more_tokens_a_step_explain_it_and_noise_in_them_does_not():
    rng = np.random.default_rng(0)
    tokens = rng.normal(1e6, 3e4, N)
    more = tokens * np.where(np.arange(N) < 1500, 1, 1.5)
    quiet({MEGATRON: stepped(30, 45), "num_input_tokens_seen": np.cumsum(more)})
    assert told(RULE, {MEGATRON: stepped(30, 45), "num_input_tokens_seen": np.cumsum(tokens)}) != []


def test_what_is_slower_after_other_work_began_is_told_of_the_new_level():
    n, t = 4500, np.arange(4500)
    x = noisy(n, np.where(t < 1500, 30.0, np.where(t < 3000, 45.0, 60.0)))
    work = np.where(t < 1500, 1024, 2048)
    [f] = found(RULE, {MEGATRON: x, "global batch size": work})
    assert f.onset_step == 3000
    assert f.evidence["pace before"] == pytest.approx(45, rel=0.02)


@pytest.mark.parametrize("seed", range(3))
def test_unruly_wall_times_are_survived_quietly(seed):
    rng = np.random.default_rng(seed)
    time = clock(noisy(4000, 5.0, seed))
    time[rng.choice(4000, 400)] = np.nan
    time[1500:] -= 7200
    time[2500:] += 1e10
    quiet({"loss": np.ones(4000)}, time=time)
    quiet({"loss": np.ones(4000)}, time=np.full(4000, 1.7e9))
    quiet({"loss": np.ones(4000)})


# ------------------------------------------------------------------------------------------------------ what it lacks
def blind(tags, **kwargs):
    s = session(tags, **kwargs)
    [t] = [t for t in s.runs[0].attempts[0].tracked.values() if t.series.tag == next(iter(tags))]
    return next(d.blind() for d in t.detectors if d.rule.name == RULE)


def test_what_it_lacks_is_told():
    assert blind({"loss": np.ones(50)}) == "no step time, throughput or wall time is logged"
    assert blind({"step_time": np.zeros(50)}) == "no positive numbers are logged"
    assert blind({"step_time_s": noisy(20, 30.0)}) == "too few reports tell how long a step takes"
    assert blind({"step_time_s": noisy(60, 30.0)}) == ""


def test_another_source_beside_it_changes_nothing():
    x = stepped(30, 39)
    s = Session("run", Settings.default())
    for name in ("train", "system"):
        s.open(name)
    s.feed("train", Batch([chunk("step_time_s", range(N), x, clock(x))]))
    s.feed("system", Batch([chunk("gpu.0.temp", range(N), np.full(N, 60.0), clock(x))]))
    s.end()
    assert [f.onset_step for f in s.runs[0].findings.values() if f.rule == RULE] == [1500]


# ------------------------------------------------------------------------------------------------------ slow twin
def rises(before, window, usual, least):
    """By how much a window lies above the usual, if that is sure."""
    m = len(window)
    rise = np.median(window) - usual
    end = np.median(window[-max(8, m // 4) :]) - usual
    w = max(8, min(m, len(before) // 3))
    error = median_error(level_of(before) if m == 8 else before, w)
    return rise if rise >= least and end >= rise / 2 and rise >= max(6 * error, 1.5 * recovered(before, w)) else 0.0


def twin(seconds):
    """The rule without its short cut, where each report is a stretch: what is first said, (first step, report)."""
    x, count = np.log(seconds), 16
    while count <= len(x):
        level, cells = x[max(0, count - 256) : count], medians(x[: count // 16 * 16], 16)
        for length, past, share in ((8, 2, 0.5), (12, 1, 0.25), (20, 1, 0.15), (64, 1, 0.04)):
            before, window = level[:-length], level[-length:]
            if len(before) < past * length:
                break
            whole = (count - length + 15) // 16 - 1  # cells that end before it
            usual = min(np.median(before), np.median(cells[:whole]) if whole > 8 else np.inf)
            if rise := rises(before, window, usual, np.log1p(share)):
                return count - len(level) + turning(level, usual + rise / 2, rise), count - 1
        else:
            k = len(cells) // 8
            usual = np.median(cells[:-k]) if k else np.inf
            rise = rises(cells[:-k], cells[-k:], usual, np.log1p(0.04)) if len(cells) >= 16 else 0.0
            if rise and np.median(level) - usual >= rise / 2:
                return 16 * turning(cells, usual + rise / 2, rise), count - 1
        count += 4 if count < 256 else 16
    return None


def drifting(seed):
    """Step times that rise by some part at some place, for a while or for good, quickly or slowly."""
    rng = np.random.default_rng(seed)
    n, t = 900, np.arange(900)
    x = noisy(n, 30.0, seed, rng.choice([0.005, 0.03, 0.15]))
    at, over = int(rng.integers(40, 850)), int(rng.choice([6, 40, 900]))
    x[at : at + over] *= 1 + rng.choice([0.03, 0.06, 0.2, 0.8])
    return x * (1 + rng.choice([0.0, 0.0, 0.2]) * t / n) * wander(n, seed, 100, rng.choice([0.0, 0.01]))


def test_the_twin_tells_some_and_leaves_some():
    assert 10 < sum(twin(drifting(seed)) is not None for seed in range(40)) < 38


@pytest.mark.parametrize("seed", range(40))
def test_the_short_cut_misses_nothing(seed):
    x = drifting(seed)
    got = [(onset, detected) for _, onset, detected, _ in told(RULE, {"step_time_s": x})][:1]
    assert (got or [None]) == [twin(x)]
