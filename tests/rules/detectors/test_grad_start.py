"""grad-start: exact steps of runs that begin with an exploding gradient, silence on those that only look so."""

import numpy as np
import pytest

from tests.engine import findings
from tests.streams import HEALTHY, bad_start

RULE = "grad-start"


def rng(seed=0):
    return np.random.default_rng(seed)


def stuck(n=64, seed=0):
    return 12 + rng(seed + 50).normal(0, 0.2, n)


def falling(n=64, seed=0):
    return 4 + 8 * np.exp(-np.arange(n) / 12) + rng(seed + 50).normal(0, 0.1, n)


def norms(n=64, seed=0, sigma=0.3):
    return np.exp(rng(seed).normal(0, sigma, n))


# ------------------------------------------------------------------ it fires
@pytest.mark.parametrize(("seed", "detected"), [(0, 11), (1, 23), (2, 7), (3, 11)])
def test_norms_over_orders_of_magnitude_are_critical_at_the_first_look(seed, detected):
    assert [f[:3] for f in findings(RULE, bad_start(seed))] == [("critical", 0, detected)]


@pytest.mark.parametrize("seed", range(4))
def test_norms_that_grow_a_hundredfold_are_a_warning_at_the_second_of_them(seed):
    g = norms(seed=seed)
    g[8:12] *= 2000
    assert findings(RULE, {"loss": stuck(seed=seed), "grad_norm": g}) == [("warning", 8, 9, "resolved")]


@pytest.mark.parametrize(("factor", "told"), [(50, 0), (300, 1)])
def test_a_hundred_times_the_first_two_is_the_border(factor, told):
    g = np.ones(64)
    g[8:12] = factor
    assert len(findings(RULE, {"loss": stuck(), "grad_norm": g})) == told


@pytest.mark.parametrize(("factor", "told"), [(5e3, 0), (3e4, 1)])
def test_ten_thousand_times_the_median_is_the_border_later(factor, told):
    """At the look of 32 reports; two reports are that high, and come too late for the other test."""
    g = norms()
    g[[18, 25]] = factor
    got = findings(RULE, {"loss": stuck(), "grad_norm": g})
    assert [f[0] for f in got] == ["critical"] * told
    assert [f[2] for f in got] == [31] * told


# ------------------------------------------------------------------ look-alikes
@pytest.mark.parametrize("seed", range(5))
def test_quiet_on_a_last_layer_that_starts_at_zero(seed):
    """LoRA's B, a zero-initialised head: the first norms are tiny, and the loss falls as they grow."""
    g = norms(seed=seed) * 10.0 ** np.minimum(0, -5 + np.arange(64) / 2)
    assert findings(RULE, {"loss": falling(seed=seed), "grad_norm": g}) == []


@pytest.mark.parametrize("seed", range(5))
def test_quiet_on_one_wild_report(seed):
    g = norms(seed=seed)
    g[int(rng(seed).integers(0, 64))] = 1e7
    assert findings(RULE, {"loss": stuck(seed=seed), "grad_norm": g}) == []


@pytest.mark.parametrize("seed", range(5))
def test_quiet_on_the_heavy_tails_of_single_examples(seed):
    assert findings(RULE, {"loss": stuck(seed=seed), "grad_norm": norms(seed=seed, sigma=1.2)}) == []


@pytest.mark.parametrize("seed", range(5))
def test_quiet_on_a_start_that_settles_while_the_loss_falls(seed):
    """Untrained embeddings: the first norms are thousands of times the later ones."""
    g = norms(seed=seed) * (1 + 1e5 * np.exp(-np.arange(64) / 1.5))
    assert findings(RULE, {"loss": falling(seed=seed), "grad_norm": g}) == []


@pytest.mark.parametrize("seed", range(5))
def test_quiet_on_norms_of_zero_before_the_first_update(seed):
    """The log's first reports say 0.0, or the scaler skipped them."""
    g = norms(seed=seed)
    g[:4] = [0.0, 0.0, np.inf, np.nan]
    assert findings(RULE, {"loss": stuck(seed=seed), "grad_norm": g}) == []


@pytest.mark.parametrize("seed", range(5))
def test_quiet_on_all_that_comes_later(seed):
    g = norms(400, seed)
    g[100:140] *= 1e6
    assert findings(RULE, {"loss": stuck(400, seed), "grad_norm": g}) == []


def test_quiet_where_no_loss_is_logged():
    assert findings(RULE, {"grad_norm": bad_start()["grad_norm"]}) == []


@pytest.mark.parametrize("name", HEALTHY)
def test_quiet_on_healthy_runs(name):
    assert [f for seed in range(5) for f in findings(RULE, HEALTHY[name](200, seed))] == []


# ------------------------------------------------------------------ slow twin
def twin(loss, norm):
    """The rule in its obvious form, over finite numbers: severity and report of the first word."""
    for n in range(1, min(len(norm), 64) + 1):
        g, x = norm[:n], loss[:n]
        if n in (8, 12, 16, 24, 32, 48, 64):
            high = sorted(g)[-2:]
            spans = high[1] >= 1e4 * np.median(g) and high[0] >= 10 * np.median(g)
            if spans and not np.median(x[-5:]) < np.median(x[:3]) - 0.1 * abs(np.median(x[:3])):
                return "critical", n - 1
        elif 5 <= n < 16:
            over = [v >= 100 * max(g[:2]) for v in g[-3:]]
            if sum(over) >= 2 and over[-1] and np.median(x[-3:]) >= min(x[:3]):
                return "warning", n - 1
    return None


def beginning(seed):
    """Norms of a spread of their own, which rise by a factor or fall, beside a loss that may fall or not."""
    r = rng(seed)
    g = norms(80, seed, r.uniform(0.3, 4.0)) * 10.0 ** (r.uniform(-1, 4) * (np.arange(80) > r.integers(2, 40)))
    return 12 - r.choice([0.0, 0.02, 0.3]) * np.arange(80) + r.normal(0, 0.3, 80), g


def test_the_twin_tells_some_and_leaves_some():
    told = [twin(*beginning(seed)) for seed in range(40)]
    assert {"warning", "critical"} < {t[0] if t else None for t in told}
    assert told.count(None) > 10


@pytest.mark.parametrize("seed", range(40))
def test_agrees_with_its_slow_twin(seed):
    x, g = beginning(seed)
    got = [(severity, detected) for severity, _, detected, _ in findings(RULE, {"loss": x, "grad_norm": g})][:1]
    assert (got or [None]) == [twin(x.tolist(), g.tolist())]
