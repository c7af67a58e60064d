"""The manual: one page of Markdown for each sheet, symptom, rule, cause, checklist and pack, by its name.

Nothing is written here: a sheet or a pack has a page of its own, a rule's is its detector's module text with the
parameters in force, the others come from the knowledge files.
"""

from __future__ import annotations

import difflib
import inspect
import re
import sys
from collections.abc import Iterable, Mapping, Sequence

from trainmon_rules.detectors import DETECTORS, Rule
from trainmon_rules.diagnosis import checklists
from trainmon_rules.diagnosis.knowledge import pack_text, sheet_text, shipped_table
from trainmon_rules.diagnosis.table import CauseRule, Condition, FixRule, SymptomEntry, Table
from trainmon_rules.errors import BadConfig
from trainmon_rules.report import Route
from trainmon_rules.rulebook import changes_of, parameters_of, shipped_rules
from trainmon_rules.vocabulary import answers_help

KINDS = ("sheet", "symptom", "rule", "cause", "pack", "list")
SETTINGS = "settings"  # the page that lists what --set takes
CLOSE = 3  # names suggested for one that isn't known


def names(rules: Sequence[Rule]) -> dict[str, list[str]]:
    """Return every name that has a page, by kind; a symptom and the rule that finds it may share one."""
    table = shipped_table()
    lists = (*checklists.shipped_checklists().names, SETTINGS)
    every = (table.sheets, table.symptoms, (r.name for r in rules), table.causes, table.packs, lists)
    return {kind: list(found) for kind, found in zip(KINDS, every, strict=True)}


def explain(name: str, rules: Sequence[Rule]) -> str:
    """Return the page of a name as Markdown.

    Parameters
    ----------
    name : str
        A sheet (its beginning will do), symptom, rule, cause, pack or checklist, or "settings"; spaces stand for
        hyphens.
    rules : sequence of Rule
        The rules in force, and those that are switched off.

    Raises
    ------
    BadConfig
        If nothing has that name; it says which names are close.
    """
    table = shipped_table()
    known = names(rules)
    name = _found(name, known)
    if name in table.sheets:
        return sheet_text(name).strip() + "\n"
    if name == SETTINGS:
        return _settings() + "\n"
    if name in known["list"]:
        return checklists.page(name)
    pages = [_rule(r, table) for r in rules if r.name == name]
    if name in table.causes:
        pages.insert(0, _cause(table.causes[name], table))
    if name in table.symptoms:
        pages.insert(0, _symptom(table.symptoms[name], table, rules))
    if name in table.packs:
        pages.append(pack_text(name).strip())
    if begun := [sheet for sheet in table.sheets if sheet.startswith(f"{name}-")]:
        pages.append(sheet_text(begun[0]).strip())  # a report's brackets name a sheet by its beginning
    return "\n\n".join(pages) + "\n"


def _found(name: str, known: Mapping[str, Sequence[str]]) -> str:
    asked = re.sub(r"[\s_]+", "-", name.strip().lower().removesuffix(".md"))
    every = list(dict.fromkeys(n for found in known.values() for n in found))
    lower = {n.lower(): n for n in reversed(every)}
    if asked in lower:
        return lower[asked]
    begins = [n for n in known["sheet"] if asked and n.startswith(f"{asked}-")]
    if len(begins) == 1:
        return begins[0]
    close = begins or difflib.get_close_matches(asked, lower, CLOSE, 0.5)
    hint = f"did you mean {', '.join(lower[c] for c in close)}?" if close else "trainmon explain lists all names"
    raise BadConfig(f"nothing is called {name!r}; {hint}")


# ---------------------------------------------------------------------- pages
def _symptom(s: SymptomEntry, table: Table, rules: Sequence[Rule]) -> str:
    found = [r.name for r in rules if r.symptom == s.id and r.enabled]
    out = [f"# Symptom {s.id}", f"{s.title}: {s.meaning}.", f"Found by: {_codes(found) or 'no rule yet'}."]
    causes = [f"- **{table.causes[c].name}**: {table.causes[c].why}" for c, _ in s.causes]
    out.append("## What may be behind it, the likeliest first\n\n" + "\n".join(causes))
    *special, general = s.routes
    read = [f"- when {_when(a.when)}: first `{a.routes[0].sheet}`" for a in special]
    out.append("## Read\n\n" + "\n".join([*read, _routes(general.routes)]))
    if s.fixes:
        out.append("## Do first, where it applies\n\n" + _fixes(s.fixes))
    if s.questions:
        out.append("## What may be asked\n\n" + "\n".join(f"- {table.questions[q].text({})}" for q, _ in s.questions))
    if s.id in table.checklists:
        out.append(f"## Go through\n\n- `trainmon explain {table.checklists[s.id]}`")
    return "\n\n".join(out)


def _rule(rule: Rule, table: Table) -> str:
    detector = DETECTORS[rule.detector]
    text = inspect.getdoc(sys.modules[detector.__module__]) or ""
    paragraphs = [re.sub(r"\s*\n\s*", " ", p) for p in text.split("\n\n")]
    said = [re.sub(r"^([A-Z][a-z ]+):", r"**\1:**", p) for p in paragraphs[1:]]
    if detector.name not in text.partition(":")[0]:  # a variant that shares another one's module
        said.insert(0, (detector.__doc__ or "").partition("\n")[0])
    sheets = dict.fromkeys(r.sheet for r in table.symptoms[rule.symptom].routes[-1].routes)
    facts = [
        f"- symptom: `{rule.symptom}`",
        f"- severity: {rule.severity}, {f'as {rule.origin} says' if rule.fixed else 'unless it grades its own'}",
        f"- judges the roles: {_codes(rule.roles)}",
        f"- reads beside them, where logged: {_codes(rule.companions)}" if rule.companions else "",
        f"- can't work without: {_codes(rule.needs)}" if rule.needs else "",
        f"- speaks if it still holds {rule.hold} reports later" if rule.hold else "",
        f"- detector: `{rule.detector}`" if rule.detector != rule.name else "",
        f"- leads to: {_codes(sheets)}",
        _changed(rule),
    ]
    changed = changes_of(rule)
    about = re.sub(r"\s*\n\s*", " ", inspect.getdoc(detector.Params) or "")
    values = [
        f"- `{k}`: {v}" + (f" (shipped: {changed[f'parameters.{k}'][0]})" if f"parameters.{k}" in changed else "")
        for k, v in parameters_of(rule).items()
    ]
    parameters = f"## Parameters\n\n{about}\n\n" + "\n".join(values)
    return "\n\n".join([f"# Rule {rule.name}", "\n".join(filter(None, facts)), *said, parameters])


def _changed(rule: Rule) -> str:
    """Return what a user's file did to the rule, "" if nothing."""
    if not rule.origin:
        return ""
    if not rule.enabled:
        return f"- **disabled** by {rule.origin}"
    if rule.name not in shipped_rules():
        return f"- **added** by {rule.origin}"
    keys = [k.removeprefix("parameters.") for k in changes_of(rule)]
    return f"- **changed** by {rule.origin}: {', '.join(keys) or 'nothing'}"


def _settings() -> str:
    rows = [f"- `{name}` ({values}): {about}" for name, values, about in answers_help()]
    return "\n\n".join(
        [
            "# Settings",
            "What a log may not tell, and `--set KEY=VALUE` does, or `[set]` in trainmon.toml: `--set precision=fp16`.",
            "Numbers may have a suffix k, M, B, T or %.",
            "\n".join(rows),
        ]
    )


def _cause(c: CauseRule, table: Table) -> str:
    behind = [s.id for s in table.symptoms.values() if any(c.id == name for name, _ in s.causes)]
    out = [f"# Cause {c.id}", f"{c.why[:1].upper()}{c.why[1:]}.", f"May be behind: {_codes(behind)}."]
    for title, evidence in (("speaks for it", c.evidence_for), ("speaks against it", c.evidence_against)):
        if evidence:
            said = (re.sub(r"\{\w+\}", "…", e.say) + (" (rules it out)" if e.decisive else "") for e in evidence)
            out.append(f"## What {title}\n\n" + "\n".join(f"- {text}" for text in said))
    return "\n\n".join([*out, f"## Read\n\n{_routes(c.routes)}", f"## Do\n\n{_fixes(c.fixes)}"])


# ---------------------------------------------------------------------- lines
def _routes(routes: Iterable[Route]) -> str:
    once = {r.sheet: r for r in reversed(list(routes))}
    return "\n".join(f"- `{r.sheet}`{' (another pack)' if r.pack else ''}: {r.why}" for r in reversed(once.values()))


def _fixes(fixes: Iterable[FixRule]) -> str:
    said = dict.fromkeys(re.sub(r"\{\w+\}", "…", f.plain or f.action) for f in fixes)
    return "\n".join(f"{n}. {text}" for n, text in enumerate(said, 1))


def _when(condition: Condition) -> str:
    return " and ".join(f"`{name}`" if test is True else f"`{name}` is {test}" for name, test in condition.items())


def _codes(words: Iterable[object]) -> str:
    return ", ".join(f"`{w}`" for w in words)
