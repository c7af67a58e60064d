"""The routing table's questions, answered from the run: an incident's facts by name.

Rate, gradient, loss scale and loss are judged as of the incident's onset (points after it don't count), speed as of its
detection, validation and the level of the training loss as of now; all from the findings, the series of the incident's
attempt and the run's settings. What the log doesn't hold has no fact; nothing here fails.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from trainmon_rules.engine import Attempt, Run
from trainmon_rules.findings import Finding, State
from trainmon_rules.incidents import Incident
from trainmon_rules.lookback import report_number, until
from trainmon_rules.series import Series
from trainmon_rules.settings import read_settings, vocabulary
from trainmon_rules.signals import (
    SCALE_REPORTS,
    START_REPORTS,
    gradient_facts,
    loss_facts,
    rate_facts,
    scale_facts,
    series_of_role,
)

DERIVED: Mapping[str, str] = {
    "symptom": "the incident's symptom",
    "symptoms": "all symptoms seen in the incident",
    "precursors": "symptoms that began before the one that names the incident",
    "top_cause": "the cause that the evidence speaks for most",
    "onset_step": "first bad step",
    "onset_report": "which report of its series that is, from 1",
    "at_start": "whether it began within the first three reports",
    "after_resume": "whether it began within 20 reports of a resume",
    "recovered": "whether the series came back",
    "reports_long": "how many reports it lasted",
    "times_seen": "how often this symptom was seen in the run",
    "progress": "part of the planned steps done at the onset",
    "progress_percent": "the same in percent",
    "lr_phase": "warmup, constant, decay, restart or zero",
    "lr_of_peak": "rate at the onset as a part of the highest so far",
    "lr_percent": "the same in percent",
    "peak_learning_rate": "highest rate applied so far",
    "declared_learning_rate": "learning rate in the run's settings",
    "grad_logged": "whether a gradient norm is logged",
    "grad_norm": "last finite gradient norm up to the onset",
    "grad_usual": "median gradient norm before",
    "grad_peak": "highest gradient norm in the 8 reports up to the onset",
    "grad_ratio": "that peak over the usual norm",
    "grad_led": "whether the gradient norm rose before the loss",
    "grad_lead_reports": "by how many reports",
    "grad_steady": "whether the gradient norm stayed below twice its usual level up to the onset",
    "grad_nonfinite": "whether the gradient norm itself was not finite",
    "grad_over_clip": "usual gradient norm over max_grad_norm",
    "clipping_off": "whether the settings say that gradients aren't clipped",
    "loss_scale_logged": "whether a loss scale is logged",
    "scale_now": "loss scale at the onset",
    "scale_falls": "falls of the loss scale in the 20 reports up to the onset",
    "scale_led": "whether the loss scale fell again and again before",
    "scale_steady": "whether the loss scale was logged and fell at most once in those reports",
    "nan_hidden": "whether the trainer logs 0 or a frozen loss instead of NaN",
    "first_loss": "lowest of the first five losses",
    "loss_before": "median loss of the 8 reports before the onset",
    "best_loss": "lowest loss up to the onset",
    "loss_zero": "whether the last losses are exactly 0",
    "loss_at_chance": "whether the loss stands at ln(classes)",
    "chance_classes": "the number of classes for which that holds",
    "has_validation": "whether a validation loss or metric is logged",
    "best_val": "best validation loss",
    "best_val_step": "step of the best validation loss",
    "last_val": "last validation loss",
    "val_rise": "rise of the validation loss above its best, as a part of it",
    "train_level": "median of the last 20 training losses",
    "val_over_train": "last validation loss over the training level",
    "model_too_large": "whether the model has over 100 parameters an example",
    "data_time_share": "part of the step time spent waiting for data",
    "waiting_percent": "the same in percent",
    "preference_run": "whether this is a preference-tuning run",
}

PERCENT = {"progress": "progress_percent", "lr_of_peak": "lr_percent", "data_time_share": "waiting_percent"}


@functools.cache
def fact_names() -> frozenset[str]:
    """Return the names of all facts: those derived here and the settings of the vocabulary."""
    return frozenset(DERIVED) | frozenset(vocabulary())


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
    own = _series_of(attempt, lead)
    if own is not None:
        report = report_number(own, lead.index, onset)
        for loss in attempt.of_role("train_loss", lead.source):  # a scale that is logged only when it falls says little
            report = max(report, report_number(loss, loss.count - 1, onset))
        facts |= {
            "onset_report": report,
            "at_start": report <= START_REPORTS and incident.attempt == 0,
            "after_resume": incident.attempt > 0 and report <= SCALE_REPORTS,
        }
    if settings.get("total_steps"):
        facts["progress"] = min(1.0, max(0.0, onset / settings["total_steps"]))
    facts |= rate_facts(attempt, lead, settings)
    facts |= gradient_facts(attempt, incident, settings)
    facts |= scale_facts(attempt, incident)
    facts |= loss_facts(attempt, lead, settings)
    facts |= _validation_facts(attempt, run)
    facts = {**_speed_facts(attempt, lead), **facts}  # an answer of the user's goes before the log
    for part, percent in PERCENT.items():
        if part in facts:
            facts[percent] = round(100 * facts[part], 1)
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
        "onset_step": lead.onset_step,
        "recovered": incident.state is State.RESOLVED,
        "reports_long": (lead.last_step - lead.onset_step) // max(1, lead.interval) + 1,
        "times_seen": len({(f.attempt, f.onset_step) for f in run.findings.values() if f.symptom == lead.symptom}),
        "nan_hidden": any("loss beside it" in f.evidence for f in incident.findings),
    }
    if "reward_margin" in run.roles or "preference_method" in read_settings(run.facts):
        facts["preference_run"] = True
    return facts


def _series_of(attempt: Attempt, finding: Finding) -> Series | None:
    for t in attempt.tracked.values():
        if t.series.source == finding.source and t.series.tag == finding.tag:
            return t.series
    return None


def _validation_facts(attempt: Attempt, run: Run) -> dict[str, Any]:
    facts: dict[str, Any] = {"has_validation": any(r in run.roles for r in ("val_loss", "eval_metric"))}
    val, train = attempt.of_role("val_loss"), attempt.of_role("train_loss")
    if train and len(tail := train[0].tail(20).finite):
        facts["train_level"] = float(np.median(tail))
    past = until(val[0], val[0].last_step) if val else None
    if past is None or not len(past.finite):
        return facts
    keep = np.isfinite(past.value)
    best = int(past.value[keep].argmin())
    lowest, last = float(past.value[keep][best]), float(past.finite[-1])
    facts |= {"best_val": lowest, "best_val_step": int(past.step[keep][best]), "last_val": last}
    if lowest > 0:
        facts["val_rise"] = last / lowest - 1.0
    if facts.get("train_level", 0.0) > 0:
        facts["val_over_train"] = last / facts["train_level"]
    return facts


def _speed_facts(attempt: Attempt, lead: Finding) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    use = _recent(attempt, "gpu_util", lead)
    if use is not None:
        facts["gpu_utilization"] = use * 100.0 if use <= 1.0 else use
    waiting, whole = _recent(attempt, "data_time", lead), _recent(attempt, "step_time", lead)
    if waiting is not None and whole:
        facts["data_time_share"] = min(1.0, waiting / whole)
    return facts


def _recent(attempt: Attempt, role: str, lead: Finding) -> float | None:
    series = series_of_role(attempt, role, lead.source)
    value = until(series, lead.detected_step).finite[-30:] if series is not None else np.zeros(0)
    return float(np.median(value)) if len(value) else None
