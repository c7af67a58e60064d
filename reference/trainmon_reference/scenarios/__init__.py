"""The scenarios: runs with a known fault, and healthy ones that look suspicious. Data; this package needs no torch."""

from __future__ import annotations

from trainmon_reference.scenarios.loading import load_scenarios
from trainmon_reference.scenarios.scenario import LogSpec, Resume, Scenario, Truth

__all__ = ["LogSpec", "Resume", "Scenario", "Truth", "load_scenarios"]
