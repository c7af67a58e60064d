"""val-divergence: a validation loss that rises with the training loss, never a page."""

import numpy as np
import pytest

from tests.engine import findings

RULE = "val-divergence"


def run(seed=0, n=1200, every=10, rise=0.0, train_rise=0.0, at=600):
    """Training and validation loss, an evaluation every tenth row; each may rise from `at` on, so much a row."""
    rng, t = np.random.default_rng(seed), np.arange(n)
    course = 0.4 + 4 * np.exp(-t / 120)
    late = np.maximum(0, t - at)
    val = course + 0.1 + rise * late + rng.normal(0, 0.01, n)
    return {
        "loss": course + train_rise * late + rng.normal(0, 0.05, n),
        "val_loss": [v if i % every == 0 else None for i, v in enumerate(val)],
    }


@pytest.mark.parametrize("seed", range(3))
def test_a_validation_loss_that_rises_with_the_training_loss_is_found_and_no_page(seed):
    [(severity, onset, detected, state)] = findings(RULE, run(seed, rise=0.01, train_rise=0.01))
    assert (severity, state) == ("warning", "ended")
    assert (onset, detected) == (730, 870)


def test_a_step_up_is_dated_to_its_evaluation():
    tags = run()
    tags["loss"][600:] += 1.5
    tags["val_loss"][600:] = [None if v is None else v + 1.5 for v in tags["val_loss"][600:]]
    assert findings(RULE, tags)[0][:3] == ("warning", 600, 750)


def looks_alike(name, seed):
    if name == "overfit":
        return run(seed, rise=0.004)
    if name == "only the training loss rises":
        return run(seed, train_rise=0.01)
    if name == "noisy evaluations":
        tags = run(seed)
        rng = np.random.default_rng(50 + seed)
        tags["val_loss"] = [None if v is None else v + rng.normal(0, 0.15) for v in tags["val_loss"]]
        return tags
    if name == "one bad evaluation":
        tags = run(seed)
        tags["val_loss"][600] += 3
        return tags
    tags = run(seed)  # "warm restart"
    lift = np.where(np.arange(1200) >= 600, 0.3 * np.exp(-(np.arange(1200) - 600) / 60), 0)
    tags["loss"] += lift
    tags["val_loss"] = [None if v is None else v + lift[i] for i, v in enumerate(tags["val_loss"])]
    tags["lr"] = 1e-5 + 5e-4 * (1 + np.cos(np.pi * (np.arange(1200) % 600) / 600))
    return tags


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "name", ["overfit", "only the training loss rises", "noisy evaluations", "one bad evaluation", "warm restart"]
)
def test_quiet_on(name, seed):
    assert findings(RULE, looks_alike(name, seed)) == []
