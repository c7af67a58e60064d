"""From verdicts to figures: a row a symptom, quiet on healthy runs, the bars."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from trainmon.evaluating.alarms import Alarm
from trainmon.evaluating.intervals import quantile, rate, share
from trainmon.evaluating.judging import Verdict
from trainmon_rules.evaluation import (
    TOTAL,
    Bar,
    Delay,
    Detection,
    Estimate,
    PeerScore,
    Quiet,
)
from trainmon_rules.rules import SYMPTOMS

Verdicts = Sequence[Verdict]


def counted(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Return the verdicts on runs that count: without the traceless ones."""
    return [v for v in verdicts if not v.trace.labelled.truth.traceless]


def family_of(v: Verdict) -> str:
    """Return the family of a run."""
    return v.trace.labelled.family


def faulty(verdicts: Iterable[Verdict], symptoms: Collection[str] = ()) -> list[Verdict]:
    """Return the verdicts on faulty runs (whose truth accepts one of these symptoms, if any are named)."""
    runs = [v for v in verdicts if not v.trace.labelled.healthy]
    return [v for v in runs if not symptoms or not set(symptoms).isdisjoint(v.trace.labelled.truth.symptoms)]


def healthy(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Return the verdicts on healthy runs."""
    return [v for v in verdicts if v.trace.labelled.healthy]


# --------------------------------------------------------------------------------------------- detection
def detections(verdicts: Verdicts) -> tuple[Detection, tuple[Detection, ...]]:
    """Return the row over all faults, and one a symptom that a truth accepts or that a false alarm names."""
    present = {s for v in faulty(verdicts) for s in v.trace.labelled.truth.symptoms}
    present |= {a.symptoms[0] for v in verdicts for a in v.false}
    return detection(verdicts), tuple(detection(verdicts, s) for s in SYMPTOMS if s in present)


def detection(verdicts: Verdicts, symptom: str = "") -> Detection:
    """Return the row of a symptom, or of all."""
    runs = faulty(verdicts, (symptom,) if symptom else ())
    found = [v for v in runs if v.hit]
    routed = [v for v in found if v.right_route is not None]

    def names(alarm: Alarm) -> bool:
        return not symptom or alarm.symptoms[0] == symptom

    leads = [(family_of(v), float(v.lead)) for v in found if v.lead is not None]
    return Detection(
        symptom=symptom or TOTAL,
        runs=len(runs),
        families=len({family_of(v) for v in runs}),
        found=len(found),
        as_info=sum(not v.hit and v.noted for v in runs),
        false_alarms=sum(names(a) for v in verdicts for a in v.false),
        recall=recall(runs),
        precision=precision(verdicts, names),
        delay_steps=_delay([(family_of(v), float(v.delay_steps or 0)) for v in found]),
        delay_rows=_delay([(family_of(v), float(v.delay_rows or 0)) for v in found]),
        lead=quantile(leads, 0.5),
        lead_runs=len(leads),
        route=share((family_of(v), bool(v.right_route or v.right_question), 1) for v in routed),
        asked=share((family_of(v), v.asked, 1) for v in routed),
        routed=len(routed),
        by_question=sum(v.right_question and not v.right_route for v in routed),
    )


def recall(runs: Iterable[Verdict]) -> Estimate:
    """Return the share of faulty runs with a hit."""
    return share((family_of(v), v.hit is not None, 1) for v in runs)


def precision(verdicts: Verdicts, concerns: Callable[[Alarm], bool]) -> Estimate:
    """Return hits / (hits + false alarms) among the alarms of concern.

    Of a run the first hit counts, so that many right ones hide no false one, and each false alarm.
    """
    rows = []
    for v in verdicts:
        hits, false = v.hit is not None and concerns(v.hit), sum(map(concerns, v.false))
        rows.append((family_of(v), hits, hits + false))
    return share(rows)


def _delay(values: Sequence[tuple[str, float]]) -> Delay:
    return Delay(quantile(values, 0.5), quantile(values, 0.9))


# ------------------------------------------------------------------------------------------------- quiet
def quiet(verdicts: Verdicts) -> Quiet:
    """Return how often healthy runs are disturbed."""
    runs = healthy(verdicts)
    counts = {level: [sum(a.severity == level for a in v.false) for v in runs] for level in ("critical", "warning")}

    def per(level: str, steps: bool = False) -> Estimate:
        over = [float(v.trace.steps) if steps else 1.0 for v in runs]
        rows = zip(map(family_of, runs), counts[level], over, strict=True)
        return rate(rows, 1000.0 if steps else 1.0)

    return Quiet(
        runs=len(runs),
        families=len({family_of(v) for v in runs}),
        steps=sum(v.trace.steps for v in runs),
        criticals=sum(counts["critical"]),
        warnings=sum(counts["warning"]),
        infos=sum(word == "note" for v in runs for _, word in v.judged),
        critical_per_run=per("critical"),
        warning_per_run=per("warning"),
        critical_per_1000_steps=per("critical", True),
        warning_per_1000_steps=per("warning", True),
    )


# -------------------------------------------------------------------------------------------------- bars
def bars(total: Detection, calm: Quiet, peers: Sequence[PeerScore]) -> tuple[Bar, ...]:
    """Return what is wanted of the figures, and whether their values meet it."""
    compared = [p for p in peers if p.compared]
    return (
        _least("recall", total.recall, 0.95),
        _least("precision", total.precision, 0.95),
        _least("right primary route or question", total.route, 0.95),
        _most("critical false alarms a healthy run", calm.critical_per_run, 0.0),
        _most("warning false alarms a healthy run", calm.warning_per_run, 0.05),
        _all("peers that do no better on their own symptoms", [p.held for p in compared]),
        _all("peers that find less over all", [p.ahead for p in compared]),
    )


def _least(what: str, got: Estimate, bar: float) -> Bar:
    return Bar(what, f"at least {bar:g}", got.value, None if got.value is None else got.value >= bar)


def _most(what: str, got: Estimate, bar: float) -> Bar:
    return Bar(what, f"at most {bar:g}" if bar else "none", got.value, None if got.value is None else got.value <= bar)


def _all(what: str, said: Sequence[bool]) -> Bar:
    return Bar(
        what, f"all {len(said)} that are compared", float(sum(said)) if said else None, all(said) if said else None
    )
