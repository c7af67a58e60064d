"""Learning-rate schedules: what the frameworks' names mean, and the rate to expect at a step.

A schedule is given in shares of its peak, so that it holds for every parameter group. What the settings don't say
stays unknown: the shares are then NaN, and whoever asks has to be content with less.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from trainmon_rules.points import FloatArray, IntArray

SHAPES: Mapping[str, str] = {
    "constant": "stays at its peak after the warm-up",
    "linear": "falls in a straight line from the end of the warm-up to the last step",
    "cosine": "falls along half a cosine from the end of the warm-up to the last step",
    "polynomial": "falls as a power of the part that is left",
    "exponential": "falls by the same factor every step",
    "step": "falls by a factor at some steps",
    "inverse-sqrt": "falls with one over the square root of the step",
    "wsd": "warms up, stays, and decays at the end",
    "one-cycle": "rises over about a third of the run, then falls to nearly nothing",
    "restarts": "falls along a cosine and starts over, again and again",
    "cyclic": "goes up and down between two bounds",
    "plateau": "falls by a factor when a metric no longer improves",
}
"""The shapes by name, in words."""

MOVING = ("linear", "cosine", "polynomial", "exponential", "inverse-sqrt", "one-cycle", "restarts", "cyclic")
"""Shapes whose rate moves all the time once the warm-up is over (or soon after)."""

PEAKED = ("constant", "linear", "cosine", "polynomial", "exponential", "step", "inverse-sqrt", "wsd")
"""Shapes that are never above the rate at which the warm-up ends."""

# The first word that is found in a name (without its punctuation) gives its shape.
_WORDS = (
    ("envelope", ""), ("plateau", "plateau"), ("restart", "restarts"), ("sgdr", "restarts"), ("cyclic", "cyclic"),
    ("triangular", "cyclic"), ("onecycle", "one-cycle"), ("1cycle", "one-cycle"), ("stabledecay", "wsd"),
    ("wsd", "wsd"), ("trapezoid", "wsd"), ("tristage", "wsd"), ("inversesq", "inverse-sqrt"),
    ("invsqrt", "inverse-sqrt"), ("rsqrt", "inverse-sqrt"), ("noam", "inverse-sqrt"), ("warmupcos", "cosine"),
    ("cosine", "cosine"), ("poly", "polynomial"), ("exponential", "exponential"), ("multistep", "step"),
    ("piecewise", "step"), ("staircase", "step"), ("constant", "constant"), ("fixed", "constant"),
    ("warmupdecay", "linear"), ("linear", "linear"),
)  # fmt: skip
_EXACT = {
    "step": "step", "steplr": "step", "multifactor": "step", "cos": "cosine", "exp": "exponential",
    "warmuplr": "constant", "linearlr": "", "linearwarmup": "", "linearwarmuplr": "",
}  # fmt: skip


def shape_of(name: str) -> str:
    """Return the shape that a schedule's name means; "" if it isn't known.

    Parameters
    ----------
    name : str
        As Hugging Face, Megatron, DeepSpeed, fairseq, timm, Keras or torch spell it: `cosine_with_restarts`,
        `WSD`, `torch.optim.lr_scheduler.OneCycleLR`, `SchedulerType.LINEAR`. torch's `LinearLR` is a warm-up only.
    """
    text = re.sub(r"[^a-z0-9]", "", name.rsplit(".", 1)[-1].lower())
    if text in _EXACT:
        return _EXACT[text]
    return next((shape for word, shape in _WORDS if word in text), "")


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule as announced; None (or NaN) is what isn't known.

    Attributes
    ----------
    shape : str
        One of `SHAPES`, "" if unknown.
    warmup : int or None
        Steps over which the rate rises from 0 to its peak.
    total : int or None
        Step at which the decay ends.
    peak : float or None
        Highest rate.
    floor : float or None
        Rate at the end as a share of the peak.
    decay : int or None
        Steps of the decay at the end of a `wsd`.
    power : float
        Of `polynomial`; 1 is a straight line.
    """

    shape: str = ""
    warmup: int | None = None
    total: int | None = None
    peak: float | None = None
    floor: float | None = None
    decay: int | None = None
    power: float = 1.0

    def share(self, step: IntArray | FloatArray, origin: int | None = None) -> FloatArray:
        """Return the rate to expect at each step, as a share of the peak; NaN where it can't be told.

        Parameters
        ----------
        step : array, shape (n,)
            Steps. They may lie beyond the end: the rate stays there at its last value.
        origin : int, optional
            Step from which the decay is counted; by default the end of the warm-up (Hugging Face, Megatron). torch
            counts from 0.

        Returns
        -------
        float64 array, shape (n,)
        """
        t = np.asarray(step, np.float64)
        start = float(self.warmup or 0)
        begin = start if origin is None else float(origin)
        end = np.nan if self.total is None or self.total <= begin else float(self.total)
        u = np.clip((t - begin) / (end - begin), 0.0, 1.0)
        down = self._down(t, u, start, end)
        return np.where(t < start, t / start, down) if start else down

    def _down(self, t: FloatArray, u: FloatArray, start: float, end: float) -> FloatArray:
        floor = self.floor or 0.0
        if self.shape == "constant":
            return np.ones_like(t)
        if self.shape in ("linear", "polynomial"):
            return floor + (1.0 - floor) * (1.0 - u) ** (1.0 if self.shape == "linear" else self.power)
        if self.shape in ("cosine", "one-cycle"):
            return floor + (1.0 - floor) * 0.5 * (1.0 + np.cos(np.pi * u))
        if self.shape == "exponential" and floor > 0:
            return np.asarray(floor**u)
        if self.shape == "inverse-sqrt" and start > 0:
            return np.sqrt(start / np.maximum(t, start))
        if self.shape == "wsd" and self.decay:
            return 1.0 - (1.0 - floor) * np.clip((t - end + self.decay) / self.decay, 0.0, 1.0)
        return np.full_like(t, np.nan)

    def done(self, share: float, floor: float) -> float:
        """Return the part of a cosine's or a straight line's decay that is done at a share of the peak, 0 to 1.

        Parameters
        ----------
        share : float
            Rate over the peak.
        floor : float
            Share of the peak at the end.
        """
        x = min(1.0, max(0.0, (share - floor) / (1.0 - floor)))
        return 1.0 - x if self.shape == "linear" else float(np.arccos(2.0 * x - 1.0) / np.pi)


def announced(get: Callable[[str], Any]) -> Schedule | None:
    """Return the schedule that a run's settings announce; None if they name none.

    Parameters
    ----------
    get : function of a name to a value or None
        Settings in the vocabulary's names.
    """
    name = get("lr_schedule")
    shape = shape_of(name) if isinstance(name, str) else ""
    if not shape:
        return None
    total = _positive(get("decay_steps")) or (None if get("decay_samples") else _positive(get("total_steps")))
    peak, least = get("learning_rate") or None, get("min_learning_rate")
    floor = least / peak if peak and least is not None and least < peak else None
    return Schedule(shape, _warmup(get, total), total, peak, floor)


def _warmup(get: Callable[[str], Any], total: int | None) -> int | None:
    """Steps go before a share of them; 0 is only believed where nothing else speaks of a warm-up."""
    steps, ratio = get("warmup_steps"), get("warmup_ratio")
    if steps:
        return _positive(steps)
    if ratio:
        return round(ratio * total) if total and ratio < 1 else None
    if get("warmup_samples"):
        return None
    return 0 if steps == 0 or ratio == 0 else None


def _positive(value: Any) -> int | None:
    return int(value) if value is not None and value > 0 else None
