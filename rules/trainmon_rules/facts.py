"""The routing table's questions, answered from the run: an incident's facts by name.

Everything is judged as of the incident's onset (points after it don't count), from the findings, the series of
the incident's attempt and the run's settings. What the log doesn't hold has no fact; nothing here fails.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from trainmon_rules.engine import Attempt, Run
from trainmon_rules.findings import Finding, State
from trainmon_rules.incidents import Incident
from trainmon_rules.lookback import Past, extremes, report_number, until
from trainmon_rules.series import Series
from trainmon_rules.settings import read_settings, vocabulary

START_REPORTS = 3  # an onset within these many reports is "immediately at start"
GRADIENT_RISE = 3.0  # times its usual level at which the gradient norm counts as having risen
GRADIENT_STEADY = 2.0  # below this it counts as steady
SCALE_REPORTS = 20  # reports over which falls of the loss scale are counted
LED_FALLS = 3  # falls of the loss scale before the onset that count as leading it

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
    "lr_phase": "warmup, constant, decay, restart or zero",
    "lr_of_peak": "rate at the onset as a part of the highest so far",
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
    "preference_run": "whether this is a preference-tuning run",
}


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
        facts |= {
            "onset_report": report,
            "at_start": report <= START_REPORTS and incident.attempt == 0,
            "after_resume": incident.attempt > 0 and report <= SCALE_REPORTS,
        }
    if settings.get("total_steps"):
        facts["progress"] = min(1.0, max(0.0, onset / settings["total_steps"]))
    facts |= _rate_facts(attempt, lead, settings)
    facts |= _gradient_facts(attempt, incident, settings)
    facts |= _scale_facts(attempt, incident)
    facts |= _loss_facts(attempt, lead, settings)
    facts |= _validation_facts(attempt, run)
    facts = {**_speed_facts(attempt, lead), **facts}  # an answer of the user's goes before the log
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


def _one(attempt: Attempt, role: str, source: str) -> Series | None:
    """Return the role's series, of the finding's own source if it has one there."""
    found = attempt.of_role(role, source) or attempt.of_role(role)
    return found[0] if found else None


def _rate_facts(attempt: Attempt, lead: Finding, settings: Mapping[str, Any]) -> dict[str, Any]:
    declared = settings.get("learning_rate")
    facts: dict[str, Any] = {} if declared is None else {"declared_learning_rate": declared}
    series = _one(attempt, "learning_rate", lead.source)
    past = until(series, lead.onset_step) if series is not None else None
    if series is None or past is None or not len(past.finite):
        return facts
    now = float(past.finite[-1])
    span = extremes(series, lead.onset_step)
    peak = max(now, span[1]) if span else now
    facts["lr_phase"] = _phase(past.finite, now, peak)
    if now > 0:
        facts["learning_rate"] = now
    if peak > 0:
        facts |= {"peak_learning_rate": peak, "lr_of_peak": now / peak}
    return facts


def _phase(rates: np.ndarray[Any, np.dtype[np.float64]], now: float, peak: float) -> str:
    """Return where in its schedule a rate is, from the rates logged so far."""
    if now == 0.0:
        return "zero" if peak > 0 or len(rates) > START_REPORTS else "warmup"
    recent = rates[-SCALE_REPORTS:]
    if len(recent) > 1 and now > 1.001 * float(recent[-2]) and now >= 0.999 * peak and now > 1.01 * float(rates[0]):
        return "warmup"
    if now > 1.5 * float(recent.min()) and int(recent.argmin()) > 0 and float(rates[: -len(recent)].max(initial=0)) > 0:
        return "restart"
    return "decay" if now < 0.999 * peak else "constant"


def _gradient_facts(attempt: Attempt, incident: Incident, settings: Mapping[str, Any]) -> dict[str, Any]:
    lead = incident.lead
    series = _one(attempt, "grad_norm", lead.source)
    clip = settings.get("max_grad_norm")
    facts: dict[str, Any] = {"grad_logged": series is not None}
    if clip is not None:
        facts["clipping_off"] = clip <= 0
    earlier = [f for f in incident.findings if f.role == "grad_norm" and f.onset_step < lead.onset_step]
    if earlier:
        lead_steps = lead.onset_step - min(f.onset_step for f in earlier)
        facts |= {"grad_led": True, "grad_lead_reports": max(1, lead_steps // max(1, lead.interval))}
    if series is None:
        return facts
    past = until(series, lead.onset_step, 24)
    facts["grad_nonfinite"] = bool(len(past.value) and not np.isfinite(past.value[-1]))
    facts |= _gradient_level(past, lead, facts.get("grad_led", False))
    if facts.get("grad_usual") and clip:
        facts["grad_over_clip"] = facts["grad_usual"] / clip
    return facts


def _gradient_level(past: Past, lead: Finding, led: bool) -> dict[str, Any]:
    """Compare the last 8 reports with the 128 before them."""
    keep = np.isfinite(past.value)
    step, value = past.step[keep], past.value[keep]
    if not len(value):
        return {}
    facts: dict[str, Any] = {"grad_norm": float(value[-1])}
    cut = max(len(value) - 8, len(value) // 2)
    if cut < 1:
        return facts
    usual, peak = float(np.median(value[max(0, cut - 128) : cut])), float(value[cut:].max())
    if usual <= 0:
        return facts
    ratio = peak / usual
    facts |= {"grad_usual": usual, "grad_peak": peak, "grad_ratio": ratio}
    if not past.exact:
        return facts
    facts["grad_steady"] = ratio < GRADIENT_STEADY and not led
    risen = step[cut:][value[cut:] >= GRADIENT_RISE * usual]
    risen = risen[risen < lead.onset_step]
    if len(risen) and not led and lead.role != "grad_norm":
        reports = (lead.onset_step - int(risen[0])) // max(1, lead.interval)
        facts |= {"grad_led": True, "grad_lead_reports": max(1, reports)}
    return facts


def _scale_facts(attempt: Attempt, incident: Incident) -> dict[str, Any]:
    lead = incident.lead
    series = _one(attempt, "loss_scale", lead.source)
    led = any(f.symptom == "loss-scale-collapse" and f.onset_step <= lead.onset_step for f in incident.findings)
    facts: dict[str, Any] = {"loss_scale_logged": series is not None}
    if series is not None and len(scale := until(series, lead.onset_step).finite):
        falls = int((np.diff(scale[-SCALE_REPORTS - 1 :]) < 0).sum())
        led = led or (falls >= LED_FALLS and lead.symptom != "loss-scale-collapse" and len(scale) > SCALE_REPORTS)
        facts |= {"scale_now": float(scale[-1]), "scale_falls": falls, "scale_steady": falls <= 1 and not led}
    if led:
        facts["scale_led"] = True
    return facts


def _loss_facts(attempt: Attempt, lead: Finding, settings: Mapping[str, Any]) -> dict[str, Any]:
    series = _one(attempt, "train_loss", lead.source) or _one(attempt, "loss_component", lead.source)
    if series is None:
        return {}
    facts: dict[str, Any] = {}
    first = series.first[:5]
    if np.isfinite(first).any():
        facts["first_loss"] = float(first[np.isfinite(first)].min())
    before = until(series, lead.onset_step).before(lead.onset_step).finite
    if len(before):
        facts["loss_before"] = float(np.median(before[-8:]))
    if (span := extremes(series, lead.onset_step)) is not None:
        facts["best_loss"] = span[0]
    now = until(series, max(lead.onset_step, lead.detected_step)).value[-3:]
    facts["loss_zero"] = bool(len(now) and (now == 0.0).all())
    level = float(np.median(now)) if len(now) and np.isfinite(now).all() else None
    given = settings.get("num_classes")
    for classes in (given,) if given else (2, 10, 100, 1000):
        if level is not None and classes > 1 and abs(level - np.log(classes)) < 0.01 * np.log(classes):
            facts |= {"loss_at_chance": True, "chance_classes": classes}
    return facts


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
    series = _one(attempt, role, lead.source)
    value = until(series, lead.detected_step).finite[-30:] if series is not None else np.zeros(0)
    return float(np.median(value)) if len(value) else None
