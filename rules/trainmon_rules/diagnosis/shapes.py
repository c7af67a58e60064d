"""What the shape of a curve says: swings, steps, patterns that repeat, a pace that was promised.

The numbers are those that the findings give themselves, of whichever of the incident's findings speaks of the shape:
swings before a divergence tell something of it too. (What the naming finding alone says of itself is in `said`.)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainmon_rules.findings import Finding
from trainmon_rules.incidents import Incident

TOSSED = -0.5  # correlation of neighbours at which a loss jumps from side to side

SAID: Mapping[str, Mapping[str, str]] = {
    "oscillation": {
        "swing": "swing",
        "swing_grew": "times its usual",
        "swing_correlation": "correlation of neighbours",
    },
    "periodic": {
        "period_steps": "period in steps",
        "period_epochs": "period in epochs",
        "period_swing": "amplitude",
    },
    "regime-shift": {"level_before": "level before", "level_after": "level after"},
    "slow": {"pace_share": "share of the promise"},
}
"""Facts by the name of the evidence they are taken from."""


def shape_facts(incident: Incident, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the incident's findings say of the curve's shape."""
    facts: dict[str, Any] = {}
    for symptom, names in SAID.items():
        found = _telling(incident, symptom, next(iter(names.values())))
        if found is not None:
            facts |= {fact: found.evidence[key] for fact, key in names.items() if key in found.evidence}
            facts |= _said_of(found)
    if "swing_correlation" in facts:
        facts["swing_tossed"] = facts["swing_correlation"] <= TOSSED
    if facts.get("level_before"):
        change = facts["level_after"] - facts["level_before"]
        facts["shift_percent"] = float(f"{100 * abs(change / facts['level_before']):.2g}")
    if "pace_share" in facts:
        facts["pace_percent"] = float(f"{100 * facts['pace_share']:.2g}")
    return facts | _epochs(facts, settings)


def _telling(incident: Incident, symptom: str, key: str) -> Finding | None:
    found = (f for f in (incident.lead, *incident.findings) if f.symptom == symptom and key in f.evidence)
    return next(found, None)


def _said_of(found: Finding) -> dict[str, Any]:
    if found.symptom == "regime-shift":
        return {"shift_better": found.evidence["for the better"] == "yes"}
    return {"pace_straight": found.evidence["straight"] == "yes"} if found.symptom == "slow" else {}


def _epochs(facts: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, float]:
    """Return the period in epochs from the sizes of dataset and batch, where no epoch is logged."""
    examples, batch = settings.get("dataset_size"), settings.get("batch_size")
    if "period_steps" not in facts or "period_epochs" in facts or not examples or not batch:
        return {}
    return {"period_epochs": facts["period_steps"] * batch / examples}
