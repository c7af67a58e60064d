"""From findings to incidents: one event, one incident, however many rules saw it.

Grouping is a pure function of the set of findings, so it doesn't matter in which order sources were read.
Findings join an incident when they are of one attempt and one family and begin while it goes on, or within
max(50 steps, 8 reports) of its end; so do those of a family that the incident's explains (`EXPLAINED_BY`): a run
whose gradients exploded stops learning, and that is not a second incident. The incident's id comes from its first
finding and never changes; onset, symptom, severity and precursors may.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from trainmon_rules.findings import Finding, FindingKey, Recovery, Severity, State

JOIN_STEPS = 50
JOIN_REPORTS = 8
SOON = 4  # times that within which a changed rate leads to an instability
PERIOD = "period in steps"  # evidence of a sawtooth
TEETH = 4  # spikes back among which a tooth is looked for: others may lie between
TOOTH = 0.1  # of the period by which the teeth of a sawtooth may be early or late
DATED_BACK = 4  # reports by which an end may be dated back: it is seen after five calm ones, and dated to the first

HEADLINE = (
    "nonfinite", "resume-jump", "divergence", "regime-shift", "oscillation", "loss-spike", "loss-scale-collapse",
    "grad-explosion", "grad-spike", "preference-instability", "lr-schedule", "dead-units", "activation-scale",
    "chance-accuracy", "flat", "grad-vanishing", "plateau", "slow", "val-suspect", "overfit", "periodic",
    "memory-growth", "stall", "throughput-drop", "low-utilization", "periodic-stall",
)  # fmt: skip
"""Which symptom gives an incident its name, among findings of one severity: the outcome before its heralds."""


@dataclass(frozen=True, slots=True)
class Incident:
    """Findings of one cause with one life.

    `findings` are in the order of their detection; `lead` is the one that names the incident; `precursors`
    the other symptoms whose onset is not later than the lead's.
    """

    id: str
    run: str
    findings: tuple[Finding, ...]
    lead: Finding

    @property
    def attempt(self) -> int:
        """Attempt of the run, from 0."""
        return self.lead.attempt

    @property
    def symptom(self) -> str:
        """The symptom that names the incident."""
        return self.lead.symptom

    @property
    def severity(self) -> Severity:
        """The worst severity among its findings; teeth of a sawtooth are no reason for a page."""
        worst = max(f.severity for f in self.findings)
        return min(worst, Severity.WARNING) if _is_saw(self.lead) else worst

    @property
    def causal(self) -> tuple[Finding, ...]:
        """Its findings without those that the naming one explains: a standstill may be dated back before its cause."""
        family = self.lead.family
        return tuple(f for f in self.findings if family not in EXPLAINED_BY.get(f.family, ()))

    @property
    def detected(self) -> Finding:
        """The finding that was decided first."""
        return min(self.findings, key=lambda f: (f.detected_step, f.row))

    @property
    def onset(self) -> Finding:
        """The finding with the earliest onset, among the causal ones and the one decided first."""
        return min((*self.causal, self.detected), key=lambda f: (f.onset_step, f.row, f.rule, f.tag))

    @property
    def precursors(self) -> tuple[Finding, ...]:
        """Findings of other symptoms that began no later than the lead, earliest first."""
        early = [f for f in self.causal if f.symptom != self.symptom and f.onset_step <= self.lead.onset_step]
        if _is_saw(self.lead):
            early = []  # its teeth announce nothing
        return tuple(sorted(early, key=lambda f: (f.onset_step, f.row, f.rule)))

    @property
    def state(self) -> State:
        """Firing while any finding is; else ended if any was when its run ended; else resolved."""
        states = {f.state for f in self.findings}
        if State.FIRING in states:
            return State.FIRING
        return State.ENDED if State.ENDED in states else State.RESOLVED

    @property
    def grade(self) -> Recovery | None:
        """How much came back: on each tag what was seen last, of all tags the worst; notes count among notes only.

        None while it isn't known: something goes on that can't be graded yet.
        """
        told = [f for f in self.causal if f.severity > Severity.INFO] or list(self.causal)
        last: dict[str, Finding] = {}
        for f in sorted(told, key=_over):
            last[f.tag] = f
        grades = {f.grade for f in last.values()}
        worst = next((g for g in (Recovery.NOT, Recovery.PARTLY) if g in grades), None)
        return worst or (Recovery.RECOVERED if self.state is State.RESOLVED else None)

    @property
    def series(self) -> tuple[str, ...]:
        """Tags involved, the lead's first."""
        tags = [self.lead.tag, *(f.tag for f in self.findings)]
        return tuple(dict.fromkeys(tags))

    @property
    def symptoms(self) -> frozenset[str]:
        """All symptoms seen."""
        return frozenset(f.symptom for f in self.findings)


EXPLAINED_BY: Mapping[str, frozenset[str]] = {
    "learning": frozenset({"instability", "schedule", "units"}),
    "generalization": frozenset({"instability", "schedule"}),
    "units": frozenset({"instability"}),
    "instability": frozenset({"schedule"}),
}
"""What leads to what: a finding of the family joins an incident of these that began no later (see `_explains`)."""

HELD_OUT = frozenset({"val_loss", "val_loss_component", "val_gap", "val_perplexity", "eval_metric", "eval_error"})
"""Roles on data not trained on: what they do doesn't explain what training does."""

ALONE = frozenset({"stall"})
"""Symptoms that what has been going on for long doesn't explain: a GPU that waits for data is no reason to hang."""

DEPENDENT = frozenset({"learning", "generalization", "units"})
"""Families that say nothing new while the loss is not finite."""


def visible(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings without those that a loss that is not finite explains."""
    known = list(findings)
    dead = [f for f in known if f.symptom == "nonfinite" and f.severity is Severity.CRITICAL]
    return [f for f in known if f.family not in DEPENDENT or not any(_covers(n, f) for n in dead)]


def _covers(nan: Finding, f: Finding) -> bool:
    if nan.attempt != f.attempt or f.detected_step < nan.onset_step:
        return False
    return nan.resolved_step is None or f.detected_step <= nan.resolved_step


def group(run: str, findings: Iterable[Finding]) -> list[Incident]:
    """Return the incidents of a run, in the order of their detection."""
    ordered = sorted(findings, key=_order)
    groups: list[list[Finding]] = []
    for f in ordered:
        home = next((g for g in reversed(groups) if _joins(f, g)), None)
        if home is None:
            groups.append([f])
        else:
            home.append(f)
    return [_incident(run, g) for g in _without_teeth(groups)]


def _without_teeth(groups: Sequence[list[Finding]]) -> list[list[Finding]]:
    """Return the groups, those that hold the spikes of a sawtooth in one: they are its teeth, not events."""
    for saw in [f for g in groups for f in g if _is_saw(f)]:
        teeth = {saw.key, *_teeth(saw, [f for g in groups for f in g])}
        kept: list[list[Finding]] = []
        one: list[Finding] = []
        for g in groups:
            if any(f.key in teeth for f in g):
                if not one:
                    kept.append(one)
                one.extend(g)
            else:
                kept.append(g)
        groups = kept
    return [sorted(g, key=_order) for g in groups]


def _is_saw(f: Finding) -> bool:
    return f.symptom == "periodic" and PERIOD in f.evidence


def _teeth(saw: Finding, findings: Iterable[Finding]) -> set[FindingKey]:
    """Return the keys of the spikes that follow one another by the period of their series, also before it was seen."""
    period = float(saw.evidence[PERIOD])
    spikes = [f for f in findings if f.symptom == "loss-spike" and (f.attempt, f.tag) == (saw.attempt, saw.tag)]
    spikes.sort(key=lambda f: f.onset_step)
    teeth: set[FindingKey] = set()
    for n, two in enumerate(spikes):
        for m in range(max(0, n - TEETH), n):
            away = (two.onset_step - spikes[m].onset_step) / period
            if round(away) >= 1 and abs(away - round(away)) <= TOOTH:
                teeth |= {spikes[m].key, two.key}
    return teeth


def _order(f: Finding) -> tuple[int, float, int, str, str, str]:
    time = f.detected_time if math.isfinite(f.detected_time) else 0.0
    return (f.attempt, time if time else 0.0, f.detected_step, f.source, f.tag, f.rule)


def _joins(f: Finding, members: Sequence[Finding]) -> bool:
    first = members[0]
    if f.attempt != first.attempt:
        return False
    reach = max(JOIN_STEPS, JOIN_REPORTS * max(f.interval, *(m.interval for m in members)))
    return any(_is_one_event(f, m, reach) for m in members)


def _is_one_event(f: Finding, m: Finding, reach: int) -> bool:
    """Whether a finding goes on from another one of its family, or one of them explains the other."""
    if f.family == m.family:
        alone = f.symptom != m.symptom and not ALONE.isdisjoint((f.symptom, m.symptom))
        return abs(f.onset_step - m.onset_step) <= reach if alone else _lasts_until(m, f.onset_step, reach)
    return _explains(m, f, reach) or _explains(f, m, reach)


def _lasts_until(f: Finding, step: int, reach: int = 0) -> bool:
    return f.resolved_step is None or step <= f.resolved_step + reach


def _explains(cause: Finding, effect: Finding, reach: int) -> bool:
    """Whether one finding is the cause of another that began no earlier.

    A changed rate leads to an instability soon or not at all. What stops learning does so while it goes on: a spike
    that came back long ago doesn't explain a plateau; one that didn't come back does, if it began with it.
    """
    if cause.family not in EXPLAINED_BY.get(effect.family, ()):
        return False
    one_curve = (cause.symptom, effect.symptom) == ("divergence", "plateau") and cause.tag == effect.tag
    if one_curve and effect.severity is Severity.INFO and cause.onset_step <= effect.detected_step:
        return _lasts_until(cause, effect.detected_step)  # said of a curve that was rising by then
    if effect.onset_step < cause.onset_step - reach:
        return False
    if effect.family == "instability":
        return effect.onset_step <= cause.onset_step + SOON * reach
    if cause.severity < Severity.WARNING or (cause.role in HELD_OUT and cause.tag != effect.tag):
        return False
    if cause.grade in (Recovery.PARTLY, Recovery.NOT):  # over, but what it cost is not back
        return _lasts_until(cause, effect.onset_step, reach)
    return _lasts_until(cause, effect.detected_step, DATED_BACK * max(1, cause.interval))


def _incident(run: str, members: list[Finding]) -> Incident:
    first = members[0]
    text = "\0".join([run, str(first.attempt), first.rule, first.tag, str(first.detected_step)])
    saw = [f for f in members if _is_saw(f) and _accounts_for(f, members)]
    lead = min(saw or members, key=lambda f: _leads(f, _is_back(f, members)))
    return Incident(hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12], run, tuple(members), lead)


def _accounts_for(saw: Finding, members: Sequence[Finding]) -> bool:
    """Whether all that is more than a note among the findings are teeth of this sawtooth."""
    teeth = {saw.key, *_teeth(saw, members)}
    return all(f.key in teeth for f in members if f.severity > Severity.INFO)


def _leads(f: Finding, back: bool) -> tuple[int, bool, int, bool, int, str, str, str]:
    """The worst finding leads; of equals one that has not come back, then the outcome before its heralds.

    Of what came back in the end the finding leads that says so.
    """
    given_up = back and not f.is_back
    return (-f.severity, back, _rank(f.symptom), given_up, f.detected_step, f.source, f.tag, f.rule)


def _is_back(f: Finding, members: Iterable[Finding]) -> bool:
    """Whether a finding is over and its tag came back, by what its family saw on it last."""
    alike = [m for m in members if (m.tag, m.family) == (f.tag, f.family)]
    return f.state is State.RESOLVED and max(alike, key=_over).is_back


def _over(f: Finding) -> tuple[float, int]:
    """Order by when a finding was over; what goes on is last."""
    return (math.inf if f.resolved_step is None else f.resolved_step, f.detected_step)


def _rank(symptom: str) -> int:
    return HEADLINE.index(symptom) if symptom in HEADLINE else len(HEADLINE)
