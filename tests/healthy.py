"""Whole healthy runs: the streams of `streams.HEALTHY` with everything that a run logs beside its loss.

Also two runs that learn from rewards, a preference run and a policy. All are seeded; nothing in them is a fault, but
they hold what fools monitors: evaluation and checkpoint pauses, a slow first step, a scaler that finds its range and
overflows now and then, allocator growth that levels off, an accuracy that starts at chance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from tests.streams import HEALTHY

Columns = Mapping[str, np.ndarray]
EVALUATE = 200  # rows from one evaluation to the next
SAVE = 1000  # rows from one checkpoint to the next


def whole(name: str) -> Callable[[int, int], dict[str, np.ndarray]]:
    """Return the maker of a stream with all that is logged beside it; NaN is "not logged in this row"."""

    def make(n: int, seed: int) -> dict[str, np.ndarray]:
        rng = np.random.default_rng([seed, 7])
        columns = HEALTHY[name](n, seed)
        beside = (
            _evaluations(columns["loss"], rng),
            _speed(n, rng),
            _device(n, rng),
            _inside(n, rng),
            _attention(n, rng),
        )
        return {**columns, **{tag: values for part in beside for tag, values in part.items()}}

    return make


def _evaluations(loss: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Validation loss and accuracy of ten classes, each on a few thousand examples."""
    n = len(loss)
    at = np.arange(n) % EVALUATE == EVALUATE - 1
    level = np.array([loss[max(0, i - 50) : i + 1].mean() for i in np.flatnonzero(at)])
    val = np.full(n, np.nan)
    val[at] = level + 0.08 + rng.normal(0, 0.01, at.sum())
    accuracy = np.full(n, np.nan)
    accuracy[at] = 0.1 + 0.75 * (1 - np.exp(-np.flatnonzero(at) / (n / 6))) + rng.normal(0, 0.006, at.sum())
    return {"eval_loss": val, "eval_accuracy": np.clip(accuracy, 0, 1)}


def _speed(n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Seconds a step with a slow first one, drift of the machine, pauses for evaluation and checkpoints."""
    t = np.arange(n)
    step = 0.8 * np.exp(rng.normal(0, 0.03, n)) * (1 + 0.01 * np.sin(t / 900))
    step[0], step[1:5] = 45.0, 1.4
    step[t % SAVE == SAVE - 1] += 6.0
    pause = np.where(t % EVALUATE == EVALUATE - 1, 12.0, 0.0)
    return {"step_time": step, "data_time": 0.03 * step, "time": 1.7e9 + np.cumsum(step + pause)}


def _device(n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Utilisation with dips at evaluations, memory that grows while caches fill and then stands."""
    t = np.arange(n)
    use = np.clip(93 + rng.normal(0, 3, n), 0, 100)
    use[t % EVALUATE >= EVALUATE - 2] = 20
    memory = 61_000 + 800 * (1 - np.exp(-t / 150)) + 40 * (t % 7 == 0)
    return {"gpu_util": use, "gpu_mem": memory.round()}


def _inside(n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """A loss scale with rare overflows, a share of dead units, the size of activations."""
    scale, good, out = 65536.0, 0, np.zeros(n)
    overflow = rng.random(n) < 1 / 1500
    overflow[:6] = [False, True, True, True, False, False]
    for i in range(n):
        scale, good = (scale / 2, 0) if overflow[i] else (scale, good + 1)
        if good == 1000:
            scale, good = min(2 * scale, 2.0**20), 0
        out[i] = scale
    t = np.arange(n)
    dead = np.clip(0.12 + 0.05 * (1 - np.exp(-t / 500)) + rng.normal(0, 0.01, n), 0, 1)
    size = (1 + 3 * (1 - np.exp(-t / 700))) * np.exp(rng.normal(0, 0.05, n))
    return {"loss_scale": out, "dead_units": dead, "activation_norm": size}


def _attention(n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Logits that grow with the root of time, entropy that falls to a third, an accuracy that rises from chance."""
    t = np.arange(n)
    right = 0.1 + 0.6 * (1 - np.exp(-t / 800))
    return {
        "max_attention_logit": (3 + 0.15 * np.sqrt(t)) * np.exp(rng.normal(0, 0.1, n)),
        "attention_entropy": (1.2 + 2 * np.exp(-t / 600)) * np.exp(rng.normal(0, 0.03, n)),
        "train_accuracy": rng.binomial(64, right) / 64,
    }


def preference(n: int, seed: int) -> dict[str, np.ndarray]:
    """DPO: the loss from ln 2, margins that grow and level off, both rewards drifting down a little."""
    rng = np.random.default_rng([seed, 11])
    t = np.arange(n)
    margin = 1.6 * (1 - np.exp(-t / (n / 5))) + rng.normal(0, 0.35, n)
    drift = -0.8 * (1 - np.exp(-t / (n / 3)))
    chosen = drift + margin / 2 + rng.normal(0, 0.2, n)
    right = 0.5 + 0.28 * (1 - np.exp(-t / (n / 8)))
    return {
        "loss": np.log1p(np.exp(-margin)) + rng.normal(0, 0.02, n),
        "grad_norm": 4 * np.exp(rng.normal(0, 0.3, n)),
        "learning_rate": 5e-7 * np.minimum(1, (t + 1) / (n / 10)) * np.maximum(0.02, 1 - t / n),
        "rewards/chosen": chosen,
        "rewards/rejected": chosen - margin,
        "rewards/margins": margin,
        "rewards/accuracies": rng.binomial(32, right) / 32,
        "logps/chosen": -180 + 10 * chosen + rng.normal(0, 8, n),
    }


def policy(n: int, seed: int) -> dict[str, np.ndarray]:
    """GRPO: a noisy reward that rises and levels off, KL that grows slowly, entropy that falls to a third."""
    rng = np.random.default_rng([seed, 13])
    t = np.arange(n)
    reward = 0.2 + 0.55 * (1 - np.exp(-t / (n / 4))) + rng.normal(0, 0.08, n)
    return {
        "reward": reward,
        "reward_std": np.abs(0.3 - 0.15 * t / n + rng.normal(0, 0.03, n)),
        "loss": rng.normal(0, 0.02, n),
        "kl": (0.002 + 0.05 * t / n) * np.exp(rng.normal(0, 0.4, n)),
        "entropy": 0.3 + 0.6 * np.exp(-t / (n / 3)) + rng.normal(0, 0.03, n),
        "clip_ratio/high_mean": np.clip(0.02 + rng.normal(0, 0.01, n), 0, 1),
        "grad_norm": 0.4 * np.exp(rng.normal(0, 0.35, n)),
        "learning_rate": np.full(n, 1e-6),
        "frac_reward_zero_std": np.clip(0.1 + 0.4 * t / n + rng.normal(0, 0.1, n), 0, 1),
        "completions/clipped_ratio": np.clip(0.3 * np.exp(-t / (n / 5)) + rng.normal(0, 0.03, n), 0, 1),
        "completions/mean_length": 300 + 60 * t / n + rng.normal(0, 15, n),
    }


WHOLE: Mapping[str, Callable[[int, int], dict[str, np.ndarray]]] = {
    **{name: whole(name) for name in HEALTHY},
    "preference": preference,
    "policy": policy,
}
"""Healthy runs by name: a maker of `n` rows of a seed each."""
