"""`symptoms.md`, and a page for each symptom: what to think, do and read when it is reported."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from docs.generate.causes import HOW
from docs.generate.checklists import read, steps
from docs.generate.markup import KNOWLEDGE, NOTE, bullets, fix, in_short, read_at, routes, sentence, table, when
from docs.generate.rules import part
from trainmon_rules.detectors import Rule
from trainmon_rules.diagnosis.checklists import shipped_checklists
from trainmon_rules.diagnosis.conditions import holds
from trainmon_rules.diagnosis.knowledge import pack_text, sheet_text, shipped_table
from trainmon_rules.diagnosis.routes import settled
from trainmon_rules.diagnosis.table import CauseRule, SymptomEntry
from trainmon_rules.report import Route
from trainmon_rules.state import Settings

UP = "../"


def index() -> str:
    """Return symptoms.md: one line a symptom."""
    known = shipped_table()
    intro = (
        "A symptom is what an incident is called. Each has a page with its causes, fixes and what to read; "
        "`trainmon explain NAME` prints a shorter one. What the table says of questions without a log: "
        "[routing.md](routing.md)."
    )
    rows = (
        (f"[{s.id}](symptoms/{s.id}.md)", s.meaning, ", ".join(_rule_link(r, "") for r in _rules(s)) or "none yet",
         in_short(settled(s.routes[-1].routes)[:1]))
        for s in known.symptoms.values()
    )  # fmt: skip
    body = table(("symptom", "meaning", "found by", "read"), rows)
    return "\n\n".join([NOTE, "# The symptoms", intro, body]) + "\n"


def pages() -> dict[str, str]:
    """Return the page of each symptom by its name in docs/."""
    return {f"symptoms/{s.id}.md": _page(s) for s in shipped_table().symptoms.values()}


def _page(s: SymptomEntry) -> str:
    out = [NOTE, f"# {s.id}", f"**{s.title}**: {s.meaning}.", _found_by(s)]
    checks = _first_checks(s)
    out += [_really(s), f"## First checks\n\n{checks}", "## Read", *_read(s)]
    if s.fixes:
        out.append("## Do, whatever the cause\n\n" + bullets(map(fix, s.fixes)))
    out += ["## Causes, the likeliest first", _intro(s), *(_cause(name, s.id) for name, _ in s.causes)]
    out += _explained(s, checks)
    if s.questions:
        asked = (shipped_table().questions[q].text({}) + (f" (if {when(c)})" if c else "") for q, c in s.questions)
        out.append("## What may be asked\n\nAt most one of them, where the log can't tell:\n\n" + bullets(asked))
    return "\n\n".join(filter(None, out)) + "\n"


# ---------------------------------------------------------------------- is it so, and what first
def _rules(s: SymptomEntry) -> list[Rule]:
    return [r for r in Settings.default().rules if r.symptom == s.id]


def _rule_link(rule: Rule, up: str = UP) -> str:
    return f"[{rule.name}]({up}rules.md#{rule.name})"


def _found_by(s: SymptomEntry) -> str:
    section = shipped_table().rows[s.section]
    found = ", ".join(map(_rule_link, _rules(s))) or "no rule yet"
    names = " / ".join(section.data["names"])
    return f"Found by: {found}. In the [routing table]({UP}routing.md#{section.id}) it belongs to *{names}*."


def _really(s: SymptomEntry) -> str:
    doubts = {text: r for r in reversed(_rules(s)) if (text := part(r, "When it is wrong"))}
    if not doubts:
        return ""
    said = bullets(f"{_rule_link(r)}: {text}" for text, r in reversed(doubts.items()))
    return f"## When it may be a false alarm\n\n{said}"


def _first_checks(s: SymptomEntry) -> str:
    """Return the checklist that the table offers; else the first checks of the first sheet, or of the pack's topic."""
    known = shipped_table()
    if s.id in known.checklists:
        c = shipped_checklists().lists[known.checklists[s.id]]
        return f"*{c.title}* ([{c.id}]({UP}checklists.md#{c.id})):\n\n{steps(c, UP)}"
    first = settled(s.routes[-1].routes)[0]
    if first.pack:
        return "\n\n".join(_topics([first]).values()) or f"See {read_at(first, UP)}."
    checks = re.search(r"^## First checks\n+(.*?)(?=^## )", sheet_text(first.sheet), re.MULTILINE | re.DOTALL)
    return f"From {read(first.sheet, UP)}:\n\n{checks[1].strip() if checks else ''}"


# ---------------------------------------------------------------------- causes
def _intro(s: SymptomEntry) -> str:
    known = shipped_table()
    ranked = ", ".join(f"[{known.causes[c].name}]({UP}causes.md#{c}) ({prior:g})" for c, prior in s.causes)
    weighed = f"the weight of the evidence is added ([causes.md]({UP}causes.md))"
    return f"With their priors: {ranked}; {weighed}. {HOW.format(up=UP)}"


def _cause(name: str, symptom: str) -> str:
    """Return a cause with what of it can be said of this symptom."""
    c = shipped_table().causes[name]
    out = [f"### {c.name}", sentence(c.why) + _unless(c, symptom)]
    for word, items in (("For", c.evidence_for), ("Against", c.evidence_against)):
        said = [e.say + (" (rules it out)" if e.decisive else "") for e in items if _left(e.when, symptom) is not None]
        if said:
            out.append(f"{word} it:\n\n{bullets(dict.fromkeys(said))}")
    fixes = [replace(f, when=rest) for f in c.fixes if (rest := _left(f.when, symptom)) is not None]
    if fixes:
        out.append("Do:\n\n" + bullets(map(fix, fixes)))
    return "\n\n".join(out)


def _unless(c: CauseRule, symptom: str) -> str:
    left = [rest for u in c.unless if (rest := _left(u, symptom)) is not None]
    if not left:
        return ""
    return f" Not considered where {', or where '.join(map(when, left))}." if all(left) else " Not considered here."


def _left(condition: Mapping[str, Any], symptom: str) -> Mapping[str, Any] | None:
    """Return what is left of a condition for an incident of this name, None if it can't hold."""
    named = {k: v for k, v in condition.items() if k == "symptom"}
    return {k: v for k, v in condition.items() if k != "symptom"} if holds(named, {"symptom": symptom}) else None


# ---------------------------------------------------------------------- reading
def _read(s: SymptomEntry) -> Iterable[str]:
    for a in s.routes:
        which = f"When {when(a.when)}:\n\n" if a.when else "Else:\n\n" if len(s.routes) > 1 else ""
        yield which + routes(settled(a.routes), UP)
    yield "The sheets of the likely causes follow these."


def _explained(s: SymptomEntry, before: str) -> Iterable[str]:
    """Yield the topics of other packs that a report may well name, in short, without what was told before."""
    known = shipped_table()
    likely = [r for c, prior in s.causes if prior for r in known.causes[c].routes]
    every = [*(r for a in s.routes for r in a.routes), *likely]
    told = {title: text for title, text in _topics(r for r in every if r.pack).items() if text not in before}
    if told:
        yield "## Topics of other packs\n\nThe packs themselves aren't shipped; in short, what to do first:"
        yield from (f"### {title}\n\n{text}" for title, text in told.items())


def _topics(named: Iterable[Route]) -> dict[str, str]:
    """Return the sections of the packs' pages that the routes name, each once, with a link, by title."""
    out: dict[str, str] = {}
    for r in named:
        for topic in r.why.partition(": ")[0].split(","):
            for heading, names, body in _sections(r.sheet):
                if topic.strip().lower() not in names:
                    continue
                anchor = re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-")
                page = f"{UP}{KNOWLEDGE}/packs/{r.sheet}.md"
                out[f"{r.sheet}: {heading}"] = f"{body}\n\nMore: [{r.sheet}]({page}#{anchor})"
    return out


def _sections(pack: str) -> Iterable[tuple[str, set[str], str]]:
    """Yield heading, names and text of each topic of a pack's page."""
    for section in re.split(r"^## ", pack_text(pack).partition("\n---\n")[0], flags=re.MULTILINE)[1:]:
        heading, _, body = section.partition("\n")
        named = re.search(r"^\*In reports: (.*)\.\*\n*", body, re.MULTILINE)
        names = {heading.lower(), *(named[1].lower().split(", ") if named else ())}
        yield heading, names, (body.replace(named[0], "") if named else body).strip()
