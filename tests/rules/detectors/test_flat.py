"""flat: exact steps on runs that never learn, and silence on those that only look so."""

import numpy as np
import pytest

from tests.rules.detectors.test_plateau import looks
from tests.rules.test_trend import slow_cells
from tests.streams import HEALTHY, findings, never_learns, sessions, steps, stops_learning
from trainmon_rules.findings import Severity, State
from trainmon_rules.points import Batch, chunk
from trainmon_rules.series import Series
from trainmon_rules.series.trend import noise


def rng(seed=0):
    return np.random.default_rng(seed)


def flat(every=1, **columns):
    return findings({tag.replace("__", "/"): list(v) for tag, v in columns.items()}, "flat", every=every)


@pytest.mark.parametrize(("seed", "detected"), [(0, 32), (1, 46), (2, 22)])
def test_a_loss_at_chance_is_said_once(seed, detected):
    [f] = findings(never_learns(seed), "flat")
    assert steps([f]) == [(0, detected, None)]
    assert (f.severity, f.state) == (Severity.WARNING, State.FIRING)
    assert f.evidence["reports"] == detected + 1
    assert f.evidence["learning rate"] == 1e-3
    assert abs(f.evidence["improvement"]) < 2 * f.evidence["standard error"]


def test_thirty_epochs_that_creep_are_flat_too():
    creeping = 2.3022 + 0.0004 * np.exp(-np.arange(30) / 8)
    assert steps(flat(loss=creeping)) == [(0, 19, None)]


def test_a_loss_that_never_changes_a_digit():
    [f] = flat(loss=[0.6931] * 20)
    assert steps([f]) == [(0, 11, None)]
    assert f.summary == "loss is exactly 0.6931 from the start"


def test_a_zero_loss_asks_for_the_labels():
    [f] = flat(loss=[0.0] * 20)
    assert steps([f]) == [(0, 4, None)]
    assert f.summary.endswith("are there any labels?")


def test_a_metric_that_is_constant_after_the_untrained_evaluation():
    [f] = flat(eval_accuracy=[0.475] + [0.55] * 20)
    assert steps([f]) == [(1, 12, None)]


def test_a_metric_of_zero_beside_a_vanished_loss():
    loss = 0.02 * np.exp(-np.arange(200) / 10)
    metric = [0.0 if i % 50 == 49 else None for i in range(200)]
    [f] = findings({"loss": loss.tolist(), "val/mAP": metric}, "flat")
    assert f.detected_step == 99  # at 49 the loss is still above 1 % of its start
    assert f.evidence["loss now"] < 0.01 * f.evidence["first loss"]


def test_a_late_start_is_said_and_taken_back():
    course = np.concatenate([np.full(300, 2.3), 2.3 * np.exp(-np.arange(700) / 200)])
    [f] = flat(loss=course + rng(1).normal(0, 0.02, 1000))
    assert steps([f]) == [(0, 46, 335)]
    assert f.state is State.RESOLVED
    assert f.recovery == "it has begun to learn, by step 335"


def test_a_reward_that_stays_where_it_was():
    reward = {"rollout/ep_rew_mean": (-48 + rng().normal(0, 0.5, 86)).tolist()}
    [f] = findings(reward, "flat", every=50)
    assert (f.detected_step, f.severity) == (3050, Severity.WARNING)


def test_a_noisy_reward_may_still_be_exploring():
    reward = {"rollout/ep_rew_mean": (30 + rng().normal(0, 10, 2000)).tolist()}
    [f] = findings(reward, "flat", every=50)
    assert f.detected_step == 6550
    assert f.severity is Severity.WARNING  # by now; three times as long ago it was info
    [early] = findings({k: v[:200] for k, v in reward.items()}, "flat", every=50)
    assert (early.key, early.severity) == (f.key, Severity.INFO)


# ------------------------------------------------------------------ epochs
def stairs(seed, n=900, length=300):
    """Fine-tuning: flat within an epoch, a step down at the next."""
    t = np.arange(n)
    loss = np.array([1.5, 1.0, 0.6])[t // length] * (1 + rng(seed).normal(0, 0.08, n))
    return {"loss": loss.tolist(), "epoch": (t / length).tolist()}


def standing(seed, n=900, length=300):
    return {"loss": (1.5 + rng(seed).normal(0, 0.05, n)).tolist(), "epoch": (np.arange(n) / length).tolist()}


@pytest.mark.parametrize("seed", range(8))
def test_a_staircase_with_the_epoch_is_never_more_than_a_note(seed):
    found = findings(stairs(seed), "flat")
    assert all(f.severity is Severity.INFO and f.state is State.RESOLVED for f in found)
    assert all(f.resolved_step < 360 for f in found)


@pytest.mark.parametrize("seed", range(4))
def test_what_is_flat_over_the_next_epoch_too_is_a_warning(seed):
    [early] = findings({k: v[:300] for k, v in standing(seed).items()}, "flat")
    [f] = findings(standing(seed), "flat")
    assert (early.severity, f.severity) == (Severity.INFO, Severity.WARNING)
    assert (f.key, f.detected_step) == (early.key, early.detected_step)


# ------------------------------------------------------------------ look-alikes
def test_quiet_while_the_rate_warms_up():
    n = 400
    loss = np.where(np.arange(n) < 300, 10.8, 10.8 - (np.arange(n) - 300) * 0.03) + rng().normal(0, 0.02, n)
    warm = np.minimum(1, (np.arange(n) + 1) / 350) * 3e-4
    assert flat(loss=loss, lr=warm) == []
    assert flat(loss=loss) != []  # it is the rate that explains it


def test_quiet_on_slow_but_significant_learning():
    loss = 0.694 - 0.009 * np.arange(120) / 100 + rng().normal(0, 0.0006, 120)
    assert flat(loss=loss) == []


def test_quiet_where_noise_hides_what_could_have_been_learned():
    assert flat(loss=2.0 + rng().normal(0, 0.8, 300)) == []


def test_quiet_on_a_run_that_learned_at_once_and_then_stood():
    assert findings(stops_learning(0), "flat") == []
    loss = np.r_[5.0, 3.0, 2.0, np.full(400, 1.5)] + rng().normal(0, 0.01, 403)
    assert flat(loss=loss) == []


def test_quiet_on_the_tail_of_a_log():
    run = sessions({"loss": [None] * 5000 + (2.1 + rng().normal(0, 0.02, 2000)).tolist()})
    assert [f for f in run.runs[0].findings.values() if f.rule == "flat"] == []


def test_quiet_on_a_resumed_attempt():
    falling = (5 * np.exp(-np.arange(500) / 100) + 2 + rng().normal(0, 0.02, 500)).tolist()
    session = sessions({"loss": falling})

    tail = 2.02 + rng(3).normal(0, 0.02, 1500)
    session.feed("log", Batch([chunk("loss", np.arange(400, 1900), tail, None, np.arange(500, 2000))]))
    assert len(session.runs[0].attempts) == 2
    assert [f for f in session.runs[0].findings.values() if f.rule == "flat"] == []


@pytest.mark.parametrize("value", [1.0, 100.0, 0.99, -1.0])
def test_quiet_on_a_metric_at_the_top_or_not_defined(value):
    assert flat(eval_accuracy=[value] * 40) == []


def test_quiet_on_a_loss_that_rises():
    assert flat(loss=2.0 + 0.002 * np.arange(400) + rng().normal(0, 0.02, 400)) == []


@pytest.mark.parametrize("name", HEALTHY)
def test_quiet_on_healthy_runs(name):
    assert findings(HEALTHY[name](1500, 7), "flat") == []


# ------------------------------------------------------------------ slow twin
def scales(x):
    """The series' own noise of a report, as of each point's block."""
    s, out = Series("x", "train_loss", "s", 0), []
    for i, v in enumerate(x):
        s.extend(chunk("x", [i], [v], row=[i]))
        out += [b.baseline.scale if b.baseline else 0.0 for b in s.blocks()]
    return out


def twin(x):
    """The rule without its short cuts, from all points at each look; no rate, nothing but the training loss."""
    row = scales(x)
    for end in looks(len(x), 20):
        _, cells = slow_cells(x[:end], [True] * end)
        k, start, sigma = len(cells) // 3, abs(np.median(x[:5])), row[end - 1]
        if k < 3 or not (sigma < 0.01 * start or (end >= 40 and end > 200)):
            continue
        limit = (0.04 if end >= 40 and end > 200 else 0.01) * start
        first, middle, last = (np.median(c) for c in (cells[:k], cells[k : len(cells) - k], cells[-k:]))
        error, moved = 1.25 * noise(np.array(cells)) * np.sqrt(2 / k), first - min(first, middle, last)
        slowing = moved < 0.001 * start and first - middle >= middle - last
        settled = moved + 2 * error < limit and (moved < 2 * error or slowing)
        drops = ((start, 4 * sigma), (np.median(x[:16]), 1.5 * sigma), (cells[0], 5 * noise(np.array(cells))))
        early = any(level - last >= limit + slack for level, slack in drops)
        if settled and not early and last - first <= max(2 * error, 0.001 * start):
            return end - 1
    return None


def course(seed):
    """A loss that stands, falls a little, falls late, or fell at once."""
    r, t = rng(seed), np.arange(600)
    late = r.choice([0.0, 0.0, 0.5]) * np.maximum(0, t - 300) / 300
    head = r.choice([0.0, 0.0, 0.3, 2.0]) * np.exp(-t / r.uniform(1, 8))
    return 2.3 + head - late - r.choice([0.0, 0.03, 0.2]) * t / 600 + r.normal(0, r.choice([0.003, 0.03, 0.3]), 600)


def test_the_twin_tells_some_and_leaves_some():
    assert 5 < sum(twin(course(seed)) is not None for seed in range(40)) < 37


@pytest.mark.parametrize("seed", range(40))
def test_agrees_with_its_slow_twin(seed):
    x = course(seed)
    got = [f.detected_step for f in flat(loss=x)][:1]
    assert (got or [None]) == [twin(x)]
