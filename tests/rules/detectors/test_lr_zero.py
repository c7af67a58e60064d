"""lr-zero: 0 while training goes on, and the zeros that are only printed, or belong there."""

import numpy as np
import pytest

from tests.ailing_rates import zero_rate
from tests.columns import Columns
from tests.schedules import TOTAL, rates
from tests.streams import findings
from trainmon_rules.detectors.course import Course
from trainmon_rules.detectors.schedule import descent, printed_to
from trainmon_rules.series import View

RULE = "lr-zero"


def found(lr, step=None, settings=None, loss=None):
    columns = {"lr": lr} if loss is None else {"lr": lr, "loss": loss}
    got = findings(Columns(columns, range(1, len(lr) + 1) if step is None else step, settings), RULE)
    return [(f.evidence["form"], f.onset_step, f.detected_step, f.resolved_step) for f in got]


def test_a_rate_that_falls_to_0_in_one_report_is_said_at_the_third():
    assert [(f.evidence["form"], f.onset_step, f.detected_step) for f in findings(zero_rate(), RULE)] == [
        ("zero at once", 300, 302)
    ]


def test_it_ends_when_the_rate_is_back():
    assert found([1e-3] * 100 + [0.0] * 10 + [1e-3] * 10) == [("zero at once", 101, 103, 111)]


def test_a_decay_that_is_over_too_early_is_said_at_the_third_if_the_plan_is_known():
    lr = rates("linear", 3e-4, [min(8 * t, TOTAL) for t in range(1, 1001)])
    [(form, onset, detected, _)] = found(lr, settings={"max_steps": TOTAL})
    assert (form, onset, detected) == ("zero too early", 500, 502)
    [finding] = findings(Columns({"lr": lr}, range(1, 1001), {"max_steps": TOTAL, "world_size": 8}), RULE)
    assert finding.evidence["factor"] == 8
    assert "each of the 8 devices stepped it" in finding.summary


def test_without_a_plan_it_takes_a_tenth_of_the_run():
    lr = rates("linear", 3e-4, range(1, TOTAL + 1)) + [0.0] * 1000
    assert found(lr) == [("zero at the end", TOTAL, TOTAL + 412, None)]


def falling(n, by=1.0):
    return (2 + by * np.exp(-np.arange(n) / 20) + np.random.default_rng(0).normal(0, 0.02, n)).tolist()


def test_a_rate_that_was_0_from_the_first_report_on():
    assert found([0.0] * 60, loss=falling(60, by=0)) == [("zero from the start", 1, 40, None)]


@pytest.mark.parametrize("more", [{"max_steps": 300}, {"warmup_steps": 20}])
def test_it_needs_no_loss_where_the_peak_is_known_and_a_warm_up_would_be_over(more):
    assert found([0.0] * 60, settings={"learning_rate": 1e-3, **more}) == [("zero from the start", 1, 40, None)]
    assert found([0.0] * 60, settings=more) == []


# ------------------------------------------------------------------------------------------------ look-alikes
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("skipped", [1, 16, 32])
def test_updates_skipped_while_the_loss_scale_is_found_are_quiet(seed, skipped):
    lr = [0.0] * skipped + rates("cosine", 1e-4, range(1, 500))
    assert found(lr, loss=np.random.default_rng(seed).normal(8, 0.1, len(lr)).tolist()) == []


@pytest.mark.parametrize("peak", [6e-4, 2e-5, 5e-6, 1e-6])
@pytest.mark.parametrize("shape", ["cosine", "linear", "polynomial", "one_cycle"])
def test_the_end_of_a_decay_printed_with_six_decimals_is_quiet(shape, peak):
    assert found(rates(shape, peak, range(1, TOTAL + 1), 6)) == []
    assert found(rates(shape, peak, range(1, TOTAL + 1), 6), settings={"max_steps": TOTAL}) == []


@pytest.mark.parametrize("peak", [3e-4, 2e-5])
def test_cycles_that_touch_0_are_quiet(peak):
    for places in (None, 6):
        assert found(rates("warm_restarts", peak, range(1, TOTAL + 1), places), settings={"max_steps": TOTAL}) == []


def test_a_rate_that_prints_as_0_while_the_loss_falls_is_quiet():
    assert found([0.0] * 300, loss=falling(300)) == []


def test_a_small_rate_as_announced_prints_as_0():
    assert found([0.0] * 300, settings={"learning_rate": 5e-7, "max_steps": 1000}, loss=falling(300, by=0)) == []


def test_a_warm_up_that_is_still_below_the_last_digit_is_quiet():
    lr = rates("cosine", 2e-5, [t / 50 for t in range(1, 200)], 6)  # ten thousand steps of warm-up
    assert found(lr, settings={"warmup_steps": 10_000, "learning_rate": 2e-5}, loss=falling(199, by=0)) == []


def test_a_resumed_attempt_goes_on_where_the_rate_had_come_down():
    step = [*range(1, TOTAL + 1), *range(TOTAL - 30, TOTAL + 80)]
    assert found(rates("cosine", 2e-5, step, 6), step, loss=[2.0] * len(step)) == []


@pytest.mark.parametrize("gap", [float("nan"), None])
def test_gaps_neither_begin_nor_end_it(gap):
    lr = [1e-3] * 100 + [0.0, gap, 0.0, gap, 0.0, 0.0]
    assert found(lr) == [("zero at once", 101, 105, None)]


# ------------------------------------------------------------------------------------------------- its measures
@pytest.mark.parametrize(
    ("values", "digit"),
    [
        ([3e-4, 2.99e-4, 2.5e-4, 1e-6], 1e-6),
        ([3e-4, 2e-4, 1e-4, 5e-4], 1e-4),
        (np.float32([3.01e-4, 2.99e-4, 2.5e-4, 1e-6]).astype(float), 1e-6),
        ([3e-4], 1e-6),
        ([1 / 3e3, 1 / 3.1e3, 1 / 3.2e3, 1 / 3.3e3], 0.0),
        ([1.23456789e-5], 0.0),
    ],
)
def test_the_last_printed_digit(values, digit):
    assert printed_to(np.asarray(values)) == pytest.approx(digit)


def test_there_is_no_descent_without_a_rate_above_0():
    nothing = View(0, np.arange(3), np.zeros(3), np.zeros(3), np.arange(3))
    assert descent(nothing, Course(), 3) is None


# ------------------------------------------------------------------------------------------------- slow twin
def runs_of_zero(lr):
    """(first, third, the one that ends it) of each stretch of at least three zeros, by step."""
    out, at = [], 0
    while at < len(lr):
        end = at
        while end < len(lr) and lr[end] == 0.0:
            end += 1
        if end - at >= 3:
            out.append((at + 1, at + 3, end + 1 if end < len(lr) else None))
        at = max(end, at + 1)
    return out


@pytest.mark.parametrize("seed", range(10))
def test_agrees_with_its_slow_twin_where_the_rate_falls_at_once(seed):
    rng = np.random.default_rng(seed)
    lr = np.full(600, 1e-3)
    for at in rng.integers(1, 600, 25):
        lr[at : at + rng.integers(1, 9)] = 0.0
    assert [f[1:] for f in found(lr.tolist())] == runs_of_zero(lr)
