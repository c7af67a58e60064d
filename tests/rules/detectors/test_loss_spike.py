"""loss-spike: seeded streams with exact steps, a slow twin, and what looks like one and isn't."""

import numpy as np
import pytest

from tests.engine import findings, session
from trainmon_rules.points import chunk
from trainmon_rules.series import Series

RULE = "loss-spike"


def healthy(n=600, seed=0, sigma=0.05):
    return 2.2 + 3 * np.exp(-np.arange(n) / 90) + np.random.default_rng(seed).normal(0, sigma, n)


def spike(at, reports, height, **kwargs):
    x = healthy(**kwargs)
    x[at : at + reports] += height
    return x


def test_a_spike_is_found_at_its_second_report_and_resolves_at_the_first_of_five_calm_ones():
    assert findings(RULE, {"loss": spike(400, 5, 2.0)}) == [("warning", 400, 401, "resolved")]


def test_its_story_names_level_peak_and_recovery():
    [f] = [f for f in session({"loss": spike(400, 5, 2.0)}).runs[0].findings.values() if f.rule == RULE]
    assert f.evidence["level before"] == pytest.approx(2.23, abs=0.05)
    assert f.evidence["peak"] == pytest.approx(4.3, abs=0.2)
    assert f.resolved_step == 405
    assert f.recovery == "loss is back at its level after 5 reports"


def test_nan_before_the_spike_does_not_blind_it():
    x = spike(450, 5, 3.0)
    x[400] = np.nan
    assert ("warning", 450, 451, "resolved") in findings(RULE, {"loss": x})


@pytest.mark.parametrize("n", [30, 60])
def test_short_runs_are_judged_too(n):
    x = healthy(n) * 0 + 2.0 + np.random.default_rng(1).normal(0, 0.02, n)
    x[20:23] += 1.5
    assert findings(RULE, {"loss": x})[0][:3] == ("warning", 20, 21)


def test_a_second_spike_is_a_second_finding():
    x = spike(300, 4, 2.0)
    x[500:504] += 2.0
    assert [f[1] for f in findings(RULE, {"loss": x})] == [300, 500]


def test_one_high_report_is_no_spike_when_every_step_is_logged():
    assert findings(RULE, {"loss": spike(400, 1, 2.0)}) == []


def test_one_high_report_is_an_info_when_reports_are_sparse():
    assert findings(RULE, {"loss": spike(400, 1, 2.0)}, step=np.arange(600) * 50) == [
        ("info", 20000, 20000, "resolved")
    ]


def looks_alike(name, seed):
    rng = np.random.default_rng(seed)
    n, i = 3000, np.arange(3000)
    if name == "outliers at the same batch":
        x = 3.3 + rng.normal(0, 0.04, n)
        x[::470] += 1.5
        return x
    if name == "batch size 1":
        return 0.05 + rng.exponential(0.6, n)
    if name == "student t":
        return 2.2 + 0.05 * rng.standard_t(4, n)
    if name == "warm restarts":
        return 2 + 0.4 * (1 + np.cos(np.pi * (i % 1000) / 1000)) / 2 + rng.normal(0, 0.05, n)
    if name == "step decay":
        return np.where(i < 1500, 2.0, 1.4) + rng.normal(0, 0.04, n)
    raise ValueError(name)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "name", ["outliers at the same batch", "batch size 1", "student t", "warm restarts", "step decay"]
)
def test_quiet_on(name, seed):
    tags = {"loss": looks_alike(name, seed)}
    if name == "warm restarts":
        tags["lr"] = 1e-3 * (1 + np.cos(np.pi * (np.arange(3000) % 1000) / 1000)) / 2
    assert [f for f in findings(RULE, tags) if f[0] != "info"] == []


def twin(x):
    """The rule in its obvious form, a point at a time, with the series' own baseline: where does it fire?"""
    s, over, fired, calm, level = Series("x", "train_loss", "s", 0), [], [], 0, None
    for i, v in enumerate(x):
        s.extend(chunk("x", [i], [v], row=[i]))
        for b in s.blocks():
            if level is not None:
                calm = calm + 1 if v - level[0] <= 0.5 * level[1] else 0
                if calm == 5:
                    level, over = None, []
                continue
            if b.baseline is None:
                continue
            if v - b.baseline.level > b.baseline.threshold * (0.5 if b.baseline.count < 12 else 1):
                over.append((i, v - b.baseline.level > b.baseline.threshold))
            recent = [o for o in over if o[0] > i - 3]
            before = [w for w in x[max(0, recent[0][0] - 4) : recent[0][0]] if np.isfinite(w)] if recent else []
            jumped = bool(before) and max(x[o[0]] for o in recent) - min(before) >= b.baseline.threshold
            if len(recent) >= 2 and any(o[1] for o in recent) and recent[-1][0] == i and jumped:
                fired.append(i)
                level, calm = (b.baseline.level, b.baseline.threshold), 0
    return fired


@pytest.mark.parametrize("seed", range(12))
def test_agrees_with_its_slow_twin(seed):
    rng = np.random.default_rng(seed)
    x = healthy(500, seed) + 0.02 * rng.standard_t(3, 500)
    for at in rng.integers(20, 480, 3):
        x[at : at + rng.integers(1, 6)] += rng.uniform(0.2, 3)
    assert [f[2] for f in findings(RULE, {"loss": x})] == twin(x)


@pytest.mark.parametrize("seed", range(3))
def test_a_loss_that_is_better_than_before_the_spike_has_recovered(seed):
    """Half of the height of a spike is left of nothing, where the level after it is lower than that before."""
    x = spike(300, 60, 1.0, seed=seed)
    x[360:] -= 0.15
    [f] = [f for f in session({"loss": x}).runs[0].findings.values() if f.rule == RULE]
    assert (f.onset_step, str(f.grade)) == (300, "recovered")


def raised(peak):
    """A spike at 1,800, where the rate goes from 1e-4, where it came down to from 1e-3 long before, up to `peak`."""
    loss = spike(1800, 20, 1.0, n=2000)
    lr = np.where(np.arange(2000) < 20, 1e-3, np.where(np.arange(2000) < 1800, 1e-4, peak))
    return {"loss": loss, "lr": lr}


def test_a_rate_that_comes_back_to_what_it_was_excuses_the_rise_however_long_ago_that_was():
    assert findings(RULE, raised(1e-3)) == []


def test_a_rate_raised_beyond_all_before_excuses_nothing():
    assert findings(RULE, raised(1e-1)) == [("warning", 1800, 1801, "resolved")]
