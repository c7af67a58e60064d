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
        Numbers by the role that they have (`train_loss`, `grad_norm`, …), and behind a dot which of several of one
        role (`implicit_reward.chosen`, `implicit_reward.rejected`); may hold NaN and infinities.
    """

    step: int
    epoch: float
    seconds: float
    phase: Phase
    values: Mapping[str, float] = field(default_factory=dict)


def role_of(key: str) -> str:
    """Return the role of a key of `values`: what stands before the dot."""
    return key.partition(".")[0]
