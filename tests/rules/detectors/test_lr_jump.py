"""lr-jump: above the highest rate so far, from one report to the next."""

import itertools

import numpy as np
import pytest

from tests.ailing_rates import jumping_rate
from tests.columns import Columns
from tests.schedules import TOTAL, logged, rates
from tests.streams import findings
from trainmon_rules.findings import Severity

RULE = "lr-jump"


def found(lr, step=None, settings=None):
    got = findings(Columns({"lr": lr}, range(1, len(lr) + 1) if step is None else step, settings), RULE)
    return [(str(f.severity), f.onset_step, f.detected_step, f.resolved_step) for f in got]


def decayed(n=300):
    return [3e-4 * (1 - t / 1000) for t in range(n)]


def test_a_jump_is_said_at_its_second_report():
    [f] = findings(jumping_rate(), RULE)
    assert (f.severity, f.onset_step, f.detected_step) == (Severity.WARNING, 300, 301)
    assert f.evidence["ratio"] == pytest.approx(8.5, rel=0.01)


def test_it_ends_when_the_rate_is_back_for_three_reports():
    lr = decayed(400)
    lr[300:320] = [1e-3] * 20
    assert found(lr) == [("warning", 301, 302, 323)]


def test_a_rate_that_has_never_fallen_jumps_once_the_run_is_well_under_way():
    lr = [1e-4] * 500 + [1e-3] * 100
    assert found(lr) == []  # it may be a warm-up in steps
    assert found(lr, settings={"max_steps": 1000}) == [("warning", 501, 502, None)]
    assert found(lr, settings={"max_steps": 100_000}) == []
    assert found(lr, settings={"warmup_steps": 200}) == [("warning", 501, 502, None)]


def test_in_a_log_that_begins_late_it_is_an_info():
    step = range(2000, 3000)
    lr = [1e-4 * (1 - t / 4000) for t in step]
    lr[500:] = [5e-4] * 500
    assert found(lr, step) == [("info", 2500, 2501, None)]


# ------------------------------------------------------------------------------------------------ look-alikes
@pytest.mark.parametrize("shape", ["warm_restarts", "decaying_restarts", "triangular", "one_cycle", "warmup_in_steps"])
@pytest.mark.parametrize("places", [None, 6])
@pytest.mark.parametrize("peak", [1e-2, 3e-4, 2e-5])
def test_schedules_that_go_up_are_quiet(shape, places, peak):
    assert found(rates(shape, peak, range(1, TOTAL + 1), places)) == []


@pytest.mark.parametrize("at", [600, 1600, 3600])
def test_a_warm_restart_after_a_resume_comes_back_to_the_peak_of_the_attempts_before(at):
    run = logged("warm_restarts", resume=at)
    assert findings(run, RULE) == []


def test_a_single_report_is_a_slip_of_the_log():
    lr = decayed() + [1.0] + decayed(300)[-1:] * 30
    assert found(lr) == []


def test_a_small_rise_is_none():
    assert found(decayed() + [4.4e-4] * 100) == []


def test_a_jump_of_one_printed_digit_is_none():
    lr = [2e-6] * 50 + [1e-6] * 100 + [3e-6, 4e-6] * 20
    assert found(lr) == []


@pytest.mark.parametrize("bad", [float("nan"), None, float("inf"), 1e300, -1e300])
def test_numbers_that_are_no_rates_are_passed_over(bad):
    lr = [*decayed(), bad, 1e-3, bad, 1e-3]
    assert found(lr) == [("warning", 302, 304, None)]
    assert found([*decayed(), bad, *decayed()[-1:] * 30]) == []


# --------------------------------------------------------------------------------------------------- slow twin
def slowly(lr):
    """The rule in its obvious form: (index of the jump, index of the report that confirms it), the first one."""
    for i in range(22, len(lr) - 1):
        peak, before = max(lr[:i]), lr[i - 21 : i]
        calm = all(b <= 1.001 * a for a, b in itertools.pairwise(before))
        if calm and lr[i - 1] < 0.95 * peak and min(lr[i], lr[i + 1]) > 1.5 * peak:
            return i + 1, i + 2
    return None


@pytest.mark.parametrize("seed", range(40))
def test_screening_whole_blocks_finds_what_looking_at_every_report_finds(seed):
    rng = np.random.default_rng(seed)
    lr = (3e-4 * 0.999 ** np.arange(900) * (1 + 0.2 * (rng.random(900) < 0.02))).tolist()
    at = int(rng.integers(30, 850))
    lr[at:] = [x * rng.uniform(1.0, 6.0) for x in lr[at:]]
    got = found(lr)
    expected = slowly(lr)
    assert ([(onset, detected) for _, onset, detected, _ in got[:1]] or [None]) == [expected]
