"""The numbers that an incident's own finding gives, as facts: what its detector measured needn't be measured again."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from trainmon_rules.detectors.policy import ANSWERS
from trainmon_rules.findings import Finding
from trainmon_rules.incidents import HELD_OUT

# Of each rule, the evidence that is a fact: its name there → the fact.
SAID: Mapping[str, Mapping[str, str]] = {
    "chance-accuracy": {"mean": "accuracy_now", "chance": "accuracy_of_chance", "classes": "chance_classes"},
    "val-suspect": {"suspected": "val_suspicion", "share of training loss": "val_share"},
    "dead-units": {"share dead": "dead_share"},
    "activation-scale": {
        "factor": "scale_factor",
        "level now": "scale_level",
        "reports to 65504": "reports_to_overflow",
    },
    "attention-range": {"level now": "scale_level"},
    "preference-margin": {"best level": "margin_best", "level now": "margin_now"},
    "preference-displacement": {"level now": "chosen_now", "margin now": "margin_now"},
    "preference-margin-high": {"level now": "margin_now"},
    "reward-signal": {"level now": "equal_groups"},
    "answers-cut": {"level now": "answers_cut"},
    "answers-grow": {"level now": "answer_length"},
}
SIGNS: Mapping[str, str] = {
    "preference-margin": "margin",
    "preference-displacement": "displacement",
    "preference-margin-high": "margin-high",
    "policy-kl": "kl",
    "policy-clipping": "clipping",
    "policy-entropy": "entropy",
    "reward-signal": "equal-rewards",
    "answers-cut": "cut-answers",
    "answers-grow": "long-answers",
}


def said_facts(lead: Finding, roles: Set[str]) -> dict[str, Any]:
    """Return what an incident's first finding says of itself.

    Parameters
    ----------
    lead : Finding
        The finding that names the incident.
    roles : set of str
        The roles that the run's series have.
    """
    names = SAID.get(lead.rule, {})
    facts: dict[str, Any] = {fact: lead.evidence[key] for key, fact in names.items() if key in lead.evidence}
    facts["held_out"] = lead.role in HELD_OUT
    if lead.rule in SIGNS:
        facts["policy_sign"] = SIGNS[lead.rule]
    if roles & set(ANSWERS):
        facts["tunes_answers"] = True
    if "feature" in lead.tag.lower() or "latent" in lead.tag.lower():
        facts["features_die"] = lead.symptom == "dead-units"
    if lead.symptom == "activation-scale":
        facts["of_attention"] = lead.role == "attention"
    return facts
