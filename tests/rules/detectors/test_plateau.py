"""plateau: exact steps on runs that stop learning, and silence on tails, decayed rates and converged runs."""

import numpy as np
import pytest

from tests.engine import block_ends
from tests.rules.test_trend import slow_cells
from tests.streams import findings, never_learns, steps, stops_learning
from trainmon_rules.findings import Severity, State
from trainmon_rules.series.trend import next_look, noise


def rng(seed=0):
    return np.random.default_rng(seed)


def plateau(**columns):
    return findings({tag: list(v) for tag, v in columns.items()}, "plateau")


@pytest.mark.parametrize(("seed", "onset", "detected"), [(0, 160, 319), (1, 160, 319), (2, 184, 367)])
def test_learned_to_chance_and_stopped_is_a_warning(seed, onset, detected):
    [f] = findings(stops_learning(seed), "plateau")
    assert steps([f]) == [(onset, detected, None)]
    assert f.severity is Severity.WARNING
    assert "ln 2" in f.summary
    assert f.evidence["share of its peak"] == 1.0


def test_stopped_elsewhere_is_only_listed():
    run = stops_learning(0)
    run["loss"] = [x + 0.2 for x in run["loss"]]
    [f] = findings(run, "plateau")
    assert (f.detected_step, f.severity) == (319, Severity.INFO)


def test_better_accuracy_than_chance_takes_the_witness_away():
    run = stops_learning(0)
    [f] = findings({**run, "accuracy": [0.8] * 1200}, "plateau")
    assert f.severity is Severity.INFO
    [f] = findings({**run, "accuracy": [0.5] * 11 + [0.51, 0.49] * 594 + [0.5]}, "plateau")
    assert f.severity is Severity.WARNING


def test_it_goes_on_and_is_resolved():
    t = np.arange(2400)
    loss = 1.0 + 0.8 * np.exp(-t / 40) - 0.4 * (1 - np.exp(-np.maximum(0, t - 1200) / 100))
    [f, *_] = plateau(loss=loss + rng().normal(0, 0.01, 2400))
    assert f.state is State.RESOLVED
    assert (f.detected_step, f.resolved_step) == (319, 1343)


def test_a_metric_stuck_below_its_best():
    accuracy = [0.475, 0.475, 0.5625, 0.5875, 0.5625, 0.55, 0.5125] + [0.45] * 15
    [f] = plateau(eval_accuracy=accuracy)
    assert steps([f]) == [(7, 18, None)]
    assert f.severity is Severity.WARNING
    assert f.summary == "eval_accuracy is stuck at exactly 0.45 since step 7; its best was 0.5875"


def test_a_metric_that_moves_again_is_resolved():
    accuracy = [0.4, 0.5, 0.6, *[0.45] * 15, 0.5, 0.6]
    assert steps(plateau(eval_accuracy=accuracy)) == [(3, 14, 18)]


def test_two_stuck_stretches_in_one_block_are_two_findings():
    rising_then_stuck_twice = [0.5 + i / 4000 for i in range(1280)] + [0.6] * 14 + [0.7] * 14 + [0.815] * 50
    found = plateau(eval_accuracy=rising_then_stuck_twice)
    assert [(f.detected_step, f.resolved_step) for f in found] == [(1291, 1294), (1305, 1308)]


# ------------------------------------------------------------------ look-alikes
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("power", [0.3, 0.5, 0.8])
def test_quiet_on_a_power_law_tail(power, seed):
    loss = 1.8 + 8.0 * (1 + np.arange(4000) / 40) ** -power
    assert plateau(loss=loss + rng(seed).normal(0, 0.04, 4000)) == []


def test_quiet_after_the_rate_has_decayed():
    run = stops_learning(0)
    lr = 1e-3 * np.exp(-np.arange(1200) / 60)
    assert plateau(loss=run["loss"], lr=lr) == []


def test_quiet_at_a_loss_near_nothing():
    loss = 0.02 + 2.0 * np.exp(-np.arange(1200) / 40) + rng().normal(0, 0.001, 1200)
    assert plateau(loss=loss) == []


def test_quiet_while_validation_improves():
    loss = 1.0 + 0.8 * np.exp(-np.arange(1200) / 40) + rng().normal(0, 0.01, 1200)
    val = [1.5 - i / 2000 if i % 10 == 0 else None for i in range(1200)]
    assert plateau(loss=loss, eval_loss=val) == []
    assert plateau(loss=loss, eval_loss=[1.5 if v is not None else None for v in val]) != []


def test_quiet_on_what_never_learned():
    assert findings(never_learns(0), "plateau") == []


def test_quiet_on_a_metric_constant_at_its_best():
    assert plateau(eval_accuracy=[0.2, 0.5, 0.8, *[0.93] * 30]) == []


# ------------------------------------------------------------------ borders
@pytest.mark.parametrize(("share", "count"), [(0.25, 0), (0.35, 1)])
def test_three_tenths_of_the_peak_rate_are_alive(share, count):
    run = stops_learning(0)
    rate = [1e-3] * 60 + [1e-3 * share] * 1140
    assert len(plateau(loss=run["loss"], lr=rate)) == count


# ------------------------------------------------------------------ slow twin
def looks(n, first):
    """The block ends at which the curve is looked at."""
    at = first
    for end in block_ends(n):
        if end >= at:
            yield end
            at = next_look(end)


def twin(x):
    """The rule without its short cuts, from all points at each look; no rate, nothing but the training loss."""
    for end in looks(len(x), 80):
        _, cells = slow_cells(x[:end], [True] * end)
        tail = np.array(cells[len(cells) // 2 :])
        k = len(tail) // 2
        start, level = max(np.median(x[:5]), cells[0]), np.median(tail[-k:])
        groups = [[np.median(g) for g in np.array_split(half, 4)] for half in (tail[:k], tail[-k:])]
        slowly = np.sqrt(sum(np.var(g, ddof=1) for g in groups) / 2) * np.sqrt(0.5)
        error = max(1.25 * noise(tail) * np.sqrt(2 / k), slowly)
        progress, gain = start - level, np.median(tail[:k]) - level
        learned = progress > max(0.04 * start, 6 * error) and level >= 0.05 * start
        if learned and gain + 2 * error < 0.02 * progress and gain < 2 * error and gain >= -0.02 * progress - 2 * error:
            return end - 1
    return None


def course(seed):
    """A loss that falls by some law and stops, or goes on a little, with some noise."""
    r, t = rng(seed), np.arange(1200)
    tail = r.choice([0.0, 0.0, 0.02, 0.3]) * t / 1200
    return (
        r.uniform(0.1, 2) + 3 * np.exp(-t / r.uniform(5, 150)) - tail + r.normal(0, r.choice([0.003, 0.03, 0.3]), 1200)
    )


def test_the_twin_tells_some_and_leaves_some():
    assert 5 < sum(twin(course(seed)) is not None for seed in range(30)) < 27


@pytest.mark.parametrize("seed", range(30))
def test_agrees_with_its_slow_twin(seed):
    x = course(seed)
    got = [f.detected_step for f in plateau(loss=x)][:1]
    assert (got or [None]) == [twin(x)]
