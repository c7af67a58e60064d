"""What is kept of a run to compare it: its report, its courses, its settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainmon_rules.comparison.parting import Course
from trainmon_rules.comparison.quantities import COMPARED
from trainmon_rules.report import RunReport
from trainmon_rules.series import Series
from trainmon_rules.state import Run
from trainmon_rules.vocabulary import leaf, read_settings, vocabulary

UNTOLD = re.compile(
    r"(run|exp|experiment|project)_?name|(^|_)(dir|time|timestamp|date|datetime|host|hostname|port|url|uuid|id|cache)$"
)
"""Names of settings that tell where and when a run lives, not how it trains."""
ELSEWHERE = re.compile(r"~|/|[A-Za-z]:[\\/]")  # how a value begins that is a place on a machine
LONGEST = 200  # characters of a value


@dataclass(frozen=True, slots=True)
class Subject:
    """A run to be compared.

    `courses` are by role and tag, None for one that was too long to be kept; `settings` are in the vocabulary's names
    and kinds, `other_settings` those that it doesn't know, as logged; `silent` says that none were logged.
    """

    report: RunReport
    courses: Mapping[str, Mapping[str, Course | None]]
    settings: Mapping[str, Any]
    other_settings: Mapping[str, Any]
    silent: bool

    @classmethod
    def of(cls, run: Run, report: RunReport) -> Subject:
        """Return the subject for a run of a session that keeps the series of `COMPARED` whole."""
        raw = {str(k): v for k, v in run.facts.items()}
        other = {k: _short(v) for k, v in raw.items() if _tells(k, v)}
        return cls(report, _courses(run), read_settings(raw), other, not any(s.raw for s in run.said.values()))

    @property
    def length(self) -> tuple[int, int]:
        """By which runs are called long: steps, then points."""
        r = self.report
        return (r.last_step - r.first_step if r.first_step is not None and r.last_step is not None else -1, r.points)


def _courses(run: Run) -> dict[str, dict[str, Course | None]]:
    """Return the courses of the compared roles: of several sources that log a tag, the one that speaks first."""
    found: dict[tuple[str, str], dict[str, list[Series]]] = {}
    for attempt in run.attempts:
        for t in attempt.ordered():
            s = t.series
            if s.role in COMPARED:
                found.setdefault((s.role, s.tag), {}).setdefault(s.source, []).append(s)
    out: dict[str, dict[str, Course | None]] = {}
    for (role, tag), sources in found.items():
        attempts = next(iter(sources.values()))
        views = [s.tail(s.count) for s in attempts]
        whole = all(len(v) == s.count for v, s in zip(views, attempts, strict=True))
        out.setdefault(role, {})[tag] = Course.of([(v.step, v.value) for v in views]) if whole else None
    return out


def _tells(key: str, value: Any) -> bool:
    """Whether a setting that the vocabulary doesn't know says something about the training."""
    name = leaf(key)
    known = any(name == s.name or name in s.keys for s in vocabulary().values())
    place = isinstance(value, str) and ELSEWHERE.match(value)
    return not (known or place or UNTOLD.search(name))


def _short(value: Any) -> Any:
    return f"{value[:LONGEST]}…" if isinstance(value, str) and len(value) > LONGEST else value
