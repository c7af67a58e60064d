"""activation-scale and attention-range: growth by a factor again and again, and silence on growth that slows down."""

import math

import numpy as np
import pytest

from tests.ailing_outcomes import learning, runaway_activations, sharp_attention
from tests.streams import findings, steps
from trainmon_rules.detectors.activation_scale import ActivationScale
from trainmon_rules.findings import Severity, State

RULE = "activation-scale"


def rng(seed=0):
    return np.random.default_rng(seed)


def told(values, tag="activation_norm", rule=RULE, **beside):
    n = len(values)
    return findings({"loss": learning(n, 0).tolist(), tag: np.asarray(values).tolist(), **beside}, rule)


def noisy(level, seed=0, sigma=0.05):
    return level * np.exp(rng(seed).normal(0, sigma, len(level)))


# ------------------------------------------------------------------ it fires
@pytest.mark.parametrize("seed", range(3))
def test_growth_by_two_percent_a_report(seed):
    [f] = findings(runaway_activations(seed), RULE)
    assert steps([f]) == [(280, 399, None)]
    assert f.severity is Severity.WARNING


def test_first_listed_then_a_warning_at_tenfold():
    t = np.arange(1000)
    [f] = told(noisy(12 * 1.012 ** np.maximum(0, t - 300)))
    assert f.severity is Severity.WARNING
    [early] = told(noisy(12 * 1.012 ** np.maximum(0, t - 300))[:440])
    assert (early.severity, early.onset_step) == (Severity.INFO, 276)
    assert early.key == f.key


def test_slow_growth_shows_in_longer_medians():
    t = np.arange(1500)
    [f] = told(noisy(12 * 1.004 ** np.maximum(0, t - 500)))
    assert f.detected_step < 1000
    assert f.evidence["factor"] > 10


def test_shrinking_without_end():
    t = np.arange(1000)
    [f] = told(noisy(12 * 0.98 ** np.maximum(0, t - 300)))
    assert f.evidence["factor"] < 0.1
    assert "shrank" in f.summary


def test_it_says_when_fp16_ends():
    [f] = findings(runaway_activations(), RULE)
    left = f.evidence["reports to 65504"]
    assert left == pytest.approx((math.log(65504) - math.log(f.evidence["level now"])) / math.log(1.02), rel=0.1)


def test_it_is_resolved_when_the_level_stands():
    t = np.arange(1500)
    [f] = told(noisy(12 * 1.02 ** np.clip(t - 300, 0, 200)))
    assert f.state is State.RESOLVED
    assert 500 < f.resolved_step < 600


@pytest.mark.parametrize("seed", range(3))
def test_attention_entropy_collapses(seed):
    [f] = findings(sharp_attention(seed), "attention-range")
    assert steps([f]) == [(300, 319, None)]
    assert f.severity is Severity.WARNING


def test_attention_logits_out_of_range():
    level = np.where(np.arange(700) < 300, 30.0, 250.0)
    [f] = told(noisy(level), "max_attention_logit", "attention-range")
    assert (steps([f]), f.severity) == ([(300, 319, None)], Severity.INFO)
    [f] = told(noisy(20 * level), "max_attention_logit", "attention-range")
    assert f.severity is Severity.WARNING


# ------------------------------------------------------------------ look-alikes
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "course",
    [
        lambda t: 1 + 29 * (1 - np.exp(-t / 300)),  # to a level
        lambda t: 1 + 30 / (1 + np.exp(-(t - 150) / 40)),  # S-shaped, early
        lambda t: 1 + 0.05 * t,  # in proportion to time
        lambda t: 1 + np.sqrt(t),  # to its root
        lambda t: np.where(t < 600, 10.0, 100.0),  # a step
        lambda t: 12 * (1 + 0.3 * np.sin(t / 60)),  # waves
        lambda t: 5 * 1.0005**t,  # threefold in two thousand
    ],
)
def test_quiet_on_growth_that_slows_down(course, seed):
    assert told(noisy(course(np.arange(2000.0)), seed, 0.08)) == []


@pytest.mark.parametrize("seed", range(5))
def test_quiet_on_a_random_walk_of_the_logarithm(seed):
    assert told(np.exp(np.cumsum(rng(seed).normal(0, 0.02, 3000)))) == []


def test_quiet_while_the_rate_rises():
    t = np.arange(600)
    values = noisy(1.02 ** np.minimum(t, 500))
    assert told(values, lr=(1e-6 * (t + 1.0)).tolist()) == []


def test_quiet_on_norms_of_weights():
    assert told(noisy(1.02 ** np.arange(600.0)), "weight_norm") == []


@pytest.mark.parametrize("seed", range(5))
def test_quiet_on_attention_that_sharpens_and_on_single_large_logits(seed):
    t = np.arange(2000)
    assert told(noisy(3.2 * (0.2 + 0.8 * np.exp(-t / 500)), seed), "attention_entropy", "attention-range") == []
    logits = noisy(np.full(2000, 40.0), seed)
    logits[::50] *= 20
    assert told(logits, "max_attention_logit", "attention-range") == []


def test_gaps_and_awkward_numbers_change_nothing():
    run = runaway_activations(0)
    for k, i in enumerate(range(5, 700, 6)):
        run["activation_norm"][i] = [None, float("nan"), 1e300, 0.0][k % 4]
    [f] = findings(run, RULE)
    assert abs(f.detected_step - 399) < 32


# ------------------------------------------------------------------ slow twin
def climbs(values, params=ActivationScale.Params()):  # noqa: B008 - the shipped parameters
    """The rule in its obvious form: six medians of the last reports, every difference against its error."""
    size = np.log(np.abs(values))
    for width in (20, 80):
        if len(size) < 6 * width:
            continue
        medians = [np.median(p) for p in np.split(size[-6 * width :], 6)]
        steps_ = np.diff(medians)
        noise = np.sort(np.abs(np.diff(size[-6 * width :])))
        cut = np.minimum(noise, noise[int(0.85 * (len(noise) - 1))])
        error = 1.25 * max(1.048 * np.median(noise), 0.886 * cut.mean()) * np.sqrt(2 / width)
        total = medians[-1] - medians[0]
        sign = np.sign(total)
        if (
            abs(total) >= math.log(params.factor)
            and (sign * steps_ > params.errors * error).all()
            and (sign * steps_)[-2:].sum() >= params.steady * (sign * steps_)[:2].sum()
        ):
            return True
    return False


@pytest.mark.parametrize("seed", range(20))
def test_the_fast_path_agrees_with_the_slow_twin(seed):
    r = rng(seed)
    rate, start = r.uniform(-0.03, 0.03), int(r.integers(100, 400))
    values = noisy(5 * np.exp(rate * np.maximum(0, np.arange(800) - start)), seed, r.uniform(0.01, 0.3))
    ends = [e for e in range(200, 801) if e % (4 if e <= 256 else 16) == 0]
    first = next((e - 1 for e in ends if climbs(values[:e])), None)
    found = told(values)
    assert [f.detected_step for f in found][:1] == ([] if first is None else [first])
