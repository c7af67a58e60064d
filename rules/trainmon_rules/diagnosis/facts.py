"""The routing table's questions, answered from the run: an incident's facts by name.

Rate, gradient, loss scale and loss are judged as of the incident's onset (points after it don't count), speed while it
went on, validation and the level of the training loss as of now; all from the findings, the series of the incident's
attempt and the run's settings. What the log doesn't hold has no fact; nothing here fails.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trainmon_rules.diagnosis.announced import resume_facts, schedule_facts
from trainmon_rules.diagnosis.lookback import report_number, until
from trainmon_rules.diagnosis.rates import rate_facts
from trainmon_rules.diagnosis.reinforcement import is_reward_run, reward_facts
from trainmon_rules.diagnosis.resources import resource_facts
from trainmon_rules.diagnosis.said import said_facts
from trainmon_rules.diagnosis.shapes import shape_facts
from trainmon_rules.diagnosis.signals import (
    SCALE_REPORTS,
    START_REPORTS,
    gradient_facts,
    loss_facts,
    scale_facts,
)
from trainmon_rules.findings import Finding, Recovery, State
from trainmon_rules.incidents import Incident
from trainmon_rules.series import RING, Series
from trainmon_rules.state import Attempt, Run
from trainmon_rules.vocabulary import read_settings

PERCENT = {
    "progress": "progress_percent",
    "lr_of_peak": "lr_percent",
    "data_time_share": "waiting_percent",
    "loss_of_first": "loss_percent",
    "rate_share": "share_percent",
    "val_share": "val_share_percent",
    "dead_share": "dead_percent",
    "equal_groups": "equal_groups_percent",
    "answers_cut": "answers_cut_percent",
}
PREFERENCES = frozenset(
    {"reward_margin", "reward_accuracy", "implicit_reward"}
)  # roles that only preference tuning has
JUDGED = {
    "train_loss": "loss",
    "loss_component": "loss",
    "val_loss": "val_loss",
    "val_loss_component": "val_loss",
    "train_metric": "metric",
    "eval_metric": "metric",
    "reward": "reward",
    "reward_zero_std": "reward",
    "rl_loss": "rl_loss",
    "value_loss": "rl_loss",
    "grad_norm": "gradient",
    "loss_scale": "scale",
}


def find_facts(incident: Incident, run: Run) -> dict[str, Any]:
    """Return what is known about an incident, by fact name.

    Parameters
    ----------
    incident : Incident
        The incident.
    run : Run
        Its run: attempts with their series, settings and answers.
    """
    settings = read_settings(run.facts)
    lead = incident.lead
    onset = lead.onset_step
    attempt = run.attempts[incident.attempt] if incident.attempt < len(run.attempts) else Attempt(incident.attempt)
    facts: dict[str, Any] = {**settings, **_incident_facts(incident, run)}
    facts |= _place_facts(attempt, incident)
    if settings.get("total_steps"):
        facts["progress"] = min(1.0, max(0.0, onset / settings["total_steps"]))
    facts |= rate_facts(attempt, lead, facts)
    facts |= schedule_facts(incident, settings) | resume_facts(incident)
    facts |= gradient_facts(attempt, incident, settings)
    facts |= scale_facts(attempt, incident)
    facts |= loss_facts(attempt, lead, settings)
    facts |= shape_facts(incident, settings)
    facts |= _validation_facts(attempt, run, lead)
    facts |= _doubts(facts, lead)
    facts |= said_facts(lead, run.roles)
    if is_reward_run(run.roles, set(settings)):
        facts |= reward_facts(attempt, lead)
    facts = {**resource_facts(attempt, incident), **facts}  # an answer of the user's goes before the log
    for part, percent in PERCENT.items():
        if part in facts:
            facts[percent] = float(f"{100 * facts[part]:.2g}")
    if facts.get("loss_scale_logged"):
        facts.setdefault("precision", "fp16")
    if settings.get("model_size") and settings.get("dataset_size"):
        facts["model_too_large"] = settings["model_size"] > 100 * settings["dataset_size"]
    return facts


def _incident_facts(incident: Incident, run: Run) -> dict[str, Any]:
    lead = incident.lead
    facts = {
        "symptom": incident.symptom,
        "symptoms": tuple(sorted(incident.symptoms)),
        "precursors": tuple(dict.fromkeys(f.symptom for f in incident.precursors)),
        "judged": JUDGED.get(lead.role, lead.role),
        "onset_step": lead.onset_step,
        "recovered": incident.grade is Recovery.RECOVERED and incident.state is State.RESOLVED,
        "reports_long": _reports_long(lead),
        "times_seen": len({(f.attempt, f.onset_step) for f in run.findings.values() if f.symptom == lead.symptom}),
        "nan_hidden": any("loss beside it" in f.evidence for f in incident.findings),
    }
    if incident.grade is not None:
        facts["grade"] = str(incident.grade)
    if not PREFERENCES.isdisjoint(run.roles) or "preference_method" in read_settings(run.facts):
        facts["preference_run"] = True
    return facts


def _reports_long(lead: Finding) -> int:
    said = lead.evidence.get("reports in a row")
    return said if isinstance(said, int) else (lead.last_step - lead.onset_step) // max(1, lead.interval) + 1


def _place_facts(attempt: Attempt, incident: Incident) -> dict[str, Any]:
    """Where in its attempt an incident began. A log that begins at step 12,695 says nothing about the run's start."""
    lead, first = incident.lead, attempt.first_step
    own = _series_of(attempt, lead)
    if own is None or first is None:
        return {}
    onset = lead.onset_step
    report = report_number(own, lead.index, onset)
    for loss in attempt.of_role("train_loss", lead.source):  # a scale that is logged only when it falls says little
        report = max(report, report_number(loss, loss.count - 1, onset))
    interval = _interval(own)
    if incident.attempt > 0:
        soon = report <= SCALE_REPORTS and onset - first <= 2 * SCALE_REPORTS * interval
        return {"onset_report": report, "at_start": False, "after_resume": soon}
    facts: dict[str, Any] = {"after_resume": False}
    if len(own.tail(2)) < 2 and first > START_REPORTS:
        return facts  # a single report far from 0: who knows
    if first > START_REPORTS * interval:
        facts |= {"mid_run": True, "log_start": first}
        return facts if report <= START_REPORTS else {**facts, "at_start": False}
    return {**facts, "onset_report": report, "at_start": report <= START_REPORTS}


def _interval(series: Series) -> int:
    """Steps between reports where they lie close: excerpts have holes."""
    gaps = np.diff(series.tail(RING).step)
    gaps = gaps[gaps > 0]
    return max(1, int(np.quantile(gaps, 0.25) if len(gaps) > START_REPORTS else gaps.min(initial=series.last_step)))


def _doubts(facts: dict[str, Any], lead: Finding) -> dict[str, Any]:
    """Whether labels or evaluation are in doubt: a metric of 0, or a loss of 0."""
    zero = facts["judged"] == "metric" and lead.symptom == "flat" and lead.evidence.get("value") == 0.0
    doubtful = facts.get("loss_zero", False) or (zero and facts.get("loss_vanished", False))
    return {"metric_zero": zero, "labels_doubtful": doubtful}


def _series_of(attempt: Attempt, finding: Finding) -> Series | None:
    for t in attempt.tracked.values():
        if t.series.source == finding.source and t.series.tag == finding.tag:
            return t.series
    return None


def _validation_facts(attempt: Attempt, run: Run, lead: Finding) -> dict[str, Any]:
    facts: dict[str, Any] = {"has_validation": any(r in run.roles for r in ("val_loss", "eval_metric"))}
    val, train = attempt.of_role("val_loss"), attempt.of_role("train_loss")
    if train and len(tail := train[0].tail(20).finite):
        facts["train_level"] = float(np.median(tail))
    past = until(val[0], val[0].last_step) if val else None
    if past is not None and len(past.finite):
        keep = np.isfinite(past.value)
        best = int(past.value[keep].argmin())
        facts |= {"best_val": float(past.value[keep][best]), "best_val_step": int(past.step[keep][best])}
        facts |= {"last_val": float(past.finite[-1]), "evaluations": val[0].count}
    facts |= _validation_said(lead)
    lowest, last, level = facts.get("best_val", 0.0), facts.get("last_val"), facts.get("train_level", 0.0)
    if lowest > 0 and last is not None:
        facts["val_rise"] = last / lowest - 1.0
    if level > 0 and last is not None:
        facts |= {"val_over_train": last / level, "val_gap": last - level, "val_below_train": last < level}
    return facts


def _validation_said(lead: Finding) -> dict[str, Any]:
    """The numbers that an overfit finding gives itself: one best, one level."""
    if lead.symptom != "overfit":
        return {}
    names = {
        "best": "best_val",
        "best at step": "best_val_step",
        "last": "last_val",
        "training loss now": "train_level",
        "training loss then": "train_then",
    }
    facts: dict[str, Any] = {fact: lead.evidence[key] for key, fact in names.items() if key in lead.evidence}
    if "train_then" in facts and "train_level" in facts:
        facts["train_rises"] = facts["train_level"] > 1.02 * facts["train_then"]
    return facts
