"""memory-growth: leaks, the step at which memory runs out, and growth that isn't one."""

import numpy as np
import pytest

from tests.engine import session
from tests.rules.detectors.speed import found, told
from trainmon_rules.detectors.memory_growth import theil_sen
from trainmon_rules.state import Settings

RULE = "memory-growth"
N = 5000
T = np.arange(N)


def level(seed=0, at=40.0, noise=0.3, n=N):
    return at + np.random.default_rng(seed).normal(0, noise, n)


def answered(**answers):
    return {"settings": Settings.default(answers)}


# -------------------------------------------------------------------------------------------------- it is found
@pytest.mark.parametrize("seed", range(3))
def test_a_leak_is_found_with_its_rate(seed):
    [f] = found(RULE, {"gpu_mem_gb": level(seed) + 0.004 * T})
    assert f.detected_step < 2500
    assert f.evidence["growth a thousand"] == pytest.approx(4.0, rel=0.03)
    assert "by 4" in f.summary
    assert f.summary.endswith("--set gpu_memory=80GB tells when it runs out")
    assert str(f.severity) == "warning"  # by more than 30 % in the end


def test_an_exact_line_needs_no_more_than_its_reports():
    assert told(RULE, {"memory": 3000.0 + T[:600]}) == [("info", 48, 239, None)]


@pytest.mark.parametrize(
    ("tags", "kwargs", "out"),
    [
        ({"gpu.0.memoryAllocated": 40 + 0.01 * T}, {}, 6000),
        ({"gpu_mem_gb": level() + 0.004 * T}, answered(gpu_memory="80GB"), 10_000),
        ({"max_mem": 1024 * level() + 4.096 * T}, answered(gpu_memory="80GB"), 10_000),
        ({"proc.memory.rssMB": 1024 * level() + 4.096 * T}, answered(host_memory="64GB"), 6000),
        ({"DCGM_FI_DEV_FB_USED": 40e3 + 4.0 * T, "DCGM_FI_DEV_FB_FREE": 41e3 - 4.0 * T}, {}, 10_250),
        ({"gb_free": 40 - 0.004 * T}, {}, 10_000),
        ({"proc.memory.availableMB": 40e3 - 4.0 * T}, {}, 10_000),
    ],
)
def test_the_step_at_which_memory_runs_out(tags, kwargs, out):
    for f in found(RULE, tags, **kwargs):
        assert f.evidence["runs out at step"] == pytest.approx(out, rel=0.02)
        assert f.evidence["runs out at the earliest step"] <= f.evidence["runs out at step"]
    assert len(found(RULE, tags, **kwargs)) == len(tags)


def test_pressing_is_what_runs_out_before_the_planned_end():
    tags = {"gpu_mem_gb": level() + 0.004 * T}

    def severities(**answers):
        return [s for s, *_ in told(RULE, tags, **answered(gpu_memory=80, **answers))]

    assert severities(total_steps=20_000) == ["warning"]
    assert severities(total_steps=8_000) == ["info"]
    [f] = found(RULE, tags, **answered(gpu_memory=80, total_steps=8_000))
    assert f.summary.endswith("after the planned end at 8,000")


def test_a_fast_leak_is_told_before_it_is_too_late():
    [f] = found(RULE, {"gpu.0.memoryAllocated": 40 + 0.3 * T[:200]})
    assert (f.detected_step, f.evidence["runs out at step"], str(f.severity)) == (119, 200, "warning")


def test_a_leak_in_stairs():
    assert [f.onset_step < 1000 for f in found(RULE, {"gpu_mem_gb": level() + 0.5 * (T // 200)})] == [True]


def test_it_ends_when_memory_falls_back_or_grows_no_more():
    [f] = found(RULE, {"gpu_mem_gb": level() + 0.01 * (T % 3000)})
    assert 3000 <= f.resolved_step < 3500
    assert f.recovery.startswith("fell back to 4")
    [f] = found(RULE, {"gpu_mem_gb": level() + 0.01 * np.minimum(T, 2500)})
    assert 2500 < f.resolved_step < 3500
    assert f.recovery.startswith("grows no more, 6")


# -------------------------------------------------------------------------------------------- what only looks like it
def quiet(memory, tag="gpu_mem_gb", **tags):
    assert told(RULE, {tag: memory, **tags}) == []


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("noise", [0.0, 0.3, 4.0])
def test_level_memory(seed, noise):
    quiet(level(seed, noise=noise))


@pytest.mark.parametrize("seed", range(5))
def test_memory_that_wanders(seed):
    rng = np.random.default_rng(seed)
    quiet(40 + np.cumsum(rng.normal(0, 0.02, N)))


@pytest.mark.parametrize("reports", [50, 150, 500, 1000])
def test_caches_and_allocators_that_level_off(reports):
    quiet(level() + 10 * (1 - np.exp(-T / reports)))
    quiet(40 + 10 * (1 - np.exp(-T / reports)))


def test_growth_that_slows_down():
    quiet(level() + 2 * np.log1p(T))
    quiet(40 + 0.2 * np.sqrt(T))


@pytest.mark.parametrize("seed", range(5))
def test_a_running_maximum(seed):
    lengths = np.random.default_rng(seed).exponential(1, N)
    quiet(20_000 + 1000 * np.maximum.accumulate(lengths), "max_mem")


@pytest.mark.parametrize("tooth", [20, 100, 200])
def test_a_sawtooth(tooth):
    quiet(level() + 10 * (T % tooth) / tooth)


def test_steps_up_when_evaluation_begins():
    quiet(level() + 5 * (T > 2000))
    quiet(level() + 5 * (T > 1500) + 5 * (T > 3500))


def test_a_dataset_that_comes_into_memory_in_the_first_epoch_is_a_note():
    memory = 8000 + 2.0 * np.minimum(T, 2500)
    assert [s for s, *_ in told(RULE, {"proc.memory.rssMB": memory, "epoch": T / 2500})] == ["info"]


def test_few_reports_say_nothing():
    quiet(40 + 0.1 * T[:119])
    [t] = session({"gpu_mem_gb": level()[:100]}).runs[0].attempts[0].tracked.values()
    assert next(d.blind() for d in t.detectors if d.rule.name == RULE) == "fewer than 120 reports are logged"


def test_growth_of_unknown_unit_is_told_as_logged():
    [f] = found(RULE, {"memory": 40 + 0.004 * T})
    assert "grows by 4 every 1,000 steps" in f.summary
    assert "--set" not in f.summary


# ------------------------------------------------------------------------------------------------------- the slope
def test_the_median_slope_forgives_outliers():
    x = np.arange(40)
    y = 3.0 * x
    y[[5, 20, 33]] = 1e6
    assert theil_sen(x, y) == pytest.approx(3.0, rel=0.02)
    assert theil_sen(np.zeros(5, np.int64), np.arange(5.0)) == 0.0


# -------------------------------------------------------------------------------------------------------- borders
@pytest.mark.parametrize(("percent", "told_"), [(2.0, 0), (6.0, 1)])
def test_two_percent_from_the_second_sixth_to_the_last_are_the_least(percent, told_):
    """An exact line: between the middles of those parts lie two thirds of the growth."""
    assert len(told(RULE, {"gpu_mem_gb": 40 + 0.4 * percent * T / N})) == told_


def test_memory_that_is_cleared_at_each_evaluation_and_grows_as_much_again():
    for seed in range(3):
        quiet(level(seed) + 5 * (T % 150) / 150)


def test_a_device_that_other_jobs_share():
    """Steps up and down of whole gigabytes as they come and go."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        quiet(40 + 4 * np.repeat(rng.integers(0, 6, 25), 200))
