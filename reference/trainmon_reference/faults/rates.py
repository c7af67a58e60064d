"""Faults of the applied rate."""

from __future__ import annotations

from dataclasses import dataclass

from trainmon_reference.faults.base import Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class RateFactor(Fault):
    """The applied rate is multiplied."""

    factor: float

    def rate(self, rate: float, step: int) -> float:
        """Return the rate times the factor."""
        return rate * self.factor
