"""The learning rate of an incident: where it stood in its schedule, and against what is usual for the optimizer."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainmon_rules.diagnosis.lookback import extremes, series_of_role, until
from trainmon_rules.errors import BadConfig
from trainmon_rules.findings import Finding
from trainmon_rules.points import FloatArray
from trainmon_rules.series import Series
from trainmon_rules.state import Attempt
from trainmon_rules.yamlfile import load_packaged

SCHEDULE_REPORTS = 20  # reports from which the phase is read
ZERO_REPORTS = 3  # rates of 0 at the start that a warm-up may have
NEVER_LEARNED = ("flat", "chance-accuracy", "grad-vanishing")
STOPPED = ("plateau", "slow")


@dataclass(frozen=True, slots=True)
class Usual:
    """What is usual for the peak rate of an optimizer."""

    optimizers: tuple[str, ...]
    low: float
    high: float
    start: float
    far: float

    def place(self, rate: float) -> str:
        """Return where a rate lies: far-below, below, low-end, usual, above or far-above."""
        if rate < self.low:
            return "far-below" if rate * 10 < self.low else "below"
        if rate > self.high:
            return "far-above" if rate > self.far * self.high else "above"
        return "low-end" if rate <= 2 * self.low else "usual"


@functools.cache
def usual_rates() -> tuple[Usual, ...]:
    """Return the shipped ranges; BadConfig if the file can't be used."""
    try:
        entries = load_packaged("rates.yaml")
        return tuple(Usual(tuple(e.pop("optimizers")), **{k: float(v) for k, v in e.items()}) for e in entries)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadConfig(f"rates.yaml: an entry needs optimizers, low, high, start and far ({error})") from None


def usual_rate(optimizer: Any) -> Usual:
    """Return what is usual for the optimizer of that name (any, or none)."""
    name = str(optimizer or "").lower()
    rates = usual_rates()
    return next((u for u in rates if name.startswith(u.optimizers)), rates[0])


def _usual(facts: Mapping[str, Any]) -> Usual:
    """Return what is usual for a run: one that is tuned on preferences takes far smaller steps than any other."""
    prefers = facts.get("preference_run") or facts.get("preference_method")
    return usual_rate("preference" if prefers else facts.get("optimizer"))


def rate_facts(attempt: Attempt, lead: Finding, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is known about the learning rate: its value, its place in the schedule and in the usual range.

    An instability is judged by the rate at its onset. A run that never learned is judged by the highest rate at
    which it didn't, and one that stopped learning by the rate at which that was seen: what a warm-up begins with
    says nothing about either.
    """
    facts = _scheduled(attempt, lead, settings)
    usual = _usual(settings)
    facts |= {"usual_rate_low": usual.low, "usual_rate_high": usual.high, "usual_rate_start": usual.start}
    series = series_of_role(attempt, "learning_rate", lead.source)
    end = _seen(series, series.last_step) if series is not None else {}
    # A schedule passes through small rates, so its peak is what is judged; within the warm-up nobody knows it.
    peak = end.get("peak_learning_rate") if end.get("lr_phase") != "warmup" else None
    if facts.get("learning_rate"):
        facts["rate_then"] = usual.place(facts["learning_rate"])
    return facts | placed({**settings, **facts}, peak or settings.get("learning_rate"))


def placed(facts: Mapping[str, Any], judged: float | None) -> dict[str, Any]:
    """Return what a run's (peak) rate is against the usual, and what the incident's rate is against it."""
    if not judged:
        return {}
    out = {"judged_rate": judged, "rate_place": _usual(facts).place(judged)}
    return out | ({"rate_share": facts["learning_rate"] / judged} if facts.get("learning_rate") else {})


def _scheduled(attempt: Attempt, lead: Finding, settings: Mapping[str, Any]) -> dict[str, Any]:
    declared = settings.get("learning_rate")
    facts: dict[str, Any] = {} if declared is None else {"declared_learning_rate": declared}
    series = series_of_role(attempt, "learning_rate", lead.source)
    if series is None:
        return facts
    seen = _seen(series, lead.detected_step if lead.symptom in NEVER_LEARNED + STOPPED else lead.onset_step)
    if seen and seen["lr_phase"] == "warmup" and lead.symptom in NEVER_LEARNED + STOPPED:
        seen = _seen(series, series.last_step if lead.resolved_step is None else lead.resolved_step)
    if lead.symptom in NEVER_LEARNED and "peak_learning_rate" in seen:
        seen["learning_rate"] = seen["peak_learning_rate"]
    return facts | seen


def _seen(series: Series, step: int) -> dict[str, Any]:
    """The rate as of a step."""
    past = until(series, step)
    if not len(past.finite):
        return {}
    now = float(past.finite[-1])
    span = extremes(series, step)
    peak = max(now, span[1]) if span else now
    facts: dict[str, Any] = {"lr_phase": _phase(past.finite, now, peak)}
    if now > 0:
        facts["learning_rate"] = now
    if peak > 0:
        facts |= {"peak_learning_rate": peak, "lr_of_peak": now / peak}
    return facts


def _phase(rates: FloatArray, now: float, peak: float) -> str:
    """Return where in its schedule a rate is, from the rates logged so far."""
    if now == 0.0:
        return "zero" if peak > 0 or len(rates) > ZERO_REPORTS else "warmup"
    recent = rates[-SCHEDULE_REPORTS:]
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
