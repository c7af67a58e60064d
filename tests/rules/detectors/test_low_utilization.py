"""low-utilization: a GPU that waits, of one and of several, and what only looks like it."""

import numpy as np
import pytest

from tests.engine import block_ends, session
from tests.rules.detectors.speed import found, told
from trainmon_rules.engine import Session
from trainmon_rules.points import Batch, chunk
from trainmon_rules.state import Settings

RULE = "low-utilization"
N = 600
LOSS = np.ones(N)
TIME = 1.7e9 + 5.0 * np.arange(N)


def use(percent, seed=0, spread=8.0, n=N):
    return np.clip(np.random.default_rng(seed).normal(percent, spread, n), 0, 100).round()


# -------------------------------------------------------------------------------------------------- it is found
@pytest.mark.parametrize("seed", range(3))
def test_below_half_for_ten_minutes_is_a_warning(seed):
    [f] = found(RULE, {"loss": LOSS, "gpu.0.gpu": use(35, seed)}, time=TIME)
    assert (f.onset_step, f.detected_step, str(f.severity)) == (2, 123, "warning")  # 605 s
    assert f.summary.startswith("GPU utilisation is only 3")


def test_without_wall_times_it_takes_120_samples():
    assert told(RULE, {"loss": LOSS, "gpu.0.gpu": use(35)}) == [("warning", 2, 123, None)]
    assert told(RULE, {"loss": LOSS[:120], "gpu.0.gpu": use(35)[:120]}) == []


@pytest.mark.parametrize("unit", [1.0, 0.01])
def test_percent_or_part_of_one(unit):
    [f] = found(RULE, {"loss": LOSS, "gpu_util": use(35) * unit}, time=TIME)
    assert f.evidence["GPU utilization percent"] == pytest.approx(35, abs=4)


def test_it_ends_when_the_gpu_is_busy_again():
    x = np.concatenate([use(90)[:200], use(30)[:200], use(90)[:200]])
    [(severity, onset, detected, end)] = told(RULE, {"loss": LOSS, "gpu.0.gpu": x}, time=TIME)
    assert (severity, onset, detected, end) == ("warning", 200, 335, 415)


@pytest.mark.parametrize(
    "tags",
    [
        {"time/iter": np.ones(N), "data_time": 0.6 * np.ones(N)},
        {"data_loading_pct": 60 * np.ones(N)},
        {"throughput/device/data loading (%)": 60 * np.ones(N)},
    ],
)
def test_waiting_for_data_counts_too(tags):
    [f] = found(RULE, {"loss": LOSS, **tags}, time=TIME)
    assert f.summary == "60 % of a step is waiting for data since step 2"


def test_system_metrics_in_a_file_of_their_own():
    system = 1.7e9 + 15.0 * np.arange(200)
    for order in (("train", "system"), ("system", "train")):
        s = Session("run", Settings.default())
        for name in ("train", "system"):
            s.open(name)
        batches = {
            "train": Batch([chunk("loss", range(N), LOSS, TIME)]),
            "system": Batch([chunk("gpu.0.gpu", range(200), use(35, n=200), system)]),
        }
        for name in order:
            s.feed(name, batches[name])
        s.end()
        [f] = [f for f in s.runs[0].findings.values() if f.rule == RULE]
        assert f.detected_time - f.onset_time >= 600


# ---------------------------------------------------------------------------------------------------- several GPUs
def gpus(*percent):
    return {"loss": LOSS, **{f"gpu.{i}.gpu": use(p, i, 8.0 if p else 0.0) for i, p in enumerate(percent)}}


def test_all_of_them_low_is_one_finding():
    [f] = found(RULE, gpus(35, 30, 40, 35), time=TIME)
    assert f.tag == "gpu.0.gpu"
    assert f.summary.endswith("on 4 GPUs since step 2")


def test_those_that_the_job_does_not_use_do_not_speak():
    [f] = found(RULE, gpus(0, 35, 0, 0), time=TIME)
    assert f.tag == "gpu.1.gpu"
    assert told(RULE, gpus(95, 0, 0, 0), time=TIME) == []


def test_one_idle_among_busy_ones_is_worth_a_word():
    [f] = found(RULE, gpus(95, 90, 0, 92), time=TIME)
    assert (f.tag, str(f.severity)) == ("gpu.2.gpu", "info")
    assert f.summary == "gpu.2.gpu is idle (0 %) while 3 other GPUs are busy since step 2"


def test_one_of_them_half_busy_says_nothing():
    assert told(RULE, gpus(95, 90, 35, 92), time=TIME) == []


# -------------------------------------------------------------------------------------------- what only looks like it
@pytest.mark.parametrize("percent", [55, 65, 85, 99])
def test_above_half_is_no_finding(percent):
    assert told(RULE, {"loss": LOSS, "gpu.0.gpu": use(percent)}, time=TIME) == []


def test_dips_at_evaluations():
    x = use(93)
    x[np.arange(N) % 40 > 30] = 10
    assert told(RULE, {"loss": LOSS, "gpu.0.gpu": x}, time=TIME) == []


def test_a_long_evaluation_in_which_no_training_is_reported():
    x = np.concatenate([use(93)[:200], use(10)[:200], use(93)[:200]])
    loss = [1.0 if i < 200 or i >= 400 else None for i in range(N)]
    assert told(RULE, {"loss": loss, "gpu.0.gpu": x}, time=TIME) == []


def test_the_time_before_training_begins():
    loss = [None] * 300 + [1.0] * 300
    x = np.concatenate([use(0)[:300], use(93)[:300]])
    assert told(RULE, {"loss": loss, "gpu.0.gpu": x}, time=TIME) == []


def test_samples_of_a_few_seconds_only():
    assert told(RULE, {"loss": LOSS, "gpu.0.gpu": use(20)}, time=1.7e9 + 0.2 * np.arange(N)) == []


@pytest.mark.parametrize("waiting", [0.05, 0.3])
def test_a_loader_that_keeps_up(waiting):
    assert told(RULE, {"loss": LOSS, "time/iter": np.ones(N), "data_time": np.full(N, waiting)}, time=TIME) == []


def test_data_time_in_another_unit_than_the_step_time_is_not_compared():
    tags = {"data_time": np.full(N, 30.0), "step_time": np.full(N, 0.3), "loss": LOSS}
    assert told(RULE, tags, time=TIME) == []
    assert blind(tags) == "no step time in the same unit beside the data time"


def test_a_run_that_learns_from_rewards_gets_a_note():
    [f] = found(RULE, {"rollout/ep_rew_mean": LOSS, "gpu.0.gpu": use(20)}, time=TIME)
    assert str(f.severity) == "info"


# ------------------------------------------------------------------------------------------------------ what it lacks
def blind(tags):
    tracked = session(tags, time=TIME).runs[0].attempts[0].tracked
    t = tracked["log", next(iter(tags))]
    return next(d.blind() for d in t.waiting if d.rule.name == RULE)


def test_what_it_lacks_is_told():
    assert blind({"gpu.0.gpu": use(35)}) == "no training loss beside it"
    assert blind({"gpu.0.gpu": use(35), "loss": LOSS}) == ""
    assert blind({"gpu_util": np.ones(N), "loss": LOSS}) == "fewer than 30 samples, or nobody can tell their unit"


# ------------------------------------------------------------------------------------------------------ slow twin
def twin(x):
    """The rule in its obvious form, of one GPU without wall times, beside a loss in each row: (onset, detected)."""
    since = None
    for end in block_ends(len(x), 32):  # training is seen to go on from the second report on
        low = np.median(x[end - 30 : end]) < 50
        begun = max(range(end - 30, end), key=lambda k: sum(1 if v < 50 else -1 for v in x[k:end]))
        since = None if not low else begun if since is None else since
        if since is not None and end - 1 - since >= 120:
            return since, end - 1
    return None


def busy(seed):
    rng = np.random.default_rng(seed)
    level = np.repeat(rng.choice([30, 45, 55, 90], 12), 50)
    return np.clip(level + rng.normal(0, 8, N), 0, 100).round()


def test_the_twin_tells_some_and_leaves_some():
    assert 5 < sum(twin(busy(seed)) is not None for seed in range(30)) < 27


@pytest.mark.parametrize("seed", range(30))
def test_agrees_with_its_slow_twin(seed):
    x = busy(seed)
    got = [(onset, detected) for _, onset, detected, _ in told(RULE, {"loss": LOSS, "gpu.0.gpu": x})][:1]
    assert (got or [None]) == [twin(x)]


@pytest.mark.parametrize(("minutes", "count"), [(9, 0), (12, 1)])
def test_ten_minutes_are_the_border(minutes, count):
    """From the first of the samples whose median is low; the GPU is busy before."""
    low = round(minutes * 60 / 5)
    x = np.concatenate([use(92)[:200], use(30)[:low], use(92)[: 400 - low]])
    assert len(told(RULE, {"loss": LOSS, "gpu.0.gpu": x}, time=TIME)) == count
