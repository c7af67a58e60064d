"""How moments, counts, endings and numbers are worded: the same words in the terminal and in Markdown."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from trainmon_exporters.escape import clean
from trainmon_rules.report import IncidentReport, RunReport
from trainmon_rules.strict import strict

WHOLE = 110  # characters up to which what to do is told whole
TELLING = 8  # letters of a word that stands for a sheet alone


def axis_word(axis: str) -> str:
    """Return the name of the step axis as a word: "step" for `_step`, "global step" for `train/global_step`."""
    return clean(axis).rsplit("/", 1)[-1].strip("_ ").replace("_", " ") or "step"


def many(n: int, what: str) -> str:
    """Return a count with its noun: "1 point", "2,000 points"."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def steps_read(run: RunReport) -> str:
    """Return the steps of a run: "steps 0 to 990", "epoch 3", "no steps"."""
    axis = axis_word(run.axis)
    if run.first_step is None:
        return "no steps"
    if run.first_step == run.last_step:
        return f"{axis} {run.first_step}"
    return f"{axis.removesuffix('s')}s {run.first_step} to {run.last_step}"


def extent(run: RunReport, brief: bool = False) -> str:
    """Return how much was read: steps, points, and what doesn't go without saying; `brief` leaves out the end."""
    parts = [steps_read(run), many(run.points, "point")]
    if run.attempts > 1:
        parts.append(many(run.attempts, "attempt") + ("" if brief else f" (resumed {_times(run.attempts - 1)})"))
    if run.status == "running":
        parts.append("still running")
    elif run.status == "silent" or (run.status == "finished" and not brief):
        parts.append(run.status)
    return ", ".join(parts)


def _times(n: int) -> str:
    return {1: "once", 2: "twice"}.get(n, f"{n:,} times")


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
    where = f"{axis_word(axis)} {step}"
    if time is None or not math.isfinite(time):
        return where
    try:
        when = datetime.fromtimestamp(time, UTC)
    except (ValueError, OverflowError, OSError):  # a log may hold any number as its time
        return where
    return f"{where} ({when:%Y-%m-%d %H:%M} UTC)"


def since(i: IncidentReport, axis: str) -> str:
    """Return since when, when it was seen, and in which attempt."""
    out = moment(i.onset_step, i.onset_time, axis)
    if i.detected_step != i.onset_step:
        out += f", seen at {i.detected_step}"
    return out + (f"; attempt {i.attempt}" if i.attempt > 1 or i.superseded else "")


def ending(i: IncidentReport, axis: str) -> str:
    """Return how long it lasted, to follow the word "until"."""
    if i.state == "resolved":
        text = _resolved(i, axis)
    elif i.state == "ended":
        text = "the end of the log" + ("" if i.severity == "info" else f": {outcome(i)}")
    else:
        text = "now: it is going on"
    if i.superseded:
        text += "; superseded: a later attempt resumed before it and trained these steps again"
    return text


def _resolved(i: IncidentReport, axis: str) -> str:
    step = "" if i.resolved_step is None else f"{axis_word(axis)} {i.resolved_step}"
    if not i.recovery:
        return f"{step}: recovered" if step else "it recovered"
    return i.recovery if not step or step in i.recovery else f"{step}: {i.recovery}"


def is_back(i: IncidentReport) -> bool:
    """Return whether an incident is over and all of what was lost came back."""
    return i.state == "resolved" and i.grade not in ("partly", "not")


def outcome(i: IncidentReport) -> str:
    """Return in a word or two where an incident stands: "recovered", "not recovered", "still going on"."""
    if is_back(i):
        return "recovered"
    if i.state == "firing":
        return "still going on"
    if i.grade == "partly":
        return "partly recovered"
    return "to the end of the log" if i.state == "ended" and i.severity == "info" else "not recovered"


def note(i: IncidentReport, axis: str) -> str:
    """Return an incident of which a line is enough."""
    word = axis_word(axis)
    over = i.resolved_step if i.state == "resolved" else None
    span = f"since {word} {i.onset_step}, {outcome(i)}" if over is None else f"{word} {i.onset_step} to {over}"
    return f"{i.symptom}: {i.summary} ({span})"


def number(value: Any) -> str:
    """Return a value of the evidence to six significant digits."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int):
        return str(value)
    return f"{value:.6g}" if math.isfinite(value) else str(strict(value))


def change_lines(change: Mapping[str, Any]) -> list[str]:
    """Return a fix's change as lines to copy: `key: value`, which is YAML."""
    return [f"{key}: {_value(v)}" for key, v in change.items()]


def _value(value: Any) -> str:
    if isinstance(value, float):
        text = number(value)
        return f"{text}.0" if text.lstrip("-").isdecimal() else text
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def short_name(sheet: str) -> str:
    """Return the beginning of a sheet's name, by which `trainmon explain` knows it too: "batch-size", "gradient".

    A first word that says little alone ("deep" of a pack's "deep-rl") is left with the second.
    """
    first, *rest = sheet.split("-")
    return first if len(rest) < 2 and len(first) >= TELLING else "-".join([first, *rest[:1]])


def in_short(action: str, most: int = WHOLE) -> str:
    """Return what to do in at most so many characters: whole, else the clauses that fit, else the first of them."""
    if len(action) <= most:
        return action
    ends = [m.start() for m in re.finditer(r"; |: | \(|, ", action)]
    fitting = [end for end in ends if end <= most and action.count("(", 0, end) == action.count(")", 0, end)]
    return action[: max(fitting, default=min(ends, default=len(action)))]
