"""Spike rules inside training frameworks: OLMo-core, llm-foundry, Lightning Fabric."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import ClassVar

from trainmon_reference.peers.base import Alarm, LoggedRun, Peer, Points, mean_and_std

ON_THE_LOSS = ("loss-spike", "divergence")
FLAT = 1e-10  # standard deviation below which OLMo-core judges nothing


@dataclass(frozen=True, kw_only=True)
class StabilityMonitor(Peer):
    """OLMo-core `StabilityMonitorCallback`: a value above mean + `threshold_std` σ of the last `window_size`.

    Population σ; the window has to be full; nothing is judged below σ = 1e-10. Spikes and NaN enter the window: a
    NaN makes the mean NaN, which nothing exceeds, for the next `window_size` reports. The callback only counts;
    here each spike is an alarm.

    Reads training loss and gradient norm. Claims loss-spike and divergence, grad-spike and grad-explosion.
    """

    name: ClassVar[str] = "OLMo-core 128/6σ"
    source: ClassVar[str] = "allenai/OLMo-core, src/olmo_core/train/callbacks/stability_monitor.py (2026-06)"
    reads: ClassVar[tuple[str, ...]] = ("train_loss", "grad_norm")
    claims: ClassVar[tuple[str, ...]] = (*ON_THE_LOSS, "grad-spike", "grad-explosion")

    window_size: int = 128
    threshold_std: float = 6.0

    def alarms(self, run: LoggedRun) -> list[Alarm]:
        """Return an alarm for each spike of either series, by step."""
        loss = self._spikes(run.of("train_loss"), ON_THE_LOSS)
        norm = self._spikes(run.of("grad_norm"), ("grad-spike", "grad-explosion"))
        return sorted([*loss, *norm], key=lambda alarm: alarm.step)

    def _spikes(self, points: Points, means: tuple[str, ...]) -> list[Alarm]:
        window, found = deque[float](maxlen=self.window_size), list[Alarm]()
        for step, value in points.each():
            if len(window) == self.window_size:
                mean, std = mean_and_std(window)
                if not std < FLAT and value > mean + self.threshold_std * std:
                    found.append(Alarm(step, means))
            window.append(value)
        return found


@dataclass(frozen=True, kw_only=True)
class KillLossSpike(Peer):
    """llm-foundry `KillLossSpike`: a spike that lasts, and a loss that stays high.

    Spike: more than `patience` reports in a row of at least `outlier_multiplier` times the mean of the window, which
    takes them in. High loss, from 2 W updates on: at least half of the window above min(max(first window),
    `loss_cap`). W = max(`window_size`, `window_share` of the updates planned), in reports. A NaN compares False: it
    is no outlier and resets the count. `log_only`: it goes on after it has fired.

    Reads the training loss. Claims loss-spike and divergence.
    """

    name: ClassVar[str] = "llm-foundry KillLossSpike"
    source: ClassVar[str] = "mosaicml/llm-foundry, llmfoundry/callbacks/kill_loss_spike_callback.py (2025-07)"
    reads: ClassVar[tuple[str, ...]] = ("train_loss",)
    claims: ClassVar[tuple[str, ...]] = ON_THE_LOSS

    patience: int = 4
    outlier_multiplier: float = 2.0
    window_size: int = 100
    window_share: float = 0.05
    loss_cap: float = 10.0

    def alarms(self, run: LoggedRun) -> list[Alarm]:
        """Return an alarm for each report at which either condition holds."""
        size = max(self.window_size, round(self.window_share * run.total_steps))
        window, found = deque[float](maxlen=size), list[Alarm]()
        outliers, cap = 0, math.nan
        for step, value in run.of("train_loss").each():
            if len(window) == size:
                cap = min(max(window), self.loss_cap) if math.isnan(cap) else cap
                outliers = outliers + 1 if value >= self.outlier_multiplier * (sum(window) / size) else 0
                high = step >= 2 * size and sum(x > cap for x in window) >= size / 2
                if outliers > self.patience:
                    found.append(Alarm(step, ON_THE_LOSS))
                elif high:
                    found.append(Alarm(step, ("divergence",)))
            window.append(value)
        return found


@dataclass(frozen=True, kw_only=True)
class FabricSpike(Peer):
    """Lightning Fabric `SpikeDetection` (mode `min`, `atol` None, `finite_only`).

    An alarm where the loss isn't finite, or is worse than the last good one and at least `rtol` times the running
    mean away from it: three times the mean. The mean is over the last `window` good values: neither spikes nor
    non-finite ones enter it. Not before `warmup` reports.

    Reads the training loss. Claims nonfinite, loss-spike and divergence.
    """

    name: ClassVar[str] = "Lightning Fabric SpikeDetection"
    source: ClassVar[str] = "Lightning-AI/pytorch-lightning, src/lightning/fabric/utilities/spike.py (2026-07)"
    reads: ClassVar[tuple[str, ...]] = ("train_loss",)
    claims: ClassVar[tuple[str, ...]] = ("nonfinite", *ON_THE_LOSS)

    window: int = 10
    warmup: int = 1
    rtol: float = 2.0

    def alarms(self, run: LoggedRun) -> list[Alarm]:
        """Return an alarm for each spike."""
        good, found = deque[float](maxlen=self.window), list[Alarm]()
        last = 0.0
        for number, (step, value) in enumerate(run.of("train_loss").each()):
            mean = sum(good) / len(good) if good else math.nan
            if number >= self.warmup and not math.isfinite(value):
                found.append(Alarm(step, ("nonfinite",)))
            elif number >= self.warmup and value > last and abs(value - mean) >= abs(self.rtol * mean):
                found.append(Alarm(step, ON_THE_LOSS))
            elif math.isfinite(value):
                good.append(value)
                last = value
        return found
