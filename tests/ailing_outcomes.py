"""Ailing runs of which the loss alone tells little: accuracies, validation, units, activations, preferences, policies.

Each has one fault, at row 300 or from the start; `streams.AILING` takes them over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

Columns = dict[str, list[float | None]]


def _rng(seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, 17])


def learning(n: int, seed: int, floor: float = 0.4) -> np.ndarray:
    """A loss that falls from ln 10 to a floor."""
    return floor + (np.log(10) - floor) * np.exp(-np.arange(n) / 120) + _rng(seed).normal(0, 0.03, n)


def guesses(seed: int = 0, n: int = 700, classes: int = 10, batch: int = 128) -> Columns:
    """Ten classes at chance: a step's loss is ln 10 and its accuracy that of a binomial draw."""
    rng = _rng(seed)
    return {
        "loss": (np.log(classes) + rng.normal(0, 0.02, n)).tolist(),
        "accuracy": (rng.binomial(batch, 1 / classes, n) / batch).tolist(),
        "lr": [1e-3] * n,
    }


def perfect_validation(seed: int = 0, n: int = 700) -> Columns:
    """Validation loss exactly 0 from the first evaluation on while training learns as usual."""
    return {
        "loss": learning(n, seed).tolist(),
        "eval_loss": [0.0 if i % 20 == 19 else None for i in range(n)],
    }


def dying_units(seed: int = 0, n: int = 700) -> Columns:
    """A twelfth of the units is dead, and seven in ten from row 300 on."""
    rng = _rng(seed)
    dead = 0.08 + rng.normal(0, 0.01, n)
    dead[300:] += 0.62
    return {"loss": learning(n, seed).tolist(), "dead_relu": np.clip(dead, 0, 1).tolist()}


def runaway_activations(seed: int = 0, n: int = 700) -> Columns:
    """The norm stands at 12, and grows by 2 % a row from row 300 on."""
    rng = _rng(seed)
    grown = 1.02 ** np.maximum(0, np.arange(n) - 300)
    return {
        "loss": learning(n, seed).tolist(),
        "activation_norm": (12 * grown * np.exp(rng.normal(0, 0.05, n))).tolist(),
        "lr": [1e-3] * n,
    }


def sharp_attention(seed: int = 0, n: int = 700) -> Columns:
    """The attention entropy falls from 3 to 0.03 at row 300."""
    rng = _rng(seed)
    entropy = 3.0 * np.exp(rng.normal(0, 0.05, n))
    entropy[300:] *= 0.01
    return {"loss": learning(n, seed).tolist(), "attention_entropy": entropy.tolist()}


def preference(n: int = 700, seed: int = 0) -> Columns:
    """A healthy DPO run: margins that grow and level off, a chosen reward that hardly falls."""
    rng = _rng(seed)
    t = np.arange(n)
    margin = 1.5 * (1 - np.exp(-t / 80)) + rng.normal(0, 0.3, n)
    chosen = -0.5 * (1 - np.exp(-t / 200)) + rng.normal(0, 0.1, n)
    right = rng.binomial(16, 0.5 + 0.3 * (1 - np.exp(-t / 80))) / 16
    return {
        "loss": (np.log1p(np.exp(-1.5 * (1 - np.exp(-t / 80)))) + rng.normal(0, 0.05, n)).tolist(),
        "rewards/chosen": chosen.tolist(),
        "rewards/rejected": (chosen - margin).tolist(),
        "rewards/margins": margin.tolist(),
        "rewards/accuracies": right.tolist(),
        "logps/chosen": (-250 + 10 * chosen + rng.normal(0, 15, n)).tolist(),
        "learning_rate": [5e-7] * n,
    }


def lost_margin(seed: int = 0) -> Columns:
    """The margin falls below 0 at row 300."""
    run = preference(seed=seed)
    for i in range(300, 700):
        run["rewards/margins"][i] -= 2.0
    return run


def displaced(seed: int = 0) -> Columns:
    """From row 300 on both answers lose likelihood together, to -20."""
    run = preference(seed=seed)
    for i in range(300, 700):
        fall = 20 * (1 - float(np.exp(-(i - 300) / 60)))
        run["rewards/chosen"][i] -= fall
        run["rewards/rejected"][i] -= fall
    return run


def policy(n: int = 700, seed: int = 0) -> Columns:
    """A healthy GRPO run: a noisy reward that rises, a KL divergence that grows slowly."""
    rng = _rng(seed)
    t = np.arange(n)
    return {
        "reward": (0.2 + 0.5 * (1 - np.exp(-t / 200)) + rng.normal(0, 0.08, n)).tolist(),
        "reward_std": np.abs(0.3 + rng.normal(0, 0.03, n)).tolist(),
        "frac_reward_zero_std": np.clip(0.2 + rng.normal(0, 0.1, n), 0, 1).tolist(),
        "kl": ((0.002 + 0.05 * t / n) * np.exp(rng.normal(0, 0.4, n))).tolist(),
        "entropy": (0.3 + 0.6 * np.exp(-t / 200) + rng.normal(0, 0.02, n)).tolist(),
        "clip_ratio/region_mean": np.clip(0.02 + rng.normal(0, 0.01, n), 0, 1).tolist(),
        "completions/mean_length": (300 + 0.1 * t + rng.normal(0, 15, n)).tolist(),
        "completions/clipped_ratio": np.clip(0.1 + rng.normal(0, 0.03, n), 0, 1).tolist(),
        "learning_rate": [1e-6] * n,
    }


def runaway_policy(seed: int = 0) -> Columns:
    """The KL divergence rises two-hundredfold at row 300."""
    run = policy(seed=seed)
    for i in range(300, 700):
        run["kl"][i] *= 200
    return run


def cut_answers(seed: int = 0) -> Columns:
    """From row 300 on every answer is cut at the limit."""
    run = policy(seed=seed)
    run["completions/clipped_ratio"][300:] = [1.0] * 400
    run["completions/mean_length"][300:] = [512.0] * 400
    return run


OUTCOMES: Mapping[str, Callable[[int], Columns]] = {
    "chance-accuracy": guesses,
    "val-suspect": perfect_validation,
    "dead-units": dying_units,
    "activation-scale": runaway_activations,
    "attention-range": sharp_attention,
    "preference-margin": lost_margin,
    "preference-displacement": displaced,
    "policy-kl": runaway_policy,
    "policy-limit": cut_answers,
}
