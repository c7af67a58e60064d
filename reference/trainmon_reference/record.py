"""What a trainer tells: a record is one report of one phase at one step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Phase = Literal["train", "valid"]


@dataclass(frozen=True, slots=True)
class Record:
    """One report.

    Attributes
    ----------
    step : int
        Updates made so far.
    epoch : float
        Times the training set was gone through.
    seconds : float
        Since the run's start, by the run's own (simulated) clock.
    phase : str
        `train`, or `valid` for an evaluation.
    values : mapping
        Numbers by the role that they have (`train_loss`, `grad_norm`, …); may hold NaN and infinities.
    """

    step: int
    epoch: float
    seconds: float
    phase: Phase
    values: Mapping[str, float] = field(default_factory=dict)
