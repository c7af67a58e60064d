"""What the incident's findings say of the schedule: which form the fault has, the rates, the factor of its pace.

And of a loss that is worse after a resume: as at the start, or above its level.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainmon_rules.detectors.against_plan import MATCH
from trainmon_rules.findings import Finding
from trainmon_rules.incidents import Incident
from trainmon_rules.schedules import announced

NAMES = {
    "announced": "announced_rate",
    "applied": "applied_rate",
    "rate": "applied_rate",
    "rate before": "rate_before",
    "ratio": "rate_ratio",
    "planned": "planned_steps",
    "warm-up": "announced_warmup",
}
"""Evidence of the schedule's rules, as facts."""


def schedule_facts(incident: Incident, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the rules about the learning rate found in this incident.

    Parameters
    ----------
    incident : Incident
        The incident; the worst of its findings on the schedule speaks, the first of equals.
    settings : mapping of str to value
        Settings in the vocabulary's names.
    """
    plan = announced(settings.get)
    facts: dict[str, Any] = {} if plan is None else {"schedule_shape": plan.shape}
    found = [f for f in incident.findings if f.symptom == "lr-schedule" and "form" in f.evidence]
    if not found:
        return facts
    said = min(found, key=lambda f: (-f.severity, f is not incident.lead, f.detected_step, f.rule))
    facts |= {"schedule_form": said.evidence["form"], "schedule_onset": said.onset_step}
    facts |= {fact: said.evidence[key] for key, fact in NAMES.items() if key in said.evidence}
    return facts | _pace(said, settings)


def _pace(said: Finding, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the factor, in which direction it goes, and what it is that of."""
    factor = said.evidence.get("factor")
    if not isinstance(factor, float) or factor <= 0:
        return {}
    facts: dict[str, Any] = {"pace": factor, "pace_times": max(factor, 1 / factor)}
    for name, key in (("accumulation", "accumulate_grad_batches"), ("devices", "world_size")):
        count = settings.get(key) or 1
        if count > 1 and abs(facts["pace_times"] / count - 1) < MATCH:
            return {**facts, "pace_of": name, "pace_count": count}
    return facts


def resume_facts(incident: Incident) -> dict[str, Any]:
    """Return what was found of the loss after a resume."""
    said = next((f for f in incident.findings if f.symptom == "resume-jump" and "form" in f.evidence), None)
    if said is None:
        return {}
    names = {
        "form": "resume_form",
        "level before": "left_loss",
        "level after": "resumed_loss",
        "first level": "first_level",
    }
    return {"resume_step": said.onset_step, "resume_back": said.is_back} | {
        fact: said.evidence[key] for key, fact in names.items()
    }
