"""What the main signals were like up to an incident's onset: rate, gradient norm, loss scale, loss.

Each function answers some of the routing table's questions; `facts` names and describes the answers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from trainmon_rules.engine import Attempt
from trainmon_rules.findings import Finding
from trainmon_rules.incidents import Incident
from trainmon_rules.lookback import Past, extremes, until
from trainmon_rules.points import FloatArray
from trainmon_rules.series import Series

START_REPORTS = 3  # an onset within these many reports is "immediately at start"
GRADIENT_RISE = 3.0  # times its usual level at which the gradient norm counts as having risen
GRADIENT_STEADY = 2.0  # below this it counts as steady
SCALE_REPORTS = 20  # reports over which falls of the loss scale are counted
LED_FALLS = 3  # falls of the loss scale before the onset that count as leading it


def series_of_role(attempt: Attempt, role: str, source: str) -> Series | None:
    """Return the role's series, of the finding's own source if it has one there."""
    found = attempt.of_role(role, source) or attempt.of_role(role)
    return found[0] if found else None


def rate_facts(attempt: Attempt, lead: Finding, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is known about the learning rate and where it stood in its schedule."""
    declared = settings.get("learning_rate")
    facts: dict[str, Any] = {} if declared is None else {"declared_learning_rate": declared}
    series = series_of_role(attempt, "learning_rate", lead.source)
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


def _phase(rates: FloatArray, now: float, peak: float) -> str:
    """Return where in its schedule a rate is, from the rates logged so far."""
    if now == 0.0:
        return "zero" if peak > 0 or len(rates) > START_REPORTS else "warmup"
    recent = rates[-SCALE_REPORTS:]
    rising = len(recent) > 1 and now > float(recent[-2]) and now > 1.001 * float(recent[0])
    low = int(recent.argmin())
    if (
        now > 1.5 * float(recent[low])
        and low > 0
        and float(rates[: -len(recent)].max(initial=recent[:low].max())) > now / 1.5
    ):
        return "restart"
    if rising and now >= 0.999 * peak:
        return "warmup"
    return "decay" if now < 0.999 * peak else "constant"


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
    level = float(np.median(now)) if len(now) and np.isfinite(now).all() else None
    given = settings.get("num_classes")
    for classes in (given,) if given else (2, 10, 100, 1000):
        if level is not None and classes > 1 and abs(level - math.log(classes)) < 0.01 * math.log(classes):
            facts |= {"loss_at_chance": True, "chance_classes": classes}
    return facts
