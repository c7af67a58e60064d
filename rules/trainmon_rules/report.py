"""The report: what a session has to say, as plain records. Exporters only format these.

The field names are those of the schema `trainmon.report/1`; `as_dict` gives strict JSON (non-finite numbers
become the strings "NaN", "Infinity", "-Infinity").
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from trainmon_rules.strict import plain

SCHEMA = "trainmon.report/1"


@dataclass(frozen=True, slots=True)
class Cause:
    """A possible cause with the evidence for and against it."""

    cause: str
    why: str
    evidence_for: tuple[str, ...] = ()
    evidence_against: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Route:
    """A sheet (or another pack, then named in both `sheet` and `pack`) to read, with its rank and why."""

    sheet: str
    rank: str  # primary, secondary, also, cross-pack
    why: str
    pack: str | None = None


@dataclass(frozen=True, slots=True)
class Fix:
    """Something to do: a sentence, the machine-readable change where the log has the number, its sheet."""

    action: str
    sheet: str
    change: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Precursor:
    """An earlier finding that announced the incident.

    Its onset lies `lead_reports` before that of the naming finding and `peak_lead_reports` before the peak of that one,
    None where it has none.
    """

    symptom: str
    rule: str
    series: str
    onset_step: int
    detected_step: int
    lead_steps: int
    lead_reports: int
    summary: str
    lead: str  # in words: "the gradient norm rose 1 report before the loss, 4 before its peak"
    peak_lead_steps: int | None = None
    peak_lead_reports: int | None = None


@dataclass(frozen=True, slots=True)
class IncidentReport:
    """One incident with its diagnosis."""

    id: str
    rule: str
    symptom: str
    severity: str
    state: str
    series: tuple[str, ...]
    attempt: int
    onset_step: int
    detected_step: int
    resolved_step: int | None
    onset_time: float | None
    detected_time: float | None
    recovery: str | None
    summary: str
    evidence: dict[str, Any]
    grade: str | None = None  # how much came back: recovered, partly, not; None while it isn't known
    superseded: bool = False
    precursors: tuple[Precursor, ...] = ()
    also: tuple[str, ...] = ()  # what else was seen, in sentences
    others: tuple[tuple[str, str], ...] = ()  # every other symptom seen in it, with its severity
    causes: tuple[Cause, ...] = ()
    ruled_out: tuple[Cause, ...] = ()
    routes: tuple[Route, ...] = ()
    fixes: tuple[Fix, ...] = ()
    questions: tuple[str, ...] = ()
    checklist: str | None = None  # the page of the manual to go through, where there is one


@dataclass(frozen=True, slots=True)
class Blind:
    """A rule that could not work on this run, and the tag or setting that would open its eyes."""

    rule: str
    needs: str


@dataclass(frozen=True, slots=True)
class Curve:
    """A series over its whole attempt, in at most 256 cells, for plots: where, lowest, mean, highest.

    `bad` counts the non-finite points of each cell; a cell of nothing else has `low` > `high`.
    """

    tag: str
    role: str
    attempt: int
    steps: tuple[int, ...]
    low: tuple[float, ...]
    mean: tuple[float, ...]
    high: tuple[float, ...]
    bad: tuple[int, ...] = ()
    ends: tuple[float, float] | None = None  # medians of its first three and last three points


@dataclass(frozen=True, slots=True)
class SeriesComparison:
    """One quantity in two runs.

    `series` is the tag here, `against_series` the one there. `outcome` is "parted", "together" (within their noise, or
    less than what matters), "same" (the same numbers) or "unknown"; `points` and the steps are what was compared.
    `same_until` is the last step up to which the numbers are the same, `parted_step` the first from which the runs
    differ for good, `rejoined_step` (of a learning rate) the one from which they don't any more. `level` and
    `against_level` are medians of the last quarter of what lies after the parting, else of all that was compared;
    `better` is "run", "against" or None.
    """

    role: str
    series: str
    against_series: str
    outcome: str
    summary: str
    points: int
    first_step: int | None = None
    last_step: int | None = None
    same_until: int | None = None
    parted_step: int | None = None
    rejoined_step: int | None = None
    level: float | None = None
    against_level: float | None = None
    better: str | None = None


@dataclass(frozen=True, slots=True)
class SettingDifference:
    """A setting that two runs don't share: its value in each, None where it isn't logged.

    `known` says that it is one of the vocabulary, with the name and kind it has there.
    """

    setting: str
    value: Any
    against_value: Any
    known: bool


@dataclass(frozen=True, slots=True)
class IncidentBrief:
    """An incident that only one of two runs has."""

    id: str
    symptom: str
    severity: str
    onset_step: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """A run held against another one: where they part, which settings and incidents they don't share.

    `chosen` says why it is that one, `notes` what couldn't be compared. `parted_series` is the tag of the series that
    parts first, at `parted_step`.
    """

    against: str
    chosen: str
    verdict: str
    parted_step: int | None
    parted_series: str | None
    series: tuple[SeriesComparison, ...]
    settings: tuple[SettingDifference, ...]
    only_here: tuple[IncidentBrief, ...]
    only_there: tuple[IncidentBrief, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SpikeScore:
    """How spiky a loss or gradient norm is: `percent` of its `reports` lie above the threshold (`above` of them)."""

    series: str
    role: str
    spikes: int  # found by their rule: two of three reports
    above: int
    reports: int
    percent: float


@dataclass(frozen=True, slots=True)
class RunReport:
    """One run: what was read, what it means, what went wrong. `curves` are for plots, not in the JSON."""

    run: str
    sources: tuple[str, ...]
    points: int
    axis: str
    first_step: int | None
    last_step: int | None
    attempts: int
    status: str
    skipped: dict[str, int]
    roles: dict[str, list[str]]
    unmapped: tuple[str, ...]
    blind: tuple[Blind, ...]
    verdict: str
    incidents: tuple[IncidentReport, ...]
    spike_scores: tuple[SpikeScore, ...] = ()
    curves: tuple[Curve, ...] = field(default=(), repr=False)
    comparison: Comparison | None = None


@dataclass(frozen=True, slots=True)
class SourceError:
    """A record or file that could not be read."""

    source: str
    error: str
    offset: int | None = None
    line: int | None = None
    fatal: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """What `trainmon replay` found over all paths given."""

    runs: tuple[RunReport, ...]
    errors: tuple[SourceError, ...] = ()

    @property
    def worst(self) -> str:
        """The worst verdict: critical, warning, healthy, insufficient-data or (no run) none."""
        order = ("critical", "warning", "healthy", "insufficient-data")
        verdicts = {r.verdict for r in self.runs}
        return next((v for v in order if v in verdicts), "none")

    @property
    def yardsticks(self) -> set[str]:
        """Names of the runs that others are held against."""
        return {r.comparison.against for r in self.runs if r.comparison}

    def as_dict(self) -> dict[str, Any]:
        """Return the report as strict-JSON data, schema `trainmon.report/1`."""
        return {
            "schema": SCHEMA,
            "runs": [run_dict(r) for r in self.runs],
            "errors": [error_dict(e) for e in self.errors],
        }


def run_dict(run: RunReport) -> dict[str, Any]:
    """Return one run as strict-JSON data; `comparison` is there only where there is one."""
    data: dict[str, Any] = plain(run, skip=("curves",) if run.comparison else ("curves", "comparison"))
    return data


def error_dict(error: SourceError) -> dict[str, Any]:
    """Return an error as strict-JSON data."""
    data: dict[str, Any] = plain(error, skip=("fatal",))
    return data
