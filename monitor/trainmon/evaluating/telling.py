"""Runs one by one, and what leaves no trace: what the figures are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from trainmon.evaluating.judging import SENT, Verdict
from trainmon_rules.evaluation import Told, Traceless, Trial


def traceless(verdicts: Iterable[Verdict]) -> tuple[Traceless, ...]:
    """Return the scenarios whose fault leaves no trace, with what was said of them nevertheless."""
    found: dict[str, list[Verdict]] = {}
    for v in verdicts:
        if v.trace.labelled.truth.traceless:
            found.setdefault(v.trace.labelled.scenario, []).append(v)
    return tuple(
        Traceless(
            name,
            same[0].trace.labelled.family,
            same[0].trace.labelled.truth.traceless,
            len(same),
            dict(Counter(a.symptoms[0] for v in same for a, _ in v.judged if a.severity in SENT)),
        )
        for name, same in sorted(found.items())
    )


def trial(v: Verdict) -> Trial:
    """Return what became of one run, as it is told."""
    known, truth = v.trace.labelled, v.trace.labelled.truth
    return Trial(
        trace=v.trace.name,
        scenario=known.scenario,
        family=known.family,
        half=known.half,
        seed=known.seed,
        label="healthy" if known.healthy else "faulty",
        outcome=_outcome(v),
        onset=None if known.healthy else known.onset,
        symptoms=truth.symptoms,
        told=tuple(Told(a.symptoms[0], a.severity, a.step, word) for a, word in v.judged),
        delay_steps=v.delay_steps,
        delay_rows=v.delay_rows,
        lead=v.lead,
        route=v.hit.route if v.hit else "",
        route_right=None if v.right_route is None else v.right_route or v.right_question,
        questions=v.hit.asks if v.hit else (),
    )


def _outcome(v: Verdict) -> str:
    if v.trace.labelled.truth.traceless:
        return "traceless"
    if v.trace.labelled.healthy:
        return "disturbed" if v.false else "quiet"
    return "found" if v.hit else "missed"
