"""From a session to its report: verdict, status, incidents with their diagnosis, what was blind."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

import numpy as np

from trainmon_rules import guarded
from trainmon_rules.diagnosis import Diagnosis, Knowledge
from trainmon_rules.diagnosis.fixes import in_one_voice
from trainmon_rules.engine import Session
from trainmon_rules.findings import Finding, Severity, State
from trainmon_rules.incidents import Incident
from trainmon_rules.leads import precursors
from trainmon_rules.report import Blind, Curve, IncidentReport, RunReport
from trainmon_rules.series import Series
from trainmon_rules.series.robust import median
from trainmon_rules.spikes import spike_scores
from trainmon_rules.state import Attempt, Run
from trainmon_rules.words import roles_in_words

PLOTTED = (
    "train_loss",
    "val_loss",
    "grad_norm",
    "learning_rate",
    "loss_scale",
    "reward",
    "eval_metric",
    "train_metric",
    "throughput",
)
ENOUGH = 10  # points of a judged series below which a run without incidents is not called healthy


def report_runs(
    session: Session,
    knowledge: Knowledge,
    axis: str = "step",
    skipped: Mapping[str, int] | None = None,
    live: bool = False,
) -> list[RunReport]:
    """Return a report for each run of the session, in order.

    Parameters
    ----------
    session : Session
        The engine after it was fed (and ended, unless `live`).
    knowledge : Knowledge
        The routing table.
    axis : str
        Name of the step axis, as the readers found it.
    skipped : mapping of str to int
        What the readers passed over, by kind.
    live : bool
        The source may still grow; a run without an end then counts as running.
    """
    session.refresh()
    with np.errstate(all="ignore"):  # numbers like ±1e308 are data
        return [report_run(session, run, knowledge, axis, dict(skipped or {}), live) for run in session.runs]


def report_run(
    session: Session, run: Run, knowledge: Knowledge, axis: str, skipped: dict[str, int], live: bool
) -> RunReport:
    """Return the report of one run."""
    incidents = run.incidents
    order = list(session.sources)
    roles = run.tags_by_role(order)
    unmapped = roles.pop("", [])
    told = tuple(_reported(incidents, run, knowledge))
    counts = dict(skipped)
    if run.dropped_points:
        counts["points of series over the limit"] = run.dropped_points
    if run.dropped_findings:
        counts["findings over the limit"] = run.dropped_findings
    return RunReport(
        run=run.name,
        sources=tuple(sorted(run.sources, key=order.index)),
        points=run.points,
        axis=axis,
        first_step=run.first_step,
        last_step=run.last_step,
        attempts=len(run.attempts),
        status="finished" if run.finish else "running" if live else "ended",
        skipped=counts,
        roles=roles,
        unmapped=tuple(unmapped),
        blind=tuple(_blind(session, run, set(roles))),
        verdict=_verdict(run, incidents),
        incidents=told,
        spike_scores=spike_scores(run),
        curves=tuple(_curves(run, {tag for i in incidents for tag in i.series})),
    )


def _reported(incidents: Sequence[Incident], run: Run, knowledge: Knowledge) -> list[IncidentReport]:
    """Return the incidents with their diagnoses; a later one doesn't undo what an earlier one advises."""
    diagnoses = [guarded.diagnosis(i, run, knowledge) for i in incidents]
    heard = in_one_voice(d.advice for d in diagnoses)
    return [
        report_incident(i, run, knowledge, replace(d, advice=a))
        for i, d, a in zip(incidents, diagnoses, heard, strict=True)
    ]


def report_incident(
    incident: Incident, run: Run, knowledge: Knowledge, diagnosis: Diagnosis | None = None
) -> IncidentReport:
    """Return one incident with its diagnosis: the one given, else its own, whatever the run's others advise."""
    lead, onset = incident.lead, incident.onset
    if diagnosis is None:
        with np.errstate(all="ignore"):
            diagnosis = guarded.diagnosis(incident, run, knowledge)
    d = diagnosis
    resolved_step, recovery = _over(incident)
    first = incident.detected
    return IncidentReport(
        id=incident.id,
        rule=lead.rule,
        symptom=lead.symptom,
        severity=str(incident.severity),
        state=str(incident.state),
        series=incident.series,
        attempt=incident.attempt + 1,
        onset_step=onset.onset_step,
        detected_step=first.detected_step,
        resolved_step=resolved_step,
        onset_time=_time(onset.onset_time),
        detected_time=_time(first.detected_time),
        recovery=recovery,
        summary=lead.summary,
        evidence={k: _six(v) for k, v in lead.evidence.items()},
        grade=str(incident.grade) if incident.grade else None,
        superseded=_superseded(incident, run.attempts),
        precursors=precursors(incident, run),
        also=_also(incident),
        others=_others(incident),
        causes=d.causes,
        ruled_out=d.ruled_out,
        routes=d.routes,
        fixes=d.fixes,
        questions=d.questions,
        checklist=d.checklist,
    )


def _six(value: object) -> object:
    """Evidence is given to six significant digits, which is what chunk-invariance promises."""
    return float(f"{value:.6g}") if isinstance(value, float) and math.isfinite(value) else value


def _time(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _over(incident: Incident) -> tuple[int | None, str | None]:
    """Return when an incident was over, and how it ended (or how much is back).

    In the words of the naming finding if nothing came back less, else of what came back least.
    """
    least = [f for f in incident.findings if f.grade is incident.grade]
    if incident.state is not State.RESOLVED:
        return None, _so_far(incident, least) if incident.grade else None
    last = max(incident.findings, key=lambda f: (f.resolved_step or 0, f is incident.lead))
    how = max(least, key=lambda f: (f is incident.lead, f.resolved_step or 0))
    return last.resolved_step, how.recovery


def _so_far(incident: Incident, least: Sequence[Finding]) -> str:
    """Return the grade of what goes on, in words."""
    word = f"{incident.grade} recovered"
    shares = [f.evidence["share of the rise back"] for f in least if "share of the rise back" in f.evidence]
    return f"{word}: {100 * shares[-1]:.0f} % of the rise came back" if shares else word


def _also(incident: Incident) -> tuple[str, ...]:
    """What else was seen: one sentence for each symptom that isn't the lead's and isn't told as a precursor."""
    told = {incident.symptom, *(f.symptom for f in incident.precursors)}
    rest = {f.symptom: f.summary for f in reversed(incident.findings) if f.symptom not in told}
    return tuple(reversed(rest.values()))


def _others(incident: Incident) -> tuple[tuple[str, str], ...]:
    """The incident's other symptoms with their worst severity, in the order of detection."""
    worst: dict[str, Severity] = {}
    for f in incident.findings:
        if f.symptom != incident.symptom:
            worst[f.symptom] = max(f.severity, worst.get(f.symptom, f.severity))
    return tuple((symptom, str(severity)) for symptom, severity in worst.items())


def _superseded(incident: Incident, attempts: Sequence[Attempt]) -> bool:
    """Whether a later attempt resumed below the incident's onset, so that its steps were trained again."""
    later = attempts[incident.attempt + 1 :]
    return any(a.first_step is not None and a.first_step <= incident.onset.onset_step for a in later)


def _verdict(run: Run, incidents: Sequence[Incident]) -> str:
    worst = max((i.severity for i in incidents), default=None)
    if worst is not None and worst >= Severity.WARNING:
        return str(worst)
    judged = [t.series.count for a in run.attempts for t in a.tracked.values() if t.detectors or t.waiting]
    return "healthy" if max(judged, default=0) >= ENOUGH else "insufficient-data"


def _blind(session: Session, run: Run, roles: set[str]) -> list[Blind]:
    """Return the rules that could not work, each with what it lacks."""
    lacks = _lacking(run)
    out = []
    for rule in session.settings.rules:
        if fault := guarded.fault_of(run.failures, rule.name):
            out.append(Blind(rule.name, fault))
        elif rule.name in run.given_up:
            out.append(Blind(rule.name, "another source of the run stayed too far behind"))
        elif not roles.intersection(rule.roles):
            out.append(Blind(rule.name, f"no {roles_in_words(rule.roles)} is logged"))
        elif missing := [r for r in rule.needs if r not in roles]:
            out.append(Blind(rule.name, f"no {roles_in_words(missing)} is logged"))
        elif lack := lacks.get(rule.name):
            out.append(Blind(rule.name, lack))
    return out


def _lacking(run: Run) -> dict[str, str]:
    """Return what each rule's detectors lack, where none of them could judge anything."""
    lacks: dict[str, str] = {}
    for attempt in run.attempts:
        for t in attempt.ordered():
            for d in (*t.detectors, *t.waiting):
                lack, known = guarded.blind(run.failures, t, d), lacks.get(d.rule.name)
                if not lack or known == "":
                    lacks[d.rule.name] = ""  # one that sees is enough
                elif known is None or "--set" in lack:
                    lacks[d.rule.name] = lack  # what the user can answer goes first
    return lacks


def _curves(run: Run, concerned: Set[str]) -> list[Curve]:
    """Return the curves worth plotting: those of some roles, and what any incident is about."""
    out = []
    for attempt in run.attempts:
        for t in attempt.ordered():
            s = t.series
            if s.role in PLOTTED or s.tag in concerned:
                step, low, mean, high, bad = (tuple(c.tolist()) for c in s.history.whole())
                out.append(Curve(s.tag, s.role, s.attempt + 1, step, low, mean, high, bad, _ends(s)))
    return out


def _ends(s: Series) -> tuple[float, float] | None:
    """Return the medians of a series' first three and last three finite points."""
    first, last = s.first[np.isfinite(s.first)][:3], s.tail(16).finite[-3:]
    return (median(first), median(last)) if len(first) and len(last) else None
