"""What is told of a comparison, and in which order: shared by the terminal and Markdown."""

from __future__ import annotations

from collections.abc import Iterable

from trainmon_exporters.escape import clean
from trainmon_exporters.wording import axis_word, change_lines
from trainmon_rules.report import Comparison, IncidentBrief, RunReport, SeriesComparison, SettingDifference

SERIES = 12  # series told
SETTINGS = 8  # settings told
INCIDENTS = 5  # incidents told of a side
NAME = 60  # longest name or value of a setting
OUTCOMES = ("parted", "together", "same", "unknown")
JSON_HAS_ALL = "--format json lists all"


def headline(c: Comparison, axis: str) -> str:
    """Return where the two part, in a sentence."""
    if c.parted_step is not None:
        also = sum(s.outcome == "parted" for s in c.series) - 1
        more = f"; {also:,} more series follow{'s' if also == 1 else ''}" if also else ""
        return f"They part first in {clean(c.parted_series, NAME)}, at {axis_word(axis)} {c.parted_step}{more}."
    judged = [s for s in c.series if s.outcome != "unknown"]
    if len(judged) == 1:
        return f"They don't part in {clean(judged[0].series, NAME)}."
    return f"They don't part in any of {len(judged)} series." if judged else "They can't be compared step by step."


def told_series(c: Comparison) -> list[SeriesComparison]:
    """Return the series worth a line: those that part in the order in which they do, then the others."""
    ordered = sorted(c.series, key=lambda s: (OUTCOMES.index(s.outcome), s.parted_step or 0))
    return ordered[:SERIES]


def name_of(s: SeriesComparison) -> str:
    """Return a series' tag, and the other run's where it is another one."""
    return s.series if s.series == s.against_series else f"{s.series} ({s.against_series} there)"


def settings(c: Comparison) -> str:
    """Return the settings that differ: "batch_size: 128 here, 64 there"."""
    return _some((_setting(s) for s in c.settings[:SETTINGS]), len(c.settings))


def _setting(s: SettingDifference) -> str:
    here, there = (
        "not logged" if v is None else change_lines({"": v})[0].removeprefix(": ") for v in (s.value, s.against_value)
    )
    return f"{clean(s.setting, NAME)}: {clean(here, NAME)} here, {clean(there, NAME)} there"


def incidents(found: tuple[IncidentBrief, ...], run: RunReport) -> str:
    """Return incidents that only one of the two has: "critical nonfinite since step 410"."""
    word = axis_word(run.axis)
    said = (f"{i.severity} {i.symptom} since {word} {i.onset_step}" for i in found[:INCIDENTS])
    return _some(said, len(found))


def _some(said: Iterable[str], total: int) -> str:
    texts = list(said)
    return "; ".join(texts) + (f" and {total - len(texts):,} more" if total > len(texts) else "")


def rows(run: RunReport, c: Comparison) -> list[tuple[str, str]]:
    """Return what stands below the series, a label and a text each."""
    left = len(c.series) - SERIES
    found = [
        ("", f"and {left:,} more series: {JSON_HAS_ALL}" if left > 0 else ""),
        ("settings", settings(c)),
        ("only here", incidents(c.only_here, run)),
        ("only there", incidents(c.only_there, run)),
        *(("note", note) for note in c.notes),
    ]
    return [(label, text) for label, text in found if text]
