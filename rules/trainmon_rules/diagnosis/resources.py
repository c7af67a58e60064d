"""Facts about time and memory: how busy the GPU is, what is waited for, what pauses, what grows.

Levels are those of the last 30 samples while the incident went on; the rest is what its findings say.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from trainmon_rules import units
from trainmon_rules.diagnosis.lookback import until
from trainmon_rules.findings import Finding
from trainmon_rules.incidents import Incident
from trainmon_rules.points import FloatArray
from trainmon_rules.series import RING, Series
from trainmon_rules.state import Attempt
from trainmon_rules.words import duration

SAMPLES = 30
FEW_CELLS = 3  # of the history, where the samples are gone
WAITING = 0.4  # part of a step from which the loader holds it up
LONGEST = 1.5  # data time over step time that is no share: seconds against milliseconds

SAID = {
    "throughput-drop": {"pace before": "pace_then", "pace now": "pace_now"},
    "periodic-stall": {"steps from pause to pause": "pause_period", "comes with": "pause_with"},
    "stall": {"phase": "silence_phase"},
    "memory-growth": {"runs out at step": "memory_out_step", "runs out at the earliest step": "memory_out_earliest"},
}
"""Facts that stand in the evidence of a finding, by symptom."""
PERCENT = {"slowdown": "slowdown_percent", "share of the time": "pause_percent"}
LASTED = {"silent for seconds": "silence", "usual seconds between reports": "usual_gap"}


def resource_facts(attempt: Attempt, incident: Incident) -> dict[str, Any]:
    """Return what is known about speed and memory.

    Parameters
    ----------
    attempt : Attempt
        The incident's attempt.
    incident : Incident
        The incident; all its findings are asked.
    """
    lead = incident.lead
    facts: dict[str, Any] = {}
    used = [u for s in attempt.of_role("gpu_util") if (u := _percent(s, lead)) is not None]
    if used:
        facts["gpu_utilization"] = max(used)  # a job may use one of a machine's GPUs
    waiting = _waiting(attempt, lead)
    if waiting is not None:
        facts["data_time_share"] = waiting
    facts["waits_for_data"] = waiting is not None and waiting > WAITING
    for f in incident.findings:
        facts |= {fact: f.evidence[key] for key, fact in SAID.get(f.symptom, {}).items() if key in f.evidence}
        facts |= _said(f)
    return facts


def _said(f: Finding) -> dict[str, Any]:
    """What a finding says in other words than its evidence."""
    said = f.evidence
    facts: dict[str, Any] = {}
    for key, fact in PERCENT.items():
        if key in said:
            facts[fact] = float(f"{100 * said[key]:.3g}")
    for key, fact in LASTED.items():
        if key in said:
            facts[fact] = duration(said[key])
    if f.symptom == "memory-growth":
        facts |= {"memory_of": "host" if f.role == "cpu_mem" else "gpu", "memory_tag": f.tag}
    return facts


def _waiting(attempt: Attempt, lead: Finding) -> float | None:
    """Return the part of a step that is waited for data."""
    shares = [s for s in attempt.of_role("data_share") if len(_recent(s, lead))]
    if shares:
        return min(1.0, float(np.median(_recent(shares[0], lead))) / 100.0)
    waiting, whole = (attempt.of_role(r, lead.source) or attempt.of_role(r) for r in ("data_time", "step_time"))
    if not waiting or not whole:
        return None
    level, step = (_recent(s[0], lead) for s in (waiting, whole))
    if not len(level) or not len(step) or float(np.median(step)) <= 0:
        return None
    share = float(np.median(level)) / float(np.median(step))
    return min(1.0, share) if 0 <= share <= LONGEST else None


def _percent(series: Series, lead: Finding) -> float | None:
    values = _recent(series, lead)
    share = units.percent(values, series.tag) if len(values) else None
    return None if share is None else float(np.median(share))


def _recent(series: Series, lead: Finding) -> FloatArray:
    """Return the last samples of the time that the incident went on, which is until now while it does.

    Where it is over: up to its detection by wall time, as system metrics have an axis of their own, else to its end.
    """
    ring = series.tail(RING)
    if lead.resolved_step is None:
        return ring.finite[-SAMPLES:]
    if math.isfinite(lead.detected_time) and len(values := ring.finite_where(ring.time <= lead.detected_time)):
        return values[-SAMPLES:]
    past = until(series, lead.resolved_step)
    return past.finite[-SAMPLES if past.exact else -FEW_CELLS :]
