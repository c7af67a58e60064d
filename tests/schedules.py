"""Learning rates as frameworks apply and log them, for tests: many shapes, printed, thinned out, resumed.

The shapes are written out here once more, from the frameworks' own documentation, so that a mistake in
`trainmon_rules.schedules` doesn't hide itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tests.columns import Columns

TOTAL, WARMUP = 4_000, 200
Shape = Callable[[np.ndarray], np.ndarray]


def _rise(t: np.ndarray) -> np.ndarray:
    return np.minimum(1.0, t / WARMUP)


def _part(t: np.ndarray) -> np.ndarray:
    return np.clip((t - WARMUP) / (TOTAL - WARMUP), 0.0, 1.0)


def cosine(t):
    return np.minimum(_rise(t), 0.5 * (1 + np.cos(np.pi * _part(t))))


def cosine_to_a_tenth(t):
    return np.minimum(_rise(t), 0.1 + 0.45 * (1 + np.cos(np.pi * _part(t))))


def cosine_from_step_0(t):
    """As torch: the cosine goes over all steps, the warm-up is a factor beside it."""
    return _rise(t) * 0.5 * (1 + np.cos(np.pi * t / TOTAL))


def linear(t):
    return np.minimum(_rise(t), 1 - _part(t))


def polynomial(t):
    return np.minimum(_rise(t), (1 - _part(t)) ** 2)


def inverse_sqrt(t):
    return np.minimum(_rise(t), np.sqrt(WARMUP / np.maximum(t, 1)))


def wsd(t):
    return np.minimum(_rise(t), np.clip((TOTAL - t) / (0.2 * TOTAL), 0, 1))


def one_cycle(t):
    up, down = t / (0.3 * TOTAL), (t - 0.3 * TOTAL) / (0.7 * TOTAL)
    rising = 0.04 + 0.48 * (1 - np.cos(np.pi * np.clip(up, 0, 1)))
    return np.where(up < 1, rising, 4e-6 + 0.5 * (1 + np.cos(np.pi * np.clip(down, 0, 1))))


def warm_restarts(t):
    """Cycles of 250, 500, 1,000, … steps, down to 0 each."""
    k = np.floor(np.log2(t / 250 + 1))
    start = 250 * (2**k - 1)
    return 0.5 * (1 + np.cos(np.pi * (t - start) / (250 * 2**k)))


def decaying_restarts(t):
    return warm_restarts(t) * 0.7 ** np.floor(np.log2(t / 250 + 1))


def triangular(t):
    return 0.1 + 0.9 * (1 - np.abs((t / 400) % 2 - 1))


def step_decay(t):
    return _rise(t) * 0.1 ** (np.floor(t / (0.3 * TOTAL)))


def exponential(t):
    return _rise(t) * 0.999 ** np.maximum(t - WARMUP, 0)


def on_plateau(t):
    """Halved wherever a metric stood still."""
    at = np.array([700, 1500, 1900, 2600, 3300])
    return _rise(t) * 0.5 ** np.searchsorted(at, t, "right")


def constant(t):
    return np.ones_like(t)


def constant_with_warmup(t):
    return _rise(t)


def warmup_in_steps(t):
    """As timm does it by default: the rate changes once an epoch, here of 100 steps."""
    epoch = np.floor(t / 100)
    return np.minimum(1e-3 + 0.2 * epoch, 0.5 * (1 + np.cos(np.pi * 100 * epoch / TOTAL)))


PLAIN: Mapping[str, Shape] = {
    f.__name__: f
    for f in (
        cosine, cosine_to_a_tenth, cosine_from_step_0, linear, polynomial, inverse_sqrt, wsd, one_cycle, warm_restarts,
        decaying_restarts, triangular, step_decay, exponential, on_plateau, constant, constant_with_warmup,
        warmup_in_steps,
    )
}  # fmt: skip

NAMES: Mapping[str, str] = {
    "cosine": "cosine", "cosine_to_a_tenth": "cosine_with_min_lr", "cosine_from_step_0": "CosineAnnealingLR",
    "linear": "SchedulerType.LINEAR", "polynomial": "polynomial", "inverse_sqrt": "inverse-square-root", "wsd": "WSD",
    "one_cycle": "OneCycleLR", "warm_restarts": "cosine_with_restarts", "decaying_restarts": "sgdr",
    "triangular": "CyclicLR", "step_decay": "torch.optim.lr_scheduler.StepLR", "exponential": "ExponentialLR",
    "on_plateau": "reduce_lr_on_plateau", "constant": "constant", "constant_with_warmup": "constant_with_warmup",
    "warmup_in_steps": "cosine",
}  # fmt: skip
"""The schedules' names as some framework writes them."""

WITHOUT_WARMUP = ("one_cycle", "warm_restarts", "decaying_restarts", "triangular", "constant", "warmup_in_steps")


def announcement(shape: str, peak: float, **more: object) -> dict[str, object]:
    """What a log's settings say of the schedule."""
    said: dict[str, object] = {"lr_scheduler_type": NAMES[shape], "learning_rate": peak, "max_steps": TOTAL}
    if shape not in WITHOUT_WARMUP:
        said["warmup_steps"] = WARMUP
    return {**said, **more}


def rates(shape: str, peak: float, step: Sequence[int], places: int | None = None) -> list[float]:
    """The rate at each step, in full or printed with so many decimals."""
    values = peak * PLAIN[shape](np.asarray(step, np.float64))
    return [float(v) if places is None else float(f"{v:.{places}f}") for v in values.tolist()]


def logged(
    shape: str,
    peak: float = 3e-4,
    every: int = 1,
    places: int | None = None,
    resume: int | None = None,
    settings: Mapping[str, object] | None = None,
) -> Columns:
    """The rate of a healthy run: reported every so many steps, resumed 10 % back from the given step."""
    step = [*range(every, TOTAL + 1, every)]
    if resume is not None:
        back = resume - resume // 10
        step = [s for s in step if s <= resume] + [s for s in step if s > back]
    return Columns({"lr": rates(shape, peak, step, places)}, step, settings)


def with_loss(run: Columns, seed: int = 0) -> Columns:
    """The same run with a healthy loss beside the rate; a step that is trained again has the same loss again."""
    at = np.asarray(run.step)
    noise = np.random.default_rng(seed).normal(0, 0.03, TOTAL + 1)
    loss = 0.8 + 2 * np.exp(-at / 300) + 1.5 * (1 + at / 60) ** -0.3 + noise[at]
    return Columns({**run, "loss": loss.tolist()}, run.step, run.settings)
