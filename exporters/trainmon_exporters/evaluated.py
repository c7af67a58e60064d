"""An evaluation in words and cells, for the terminal and for Markdown alike."""

from __future__ import annotations

from collections.abc import Sequence

from trainmon_exporters.wording import many
from trainmon_rules.evaluation import Bar, Delay, Estimate, Evaluation, PeerScore, Traceless, Trial

HALF = {"test": "the test half", "tuning": "the tuning half", "all": "both halves"}
NOTHING = "–"


def figure(estimate: Estimate, digits: int = 2) -> str:
    """Return a figure with its interval, as `0.97 (0.91–1.00)`."""
    if estimate.value is None:
        return NOTHING
    text = f"{estimate.value:.{digits}f}"
    if estimate.low is None or estimate.high is None:
        return text
    return f"{text} ({estimate.low:.{digits}f}–{estimate.high:.{digits}f})"


def bare(estimate: Estimate, digits: int = 2) -> str:
    """Return a figure without its interval."""
    return NOTHING if estimate.value is None else f"{estimate.value:.{digits}f}"


def delay(d: Delay) -> str:
    """Return median and 90th percentile, as `3 / 12`."""
    return NOTHING if d.median.value is None else f"{bare(d.median, 0)} / {bare(d.p90, 0)}"


def title(e: Evaluation) -> str:
    """Return what was evaluated."""
    families = len({t.family for t in e.trials})
    parts = [f"{e.total.runs} faulty", f"{e.quiet.runs} healthy"]
    if without := sum(t.outcome == "traceless" for t in e.trials):
        parts.append(f"{without} without a trace")
    return f"{HALF[e.half]}: {many(e.runs, 'run')} of {_families(families)} ({', '.join(parts)})"


def _families(n: int) -> str:
    return "1 family" if n == 1 else f"{n} families"


def totals(e: Evaluation) -> list[tuple[str, str]]:
    """Return the figures over all, each with a label and a sentence."""
    t, q = e.total, e.quiet
    noted = f"; {t.as_info} more told as a note only" if t.as_info else ""
    rows = {"recall": f"{figure(t.recall)}: {t.found} of {t.runs} faulty runs found, {_families(t.families)}{noted}"}
    rows["precision"] = f"{figure(t.precision)}: {many(t.false_alarms, 'false alarm')}"
    if t.found:
        rows["delay"] = (
            f"{figure(t.delay_rows.median, 0)} log rows from the onset, 90 % within {figure(t.delay_rows.p90, 0)}; "
            f"in steps {figure(t.delay_steps.median, 0)}, 90 % within {figure(t.delay_steps.p90, 0)}"
        )
    if t.lead_runs:
        rows["lead"] = f"{figure(t.lead, 0)} steps before the first non-finite loss (median of {t.lead_runs})"
    if t.routed:
        rows["route"] = (
            f"{figure(t.route)} of {t.routed} have a right primary route or question ({t.by_question} by the question "
            f"alone); {figure(t.asked)} ask one"
        )
    if q.runs:
        counts = f"{many(q.criticals, 'critical')}, {many(q.warnings, 'warning')}, {many(q.infos, 'note')}"
        rows["healthy"] = f"{many(q.runs, 'run')}, {_families(q.families)}, {q.steps:,} steps: {counts}"
        rows["a run"] = f"{figure(q.critical_per_run)} criticals, {figure(q.warning_per_run)} warnings"
        thousand = (q.critical_per_1000_steps, q.warning_per_1000_steps)
        rows["1000 steps"] = "{} criticals, {} warnings".format(*map(figure, thousand))
    return list(rows.items())


SYMPTOM_HEADS = ("symptom", ">runs", "recall", "precision", ">rows", ">steps", ">route", ">false")


def symptom_rows(e: Evaluation) -> list[tuple[str, ...]]:
    """Return a row a symptom, and the total."""
    return [
        (
            d.symptom,
            str(d.runs),
            figure(d.recall),
            figure(d.precision),
            delay(d.delay_rows),
            delay(d.delay_steps),
            bare(d.route),
            str(d.false_alarms),
        )
        for d in (*e.symptoms, e.total)
    ]


PEER_HEADS = ("peer", ">runs", "recall", ">ours", ">false", ">ours", "over all", ">ours")


def peer_rows(e: Evaluation) -> list[tuple[str, ...]]:
    """Return a row a peer: on its own symptoms, then over all; one that finds nothing is only listed."""
    rows = list[tuple[str, ...]]()
    for p in e.peers:
        false = (bare(p.own.false_alarms_per_run), bare(p.own.our_false_alarms_per_run))
        if not p.compared:
            rows.append((p.peer, str(p.own.runs), "finds nothing", "", *false, "", ""))
            continue
        own = (str(p.own.runs), figure(p.own.recall), bare(p.own.our_recall))
        rows.append((p.peer, *own, *false, figure(p.overall.recall), bare(p.overall.our_recall)))
    return rows


def peer_about(p: PeerScore) -> str:
    """Return what a peer reads, claims and is set to."""
    return f"{', '.join(p.symptoms)}; reads {', '.join(p.reads)}; {p.parameters or 'no parameters'}; {p.source}"


def said(t: Traceless) -> str:
    """Return what was told of a fault that leaves no trace."""
    return ", ".join(f"{symptom} {n}" for symptom, n in t.said.items()) or "nothing"


def bar(b: Bar) -> str:
    """Return a bar with what was measured."""
    got = "nothing to measure" if b.value is None else f"{b.value:.2f}".removesuffix(".00")
    return f"{b.what}: {got} ({b.wanted})"


def met(b: Bar) -> str:
    """Return whether a bar is met."""
    return {True: "met", False: "not met", None: NOTHING}[b.met]


def missed(trials: Sequence[Trial]) -> list[str]:
    """Return a line for each fault that wasn't found."""
    return [
        f"{t.trace}: {' or '.join(t.symptoms)} from step {t.onset}; {_said(t)}" for t in trials if t.outcome == "missed"
    ]


def _said(t: Trial) -> str:
    told = [f"{a.severity} {a.symptom} at {a.detected_step} ({a.judged})" for a in t.told]
    return ", ".join(told) if told else "nothing was told"


def false_alarms(trials: Sequence[Trial]) -> list[str]:
    """Return a line for each false alarm on a run that counts."""
    return [
        f"{t.trace}: {a.severity} {a.symptom} at step {a.detected_step}"
        + (" of a healthy run" if t.onset is None else f", onset {t.onset}")
        for t in trials
        if t.outcome != "traceless"
        for a in t.told
        if a.judged == "false"
    ]


def wrong_routes(trials: Sequence[Trial]) -> list[str]:
    """Return a line for each hit with a wrong primary route."""
    return [
        f"{t.trace}: {t.route or 'no route'}{' asks for ' + ', '.join(t.questions) if t.questions else ''}"
        for t in trials
        if t.route_right is False
    ]


def how(e: Evaluation) -> str:
    """Return how the intervals were got."""
    return (
        f"Intervals: 95 %, {e.resamples:,} bootstrap resamples of families; where all families agree Wilson's (shares) "
        "or the exact Poisson interval (rates), each family one observation; none for a delay that is the same in all."
    )


WHAT = (
    "A hit is a warning or critical incident of an accepted symptom at or after the onset (less one report); an info "
    "is neither hit nor false alarm. A run stands in the row of each symptom that its truth accepts. rows, steps: "
    "delay from the onset, median / 90th percentile; false: false alarms of that name."
)
PEERS = (
    "runs: faulty runs of the peer's own symptoms; false: false alarms a healthy run, of its own symptoms; over all: "
    "recall on all faulty runs."
)
