"""By how much a precursor was ahead: of the onset of what it announced, and of its peak."""

from __future__ import annotations

from trainmon_rules.findings import Finding
from trainmon_rules.incidents import Incident
from trainmon_rules.report import Precursor
from trainmon_rules.series import RING
from trainmon_rules.state import Run


def precursors(incident: Incident, run: Run) -> tuple[Precursor, ...]:
    """Return the incident's precursors with their leads, the earliest first."""
    return tuple(_precursor(f, incident.lead, run) for f in incident.precursors)


def _precursor(f: Finding, lead: Finding, run: Run) -> Precursor:
    peak = lead.evidence.get("peak step")
    steps, reports = lead.onset_step - f.onset_step, _reports_between(f.onset_step, lead.onset_step, lead, run)
    to_peak: tuple[int | None, int | None] = (None, None)
    if isinstance(peak, int) and peak > lead.onset_step:
        to_peak = (peak - f.onset_step, _reports_between(f.onset_step, peak, lead, run))
    return Precursor(
        f.symptom,
        f.rule,
        f.tag,
        f.onset_step,
        f.detected_step,
        steps,
        reports,
        f.summary,
        f"{_what(f)} {_ahead(steps, reports)} {_of(lead)}" + _of_peak(*to_peak),
        *to_peak,
    )


def _reports_between(first: int, last: int, lead: Finding, run: Run) -> int:
    """Reports of the lead's series from one step to another: counted, or by its interval if they are gone."""
    tracked = run.attempts[lead.attempt].tracked.values()
    series = next((t.series for t in tracked if t.series.source == lead.source and t.series.tag == lead.tag), None)
    ring = series.tail(RING) if series is not None else None
    if ring is not None and len(ring) and (ring.start == 0 or ring.step[0] <= first):
        return int(((ring.step > first) & (ring.step <= last)).sum())
    return (last - first) // max(1, lead.interval)


# ---------------------------------------------------------------------- in words
_RISES = {
    "grad-spike": "the gradient norm rose",
    "grad-explosion": "the gradient norm rose",
    "grad-vanishing": "the gradient norm fell",
    "loss-scale-collapse": "the loss scale fell",
    "lr-schedule": "the learning rate changed",
}


_LOSSES = {"train_loss": "the loss", "val_loss": "the validation loss"}


def _what(f: Finding) -> str:
    if f.symptom == "nonfinite":
        return f"{f.tag} was not finite"
    if f.role in _LOSSES and f.symptom in ("loss-spike", "divergence"):
        return f"{_LOSSES[f.role]} {'jumped' if f.symptom == 'loss-spike' else 'rose'}"
    return _RISES.get(f.symptom, f"{f.symptom} on {f.tag} began")


def _of(lead: Finding) -> str:
    """Return what was announced, to follow "before"."""
    name = "the gradient norm" if lead.role == "grad_norm" else _LOSSES.get(lead.role, lead.tag)
    return name + {"nonfinite": " broke", "divergence": " diverged"}.get(lead.symptom, "")


def _ahead(steps: int, reports: int) -> str:
    if steps <= 0:
        return "in the same report as"
    return f"{_reports(reports) if reports else _steps(steps)}{_in_steps(steps, reports)} before"


def _of_peak(steps: int | None, reports: int | None) -> str:
    if steps is None or reports is None:
        return ""
    return f", {reports or steps:,}{_in_steps(steps, reports)} before its peak"


def _in_steps(steps: int, reports: int) -> str:
    return "" if reports in (0, steps) else f" ({_steps(steps)})"


def _steps(n: int) -> str:
    return f"{n:,} step{'' if n == 1 else 's'}"


def _reports(n: int) -> str:
    return f"{n:,} report{'' if n == 1 else 's'}"
