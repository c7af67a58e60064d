"""What a report tells a person, in which order and in which words: shared by the terminal and Markdown.

Nothing is decided here about a run; this chooses what stands in full and what in a line, and words moments,
numbers and endings.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from trainmon_rules.report import IncidentReport, Report, RunReport

IN_FULL = 5  # incidents of a run told in full
IN_BRIEF = 20  # incidents of a run told in a line
RUNS_IN_FULL = 10  # runs told in full, of many
NAME = 120  # longest name shown
_VERDICTS = ("critical", "warning", "insufficient-data", "healthy")
SEVERITIES = ("critical", "warning", "info")


@dataclass(frozen=True, slots=True)
class Numbered:
    """An incident with the number that it carries in the plot and in the text."""

    number: int
    incident: IncidentReport


@dataclass(frozen=True, slots=True)
class Telling:
    """The incidents of a run: those told in full, those told in a line, and how many aren't told."""

    full: tuple[Numbered, ...]
    brief: tuple[IncidentReport, ...]
    untold: int


def worst_first(report: Report) -> list[RunReport]:
    """Return the runs, the worst verdict first, else as they came."""
    return sorted(report.runs, key=lambda r: rank(r.verdict, _VERDICTS))


def serious(run: RunReport) -> bool:
    """Whether there is more to tell about a run than notes."""
    return any(i.severity != "info" for i in run.incidents)


def headline(run: RunReport) -> str:
    """Return what went wrong in a run, in a few words: its symptoms, else how many notes there are, else nothing."""
    symptoms = dict.fromkeys(i.symptom for i in run.incidents if i.severity != "info")
    return ", ".join(symptoms) or tally(run.incidents)


def telling(run: RunReport) -> Telling:
    """Choose what to tell: the worst in full, all in the order of their onset, numbered in that order."""
    ordered = sorted(run.incidents, key=lambda i: (i.attempt, i.onset_step, i.detected_step))
    serious = [i for i in ordered if i.severity != "info"]
    chosen = sorted(serious, key=lambda i: (i.superseded, rank(i.severity, SEVERITIES)))[:IN_FULL]
    ids = {i.id for i in chosen}
    rest = sorted((i for i in ordered if i.id not in ids), key=lambda i: rank(i.severity, SEVERITIES))
    full = tuple(Numbered(n + 1, i) for n, i in enumerate(i for i in ordered if i.id in ids))
    return Telling(full, tuple(rest[:IN_BRIEF]), len(rest[IN_BRIEF:]))


def rank(word: str, order: Sequence[str] = SEVERITIES) -> int:
    """Return the place of a word in an order; words that aren't in it come last."""
    return order.index(word) if word in order else len(order)


# ---------------------------------------------------------------------- words
def extent(run: RunReport, brief: bool = False) -> str:
    """Return how much was read: steps, points, attempts, status; `brief` leaves out what goes without saying."""
    axis = run.axis or "step"
    if run.first_step is None:
        steps = "no steps"
    elif run.first_step == run.last_step:
        steps = f"{axis} {run.first_step}"
    else:
        steps = f"{axis.removesuffix('s')}s {run.first_step} to {run.last_step}"
    parts = [steps, many(run.points, "point")]
    if run.attempts > 1 or not brief:
        parts.append(many(run.attempts, "attempt"))
    if run.status not in ("ended", "finished") or not brief:
        parts.append(run.status)
    return ", ".join(parts)


def many(n: int, what: str) -> str:
    """Return a count with its noun: "1 point", "2,000 points"."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def tally(incidents: Sequence[IncidentReport]) -> str:
    """Return how many incidents there are of each severity: "1 critical, 2 warnings, 3 notes"."""
    words = {"critical": "critical", "warning": "warning", "info": "note"}
    parts = []
    for severity, word in words.items():
        n = sum(i.severity == severity for i in incidents)
        if n:
            parts.append(f"{n} {word}" if word == "critical" else many(n, word))
    return ", ".join(parts)


def moment(step: int, time: float | None, axis: str = "step") -> str:
    """Return a step with its wall time where that was logged."""
    where = f"{axis or 'step'} {step}"
    if time is None or not math.isfinite(time):
        return where
    try:
        when = datetime.fromtimestamp(time, UTC)
    except (ValueError, OverflowError, OSError):  # a log may hold any number as its time
        return where
    return f"{where} ({when:%Y-%m-%d %H:%M:%S} UTC)"


def since(i: IncidentReport, axis: str) -> str:
    """Return since when, when it was seen, and in which attempt."""
    axis = axis or "step"
    out = moment(i.onset_step, i.onset_time, axis)
    if i.detected_step != i.onset_step:
        out += f"; detected at {axis} {i.detected_step}"
    return out + (f"; attempt {i.attempt}" if i.attempt > 1 or i.superseded else "")


def ending(i: IncidentReport, axis: str) -> str:
    """Return how long it lasted, to follow the word "until"."""
    if i.state == "resolved":
        text = "it recovered" if i.resolved_step is None else f"{axis or 'step'} {i.resolved_step}"
        text += f": {i.recovery}" if i.recovery else ""
    elif i.state == "ended":
        text = "the run ended: it never recovered"
    else:
        text = "now: it is going on"
    if i.superseded:
        text += "; superseded: a later attempt resumed before it and trained these steps again"
    return text


def lead(p_steps: int, p_reports: int) -> str:
    """Return by how much a precursor was ahead."""
    if p_reports > 0:
        return f"{many(p_reports, 'report')} ({many(p_steps, 'step')}) ahead"
    return f"{many(p_steps, 'step')} ahead" if p_steps > 0 else "at the same step"


def number(value: Any) -> str:
    """Return a value of the evidence as a person reads it."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int):
        return str(value)
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return f"{value:.6g}"


def change_lines(change: Mapping[str, Any]) -> list[str]:
    """Return a fix's change as lines to copy: `key: value`, which is YAML."""
    return [f"{key}: {_value(v)}" for key, v in change.items()]


def _value(value: Any) -> str:
    if isinstance(value, float):
        text = number(value)
        return f"{text}.0" if text.lstrip("-").isdecimal() else text
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def blind_groups(run: RunReport) -> list[tuple[str, list[str]]]:
    """Return what would open eyes, each with the rules that are blind for want of it, the most rules first."""
    groups: dict[str, list[str]] = {}
    for b in run.blind:
        groups.setdefault(b.needs, []).append(b.rule)
    return sorted(groups.items(), key=lambda g: -len(g[1]))


def skipped(run: RunReport) -> str:
    """Return what the readers passed over, the most first."""
    items = sorted(run.skipped.items(), key=lambda kv: (-kv[1], kv[0]))
    return ", ".join(f"{kind} ({n:,})" for kind, n in items if n)
