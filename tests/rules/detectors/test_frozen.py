"""frozen-loss and a gradient that is exactly 0: exact steps, and what only looks alike."""

import numpy as np
import pytest

from tests.engine import findings

RULE = "frozen-loss"


def noisy(n=400, seed=0, level=2.2):
    return level + np.random.default_rng(seed).normal(0, 0.05, n)


def then(value, at=200, n=400, seed=0):
    return np.where(np.arange(n) < at, noisy(n, seed), value)


@pytest.mark.parametrize("seed", range(3))
def test_a_loss_of_zero_at_once_is_said_at_the_tenth(seed):
    assert findings(RULE, {"loss": then(0.0, seed=seed)}) == [("warning", 200, 209, "ended")]


@pytest.mark.parametrize("seed", range(3))
def test_a_loss_that_repeats_itself_is_said_at_the_thirtieth(seed):
    assert findings(RULE, {"loss": then(2.3026, seed=seed)}) == [("warning", 200, 229, "ended")]


def test_it_is_over_when_the_loss_moves_again():
    x = then(2.3026)
    x[300:] = noisy(100, 9)
    assert findings(RULE, {"loss": x}) == [("warning", 200, 229, "resolved")]


def looks_alike(name, seed):
    t, rng = np.arange(1000), np.random.default_rng(seed)
    if name == "printed with two digits":
        return np.round(2.2 + 3 * np.exp(-t / 100) + rng.normal(0, 0.01 * np.exp(-t / 200), 1000), 2)
    if name == "learned by heart, printed with four digits":
        return np.round(3 * np.exp(-t / 50 + rng.normal(0, 0.2, 1000)), 4)
    if name == "all data at once":
        return 0.6931 + np.round(2 * 0.5**t, 4)
    if name == "a few repeated reports":
        return np.repeat(noisy(100, seed), 10)
    return np.where(t % 50 < 5, 0.0, noisy(1000, seed))  # "now and then an empty batch"


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "name",
    [
        "printed with two digits",
        "learned by heart, printed with four digits",
        "all data at once",
        "a few repeated reports",
        "now and then an empty batch",
    ],
)
def test_quiet_on(name, seed):
    assert findings(RULE, {"loss": looks_alike(name, seed)}) == []


def zero_norm(loss, seed=0):
    norm = 0.6 * np.exp(np.random.default_rng(50 + seed).normal(0, 0.1, len(loss)))
    norm[400:] = 0.0
    return {"loss": loss, "grad_norm": norm}


@pytest.mark.parametrize("seed", range(3))
def test_a_norm_of_zero_at_once_beside_a_loss_that_stands_is_a_vanished_gradient(seed):
    [(severity, _, at, _)] = findings("grad-vanishing", zero_norm(noisy(1000, seed), seed))
    assert severity == "warning"
    assert 463 <= at < 600


@pytest.mark.parametrize("seed", range(3))
def test_a_norm_printed_as_zero_beside_a_moving_loss_is_quiet(seed):
    falling = 1.5 + 3 * np.exp(-np.arange(1000) / 300) + noisy(1000, seed, 0.0)
    norm = 0.004 * np.exp(-np.arange(1000) / 200 + np.random.default_rng(50 + seed).normal(0, 0.1, 1000))
    assert findings("grad-vanishing", {"loss": falling, "grad_norm": np.round(norm, 3)}) == []
