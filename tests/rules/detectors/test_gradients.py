"""grad-spike and grad-explosion: relative to the run's own past, never absolute."""

import numpy as np
import pytest

from tests.engine import findings, incidents
from trainmon_rules.points import chunk
from trainmon_rules.series import Series


def norms(n=600, seed=0, level=0.5):
    return level * np.exp(np.random.default_rng(seed).normal(0, 0.25, n))


def loss(n=600, seed=1):
    return 2.2 + 3 * np.exp(-np.arange(n) / 90) + np.random.default_rng(seed).normal(0, 0.03, n)


def bumped(at, reports, factor, **kwargs):
    g = norms(**kwargs)
    g[at : at + reports] *= factor
    return g


def test_a_spike_is_an_info_at_its_second_report():
    assert findings("grad-spike", {"loss": loss(), "grad_norm": bumped(300, 4, 20)}) == [("info", 300, 301, "resolved")]


@pytest.mark.parametrize("level", [1e-3, 0.5, 5e4])
def test_the_scale_of_the_norm_does_not_matter(level):
    g = bumped(300, 4, 20, level=level)
    assert findings("grad-spike", {"loss": loss(), "grad_norm": g}) == [("info", 300, 301, "resolved")]


def test_it_becomes_a_warning_when_it_lasts_and_the_loss_is_no_better():
    x, g = 2.2 + np.random.default_rng(6).normal(0, 0.03, 600), bumped(300, 200, 20)
    assert findings("grad-spike", {"loss": x, "grad_norm": g})[0][:3] == ("warning", 300, 301)


def test_it_stays_info_when_a_plateau_breaks_and_learning_starts():
    x, g = np.full(600, 4.0) + np.random.default_rng(2).normal(0, 0.03, 600), bumped(300, 200, 15)
    x[320:] -= np.minimum(2.0, np.arange(280) / 60)
    assert findings("grad-spike", {"loss": x, "grad_norm": g})[0][0] == "info"


def test_silent_in_the_first_reports_and_while_warming_up():
    early = {"loss": loss(), "grad_norm": bumped(30, 5, 20)}
    warming = {"loss": loss(), "grad_norm": bumped(150, 5, 20), "lr": np.minimum(1.0, np.arange(600) / 200)}
    assert findings("grad-spike", early) == []
    assert findings("grad-spike", warming) == []


def test_a_hundredfold_is_an_explosion_even_then():
    got = findings("grad-explosion", {"loss": loss(), "grad_norm": bumped(30, 5, 900)})
    assert got == [("warning", 30, 31, "resolved")]


def test_an_explosion_is_critical_once_the_loss_is_worse():
    x, g = loss(), bumped(300, 60, 900)
    x[302:] += 2
    assert findings("grad-explosion", {"loss": x, "grad_norm": g})[0][:3] == ("critical", 300, 301)


def test_a_start_that_spans_orders_of_magnitude_is_critical_when_nothing_is_learnt():
    g = np.array([3.4e10, 62, 90, 3e4, 120, 80, 500, 70, 65, 2e3, 90, 75], float)
    stuck = 12 + np.random.default_rng(3).normal(0, 0.2, 12)
    assert findings("grad-start", {"loss": stuck, "grad_norm": g})[0][0] == "critical"
    learning = np.linspace(12, 6, 12)
    assert findings("grad-start", {"loss": learning, "grad_norm": g}) == []


def test_a_burst_in_the_first_reports_is_a_warning_and_resolves():
    g = np.array([0.17, 0.24, 0.95, 2.4, 15.9, 145, 960, 353, 379, 650, 0.27, 0.2, 0.15, 0.14, 0.14, 0.13])
    x = np.array([2.46, 2.2, 2.22, 2.6, 2.24, 2.35, 5.1, 3.49, 3.21, 2.8, 2.2, 2.2, 2.1, 2.1, 2.1, 2.1])
    assert findings("grad-start", {"loss": x, "grad_norm": g}) == [("warning", 2, 6, "resolved")]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("tail", ["lognormal", "student", "single bursts"])
def test_quiet_on(tail, seed):
    rng = np.random.default_rng(seed)
    g = norms(3000, seed)
    if tail == "student":
        g = 0.5 * np.exp(0.3 * rng.standard_t(4, 3000))
    if tail == "single bursts":
        g[100::333] *= 40
    tags = {"loss": loss(3000, seed), "grad_norm": g}
    noisy = [f for f in findings("grad-spike", tags) + findings("grad-explosion", tags) if f[0] != "info"]
    assert noisy == []


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "change", ["another accumulation", "clipped at 1", "a rate that falls in steps", "dropout off"]
)
def test_quiet_on_levels_that_move_for_a_reason(change, seed):
    """Norms of large batches hardly scatter, so that a factor of two is dozens of standard deviations."""
    rng, n = np.random.default_rng(seed), 3000
    g = 0.5 * np.exp(rng.normal(0, 0.02, n))
    if change == "another accumulation":
        g[1500:] *= 2  # half the micro-batches an update, say, or the sum in place of the mean
    if change == "clipped at 1":
        g = np.minimum(1.0, 1.4 * np.exp(rng.normal(0, 0.6, n)))  # the norm as it was applied
    if change == "a rate that falls in steps":
        g[1000:] *= 1.5
        g[2000:] *= 1.5
    if change == "dropout off":
        g[1500:] /= 4
    tags = {"loss": loss(n, seed), "grad_norm": g}
    assert findings("grad-spike", tags) + findings("grad-explosion", tags) == []


@pytest.mark.parametrize(("factor", "told"), [(2.5, 0), (4.0, 1)])
def test_three_times_the_level_is_the_border_of_a_spike(factor, told):
    g = 0.5 * np.exp(np.random.default_rng(0).normal(0, 0.02, 600))
    g[300:304] *= factor
    assert len(findings("grad-spike", {"loss": loss(), "grad_norm": g})) == told


@pytest.mark.parametrize(("factor", "told"), [(50, 0), (200, 1)])
def test_a_hundred_times_the_level_is_the_border_of_an_explosion(factor, told):
    g = 0.5 * np.exp(np.random.default_rng(0).normal(0, 0.02, 600))
    g[300:304] *= factor
    assert len(findings("grad-explosion", {"loss": loss(), "grad_norm": g})) == told


def test_an_explosion_is_critical_at_the_thirty_second_report_and_not_before():
    x, g = loss(), bumped(300, 60, 900)
    x[302:] += 2

    def severity(reports):
        tags = {"loss": x[: 300 + reports], "grad_norm": g[: 300 + reports]}
        return [f[0] for f in findings("grad-explosion", tags)]

    assert severity(31) == ["warning"]
    assert severity(32) == ["critical"]


@pytest.mark.parametrize("seed", range(3))
def test_an_explosion_that_the_loss_survives_pages_nobody(seed):
    tags = {"loss": loss(seed=seed), "grad_norm": bumped(300, 60, 900, seed=seed)}
    assert [f[0] for f in findings("grad-explosion", tags)] == ["warning"]


def twin(g, least):
    """Where the norm is first found above the baseline in two of three reports, a report at a time."""
    s, over, calm, level, found = Series("g", "grad_norm", "s", 0, log=True), [], 0, None, []
    for i, v in enumerate(g):
        s.extend(chunk("g", [i], [v], row=[i]))
        for b in s.blocks():
            y = np.log(v) if v > 0 else np.nan
            if level is not None:
                calm = calm + 1 if y - level[0] <= 0.5 * level[1] else calm if np.isnan(y) else 0
                if calm == 5:
                    level, over = None, []
                continue
            if b.baseline is None or not y - b.baseline.level > b.baseline.threshold:
                continue
            over = [o for o in over if o[0] > i - 3] + [(i, y - b.baseline.level)]
            if least(over):
                found.append(i)
                level, calm = (b.baseline.level, b.baseline.threshold), 0
    return found


@pytest.mark.parametrize("seed", range(10))
def test_spikes_and_explosions_agree_with_their_slow_twin(seed):
    rng = np.random.default_rng(seed)
    g = norms(900, seed)
    for at in rng.integers(80, 880, 5):
        g[at : at + rng.integers(1, 6)] *= 10.0 ** rng.uniform(0.3, 3.5)
    g[rng.integers(80, 900, 20)] = np.nan
    tags = {"loss": loss(900, seed), "grad_norm": g}
    spikes = twin(g, lambda over: len(over) > 1 and over[-1][1] >= np.log(3))
    explosions = twin(g, lambda over: sum(o[1] >= np.log(100) for o in over) > 1)
    assert [f[2] for f in findings("grad-spike", tags)] == spikes
    assert [f[2] for f in findings("grad-explosion", tags)] == explosions
    assert spikes


def test_norms_printed_as_zero_are_not_judged():
    assert findings("grad-spike", {"loss": loss(), "grad_norm": np.zeros(600)}) == []


def test_the_gradient_leads_and_the_incident_is_one():
    x, g = loss(), norms()
    g[400:440] *= np.minimum(4.0 ** np.arange(1, 41), 2000)
    x[404:430] += 2.5
    [incident] = incidents({"loss": x, "grad_norm": g})
    assert incident.symptoms >= {"grad-spike", "loss-spike"}
    assert incident.onset.onset_step == 400
    assert incident.precursors[0].rule == "grad-spike"
    assert incident.lead.onset_step - incident.precursors[0].onset_step <= 4
