"""Facts of a run that learns from rewards: whether its policy still explores, how far updates take it, who gains."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

import numpy as np

from trainmon_rules.diagnosis.lookback import series_of_role, until
from trainmon_rules.findings import Finding
from trainmon_rules.points import FloatArray
from trainmon_rules.series import Series
from trainmon_rules.state import Attempt

ROLES = frozenset({"reward", "rl_loss", "value_loss"})
LEVEL = 5  # reports whose median is a level
COLLAPSED = 0.1  # share of its first level below which an entropy has collapsed
RISEN = 5.0  # times its usual level from which KL or value loss have risen
CONSTANT = 0.8  # share of equal rewards that leaves next to nothing to learn from
PINNED = 8  # equal reports at 0 or 1 that make a rate pinned
RATES = ("eval_metric", "eval_error", "train_metric", "train_error")


def is_reward_run(roles: Set[str], settings: Set[str]) -> bool:
    """Return whether a run learns from rewards, and not by preference tuning (which has causes of its own)."""
    return bool(ROLES & roles) and "reward_margin" not in roles and "preference_method" not in settings


def reward_facts(attempt: Attempt, lead: Finding) -> dict[str, Any]:
    """Return what the series of a reward run say up to the incident's detection."""
    facts: dict[str, Any] = {"reward_run": True}
    if (entropy := _values(attempt, "entropy", lead)) is not None:
        first, now = abs(_level(entropy[:LEVEL])), abs(_level(entropy[-LEVEL:]))  # logged with either sign
        facts |= {"entropy_first": first, "entropy_now": now, "entropy_collapsed": now < COLLAPSED * first}
    for role in ("kl", "value_loss"):
        if (values := _values(attempt, role, lead)) is not None:
            facts |= _risen(role, values)
    if (touched := _values(attempt, "clip_fraction", lead)) is not None:
        facts["clip_fraction"] = _level(touched[-LEVEL:])
    facts |= _reward(attempt, lead) | _pinned(attempt, lead)
    return facts


def _values(attempt: Attempt, role: str, lead: Finding) -> FloatArray | None:
    series = series_of_role(attempt, role, lead.source)
    return None if series is None else _until(series, lead)


def _until(series: Series, lead: Finding) -> FloatArray | None:
    values = until(series, lead.detected_step).finite
    return values if len(values) >= 2 * LEVEL else None


def _level(values: FloatArray) -> float:
    return float(np.median(values))


def _risen(name: str, values: FloatArray) -> dict[str, float]:
    """The last level and the one before, if it is a rise."""
    usual, now = abs(_level(values[:-LEVEL])), abs(_level(values[-LEVEL:]))
    return {f"{name}_usual": usual, f"{name}_now": now} if now > 0 and now >= RISEN * usual else {}


def _reward(attempt: Attempt, lead: Finding) -> dict[str, Any]:
    values = _values(attempt, "reward", lead)
    if values is None:
        return {}
    if lead.role == "reward":
        middle = _level(values)
        same = float((values == middle).mean()) >= CONSTANT
        return {"reward_varies": not same} | ({"reward_constant": middle} if same else {})
    first, now = _level(values[:LEVEL]), _level(values[-LEVEL:])
    spread = float(np.abs(np.diff(values)).mean())
    return {"reward_first": first, "reward_now": now, "reward_kept": now > first - spread}


def _pinned(attempt: Attempt, lead: Finding) -> dict[str, Any]:
    """A rate beside the incident's that stands at exactly 0 or 1, and didn't always: an answer given to everything."""
    for t in attempt.tracked.values():
        s = t.series
        if s.role not in RATES or s.tag == lead.tag or (values := _until(s, lead)) is None:
            continue
        end = float(values[-1])
        if end in (0.0, 1.0) and bool((values[-PINNED:] == end).all()) and s.first[0] != end and _is_bad(s, end):
            return {"pinned_tag": s.tag, "pinned_at": end}
    return {}


def _is_bad(series: Series, end: float) -> bool:
    return (end == 1.0) == (series.direction > 0)
