"""oscillation: exact steps where a loss begins to be thrown about, and silence on batches that are merely noisy."""

import numpy as np
import pytest

from tests.streams import findings, sessions, steps, thrown_about
from trainmon_rules.detectors.swings import neighbours, spans, turns
from trainmon_rules.findings import Severity, State


def rng(seed=0):
    return np.random.default_rng(seed)


def oscillation(**columns):
    return findings({tag: list(v) for tag, v in columns.items()}, "oscillation")


@pytest.mark.parametrize(("seed", "onset", "detected"), [(0, 300, 351), (1, 300, 351), (2, 300, 351), (3, 301, 351)])
def test_a_loss_that_begins_to_be_thrown_about(seed, onset, detected):
    [f] = findings(thrown_about(seed), "oscillation")
    assert steps([f]) == [(onset, detected, None)]
    assert f.severity is Severity.WARNING
    assert f.evidence["times its usual"] > 5
    assert f.evidence["share of progress"] > 0.25
    assert "times its usual swing" in f.summary


def test_it_is_a_note_until_it_has_lasted():
    def severity(rows):
        run = {tag: values[:rows] for tag, values in thrown_about(0).items()}
        return [f.severity for f in findings(run, "oscillation")]

    assert severity(351) == []
    assert severity(352) == severity(415) == [Severity.INFO]
    assert severity(416) == [Severity.WARNING]


def test_calm_again_is_resolved():
    run = thrown_about(0)
    run["loss"][500:] = (0.9 + rng(1).normal(0, 0.03, 200)).tolist()
    [f] = findings(run, "oscillation")
    assert f.state is State.RESOLVED
    assert steps([f]) == [(300, 351, 575)]


def test_a_log_of_epochs_is_long_enough():
    t = np.arange(64)
    loss = np.where(t < 40, 0.4 + 2 * np.exp(-t / 8) + rng().normal(0, 0.01, 64), 0.9 + rng(1).normal(0, 0.4, 64))
    [f] = oscillation(loss=loss)
    assert (f.onset_step, f.detected_step, f.severity) == (41, 55, Severity.INFO)


def test_a_loss_that_takes_turns_from_the_start():
    t = np.arange(600)
    loss = 1 + np.exp(-t / 15) + 0.3 * (-1.0) ** t + rng().normal(0, 0.05, 600)
    [f] = oscillation(loss=loss)
    assert (f.detected_step, f.severity) == (127, Severity.INFO)
    assert f.evidence["correlation of neighbours"] < -0.8
    assert "jumps to the other side from report to report" in f.summary


def test_gaps_and_nan_do_not_hide_it():
    run = thrown_about(0)
    for i in rng(3).choice(700, 60, replace=False):
        run["loss"][i] = None if i % 2 else float("nan")
    [f] = findings(run, "oscillation")
    assert (f.onset_step, f.detected_step) == (302, 369)


# ------------------------------------------------------------------ look-alikes
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("spread", [0.5, 2.0])
def test_quiet_on_batches_that_are_noisy_from_the_start(seed, spread):
    loss = (0.3 + 2 * np.exp(-np.arange(3000) / 200)) * rng(seed).gamma(1 / spread, spread, 3000)
    assert oscillation(loss=loss) == []


@pytest.mark.parametrize("seed", range(5))
def test_quiet_on_noise_that_comes_with_learning(seed):
    """An untrained network's losses hardly differ from batch to batch; after that they do."""
    known = 1 - np.exp(-np.arange(3000) / 200)
    loss = 2.303 - 1.8 * known + (0.01 + 0.3 * known) * rng(seed).normal(0, 1, 3000)
    assert oscillation(loss=loss) == []


@pytest.mark.parametrize("seed", range(5))
def test_quiet_on_a_spike_and_on_a_step(seed):
    t = np.arange(1500)
    loss = 0.5 + 2 * np.exp(-t / 120) + rng(seed).normal(0, 0.03, 1500)
    loss[600:606] += 3
    loss[1000:] += 0.5
    assert oscillation(loss=loss) == []


@pytest.mark.parametrize("seed", range(5))
def test_wider_batches_that_still_learn_are_a_note_at_most_and_soon_over(seed):
    t = np.arange(1500)
    loss = 0.5 + 2 * np.exp(-t / 400) + rng(seed).normal(0, 0.03, 1500) * np.where(t < 500, 1, 5)
    assert all((f.severity, f.state) == (Severity.INFO, State.RESOLVED) for f in oscillation(loss=loss))


@pytest.mark.parametrize("seed", range(3))
def test_quiet_where_the_rate_restarts(seed):
    run = thrown_about(seed)
    run["loss"][364:] = (0.6 + rng(seed).normal(0, 0.03, 336)).tolist()
    run["lr"] = [1e-3] * 50 + [1e-4] * 250 + [1e-3] * 400
    assert findings(run, "oscillation") == []


# ------------------------------------------------------------------ slow twins
def slow_spans(y, width):
    levels, out = [], []
    for start in range(len(y) % width, len(y), width):
        part, half = y[start : start + width], width // 2
        slope = (np.median(part[half:]) - np.median(part[:half])) / half
        straight = [v - slope * i for i, v in enumerate(part)]
        levels.append(np.median(part))
        out.append(np.percentile(straight, 90) - np.percentile(straight, 10))
    return levels, out


@pytest.mark.parametrize(("n", "width"), [(48, 8), (203, 16), (512, 32)])
def test_spans_are_those_of_each_stretch_by_itself(n, width):
    y = rng(n).normal(0, 1, n).cumsum()
    for fast, slow in zip(spans(y, width), slow_spans(y, width), strict=True):
        assert np.allclose(fast, slow)


def test_turns_and_neighbours_by_hand():
    assert turns(np.array([0.0, 1, 0, 1, 0.9, 1.1, 0]), 0.5) == 4
    assert turns(np.linspace(0, 9, 50), 0.5) == 1
    assert neighbours(np.array([1.0, -1] * 20)) == pytest.approx(-0.97, abs=0.03)
    assert neighbours(np.full(9, 2.0)) == 0.0


def slow_detection(values):
    """The rule as it reads, a report at a time: where a swing thrice the usual is first there."""
    for end in range(48, len(values) + 1):
        width = 8 if end < 128 else 16 if end < 256 else 32
        if end % width:
            continue
        y = np.array(values[max(0, end - 512) : end])
        level, span = slow_spans(y, width)
        best, start = min(level[:-2]), np.median(values[:5])
        usual = [s for s, v in zip(span[:-3], level[:-3], strict=True) if v <= start - 0.5 * (start - best)]
        if len(usual) < 3 or min(span[-2:]) < 3 * np.median(usual) or min(span[-2:]) < 0.15 * (start - best):
            continue
        if turns(y[-2 * width :], min(span[-2:]) / 2) >= 5:
            return end - 1
    return None


@pytest.mark.parametrize("seed", range(4))
def test_the_rule_read_slowly_gives_the_same_step(seed):
    run = thrown_about(seed)
    [f] = findings(run, "oscillation")
    assert f.detected_step == slow_detection(run["loss"])


def test_what_stands_has_its_latest_numbers():
    session = sessions(thrown_about(0))
    [d] = [d for t in session.runs[0].attempts[0].tracked.values() for d in t.detectors if d.rule.name == "oscillation"
           and t.series.tag == "loss"]  # fmt: skip
    assert d.standing().last_step == 671
