"""The spike score of a run: how many of its reports lie far above the level of those before.

After OLMo 2 (arXiv 2501.00656: the percentage of values at least seven standard deviations from a rolling average of
the last 1,000) and OLMo-core's `SpikeScore (total)` (spikes over all steps, six standard deviations over the last
128). Here a report counts if it lies above the threshold of the robust baseline, which is at least six standard
deviations and leaves out what it flags; gradient norms are judged by their logarithm. It is a number to compare runs
by, not an alarm.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainmon_rules.report import SpikeScore
from trainmon_rules.series import Series
from trainmon_rules.state import Run

JUDGED = {"train_loss": "loss-spike", "grad_norm": "grad-spike"}  # role → the symptom of its spikes


def spike_scores(run: Run) -> tuple[SpikeScore, ...]:
    """Return the score of each training loss and gradient norm, over all attempts; of one in several sources once."""
    whole: dict[tuple[str, str], list[Series]] = {}
    for series in _speaking(run):
        whole.setdefault((series.source, series.tag), []).append(series)
    return tuple(_score(run, parts) for parts in whole.values())


def _speaking(run: Run) -> Iterator[Series]:
    """The series of the sources that speak for their role: those of the lowest rank."""
    every = [t.series for a in run.attempts for t in a.ordered() if t.series.role in JUDGED]
    for role in JUDGED:
        own = [s for s in every if s.role == role]
        best = min((run.told[s.source].rank for s in own), default=0)
        yield from (s for s in own if run.told[s.source].rank == best)


def _score(run: Run, parts: list[Series]) -> SpikeScore:
    s = parts[0]
    over, reports = sum(p.over for p in parts), sum(p.count for p in parts)
    spikes = [
        f
        for f in run.findings.values()
        if (f.source, f.tag) == (s.source, s.tag) and f.symptom == JUDGED[s.role] and "spikes so far" in f.evidence
    ]
    percent = float(f"{100.0 * over / reports:.6g}") if reports else 0.0
    return SpikeScore(s.tag, s.role, len(spikes), over, reports, percent)
