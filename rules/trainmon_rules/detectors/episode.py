"""An open excursion and its reports above the threshold, as records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trainmon_rules.findings import Finding
from trainmon_rules.series import Baseline


@dataclass(slots=True)
class Hit:
    """One report above the threshold."""

    index: int
    step: int
    time: float
    value: float
    excess: float


@dataclass(slots=True)
class Episode:
    """An open excursion: the baseline it is measured against, its peak, and how it goes on."""

    baseline: Baseline
    onset: Hit
    peak: Hit
    finding: Finding
    said: dict[str, Any]  # what was counted when it opened
    reports: int = 1  # since the onset
    calm: int = 0
    calm_since: int = 0  # step
    last_step: int = 0
    lasts: bool = False  # graded already
