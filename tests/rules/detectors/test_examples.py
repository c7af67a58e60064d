"""The example on a detector's page, as numbers: the detector finds it."""

import re

import numpy as np
import pytest

from tests.columns import Columns
from tests.streams import findings
from trainmon_rules.detectors import ALL

PARTS = ("What it detects", "Why it matters", "Example", "When it is wrong", "Fixes", "Source")
N = 700
T = np.arange(N)
OVERFIT = [1.20, 0.949, 1.05, 1.16, 1.30, 1.42, 1.55, 1.68, 1.76]


def noise(sigma, n=N, seed=0):
    return np.random.default_rng([seed, 23]).normal(0, sigma, n)


def times(level, sigma=0.05, seed=0):
    """Numbers about a level, log-normal."""
    level = np.asarray(level, float)
    return level * np.exp(noise(sigma, len(level), seed))


def after(at, before, now, n=N):
    return np.where(np.arange(n) < at, before, now)


LOSS = 2 + noise(0.02)
FITTED = 0.5 + 2 * np.exp(-T / 120) + noise(0.03)
OF_200 = [120.0, 0.3, 0.24] + [0.24, 0.26] * 100
EXAMPLES = {
    "nonfinite": ({"loss": after(600, 2.0, np.nan)}, "critical"),
    "loss-scale-collapse": ({"loss_scale": [0.25 / 2**k for k in range(12)]}, "critical"),
    "grad-start": ({"loss": 12 + noise(0.1, 23), "grad_norm": [3.4e10, 62, 3.5e4, *times([80] * 20, 0.5)]}, "critical"),
    "grad-explosion": (
        {"loss": LOSS + np.maximum(0, T - 302) * 0.02, "grad_norm": times(after(300, 0.24, 960))},
        "critical",
    ),
    "grad-spike": (
        {"loss": LOSS, "grad_norm": [*times([0.24] * 300), 0.95, 2.4, 15.9, 145, 960, *[0.24] * 100]},
        "info",
    ),
    "grad-growth": ({"loss": LOSS, "grad_norm": times(0.5 * np.exp(np.clip((T - 400) * 0.05, 0, 4)), 0.1)}, "warning"),
    "loss-spike": ({"loss": [*2.2 + noise(0.02, 300), 2.9, 3.6, 4.4, 5.1, *2.22 + noise(0.02, 100)]}, "warning"),
    "divergence": (
        {"loss": np.interp(T, [0, 400, 440, N], [8.0, 6.4, 10.2, 10.2]) + noise(0.05), "lr": np.minimum(1e-4, T / 4e6)},
        "critical",
    ),
    "regime-shift": ({"loss": np.r_[5.0, 4.0, 3.0, after(300, 2.2, 2.35)[3:]] + noise(0.02)}, "warning"),
    "flat": ({"loss": 10.47 + noise(0.01, 121), "grad_norm": times([2e-4] * 121)}, "warning"),
    "plateau": ({"loss": 0.6931 + 0.213 * np.exp(-np.arange(500) / 12) + noise(0.0005, 500)}, "warning"),
    "slow": ({"loss": 0.695 - 0.0001 * np.arange(100) + noise(0.0002, 100)}, "info"),
    "overfit": (Columns({"val_loss": OVERFIT, "loss": np.geomspace(1.62, 0.022, 9)}, range(100, 1000, 100)), "warning"),
    "grad-vanishing": (
        {"loss": 10.475 + noise(0.01, 121), "grad_norm": [1.4, 0.0038, 0.0019, *np.geomspace(1e-3, 1.7e-4, 118)]},
        "warning",
    ),
    "chance-accuracy": ({"loss": 2.3022 + noise(0.001, 60), "val_accuracy": 0.0986 + noise(0.003, 60)}, "warning"),
    "dead-units": ({"loss": FITTED, "dead_relu": after(420, 0.08, 0.71) + noise(0.01)}, "warning"),
    "activation-scale": ({"loss": FITTED, "activation_norm": times(12 * 1.02 ** np.maximum(0, T - 300))}, "warning"),
    "attention-range": ({"loss": FITTED, "attention_entropy": times(after(220, 3.1, 0.04))}, "warning"),
    "preference-margin": (
        {
            "loss": LOSS,
            "rewards/margins": np.interp(T, [0, 300, 400, 410], [0, 1.4, 1.4, -0.6]) + noise(0.2),
            "rewards/accuracies": after(410, 0.78, 0.49) + noise(0.05),
        },
        "warning",
    ),
    "preference-displacement": (
        {
            "rewards/margins": 2.1 * np.minimum(1, T / 400),
            "rewards/chosen": -14 * np.minimum(1, T / 400),
            "rewards/rejected": -16 * np.minimum(1, T / 400),
        },
        "warning",
    ),
    "policy-kl": (
        {"reward": after(430, 0.5, 0.0), "kl": times(after(412, 0.04, 2.9)), "completions/mean_length": 100 + noise(9)},
        "warning",
    ),
    "policy-limit": ({"reward": noise(0.1), "completions/clipped_ratio": np.interp(T, [0, 65], [0.6, 1.0])}, "warning"),
    "throughput-drop": (
        {"loss": LOSS, "elapsed time per iteration (s)": times(after(300, 105.2, 111.1), 0.004)},
        "warning",
    ),
    "periodic-stall": ({"loss": LOSS, "step_time": times([0.2] * N, 0.1) + 0.5 * (T % 25 == 24)}, "info"),
    "low-utilization": (
        {"loss": LOSS, "gpu_util": 31 + noise(5), "data_time": times([0.9] * N), "step_time": times([1.3] * N, 0.01)},
        "warning",
    ),
    "memory-growth": (
        Columns({"loss": LOSS, "gpu_mem_mb": 8000.0 + 8 * T}, settings={"gpu_memory": "80GB", "max_steps": 20_000}),
        "warning",
    ),
    "lr-zero": (
        Columns({"lr": np.maximum(0, 1e-3 * (1 - np.arange(2000) / 1000))}, range(2000), {"max_steps": 8000}),
        "warning",
    ),
    "lr-jump": (
        {"lr": after(400, 6e-5, 3e-4) * np.where(T < 20, (T + 1) / 20, 1) * np.where(T < 40, 1.2, 1)},
        "warning",
    ),
    "lr-declared": (
        Columns(
            {"lr": 0.5e-3 * (1 + np.cos(np.pi * np.minimum(1, np.arange(400) / 125)))},
            settings={
                "lr_scheduler_type": "cosine",
                "learning_rate": 1e-3,
                "max_steps": 1000,
                "gradient_accumulation_steps": 8,
            },
        ),
        "warning",
    ),
    "lr-resume": (
        Columns(
            {
                "lr": [
                    *np.minimum(np.arange(9000) / 150, 1) * 1.5e-4 * (1 - np.arange(9000) / 10_000),
                    *[1e-6 * k for k in range(50)],
                ]
            },
            [*range(9000), *range(8000, 8050)],
        ),
        "warning",
    ),
    "resume-jump": (
        Columns(
            {
                "loss": [
                    *2.31 + 8 * np.exp(-np.arange(1000) / 60) + noise(0.02, 1000),
                    *2.31 + 0.31 * np.exp(-T / 130) + noise(0.02),
                ]
            },
            [*range(1000), *range(900, 900 + N)],
        ),
        "warning",
    ),
}


@pytest.mark.parametrize("cls", ALL, ids=lambda c: c.name)
def test_every_detector_has_a_page_in_six_parts(cls):
    text = __import__(cls.__module__, fromlist=["x"]).__doc__
    at = [text.find(f"\n{part}: ") for part in PARTS]
    assert at == sorted(at) and at[0] > 0
    assert all(len(re.sub(r"\s+", " ", text[a:b])) > 20 for a, b in zip(at, [*at[1:], len(text)], strict=True))


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_of_its_page_is_found(name):
    columns, severity = EXAMPLES[name]
    columns = columns if isinstance(columns, Columns) else {tag: np.asarray(v).tolist() for tag, v in columns.items()}
    rules = {f.rule: f.severity for f in sorted(findings(columns), key=lambda f: f.severity)}
    own = [rule for rule in rules if rule == name or (name, rule) == ("policy-limit", "answers-cut")]
    assert own, rules
    assert str(max(rules[rule] for rule in own)) == severity, rules
