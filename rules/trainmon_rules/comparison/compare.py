"""A run held against another one: their series, settings and incidents."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from trainmon_rules.comparison.pair import compare_pair
from trainmon_rules.comparison.parting import Course
from trainmon_rules.comparison.quantities import COMPARED
from trainmon_rules.comparison.subject import Subject
from trainmon_rules.report import Comparison, IncidentBrief, IncidentReport, SeriesComparison, SettingDifference
from trainmon_rules.roles import RoleTable

MOST_SETTINGS = 100  # listed of those that the vocabulary doesn't know
MOST_INCIDENTS = 200  # of a run that are looked at
UNITS = ("epoch", "row", "sample", "token", "episode", "timestep")  # what an axis may count other than steps


def compare(here: Subject, there: Subject, roles: RoleTable, chosen: str) -> Comparison:
    """Return where a run parts from another, and what else they don't share.

    Parameters
    ----------
    here, there : Subject
        The run in question, and the one it is held against.
    roles : RoleTable
        Tells in which direction a quantity is better.
    chosen : str
        Why it is that one, for the report.
    """
    series, notes = _series(here, there, roles)
    settings, said = _settings(here, there)
    parted = [s for s in series if s.parted_step is not None]
    first = min(parted, key=lambda s: (s.parted_step, not COMPARED[s.role].exact), default=None)  # the rate is a cause
    ours, theirs = here.report.incidents[:MOST_INCIDENTS], there.report.incidents[:MOST_INCIDENTS]
    return Comparison(
        against=there.report.run,
        chosen=chosen,
        verdict=there.report.verdict,
        parted_step=first.parted_step if first else None,
        parted_series=first.series if first else None,
        series=series,
        settings=settings,
        only_here=_only(ours, theirs),
        only_there=_only(theirs, ours),
        notes=(*notes, *said),
    )


def _series(here: Subject, there: Subject, roles: RoleTable) -> tuple[tuple[SeriesComparison, ...], tuple[str, ...]]:
    """Return the comparison of each series that both have, and why there is none."""
    ours, theirs = _unit(here.report.axis), _unit(there.report.axis)
    if ours != theirs:
        return (), (f"one counts {ours}s, the other {theirs}s: their series have no step in common",)
    out = []
    with np.errstate(all="ignore"):  # numbers like ±1e308 are data
        for role, look in COMPARED.items():
            direction = roles.roles[role].direction if look.direction is None else look.direction
            pairs = _shared(here.courses.get(role, {}), there.courses.get(role, {}))
            for one, other in pairs:
                doubted = [w for w, s, tag in (("run", here, one[0]), ("against", there, other[0])) if _broken(s, tag)]
                out.append(compare_pair(role, one, other, look, direction, doubted))
    return tuple(out), () if out else ("they have no series in common that could be compared",)


def _broken(s: Subject, tag: str) -> bool:
    """Whether a critical incident is about a series: a loss of 0 that hides a NaN is no good loss."""
    return any(i.severity == "critical" and tag in i.series for i in s.report.incidents)


def _unit(axis: str) -> str:
    return next((unit for unit in UNITS if unit in axis.lower()), "step")


Tagged = tuple[str, Course | None]


def _shared(ours: Mapping[str, Course | None], theirs: Mapping[str, Course | None]) -> Iterable[tuple[Tagged, Tagged]]:
    """Yield the series of a role that both runs have: those of one tag, else the only two."""
    same = [tag for tag in ours if tag in theirs]
    if not same and len(ours) == len(theirs) == 1:
        yield next(iter(ours.items())), next(iter(theirs.items()))
    for tag in same:
        yield (tag, ours[tag]), (tag, theirs[tag])


# ---------------------------------------------------------------------- settings and incidents
def _settings(here: Subject, there: Subject) -> tuple[tuple[SettingDifference, ...], tuple[str, ...]]:
    """Return the settings that differ, those of the vocabulary first, and what couldn't be compared of them."""
    if here.silent or there.silent:
        where = "either run" if here.silent and there.silent else "this run" if here.silent else "the other run"
        return (), (f"no settings are logged in {where}: they can't be compared",)
    known = _differing(here.settings, there.settings, known=True)
    rest = _differing(here.other_settings, there.other_settings, known=False)
    more = len(rest) - MOST_SETTINGS
    return (*known, *rest[:MOST_SETTINGS]), (f"{more:,} more settings differ",) if more > 0 else ()


def _differing(here: Mapping[str, Any], there: Mapping[str, Any], known: bool) -> list[SettingDifference]:
    pairs = ((k, here.get(k), there.get(k)) for k in dict.fromkeys((*here, *there)))
    return [SettingDifference(k, a, b, known) for k, a, b in pairs if not _equal(a, b)]


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, int | float) and isinstance(b, int | float):
        return math.isclose(a, b, rel_tol=1e-9) or (math.isnan(a) and math.isnan(b))
    return (a is None) == (b is None) and str(a).strip() == str(b).strip()


def _only(ours: Sequence[IncidentReport], theirs: Sequence[IncidentReport]) -> tuple[IncidentBrief, ...]:
    """Return the incidents without a counterpart in the other run: of one symptom, those that began closest pair up."""
    left, taken = dict(enumerate(ours)), set()
    gaps = (
        (abs(a.onset_step - b.onset_step), i, k)
        for i, a in enumerate(ours)
        for k, b in enumerate(theirs)
        if a.symptom == b.symptom
    )
    for _, i, k in sorted(gaps):
        if i in left and k not in taken:
            taken.add(k)
            del left[i]
    return tuple(IncidentBrief(i.id, i.symptom, i.severity, i.onset_step) for i in left.values())
