"""What the main signals were like up to an incident's onset: gradient norm, loss scale, loss.

Each function answers some of the routing table's questions; `facts` names and describes the answers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from trainmon_rules.diagnosis.lookback import Past, extremes, series_of_role, until
from trainmon_rules.findings import Finding
from trainmon_rules.incidents import Incident
from trainmon_rules.points import FloatArray
from trainmon_rules.state import Attempt

START_REPORTS = 3  # an onset within these many reports is "immediately at start"
GRADIENT_RISE = 3.0  # times its usual level at which the gradient norm counts as having risen
GRADIENT_STEADY = 2.0  # below this it counts as steady
SCALE_REPORTS = 20  # reports over which falls of the loss scale are counted
LED_FALLS = 3  # falls of the loss scale before the onset that count as leading it
FALLEN = 0.5  # share of its first level below which a loss has clearly moved
VANISHED = 0.01  # share of it below which nothing is left to learn
SATURATED = 87.3365  # minus the log of the smallest float32


def gradient_facts(attempt: Attempt, incident: Incident, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is known about the gradient norm: did it lead, was it steady, is it clipped."""
    lead = incident.lead
    series = series_of_role(attempt, "grad_norm", lead.source)
    clip = settings.get("max_grad_norm")
    facts: dict[str, Any] = {"grad_logged": series is not None}
    if clip is not None:
        facts["clipping_off"] = clip <= 0
    earlier = [f for f in incident.findings if f.role == "grad_norm" and f.onset_step < lead.onset_step]
    if earlier and lead.role != "grad_norm":
        lead_steps = lead.onset_step - min(f.onset_step for f in earlier)
        facts |= {"grad_led": True, "grad_lead_reports": max(1, lead_steps // max(1, lead.interval))}
    if series is None:
        return facts
    past = until(series, lead.onset_step, 24)
    facts["grad_nonfinite"] = bool(len(past.value) and not np.isfinite(past.value[-1]))
    seen = until(series, series.last_step).finite
    facts["grad_zero"] = len(seen) > 1 and not seen.any()
    facts |= _gradient_level(past, lead, facts.get("grad_led", False))
    facts |= _gradient_said(incident)
    if facts.get("grad_usual") and clip:
        facts["grad_over_clip"] = facts["grad_usual"] / clip
    return facts


def _gradient_said(incident: Incident) -> dict[str, Any]:
    """The numbers that the incident's own findings give for the gradient norm: one number for one thing."""
    said = [f for f in (incident.lead, *incident.findings) if f.role == "grad_norm" and "ratio" in f.evidence]
    said = [f for f in said if f is incident.lead or f.onset_step <= incident.lead.onset_step]
    gone = [f for f in incident.findings if f.symptom == "grad-vanishing" and "norm now" in f.evidence]
    if not said:
        return {"grad_norm": gone[0].evidence["norm now"]} if gone else {}
    names = {"ratio": "grad_ratio", "peak": "grad_peak", "level before": "grad_usual"}
    facts = {fact: said[0].evidence[key] for key, fact in names.items() if key in said[0].evidence}
    return facts | {"grad_of_first": True} if "largest" in said[0].evidence else facts


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


def scale_facts(attempt: Attempt, incident: Incident) -> dict[str, Any]:
    """Return what is known about the mixed-precision loss scale."""
    lead = incident.lead
    series = series_of_role(attempt, "loss_scale", lead.source)
    led = any(f.symptom == "loss-scale-collapse" and f.onset_step <= lead.onset_step for f in incident.findings)
    facts: dict[str, Any] = {"loss_scale_logged": series is not None}
    if series is not None and len(scale := until(series, lead.onset_step).finite):
        falls = int((np.diff(scale[-SCALE_REPORTS - 1 :]) < 0).sum())
        led = led or (falls >= LED_FALLS and lead.symptom != "loss-scale-collapse" and len(scale) > SCALE_REPORTS)
        facts |= {"scale_now": float(scale[-1]), "scale_falls": falls, "scale_steady": falls <= 1 and not led}
        for f in incident.findings:
            if f.symptom == "loss-scale-collapse" and f.onset_step <= lead.onset_step:
                facts |= {
                    "scale_now": f.evidence.get("scale now", scale[-1]),
                    "scale_falls": f.evidence.get("falls", falls),
                }
    if led:
        facts["scale_led"] = True
    return facts


def loss_facts(attempt: Attempt, lead: Finding, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is known about the training loss: before, best, at chance, exactly zero."""
    series = series_of_role(attempt, "train_loss", lead.source) or series_of_role(
        attempt, "loss_component", lead.source
    )
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
    if lead.role not in ("train_loss", "loss_component"):
        facts |= _moved(until(series, lead.detected_step).finite, series.first, lead)
    level = float(np.median(now)) if len(now) and np.isfinite(now).all() else None
    said = lead.evidence.get("value")
    if isinstance(said, float) and abs(said - SATURATED) < 0.001:
        facts["loss_saturated"] = True
    given = settings.get("num_classes") or lead.evidence.get("classes")
    for classes in (given,) if given else (2, 10, 100, 1000):
        if level is not None and classes > 1 and abs(level - math.log(classes)) < 0.01 * math.log(classes):
            facts |= {"loss_at_chance": True, "chance_classes": classes}
    return facts


def _moved(values: FloatArray, head: FloatArray, lead: Finding) -> dict[str, Any]:
    """How far the training loss had come by the detection of something on another series."""
    head = head[np.isfinite(head)][:3]
    if not len(head) or len(values) < SCALE_REPORTS // 2:
        return {}
    first = float(lead.evidence.get("first loss", head.mean()))
    now = float(lead.evidence.get("loss now", np.median(values[-10:])))
    if first <= 0 or now < 0:
        return {}
    facts: dict[str, Any] = {"loss_now": now, "loss_of_first": now / first, "loss_fallen": now < FALLEN * first}
    facts["loss_vanished"] = now < VANISHED * first
    return facts
