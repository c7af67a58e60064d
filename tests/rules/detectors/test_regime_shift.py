"""regime-shift: exact steps of lasting changes of level, and silence on what learning, the rate and the log explain."""

import numpy as np
import pytest

from tests.engine import block_ends, incidents
from tests.engine import findings as engine_findings
from tests.streams import base, findings, steps, steps_up, validation_steps_up
from trainmon_rules.detectors.steps import LEAST, is_step, place
from trainmon_rules.findings import Severity, State


def rng(seed=0):
    return np.random.default_rng(seed)


def settled(n=900, at=600, by=0.3, seed=0, noise=0.03):
    """A run that has learned, with a step."""
    t = np.arange(n)
    return 0.8 + 2 * np.exp(-t / 60) + by * (t >= at) + rng(seed).normal(0, noise, n)


def shift(rule="regime-shift", **columns):
    return findings({tag: list(v) for tag, v in columns.items()}, rule)


@pytest.mark.parametrize("seed", range(4))
def test_a_step_for_the_worse(seed):
    [f] = findings(steps_up(seed), "regime-shift")
    assert steps([f]) == [(300, 335, None)]
    assert (f.severity, f.state) == (Severity.WARNING, State.FIRING)
    assert f.evidence["change"] == pytest.approx(0.28, abs=0.02)
    assert f.evidence["for the better"] == "no"


def test_it_is_a_note_until_it_has_lasted_twice_as_long():
    def severity(rows):
        run = {tag: values[:rows] for tag, values in steps_up(0).items()}
        return [f.severity for f in findings(run, "regime-shift")]

    assert severity(335) == []
    assert severity(336) == severity(367) == [Severity.INFO]
    assert severity(368) == [Severity.WARNING]


@pytest.mark.parametrize("seed", range(3))
def test_a_step_for_the_better_is_a_note(seed):
    [f] = shift(loss=settled(by=-0.3, seed=seed))
    assert (f.onset_step, f.detected_step, f.severity) == (600, 623, Severity.INFO)
    assert f.evidence["for the better"] == "yes"


def test_a_short_log_needs_twelve_reports():
    t = np.arange(60)
    loss = 0.5 + 2 * np.exp(-t / 5) + 0.3 * (t >= 40) + rng().normal(0, 0.01, 60)
    [f] = shift(loss=loss)
    assert (f.onset_step, f.detected_step) == (40, 51)


@pytest.mark.parametrize("seed", range(3))
def test_validation_beside_a_training_loss_that_goes_on(seed):
    [f] = findings(validation_steps_up(seed), "val-regime-shift")
    assert (f.onset_step, f.detected_step, f.severity) == (301, 351, Severity.WARNING)


def test_a_reward_that_steps_down_is_a_note():
    reward = 50 * (1 - np.exp(-np.arange(900) / 60)) - 10.0 * (np.arange(900) >= 600) + rng().normal(0, 1, 900)
    [f] = shift(reward=reward)
    assert (f.onset_step, f.detected_step, f.severity) == (600, 623, Severity.INFO)
    assert f.evidence["change"] == pytest.approx(-10, abs=1)


def test_back_again_is_resolved():
    loss = settled()
    loss[680:] -= 0.3
    [f] = shift(loss=loss)
    assert steps([f]) == [(600, 623, 703)]
    assert (f.symptom, str(f.grade)) == ("loss-spike", "recovered")  # it didn't last
    assert f.recovery.startswith("back at")


def test_a_second_step_ends_the_first():
    loss = settled(1200)
    loss[900:] += 0.3
    found = shift(loss=loss)
    assert steps(found) == [(600, 623, 900), (900, 927, None)]


# ------------------------------------------------------------------ it and divergence: which name
def named(by, slope=0.0):
    run = base()
    for i in range(300, 700):
        run["loss"][i] += by + slope * (i - 300)
    [i] = incidents(run)
    return i.symptom, str(i.severity)


def test_a_level_that_holds_is_a_shift_and_one_that_is_lost_or_grows_a_divergence():
    assert named(0.3) == ("regime-shift", "warning")
    assert named(0.8) == ("regime-shift", "warning")  # divergence says it too, and calls it by the same name
    assert named(1.5) == ("divergence", "critical")  # more than half of the progress
    assert named(0.5, 0.003) == ("divergence", "critical")  # it keeps rising
    assert named(0.5, -0.01) == ("loss-spike", "warning")  # it comes back


def test_divergence_takes_its_name_back_when_it_grows():
    run = base()
    for i in range(300, 700):
        run["loss"][i] += 0.5 if i < 500 else 1.0
    history = [
        [f.symptom for f in findings({t: v[:n] for t, v in run.items()}, "divergence")] for n in (352, 368, 500, 544)
    ]
    assert history == [["divergence"], ["regime-shift"], ["regime-shift"], ["divergence"]]


# ------------------------------------------------------------------ look-alikes
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("by", [-0.3, 0.3])
def test_quiet_where_the_rate_changed(by, seed):
    rate = np.where(np.arange(900) < 600, 1e-3, 1e-4)
    assert shift(loss=settled(by=by, seed=seed), lr=rate) == []
    assert shift(loss=settled(by=by, seed=seed), lr=np.full(900, 1e-3)) != []


@pytest.mark.parametrize("seed", range(5))
def test_quiet_on_the_border_of_an_epoch_for_the_better(seed):
    epoch = np.arange(900) / 200
    assert shift(loss=settled(by=-0.3, seed=seed), epoch=epoch) == []
    [f] = shift(loss=settled(by=0.3, seed=seed), epoch=epoch)
    assert f.severity is Severity.INFO  # a new shard, or a running mean that starts over
    assert shift(loss=settled(by=-0.3, seed=seed), epoch=epoch + 0.5) != []


@pytest.mark.parametrize("seed", range(5))
def test_quiet_on_a_plateau_that_breaks(seed):
    t = np.arange(900)
    at_once = np.where(t < 600, 2.303, 0.5) + rng(seed).normal(0, 0.03, 900)
    slowly = np.where(t < 600, 2.303, 0.5 + 1.8 * np.exp(-(t - 600) / 20)) + rng(seed).normal(0, 0.03, 900)
    assert shift(loss=at_once) == []
    assert shift(loss=slowly) == []


@pytest.mark.parametrize("seed", range(5))
def test_quiet_on_a_ramp_and_on_wider_noise(seed):
    t = np.arange(900)
    ramp = 0.8 + 2 * np.exp(-t / 60) + 0.3 * np.clip((t - 600) / 30, 0, 1) + rng(seed).normal(0, 0.03, 900)
    assert shift(loss=ramp) == []
    wider = settled(by=0.3, seed=seed) + rng(seed + 9).normal(0, 0.15, 900) * (t >= 600)
    assert shift(loss=wider) == []


@pytest.mark.parametrize("seed", range(5))
def test_quiet_on_noise_that_wanders(seed):
    z, e = np.zeros(5000), rng(seed).normal(0, 0.02, 5000)
    for i in range(1, 5000):
        z[i] = 0.9 * z[i - 1] + e[i]
    assert [f for f in shift(loss=2 + 6 * np.exp(-np.arange(5000) / 300) + z) if f.severity > Severity.INFO] == []


def test_quiet_over_a_hole_in_the_log():
    step = np.r_[np.arange(600), np.arange(3000, 3300)]
    assert engine_findings("regime-shift", {"loss": settled()}, step=step) == []
    assert engine_findings("regime-shift", {"loss": settled()}) != []


def test_quiet_on_a_reward_that_steps_up():
    reward = 10 + 20.0 * (np.arange(900) >= 600) + rng().normal(0, 1, 900)
    assert shift(reward=reward) == []


def validated(change, seed=0, noise=0.03, n=700, every=2, **beside):
    """A healthy run, evaluated every other row; `change` is what its validation loss has above the usual course."""
    t = np.arange(n)
    val = 0.6 + 2 * np.exp(-t / 120) + change(t) + rng(seed + 70).normal(0, noise, n)
    return {**base(n, seed), "eval_loss": [float(v) if i % every else None for i, v in enumerate(val)], **beside}


VALIDATED = {
    "a step of the rate": lambda s: validated(
        lambda t: -0.3 * (t >= 300), s, lr=np.where(np.arange(700) < 300, 1e-3, 1e-4).tolist()
    ),
    "overfitting": lambda s: validated(lambda t: 0.002 * np.maximum(0, t - 300), s),
    "small sets": lambda s: validated(lambda t: 0.0, s, noise=0.15),
    "waves": lambda s: validated(lambda t: 0.1 * np.sin(t / 40), s),
    "ten bad evaluations": lambda s: validated(lambda t: 0.5 * ((t >= 300) & (t < 320)), s),
    "a new epoch": lambda s: validated(lambda t: -0.3 * (t >= 400), s, epoch=(np.arange(700) / 200).tolist()),
}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", VALIDATED)
def test_validation_is_quiet_on(name, seed):
    assert findings(VALIDATED[name](seed), "val-regime-shift") == []


def test_validation_that_steps_is_not_where_nothing_explains_it():
    for seed in range(4):
        [f] = findings(validated(lambda t: 0.3 * (t >= 301), seed), "val-regime-shift")
        assert (f.onset_step, f.detected_step) == (301, 351)


# ------------------------------------------------------------------ slow twins
def slow_first(y):
    """Where a step is first told, at every block end, without the short cuts: (onset, detected)."""
    looked = 0
    for end in block_ends(len(y), 36):
        hold, slack, looked = 12 if end < 128 else 24, end - max(looked, end - 256), end
        recent = y[max(0, end - 200 - hold - slack) : end]
        if len(recent) < hold + slack + LEAST:
            continue
        at = place(recent, hold, slack)
        found = is_step(recent[:at], recent[at:]) if hold <= at <= len(recent) - hold else None
        progress = np.median(y[:5]) - found.before if found else 0.0
        if found and (-found.size <= progress if found.size < 0 else found.size < 0.5 * progress):
            return end - len(recent) + at, end - 1
    return None


def stepping(seed):
    r = rng(seed)
    at = int(r.integers(60, 850))
    return settled(900, at, r.choice([0.03, 0.08, 0.3, -0.3]), seed, r.choice([0.01, 0.03]))


def test_the_twin_tells_some_and_leaves_some():
    assert 5 < sum(slow_first(stepping(seed)) is not None for seed in range(30)) < 29


@pytest.mark.parametrize("seed", range(30))
def test_the_short_cuts_miss_nothing(seed):
    y = stepping(seed)
    got = [(f.onset_step, f.detected_step) for f in shift(loss=y)][:1]
    assert (got or [None]) == [slow_first(y)]


def slow_place(y, hold, slack):
    """The split, within the last reports, that leaves the two levels' values nearest to them."""

    def change(c):
        return abs(np.median(y[c : c + LEAST]) - np.median(y[c - LEAST : c]))

    coarse = max(range(len(y) - hold - slack, len(y) - hold), key=change)
    low, high = np.median(y[coarse - 12 : coarse]), np.median(y[coarse : coarse + 12])

    def off(c):
        around = range(coarse - LEAST, coarse + LEAST)
        return sum(abs(y[i] - (low if i < c else high)) for i in around)

    return min(range(coarse - LEAST, coarse + LEAST + 1), key=off)


@pytest.mark.parametrize("seed", range(20))
def test_the_place_of_a_step_found_slowly_is_the_same(seed):
    y = settled(280, 240 + seed % 7, 0.1, seed)
    assert place(y, 24, 16) == slow_place(y, 24, 16)


def test_what_a_step_is():
    before, after = 1 + rng(0).normal(0, 0.02, 60), 1.3 + rng(1).normal(0, 0.02, 24)
    assert is_step(before, after).size == pytest.approx(0.3, abs=0.02)
    assert is_step(before, after - 0.29) is None  # within the noise
    assert is_step(before, after + np.linspace(0, 0.3, 24)) is None  # it goes on rising
    assert is_step(before + np.r_[np.zeros(50), np.linspace(0, 0.3, 10)], after) is None  # it rose before
    assert is_step(before, 1.3 + rng(1).normal(0, 0.2, 24)) is None  # another noise
    assert is_step(before[:6], after) is None  # too little to compare with
