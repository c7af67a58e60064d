"""What a report tells a person, and in which order: shared by the terminal and Markdown.

Nothing is decided here about a run; this chooses what stands in full, what in a line, and what is said once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from trainmon_exporters.wording import axis_word, is_back, tally
from trainmon_rules.report import IncidentReport, Precursor, Report, RunReport

IN_FULL = 5  # incidents of a run told in full
IN_BRIEF = 20  # incidents of a run told in a line
REPEATED = 3  # times from which on the same, recovered each time, is one story
RUNS_IN_FULL = 10  # runs told in full, of many
NAME = 120  # longest name shown
_VERDICTS = ("critical", "warning", "insufficient-data", "healthy")
SEVERITIES = ("critical", "warning", "info")
_NEXT_RUN = re.compile(r"#\d{1,9}$")


@dataclass(frozen=True, slots=True)
class Numbered:
    """An incident with the number that it carries in the plot and in the text, and those that were the same again."""

    number: int
    incident: IncidentReport
    again: tuple[IncidentReport, ...] = ()

    @property
    def times(self) -> int:
        """How often it happened."""
        return 1 + len(self.again)


@dataclass(frozen=True, slots=True)
class Telling:
    """The incidents of a run: those told in full, those told in a line, and how many aren't told."""

    full: tuple[Numbered, ...]
    brief: tuple[IncidentReport, ...]
    untold: int

    @property
    def main(self) -> Numbered:
        """The incident that the run is about: one that lasts before one that came back, then the worst, the first."""
        return min(self.full, key=lambda n: (*_weight(n.incident), n.number))


def _weight(i: IncidentReport) -> tuple[bool, bool, int]:
    return i.superseded, is_back(i), rank(i.severity)


def worst_first(report: Report) -> list[RunReport]:
    """Return the runs, the worst verdict first, else as they came."""
    return sorted(report.runs, key=lambda r: rank(r.verdict, _VERDICTS))


def serious(run: RunReport) -> bool:
    """Whether there is more to tell about a run than notes."""
    return any(i.severity != "info" for i in run.incidents)


def recovered(run: RunReport) -> bool:
    """Whether something went wrong in a run and all of it came back."""
    bad = [i for i in run.incidents if i.severity != "info"]
    return bool(bad) and all(is_back(i) for i in bad)


def headline(run: RunReport) -> str:
    """Return what went wrong in a run, in a few words: its symptoms, else how many notes there are, else nothing."""
    symptoms = Counter(i.symptom for i in run.incidents if i.severity != "info")
    if symptoms:
        texts = [f"{s} {n} times" if n >= REPEATED else s for s, n in symptoms.items()]
        return ", ".join(texts) + (" (recovered)" if recovered(run) else "")
    return tally(run.incidents)


def telling(run: RunReport) -> Telling:
    """Choose what to tell: the worst in full, all in the order of their onset, numbered in that order.

    What happened again and again in the same way, and came back each time, is told once.
    """
    ordered = sorted(run.incidents, key=lambda i: (i.attempt, i.onset_step, i.detected_step))
    serious = [i for i in ordered if i.severity != "info"]
    again = _repeated(serious)
    repeats = {i.id for same in again.values() for i in same}
    chosen = {i.id for i in sorted((i for i in serious if i.id not in repeats), key=_weight)[:IN_FULL]}
    full = [i for i in ordered if i.id in chosen]
    told = chosen.union(*({i.id for i in again.get(c, ())} for c in chosen))
    rest = sorted((i for i in ordered if i.id not in told), key=lambda i: rank(i.severity, SEVERITIES))
    numbered = tuple(Numbered(n + 1, i, again.get(i.id, ())) for n, i in enumerate(full))
    return Telling(numbered, tuple(rest[:IN_BRIEF]), len(rest[IN_BRIEF:]))


def _repeated(serious: Sequence[IncidentReport]) -> dict[str, tuple[IncidentReport, ...]]:
    """Return what happened at least three times and came back each time: the first one's id, and the others."""
    same: dict[tuple[object, ...], list[IncidentReport]] = {}
    for i in serious:
        if is_back(i) and not i.superseded:
            same.setdefault((i.symptom, i.severity, i.series[:1]), []).append(i)
    return {first.id: tuple(rest) for first, *rest in same.values() if len(rest) >= REPEATED - 1}


def again(n: Numbered, axis: str) -> str:
    """Return how often and where it happened again: "29 times between steps 9 and 99, recovered each time"."""
    word = axis_word(axis).removesuffix("s")
    first, last = n.again[0].onset_step, n.again[-1].onset_step
    return f"{len(n.again):,} times between {word}s {first} and {last}, recovered each time"


def rank(word: str, order: Sequence[str] = SEVERITIES) -> int:
    """Return the place of a word in an order; words that aren't in it come last."""
    return order.index(word) if word in order else len(order)


def heralds(i: IncidentReport) -> list[tuple[str, Precursor]]:
    """Return the precursors with their symptoms; several on one series at one step are one event, told once.

    What began in the same report of the naming series is that event itself.
    """
    events: dict[tuple[str, int], list[Precursor]] = {}
    for p in i.precursors:
        if p.lead_steps > 0 or p.series not in i.series[:1]:
            events.setdefault((p.series, p.onset_step), []).append(p)
    return [(", ".join(dict.fromkeys(p.symptom for p in same)), same[0]) for same in events.values()]


def advice_key(i: IncidentReport, causes: int, fixes: int) -> tuple[object, ...]:
    """Return what two incidents share whose first causes, fixes and reading are the same but for the numbers."""
    told = i.causes[:causes]
    evidence = [re.sub(r"[\d.,]+", "#", t) for c in told for t in (*c.evidence_for, *c.evidence_against)]
    actions = [(f.action, str(f.change)) for f in i.fixes[:fixes]]
    first = i.routes[0].sheet if i.routes else ""
    return (i.symptom, *(c.cause for c in told), *evidence, *actions, first, i.questions)


def later_run(runs: Sequence[RunReport]) -> str:
    """Return the mark of a run that began in a file after another ("#2"), the first of these runs' if any has one."""
    return min(
        (found.group() for r in runs if (found := _NEXT_RUN.search(r.run))), key=lambda m: int(m[1:]), default=""
    )


def blind_groups(run: RunReport) -> list[tuple[str, list[str]]]:
    """Return what would open eyes, each with the rules that are blind for want of it, the most rules first."""
    groups: dict[str, list[str]] = {}
    for b in run.blind:
        groups.setdefault(b.needs, []).append(b.rule)
    return sorted(groups.items(), key=lambda g: -len(g[1]))


def skipped(run: RunReport) -> str:
    """Return what the readers passed over, the most first."""
    items = sorted(run.skipped.items(), key=lambda kv: (-kv[1], kv[0]))
    return ", ".join(f"{n:,} {kind}" for kind, n in items if n)


def spikes(run: RunReport) -> str:
    """Return how spiky the run is, where that says more than its incidents: each series with several spikes."""
    told = [s for s in run.spike_scores if s.spikes > 1 and s.percent > 0]
    texts = [f"{s.spikes:,} spikes in {s.series} (spike score {s.percent:.2g} % of its reports)" for s in told]
    return ", ".join(texts)
