"""Ailing runs about the learning rate and resumes; `streams.AILING` takes them over."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from tests.columns import Columns, base


def zero_rate(seed: int = 0) -> dict[str, list[float | None]]:
    run = base(seed=seed)
    run["lr"][300:] = [0.0] * 400
    return run


def jumping_rate(seed: int = 0) -> dict[str, list[float | None]]:
    """A rate that has come down a little, and is ten times as high from one report to the next."""
    run = base(seed=seed)
    run["lr"] = [1e-3 * (1 - 0.0005 * i) * (10 if i >= 300 else 1) for i in range(700)]
    return run


def without_warmup(seed: int = 0) -> Columns:
    return Columns(base(seed=seed), settings={"lr_scheduler_type": "constant_with_warmup", "warmup_steps": 500})


def eight_times_too_fast(seed: int = 0) -> Columns:
    """A cosine over 6,400 steps that is stepped with every micro-batch: it is over after 800."""
    run = base(n=700, seed=seed)
    run["lr"] = [0.5e-3 * (1 + float(np.cos(np.pi * i / 800))) for i in range(700)]
    said = {"lr_scheduler_type": "cosine", "learning_rate": 1e-3, "max_steps": 6400, "gradient_accumulation_steps": 8}
    return Columns(run, settings=said)


def resumed(seed: int = 0) -> Columns:
    """A healthy run with a decaying rate that is resumed at step 360, forty steps back."""
    run = base(n=740, seed=seed)
    step = [*range(400), *range(360, 700)]
    values = {tag: [column[s] for s in step] for tag, column in run.items()}
    values["lr"] = [1e-3 * min((s + 1) / 20, 1 - s / 1000) for s in step]
    return Columns(values, step)


def rate_starts_over(seed: int = 0) -> Columns:
    run = resumed(seed)
    run["lr"][400:] = run["lr"][:340]
    return run


def weights_lost(seed: int = 0) -> Columns:
    run = resumed(seed)
    for tag in ("loss", "eval_loss"):
        run[tag][400:] = run[tag][:340]
    return run


RATES: Mapping[str, Callable[[int], dict[str, list[float | None]]]] = {
    "lr-zero": zero_rate,
    "lr-jump": jumping_rate,
    "lr-warmup": without_warmup,
    "lr-declared": eight_times_too_fast,
    "lr-resume": rate_starts_over,
    "resume-jump": weights_lost,
}
