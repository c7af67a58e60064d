"""Why it happened and what to do: symptom + answered questions → causes → routes → fixes.

The routing table is data (`data/routing.yaml`); this module answers its questions from the run and ranks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trainmon_rules.engine import Run
from trainmon_rules.incidents import Incident
from trainmon_rules.report import Cause, Fix, Route


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What the routing table says about one incident."""

    causes: tuple[Cause, ...] = ()
    ruled_out: tuple[Cause, ...] = ()
    routes: tuple[Route, ...] = ()
    fixes: tuple[Fix, ...] = ()
    questions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Knowledge:
    """The routing table."""

    table: dict[str, Any]

    @classmethod
    def load(cls) -> Knowledge:
        """Return the shipped table."""
        return cls({})


def diagnose(incident: Incident, run: Run, knowledge: Knowledge) -> Diagnosis:
    """Return the diagnosis of an incident of a run."""
    return Diagnosis()
