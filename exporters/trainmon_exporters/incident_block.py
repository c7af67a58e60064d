"""One incident on the terminal: what, since when, the numbers, why, what to do, where to read, what to ask.

It is short on purpose, to fit a screen with the plot; JSON and Markdown have all of it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.text import Text

from trainmon_exporters.page import COLUMN, INDENT, Page
from trainmon_exporters.story import NAME, Numbered, advice_key, again, heralds
from trainmon_exporters.wording import change_lines, ending, in_short, is_back, moment, note, outcome, short_name, since
from trainmon_rules.report import Cause, Fix, IncidentReport, Precursor, Route, RunReport
from trainmon_rules.words import short

CAUSES = 2  # likely causes told
FIXES = 3
EVIDENCE = 4  # numbers told, of those that the summary doesn't hold
BEFORE = 3  # events that announced it
INLINE = 60  # characters of a change from which on it gets lines of its own
ALSO = 2  # what else was seen, in sentences
RULED_OUT = 2  # causes ruled out that are told
FOR, AGAINST = 2, 1  # pieces of evidence told of a cause
INTERNAL = frozenset(
    {
        "excess in standard deviations", "threshold", "baseline points", "standard error", "ratio", "share", "median",
        "improvement", "progress before", "gain over the last quarter", "largest", "value", "rise", "change",
        "spikes so far", "spike score in percent", "recovery", "reports to recover", "share of the rise back",
        "share of progress lost", "equal reports",
    }
)  # fmt: skip
"""Evidence that shows how a detector decided: for the JSON, not for a person in a hurry."""


@dataclass(slots=True)
class Said:
    """What a report has said already: advice by its key, with where it stands, and closing remarks on a run."""

    advice: dict[tuple[object, ...], str] = field(default_factory=dict)
    remarks: set[str] = field(default_factory=set)


def shared_advice(i: IncidentReport) -> tuple[object, ...]:
    """Return what incidents have in common for which the same would be printed as causes, fixes and reading."""
    return advice_key(i, CAUSES, FIXES)


def print_incident(page: Page, numbered: Numbered, run: RunReport, said: Said, main: bool = True) -> None:
    """Print an incident of a run; advice that was given before is referred to.

    Beside the main one the others have one cause and one fix.
    """
    i = numbered.incident
    page.blank()
    _title(page, numbered, run.axis)
    page.put(page.say(_summary(page, i)), indent=INDENT)
    if numbered.again:
        page.field("and again", page.say(again(numbered, run.axis)))
    _evidence(page, i)
    events = [p for _, p in heralds(i)]
    _before(page, [p for p in events if p.lead_steps > 0], run.axis)
    beside = [p.summary for p in events if p.lead_steps <= 0]
    for n, text in enumerate([t for t in dict.fromkeys([*beside, *i.also]) if t != i.summary][: ALSO if main else 0]):
        page.field("" if n else "with it", page.say(text))
    key = shared_advice(i)
    if i.causes and key in said.advice:
        page.field("why", page.say(f"as in {said.advice[key]}: the same causes, fixes and reading"))
        return
    first = not said.advice
    said.advice[key] = f"incident {numbered.number} of {page.say(run.run, limit=NAME).plain}"
    _causes(page, i, CAUSES if main else 1)
    for n, fix in enumerate(i.fixes[: FIXES if main else 1]):
        _fix(page, n, fix)
    _routes(page, i.routes, first)
    if main and i.checklist:
        page.field("checklist", page.say(f"trainmon explain {i.checklist}", "copy"))
    for n, question in enumerate(i.questions):
        page.field("" if n else "question", page.say(question, "copy"))


def _title(page: Page, numbered: Numbered, axis: str) -> None:
    i = numbered.incident
    back = ", recovered" if is_back(i) else ""
    back += f", the first of {numbered.times:,}" if numbered.again else ""
    end = f"; until {ending(i, axis)}" if i.state == "resolved" or i.superseded else f"; {outcome(i)}"
    page.put(
        Text(f"{numbered.number}".ljust(INDENT)),
        page.say(f"{i.severity.upper()} {i.symptom}{back}", i.severity),
        page.say(f"  since {since(i, axis)}{end}"),
        hanging=INDENT,
    )


def _summary(page: Page, i: IncidentReport) -> str:
    """Return the summary, with the series before it where it names none."""
    if any(tag in i.summary for tag in i.series):
        return i.summary
    return f"{', '.join(page.say(s, limit=NAME).plain for s in i.series[:3])}: {i.summary}"


def print_brief(page: Page, i: IncidentReport, axis: str) -> None:
    """Print an incident in a line."""
    word = "note" if i.severity == "info" else i.severity
    page.put(page.say(word, i.severity), page.say(f" {note(i, axis)}"), indent=INDENT, hanging=2)


def _evidence(page: Page, i: IncidentReport) -> None:
    """Print the first numbers that the summary doesn't hold already."""
    told = set(_words(i.summary))
    items = [(k, _number(k, v)) for k, v in i.evidence.items() if k not in INTERNAL]
    items = [(k, v) for k, v in items if not told.issuperset(_words(v))][:EVIDENCE]
    pieces: list[Text] = []
    for name, text in items:
        pieces += [page.say(f"{'; ' if pieces else ''}{name} ", "label", NAME), page.say(text, limit=NAME)]
    if pieces:
        page.field("numbers", *pieces)


def _words(text: str) -> list[str]:
    return re.findall(r"[\w.+-]*\w", text.replace(",", ""))


def _number(name: str, value: object) -> str:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return str(value)
    return f"{value:.0f}" if "step" in name and math.isfinite(value) else short(value)


def _before(page: Page, earlier: Sequence[Precursor], axis: str) -> None:
    """Print a line for each event that announced the incident: when, how far ahead, and the heart of its summary."""
    for n, p in enumerate(earlier[:BEFORE]):
        when = f"{moment(p.onset_step, None, axis)}: "
        heart = re.sub(r" \([^()]*\)$", "", p.summary)
        page.field("" if n else "before it", page.say(when), page.say(p.lead, "name"), page.say(f"; {heart}"))


def _causes(page: Page, i: IncidentReport, most: int) -> None:
    shown = [c for c in i.causes[:most] if c.evidence_for] or list(i.causes[:1])
    for n, cause in enumerate(shown):
        name = page.say(f"{n + 1}. {cause.cause}", "name")
        page.field("" if n else "why", name, *_reasons(page, cause), deeper=3)
    if i.ruled_out and most > 1:
        page.field("ruled out", page.say("; ".join(map(_excluded, i.ruled_out[:RULED_OUT])), "label"))


def _excluded(cause: Cause) -> str:
    """Return a cause that is ruled out, with the first reason."""
    return f"{cause.cause} ({cause.evidence_against[0]})" if cause.evidence_against else cause.cause


def _reasons(page: Page, cause: Cause) -> list[Text]:
    """Return what speaks for and against a cause; where nothing does, what the cause is."""
    points = [("+", "for", t) for t in cause.evidence_for[:FOR]]
    points += [("-", "against", t) for t in cause.evidence_against[:AGAINST]]
    if not points:
        return [page.say(f": {cause.why}" if cause.why else "")]
    out = []
    for n, (sign, style, text) in enumerate(points):
        out += [page.say("; " if n else ": "), page.say(sign, style), page.say(f" {text}")]
    return out


def _fix(page: Page, n: int, fix: Fix) -> None:
    """Print a fix, the first one in full; a change that is short stands in its line, else on its own, to copy."""
    changes = change_lines(fix.change or {})
    inline = sum(map(len, changes)) < INLINE
    action = in_short(fix.action) if n else fix.action
    pieces = [page.say(f"{n + 1}. {action}", "" if n else "first")]
    if changes and inline:
        pieces += [page.say(" -- "), page.say(", ".join(changes), "copy")]
    sheet = page.say(f" [{short_name(fix.sheet)}]", "label")
    page.field({0: "do first", 1: "then"}.get(n, ""), *pieces, deeper=3, spare=sheet)
    for line in () if inline else changes:
        page.copy(line, INDENT + COLUMN + 3)


def _routes(page: Page, routes: tuple[Route, ...], first_time: bool) -> None:
    """Print what to read first and why, and once in a report how to open it."""
    if not routes:
        return
    first = routes[0]
    name = page.say(first.sheet, "name")
    if first_time:
        name = page.say(f"trainmon explain {first.sheet}", "copy")
    page.field("read", name, page.say(f": {first.why}"))
