"""Marin's production alert on the training loss: the floor of the last minutes against the hour before."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trainmon_reference.peers.base import Alarm, FloatArray, LoggedRun, Peer

MINUTE = 60.0


@dataclass(frozen=True, kw_only=True)
class TrainingLossSpike(Peer):
    """Marin `TrainingLossSpike`, a Grafana rule over telemetry, evaluated once a minute of wall time.

    Fires where the lowest loss of the last `recent_minutes` lies above mean + max(`least`, `sigmas` σ) of the
    `baseline_minutes` before them, so a single step never does; with fewer than `least_recent` or `least_baseline`
    values it is `warming_up`. Its other reason is `not_finite`: a recent value isn't finite. One that goes on is one
    alarm. A NaN in the baseline makes its mean NaN and the rule blind until it has left. Without wall times it can't
    be evaluated.

    Marin waits five minutes before it notifies (`pending_minutes`). With that wait a step in level is never told: it
    enters the baseline, and lifts 6 σ above itself within two minutes. So the default here is no wait.

    Reads the training loss. Claims nonfinite, loss-spike and divergence.
    """

    name: ClassVar[str] = "Marin floor rule"
    source: ClassVar[str] = "marin-community/marin, hero alerts, TrainingLossSpike (2026)"
    reads: ClassVar[tuple[str, ...]] = ("train_loss",)
    claims: ClassVar[tuple[str, ...]] = ("nonfinite", "loss-spike", "divergence")

    recent_minutes: int = 5
    baseline_minutes: int = 55
    pending_minutes: int = 0
    least: float = 0.05
    sigmas: float = 6.0
    least_recent: int = 5
    least_baseline: int = 20

    def alarms(self, run: LoggedRun) -> list[Alarm]:
        """Return an alarm for each episode, at the last report of the minute in which it is told."""
        points = run.of("train_loss")
        timed = np.isfinite(points.time)
        time, value, step = np.maximum.accumulate(points.time[timed]), points.value[timed], points.step[timed]
        found, held, reason = list[Alarm](), 0, ""
        minutes = int((time[-1] - time[0]) // MINUTE) if len(time) else 0
        for now in (float(time[0]) + MINUTE * m for m in range(1, minutes + 1)):
            said = self._reason(time, value, now)
            held = held + 1 if said and said == reason else 0
            reason = said
            if said and held == self.pending_minutes:
                at = int(step[np.searchsorted(time, now, "right") - 1])
                found.append(Alarm(at, ("nonfinite",) if said == "not_finite" else ("loss-spike", "divergence")))
        return found

    def _reason(self, time: FloatArray, value: FloatArray, now: float) -> str:
        """Return what is wrong at a moment: `not_finite`, `spike` or nothing."""
        ago = [now - MINUTE * m for m in (self.recent_minutes + self.baseline_minutes, self.recent_minutes, 0)]
        first, middle, last = (int(i) for i in np.searchsorted(time, ago, "right"))
        recent, baseline = value[middle:last].tolist(), value[first:middle].tolist()
        if not all(map(math.isfinite, recent)):
            return "not_finite"
        if len(recent) < self.least_recent or len(baseline) < self.least_baseline:
            return ""
        with np.errstate(all="ignore"):
            margin = max(self.least, self.sigmas * float(np.std(baseline)))
            return "spike" if min(recent) > float(np.mean(baseline)) + margin else ""
