"""Write the pages of docs/ that follow from code and data: `python docs/generate.py [--check]`.

`rules.md` comes from the shipped rules, their detectors' parameters and module texts; `roles.md` from the role table;
`symptoms.md` from the routing table; the list of settings in `config.md` from the vocabulary. With `--check` nothing
is written; the exit status is 1 if a page is stale.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from trainmon_rules.detectors import DETECTORS, Detector, Rule
from trainmon_rules.diagnosis.diagnose import _merge, _ordered
from trainmon_rules.diagnosis.knowledge import shipped_table
from trainmon_rules.diagnosis.table import CauseRule, FixRule, SymptomEntry, Table
from trainmon_rules.report import Route
from trainmon_rules.state import Settings
from trainmon_rules.vocabulary import vocabulary

DOCS = Path(__file__).parent
SHEETS = "../rules/trainmon_rules/sheets"
PACKS = "../rules/trainmon_rules/packs"
NOTE = "<!-- Written by docs/generate.py; `make docs` writes it afresh. -->"
BEGIN, END = "<!-- settings: written by docs/generate.py -->", "<!-- end of settings -->"
PARTS = ("What it detects", "Why it matters", "Example", "When it is wrong", "Fixes", "Source")
DIRECTIONS = {1: "down", -1: "up", 0: "–"}


def pages(docs: Path = DOCS) -> dict[str, str]:
    """Return the content of every generated page by file name; `config.md` keeps what stands around its table."""
    head, _, rest = (docs / "config.md").read_text("utf-8").partition(BEGIN)
    config = f"{head}{BEGIN}\n\n{settings()}\n\n{END}{rest.partition(END)[2]}"
    return {"rules.md": rules(), "roles.md": roles(), "symptoms.md": symptoms(), "config.md": config}


def stale(docs: Path = DOCS) -> list[str]:
    """Return the names of the pages that aren't what they would be written as."""
    return [n for n, text in pages(docs).items() if not (p := docs / n).is_file() or p.read_text("utf-8") != text]


def rules() -> str:
    """Return rules.md."""
    shipped = Settings.default().rules
    intro = (
        "A rule is a detector (a statistical test) with its parameters, the roles that it judges, and what a finding "
        "means. What a role is: [roles.md](roles.md); what a symptom leads to: [symptoms.md](symptoms.md); how to "
        "change or disable a rule: [config.md](config.md).\n\n"
        "Thresholds are relative to a run's own past. A *report* is one logged point of the series. The *baseline* is "
        "the median and the spread (MAD) of the last 64 reports about a line, without those that were flagged. "
        "Unless a rule says otherwise, findings have the severity shown; some grade their own."
    )
    table = _table(
        ("rule", "symptom", "severity", "judges"),
        ((f"[{r.name}](#{r.name})", _symptom(r.symptom), str(r.severity), _codes(r.roles)) for r in shipped),
    )
    return "\n\n".join([NOTE, "# The rules", intro, table, *map(_rule, shipped)]) + "\n"


def _rule(rule: Rule) -> str:
    detector = DETECTORS[rule.detector]
    text = inspect.getdoc(sys.modules[detector.__module__]) or ""
    facts = [
        f"- symptom: {_symptom(rule.symptom)}; severity: {rule.severity}; family: {rule.family}",
        f"- judges: {_codes(rule.roles)}",
        f"- reads beside them, where logged: {_codes(rule.companions)}" if rule.companions else "",
        f"- is blind without: {_codes(rule.needs)}" if rule.needs else "",
        f"- speaks after {rule.hold} further reports" if rule.hold else "",
    ]
    paragraphs = [re.sub(r"\s*\n\s*", " ", p) for p in text.split("\n\n")]
    said = [re.sub(rf"^({'|'.join(PARTS)}):", r"**\1:**", p) for p in paragraphs[1:]]
    if detector.name not in text.partition(":")[0]:  # a variant that shares another one's module
        said.insert(0, (detector.__doc__ or "").partition("\n")[0])
    return "\n\n".join([f"## {rule.name}", "\n".join(filter(None, facts)), *said, _parameters(rule, detector)])


def _parameters(rule: Rule, detector: type[Detector]) -> str:
    values = {**detector.parameters(), **dict(rule.parameters)}
    doc = re.sub(r"\s*\n\s*", " ", inspect.getdoc(detector.Params) or "")
    return f"Parameters: {doc}\n\n" + _table(("name", "value"), ((f"`{k}`", f"`{v}`") for k, v in values.items()))


def roles() -> str:
    """Return roles.md."""
    table = Settings.default().roles.roles
    heard = {r: _codes(u.name for u in Settings.default().rules if r in u.roles) for r in table}
    intro = (
        "A tag gets its role when it first appears, and keeps it. What decides, in this order: the `[roles]` of the "
        "[config](config.md); the framework, recognised by its keys; general patterns over the name, with the part of "
        "the data taken from the name, else from the directory. A tag that none of them knows is unmapped, and no rule "
        "looks at it.\n\n"
        "*Good* is the direction in which the value should go (– where neither is bad by itself); *log* marks roles "
        "that are judged by their logarithm; a unit stands only where all frameworks agree on it. *Judged by* lists "
        "the [rules](rules.md) for the role; others may read it beside the series they judge. `trainmon inspect` "
        "shows which role each tag got."
    )
    head = ("role", "meaning", "good", "unit", "", "judged by")
    rows = (
        (f"`{r.name}`", r.about, DIRECTIONS[r.direction], r.unit, "log" if r.log else "", heard[r.name])
        for r in table.values()
    )
    return "\n\n".join([NOTE, "# The roles", intro, _table(head, rows)]) + "\n"


def symptoms() -> str:
    """Return symptoms.md."""
    table = shipped_table()
    intro = (
        "A symptom is what an incident is called. Its causes are ranked by a prior (the number behind each) plus the "
        "weight of the evidence for it, minus that against it. Of several lists of sheets the first whose condition "
        "holds counts; the sheets of the likely causes follow it. Names in code font are settings "
        "([config.md](config.md)) or facts found in the log (`DERIVED` in `diagnosis/facts.py` says "
        "what each means); names in braces are filled in with their values. A fix is left out where its condition "
        "isn't met."
    )
    parts = [NOTE, "# The symptoms", intro, *(_entry(s, table) for s in table.symptoms.values())]
    parts += ["# The causes", *(_cause(c) for c in table.causes.values())]
    return "\n\n".join(parts) + "\n"


def _entry(s: SymptomEntry, table: Table) -> str:
    found = [f"[{r.name}](rules.md#{r.name})" for r in Settings.default().rules if r.symptom == s.id]
    causes = (f"[{table.causes[c].name}](#{c}) ({prior:g})" for c, prior in s.causes)
    out = [f"## {s.id}", f"**{s.title}**: {s.meaning}.", f"Found by: {', '.join(found) or 'no rule yet'}."]
    out.append("Causes: " + ", ".join(causes) + ".")
    for a in s.routes:
        routes = _ordered(_merge([], a.routes))  # what the diagnosis makes of them
        out.append(f"Read{f', when {_when(a.when)}' if a.when else ''}:\n\n" + "\n".join(map(_route, routes)))
    if s.fixes:
        out.append("Do first, whatever the cause:\n\n" + "\n".join(map(_fix, s.fixes)))
    if s.questions:
        out.append("May be asked:\n\n" + "\n".join(f"- {table.questions[q].text({})}" for q, _ in s.questions))
    return "\n\n".join(out)


def _cause(c: CauseRule) -> str:
    out = [f"## {c.id}", f"{c.why[0].upper()}{c.why[1:]}."]
    for word, evidence in (("For", c.evidence_for), ("Against", c.evidence_against)):
        if evidence:
            said = (f"- {e.say} ({'rules it out' if e.decisive else f'{e.weight:g}'})" for e in evidence)
            out.append(f"{word} it:\n\n" + "\n".join(said))
    out.append("Read:\n\n" + "\n".join(map(_route, c.routes)))
    out.append("Do:\n\n" + "\n".join(map(_fix, c.fixes)))
    return "\n\n".join(out)


def _route(r: Route) -> str:
    name = f"the pack [{r.pack}]({PACKS}/{r.pack}.md)" if r.pack else f"[{r.sheet}]({SHEETS}/{r.sheet}.md)"
    return f"- {r.rank}: {name}, {r.why}"


def _fix(f: FixRule) -> str:
    return f"- {f.action}" + (f" (when {_when(f.when)})" if f.when else "")


def _when(condition: Mapping[str, Any]) -> str:
    return " and ".join(_test(name, test) for name, test in condition.items())


def _test(name: str, test: Any) -> str:
    if isinstance(test, Mapping):
        verbs = ("has" if op == "has" else f"is {op.replace('_', ' ')}" for op in test)
        limits = (_codes(limit if isinstance(limit, list) else [limit]) for limit in test.values())
        return f"`{name}` " + " and ".join(f"{v} {n}" for v, n in zip(verbs, limits, strict=True))
    if test in ("known", "unknown") and isinstance(test, str):
        return f"`{name}` is {test}"
    return f"`{name}`" if test is True else f"not `{name}`" if test is False else f"`{name}` is `{test}`"


def settings() -> str:
    """Return the table of settings for config.md."""
    asks: dict[str, str] = {q.set: q.ask for q in shipped_table().questions.values() if q.set}
    rows = ((f"`{s.name}`", s.kind, s.about, _codes(s.keys), asks.get(s.name, "")) for s in vocabulary().values())
    return _table(("setting", "kind", "meaning", "read from a log's own settings under", "answers"), rows)


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    names = list(head)
    cells = [names, ["---"] * len(names), *([c.replace("|", "\\|") for c in row] for row in rows)]
    return "\n".join("| " + " | ".join(row) + " |" for row in cells)


def _codes(words: Iterable[object]) -> str:
    return ", ".join(f"`{w}`" for w in words)


def _symptom(name: str) -> str:
    return f"[{name}](symptoms.md#{name})"


if __name__ == "__main__":
    old = stale()
    if "--check" in sys.argv[1:]:
        sys.stdout.write("".join(f"docs/{name} is stale: run `make docs` and commit it\n" for name in old))
        sys.exit(bool(old))
    for page, content in pages().items():
        (DOCS / page).write_text(content, "utf-8")
