"""One incident on the terminal: what, since when, the numbers, why, what to do, where to read, what to ask."""

from __future__ import annotations

from rich.text import Text

from trainmon_exporters.page import Page
from trainmon_exporters.story import NAME, Numbered, change_lines, ending, lead, number, since
from trainmon_rules.report import Cause, IncidentReport

CAUSES = 3  # likely causes told
FIXES = 4
EVIDENCE = 10
INDENT, COLUMN = 3, 11  # of the fields


def print_incident(page: Page, numbered: Numbered, axis: str) -> None:
    """Print an incident in full."""
    i = numbered.incident
    page.blank()
    page.put(
        Text(f"{numbered.number}".ljust(INDENT)),
        page.say(f"{i.severity.upper()} {i.symptom}", i.severity),
        page.say("  " + ", ".join(page.say(s, limit=NAME).plain for s in i.series)),
        page.say(f"  [{i.id}]", "label"),
        hanging=INDENT,
    )
    page.put(page.say(i.summary), indent=INDENT)
    page.field("since", page.say(since(i, axis)))
    page.field("until", page.say(ending(i, axis)))
    _evidence(page, i)
    _precursors(page, i, axis)
    for n, text in enumerate(i.also):
        page.field("" if n else "with it", page.say(text))
    _causes(page, i)
    _fixes(page, i)
    _routes(page, i)
    for n, question in enumerate(i.questions):
        page.field("" if n else "question", page.say(question, "copy"))


def print_brief(page: Page, i: IncidentReport, axis: str) -> None:
    """Print an incident in a line."""
    where = f" (since {since(i, axis)}; until {ending(i, axis)})"
    page.put(
        page.say(f"{i.severity} {i.symptom}", i.severity),
        page.say(": " + i.summary + where),
        indent=INDENT,
        hanging=2,
    )


def _evidence(page: Page, i: IncidentReport) -> None:
    items = list(i.evidence.items())[:EVIDENCE]
    names = [page.say(k, limit=40).plain for k, _ in items]
    width = max((len(n) for n in names), default=0) + 2
    for n, (name, (_, value)) in enumerate(zip(names, items, strict=True)):
        page.field("" if n else "evidence", page.say(name.ljust(width), "label"), page.say(number(value), limit=NAME))


def _precursors(page: Page, i: IncidentReport, axis: str) -> None:
    for n, p in enumerate(i.precursors):
        ahead = lead(p.lead_steps, p.lead_reports)
        text = f"{p.symptom} on {page.say(p.series, limit=NAME).plain} at {axis or 'step'} {p.onset_step}, {ahead}: "
        page.field("" if n else "before it", page.say(text), page.say(p.summary), deeper=3)


def _causes(page: Page, i: IncidentReport) -> None:
    for n, cause in enumerate(i.causes[:CAUSES]):
        page.field("" if n else "why", page.say(f"{n + 1}. {_sentence(cause)}"), deeper=3)
        for text in cause.evidence_for:
            _point(page, "+", "for", text)
        for text in cause.evidence_against:
            _point(page, "-", "against", text)
    if i.ruled_out:
        page.field("ruled out", page.say("; ".join(_sentence(c) for c in i.ruled_out), "label"))


def _sentence(cause: Cause) -> str:
    return f"{cause.cause}: {cause.why}" if cause.why else cause.cause


def _point(page: Page, sign: str, style: str, text: str) -> None:
    indent = INDENT + COLUMN + 3
    page.put(page.say(sign + " ", style), page.say(text), indent=indent, hanging=2)


def _fixes(page: Page, i: IncidentReport) -> None:
    for n, fix in enumerate(i.fixes[:FIXES]):
        action, sheet = page.say(f"{n + 1}. {fix.action}"), page.say(f"  [{fix.sheet}]", "label")
        page.field("" if n else "do first", action, sheet, deeper=3)
        for line in change_lines(fix.change or {}):
            page.copy(line, INDENT + COLUMN + 3)


def _routes(page: Page, i: IncidentReport) -> None:
    for n, route in enumerate(i.routes):
        name = page.say(route.sheet, "name")
        page.field("" if n else "read", page.say(f"{route.rank}: "), name, page.say(f" -- {route.why}"), deeper=3)
