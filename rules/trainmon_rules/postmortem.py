"""From a session to its report: verdict, status, incidents with their diagnosis, what was blind."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from trainmon_rules.diagnosis import Diagnosis, Knowledge, diagnose
from trainmon_rules.engine import Attempt, Run, Session
from trainmon_rules.findings import Finding, Severity, State
from trainmon_rules.fixes import in_one_voice
from trainmon_rules.incidents import Incident
from trainmon_rules.report import Blind, Curve, IncidentReport, Precursor, RunReport

PLOTTED = (
    "train_loss",
    "val_loss",
    "grad_norm",
    "learning_rate",
    "loss_scale",
    "reward",
    "eval_metric",
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
    return [report_run(session, run, knowledge, axis, dict(skipped or {}), live) for run in session.runs]


def report_run(
    session: Session, run: Run, knowledge: Knowledge, axis: str, skipped: dict[str, int], live: bool
) -> RunReport:
    """Return the report of one run."""
    incidents = run.incidents
    order = list(session.sources)
    roles = run.tags_by_role(order)
    unmapped = roles.pop("", [])
    counts = dict(skipped)
    if run.dropped_tags:
        counts["tags over the limit"] = run.dropped_tags
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
        blind=tuple(_blind(session, set(roles))),
        verdict=_verdict(run, incidents),
        incidents=tuple(_reported(incidents, run, knowledge)),
        curves=tuple(_curves(run)),
    )


def _reported(incidents: Sequence[Incident], run: Run, knowledge: Knowledge) -> list[IncidentReport]:
    """Return the incidents with their diagnoses; a later one doesn't undo what an earlier one advises."""
    diagnoses = [diagnose(i, run, knowledge) for i in incidents]
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
    d = diagnosis or diagnose(incident, run, knowledge)
    done = [f for f in incident.findings if f.resolved_step is not None]
    resolved_step = (
        max((f.resolved_step or 0 for f in done), default=None) if incident.state is State.RESOLVED else None
    )
    first = min(incident.findings, key=lambda f: (f.detected_step, f.row))
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
        recovery=lead.recovery,
        summary=lead.summary,
        evidence={k: _six(v) for k, v in lead.evidence.items()},
        superseded=_superseded(incident, run.attempts),
        precursors=tuple(_precursor(f, lead) for f in incident.precursors),
        also=_also(incident),
        others=_others(incident),
        causes=d.causes,
        ruled_out=d.ruled_out,
        routes=d.routes,
        fixes=d.fixes,
        questions=d.questions,
    )


def _six(value: object) -> object:
    """Evidence is given to six significant digits, which is what chunk-invariance promises."""
    return float(f"{value:.6g}") if isinstance(value, float) and math.isfinite(value) else value


def _time(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _precursor(f: Finding, lead: Finding) -> Precursor:
    lead_steps = lead.onset_step - f.onset_step
    return Precursor(
        f.symptom,
        f.rule,
        f.tag,
        f.onset_step,
        f.detected_step,
        lead_steps,
        lead_steps // max(1, lead.interval),
        f.summary,
    )


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


def _blind(session: Session, roles: set[str]) -> list[Blind]:
    out = []
    for rule in session.settings.rules:
        if not roles.intersection(rule.roles):
            out.append(Blind(rule.name, f"no series of role {' or '.join(rule.roles)} is logged"))
        elif missing := [r for r in rule.needs if r not in roles]:
            out.append(Blind(rule.name, f"{' and '.join(missing)} not logged"))
    return out


def _curves(run: Run) -> list[Curve]:
    out = []
    for attempt in run.attempts:
        for t in attempt.tracked.values():
            s = t.series
            if s.role in PLOTTED:
                step, low, mean, high, bad = (tuple(c.tolist()) for c in s.history.whole())
                out.append(Curve(s.tag, s.role, s.attempt + 1, step, low, mean, high, bad))
    return out
