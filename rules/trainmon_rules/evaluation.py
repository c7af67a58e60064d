"""What `trainmon evaluate` found, as plain records. Exporters only format these.

The field names are those of the schema `trainmon.evaluation/1`; `as_dict` gives strict JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trainmon_rules.report import SourceError, error_dict
from trainmon_rules.strict import plain

SCHEMA = "trainmon.evaluation/1"
TOTAL = "total"


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its 95 % interval, clustered by family.

    `value` is None where there is nothing to measure, `low` and `high` where no interval can be given. `method` says
    how it was got: "bootstrap"; where all families agree, so that it would have no width, "wilson" (a share) or
    "poisson" (a rate) with each family as one observation; "none".
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    method: str = "none"


@dataclass(frozen=True, slots=True)
class Delay:
    """Median and 90th percentile of a number of steps or log rows over the runs found."""

    median: Estimate = Estimate()
    p90: Estimate = Estimate()


@dataclass(frozen=True, slots=True)
class Detection:
    """How well faults are found: those of one symptom, or all (`symptom` is "total").

    A run stands in the row of each symptom that its truth accepts. `found` of `runs` have a hit; `as_info` of the
    others are told of by a note only. `false_alarms` are those named by this symptom, on any run. `delay_*` is from
    the onset to the step at which the incident was told. `lead` is how many steps before the first non-finite
    training loss that was, of the `lead_runs` found that have one. `route` is the share of right primary routes
    among the `routed` found runs whose truth names some; `asked` the share of those whose incident asks a question;
    `by_question` of the right ones are right for their question alone.
    """

    symptom: str
    runs: int
    families: int
    found: int
    as_info: int
    false_alarms: int
    recall: Estimate
    precision: Estimate
    delay_steps: Delay
    delay_rows: Delay
    lead: Estimate
    lead_runs: int
    route: Estimate
    asked: Estimate
    routed: int
    by_question: int


@dataclass(frozen=True, slots=True)
class Quiet:
    """How often a healthy run is disturbed: false alarms a run, and a thousand steps; `infos` are listed notes."""

    runs: int
    families: int
    steps: int
    criticals: int
    warnings: int
    infos: int
    critical_per_run: Estimate
    warning_per_run: Estimate
    critical_per_1000_steps: Estimate
    warning_per_1000_steps: Estimate


@dataclass(frozen=True, slots=True)
class Contest:
    """A peer and trainmon on the same runs: recall on the faulty, false alarms a run on the healthy.

    `false_alarms_per_run` of trainmon are warnings and criticals; on a peer's own symptoms those that any finding in
    them names.
    """

    runs: int
    families: int
    found: int
    recall: Estimate
    precision: Estimate
    false_alarms_per_run: Estimate
    our_found: int
    our_recall: Estimate
    our_precision: Estimate
    our_false_alarms_per_run: Estimate


@dataclass(frozen=True, slots=True)
class PeerScore:
    """A peer: where its rule stands, with which parameters, and how it fares on its own symptoms and over all.

    `compared` is False for one that finds nothing. `held`: on its own symptoms our recall is no lower, at no more
    false alarms a healthy run; `ahead`: over all our recall is strictly higher.
    """

    peer: str
    source: str
    parameters: str
    reads: tuple[str, ...]
    symptoms: tuple[str, ...]
    compared: bool
    held: bool
    ahead: bool
    own: Contest
    overall: Contest


@dataclass(frozen=True, slots=True)
class Traceless:
    """A fault that leaves no trace in what is logged: why, and what was said nevertheless, by symptom."""

    scenario: str
    family: str
    why: str
    runs: int
    said: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Told:
    """One incident as it was judged: "hit", "tolerated", "false" or, of an info, "note"."""

    symptom: str
    severity: str
    detected_step: int
    judged: str


@dataclass(frozen=True, slots=True)
class Trial:
    """One trace: what it is, what became of it ("found", "missed", "quiet", "disturbed", "traceless"), what was told.

    `onset` is None for a healthy run. Delays and `lead` are None where they don't apply, `route` (the primary one of
    the hit) is "" then.
    """

    trace: str
    scenario: str
    family: str
    half: str
    seed: int
    label: str
    outcome: str
    onset: int | None
    symptoms: tuple[str, ...]
    told: tuple[Told, ...]
    delay_steps: int | None
    delay_rows: int | None
    lead: int | None
    route: str
    route_right: bool | None
    questions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Bar:
    """What is wanted of a figure, and whether it is met (None where nothing could be measured)."""

    what: str
    wanted: str
    value: float | None
    met: bool | None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What `trainmon evaluate` found over the traces of a half."""

    half: str
    runs: int
    resamples: int
    total: Detection
    symptoms: tuple[Detection, ...]
    quiet: Quiet
    peers: tuple[PeerScore, ...]
    traceless: tuple[Traceless, ...]
    bars: tuple[Bar, ...]
    trials: tuple[Trial, ...]
    errors: tuple[SourceError, ...] = field(default=())

    def as_dict(self) -> dict[str, Any]:
        """Return strict-JSON data, schema `trainmon.evaluation/1`."""
        data: dict[str, Any] = plain(self, skip=("errors",))
        return {"schema": SCHEMA, **data, "errors": [error_dict(e) for e in self.errors]}
