"""The rule of an experiment tracker: Weights & Biases Automations."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import ClassVar

from trainmon_reference.peers.base import Alarm, LoggedRun, Peer, mean_and_std


@dataclass(frozen=True, kw_only=True)
class ZScore(Peer):
    """W&B `MetricZScoreFilter` on the training loss.

    An alarm where the value lies more than `threshold` population standard deviations off the mean of the `window`
    values before it. The window has to be full and takes every value: a NaN in it makes the mean NaN, and all that
    is compared with NaN is False, until it has left. An automation on a metric fires once per run in 24 hours (the
    documentation's limit; without wall times: once). The back end is closed: this is its documented meaning.

    Reads the training loss. Claims loss-spike and divergence. `direction` is `any` as published; `increase` is the
    setting that suits a loss.
    """

    name: ClassVar[str] = "W&B z-score"
    source: ClassVar[str] = "wandb.automations.MetricZScoreFilter, docs.wandb.ai; once in 24 h: wandb/docs PR #1209"
    reads: ClassVar[tuple[str, ...]] = ("train_loss",)
    claims: ClassVar[tuple[str, ...]] = ("loss-spike", "divergence")

    window: int = 30
    threshold: float = 3.0
    direction: str = "any"
    quiet_hours: float = 24.0

    def alarms(self, run: LoggedRun) -> list[Alarm]:
        """Return the alarms, at most one in `quiet_hours`."""
        points, before = run.of("train_loss"), deque[float](maxlen=self.window)
        found: list[Alarm] = []
        until = float("-inf")
        for (step, value), time in zip(points.each(), points.time.tolist(), strict=True):
            if len(before) == self.window and self._is_off(value, before) and (not found or time >= until):
                found.append(Alarm(step, self.claims))
                until = time + self.quiet_hours * 3600
            before.append(value)
        return found

    def _is_off(self, value: float, window: deque[float]) -> bool:
        mean, std = mean_and_std(window)
        distance = value - mean if self.direction == "increase" else abs(value - mean)
        return std > 0 and distance > self.threshold * std


@dataclass(frozen=True, kw_only=True)
class RisingZScore(ZScore):
    """The same with `change_dir=INCREASE`: nobody wants to hear that a loss falls."""

    name: ClassVar[str] = "W&B z-score, increase"
    direction: str = "increase"
