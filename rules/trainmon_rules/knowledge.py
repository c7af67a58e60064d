"""Reading the knowledge files: the routing table, the causes and the symptoms, every reference checked.

`routing.yaml` is the table, `causes.yaml` what can lie behind a symptom, `symptoms.yaml` ties both together.
Unknown sheets, packs, symptoms, facts, tests, settings and keys are refused with file and key.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from trainmon_rules.conditions import check_condition, check_expression, known, places
from trainmon_rules.errors import BadConfig
from trainmon_rules.facts import fact_names
from trainmon_rules.report import Route
from trainmon_rules.rules import SYMPTOMS
from trainmon_rules.settings import vocabulary
from trainmon_rules.table import (
    Alternative,
    CauseRule,
    Evidence,
    FixRule,
    Mistake,
    Question,
    Row,
    SymptomEntry,
    Table,
)  # fmt: skip
from trainmon_rules.yamlfile import load_packaged

RANKS = ("primary", "secondary", "also", "cross-pack")
PARTS = (
    "sections", "loss_behaviour", "gpu_utilization", "dataset_size", "direct_questions", "modern_triggers",
    "scenarios", "boundaries",
)  # fmt: skip
MARGIN = 2.0  # lead of the best cause over the next from which on the log has decided
_TOP = {"sheets", "packs", "dont_use_for", "questions", "clarifications", "mistakes", *PARTS}


def load_table() -> Table:
    """Return the shipped table; BadConfig if a file can't be used."""
    files = {name: load_packaged(f"{name}.yaml") for name in ("routing", "causes", "symptoms")}
    return parse_table(files["routing"], files["causes"], files["symptoms"])


@functools.cache
def shipped_table() -> Table:
    """Return the shipped table, read once a process."""
    return load_table()


def sheet_text(name: str) -> str:
    """Return a sheet as Markdown; BadConfig if there is no such sheet."""
    known(name, shipped_table().sheets, "sheet", "sheets")
    return resources.files("trainmon_rules").joinpath("sheets", f"{name}.md").read_text("utf-8")


def parse_table(routing: Any, causes: Any, symptoms: Any) -> Table:
    """Return the table from the content of its three files."""
    _fields(routing, _TOP, _TOP, "routing.yaml")
    read = _Reader(routing["sheets"], routing["packs"])
    for entry in routing["dont_use_for"]:
        known(entry.get("use"), read.packs, "pack", "routing.yaml: dont_use_for")
    questions = {q: _question(q, entry) for q, entry in routing["questions"].items()}
    rows: dict[str, Row] = {}
    for part in PARTS:
        for i, entry in enumerate(routing[part]):
            row = read.row(part, entry, f"routing.yaml: {part}: row {i + 1}")
            if row.id in rows:
                raise BadConfig(f"routing.yaml: {part}: two rows are called {row.id!r}")
            for q in row.data.get("questions", ()):
                known(q, questions, "question", f"routing.yaml: {part}: {row.id}")
            rows[row.id] = row
    mistakes = tuple(
        read.mistake(m, questions, f"routing.yaml: mistakes: row {i + 1}") for i, m in enumerate(routing["mistakes"])
    )
    for m in mistakes:
        rows[m.id] = Row(m.id, "mistakes", m.correct, m.when, {"says": m.says})
    known_causes = {c: read.cause(c, entry) for c, entry in _mapping(causes, "causes.yaml").items()}
    entries = {
        known(s, SYMPTOMS, "symptom", "symptoms.yaml"): read.symptom(s, entry, rows, questions, known_causes)
        for s, entry in _mapping(symptoms, "symptoms.yaml").items()
    }
    if missing := [s for s in SYMPTOMS if s not in entries]:
        raise BadConfig(f"symptoms.yaml: no entry for {', '.join(missing)}")
    return Table(
        sheets=dict(routing["sheets"]),
        packs=dict(routing["packs"]),
        dont_use_for=tuple(routing["dont_use_for"]),
        rows=rows,
        questions=questions,
        clarifications=tuple(routing["clarifications"]),
        mistakes=mistakes,
        causes=known_causes,
        symptoms=entries,
    )


def _mapping(data: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(data, Mapping):
        raise BadConfig(f"{where}: must be a mapping")
    return data


def _fields(entry: Any, allowed: Collection[str], needed: Collection[str], where: str) -> Mapping[str, Any]:
    """Check an entry's keys: none unknown, none missing."""
    _mapping(entry, where)
    for key in entry:
        known(key, allowed, "key", where)
    for key in sorted(needed):
        if entry.get(key) is None:
            raise BadConfig(f"{where}: the key {key!r} is missing")
    return entry  # type: ignore[no-any-return]


def _question(name: str, entry: Any) -> Question:
    where = f"routing.yaml: questions: {name}"
    _fields(entry, {"ask", "facts", "set", "example", "tries"}, {"ask", "facts"}, where)
    for fact in entry["facts"]:
        known(fact, fact_names(), "fact", where)
    if "set" in entry:
        known(entry["set"], vocabulary(), "setting", where)
        if "example" not in entry or not entry.get("tries"):
            raise BadConfig(f"{where}: a question that --set answers needs an example and tries")
    tries = tuple(entry.get("tries", ()))
    return Question(name, entry["ask"], tuple(entry["facts"]), entry.get("set"), entry.get("example"), tries)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Turns entries into records; knows the sheets and packs that routes may name."""

    sheets: Mapping[str, str]
    packs: Mapping[str, Mapping[str, str]]

    def route(self, entry: Any, where: str) -> Route:
        """Return a route; one that names a pack carries its name as the sheet too."""
        _fields(entry, {"sheet", "pack", "rank", "why", "topic"}, {"rank", "why"}, where)
        known(entry["rank"], RANKS, "rank", where)
        if ("sheet" in entry) == ("pack" in entry):
            raise BadConfig(f"{where}: a route names a sheet or a pack, one of them")
        topic = f"{entry['topic']}: " if "topic" in entry else ""
        if "pack" in entry:
            name = known(entry["pack"], self.packs, "pack", where)
            return Route(name, entry["rank"], topic + entry["why"], name)
        return Route(known(entry["sheet"], self.sheets, "sheet", where), entry["rank"], topic + entry["why"])

    def routes(self, entries: Any, where: str) -> tuple[Route, ...]:
        """Return a list of routes."""
        if not isinstance(entries, list) or not entries:
            raise BadConfig(f"{where}: routes must be a list with at least one route")
        return tuple(self.route(e, f"{where}: route {i + 1}") for i, e in enumerate(entries))

    def row(self, part: str, entry: Any, where: str) -> Row:
        """Return a row of one of the table's parts."""
        _mapping(entry, where)
        for key in ("id", "routes"):
            if key not in entry:
                raise BadConfig(f"{where}: the key {key!r} is missing")
        where = f"{where} ({entry['id']})"
        when = check_condition(entry.get("when", {}), fact_names(), where)
        rest = {k: v for k, v in entry.items() if k not in ("id", "routes", "when")}
        return Row(entry["id"], part, self.routes(entry["routes"], where), when, rest)

    def mistake(self, entry: Any, questions: Collection[str], where: str) -> Mistake:
        """Return a row of the mistakes' table."""
        _fields(
            entry, {"id", "says", "wrong", "symptoms", "when", "ask", "correct", "why"},
            {"id", "says", "wrong", "correct", "why"}, where,
        )  # fmt: skip
        wrong = _fields(entry["wrong"], {"sheet", "pack", "how", "action"}, set(), f"{where}: wrong")
        if "action" not in wrong:
            known(wrong.get("how"), ("primary", "alone"), "how", where)
        name = known(wrong["sheet"], self.sheets, "sheet", where) if "sheet" in wrong else ""
        name = known(wrong["pack"], self.packs, "pack", where) if "pack" in wrong else name
        if "ask" in entry:
            known(entry["ask"], questions, "question", where)
        return Mistake(
            entry["id"],
            entry["says"],
            name,
            wrong.get("how", ""),
            tuple(known(s, SYMPTOMS, "symptom", where) for s in entry.get("symptoms", ())),
            check_condition(entry.get("when", {}), fact_names(), where),
            entry.get("ask"),
            self.routes(entry["correct"], where),
            entry["why"],
        )

    def cause(self, name: str, entry: Any) -> CauseRule:
        """Return a cause."""
        where = f"causes.yaml: {name}"
        _fields(entry, {"why", "for", "against", "routes", "fixes"}, {"why", "routes", "fixes"}, where)
        routes = self.routes(entry["routes"], where)
        fixes = tuple(_fix(f, {r.sheet for r in routes}, f"{where}: fix {i + 1}") for i, f in enumerate(entry["fixes"]))
        return CauseRule(
            name, entry["why"],
            tuple(_evidence(e, f"{where}: for {i + 1}") for i, e in enumerate(entry.get("for", ()))),
            tuple(_evidence(e, f"{where}: against {i + 1}") for i, e in enumerate(entry.get("against", ()))),
            routes, fixes,
        )  # fmt: skip

    def symptom(
        self,
        name: str,
        entry: Any,
        rows: Mapping[str, Row],
        questions: Collection[str],
        causes: Collection[str],
    ) -> SymptomEntry:
        """Return a symptom's entry with the rows it takes resolved into routes."""
        where = f"symptoms.yaml: {name}"
        needed = {"title", "meaning", "section", "routes", "causes"}
        _fields(entry, needed | {"questions", "ask_when", "margin", "fixes"}, needed, where)
        section = known(entry["section"], [r.id for r in rows.values() if r.part == "sections"], "section", where)
        alternatives = tuple(self._alternative(a, rows, where) for a in entry["routes"])
        if not alternatives or alternatives[-1].when:
            raise BadConfig(f"{where}: the last entry of routes must hold without a condition")
        ask_when = entry.get("ask_when", {})
        for q in ask_when:
            known(q, entry.get("questions", ()), "question", f"{where}: ask_when")
        asked = tuple(
            (known(q, questions, "question", where), check_condition(ask_when.get(q, {}), fact_names(), where))
            for q in entry.get("questions", ())
        )
        priors = tuple((known(c, causes, "cause", where), float(p)) for c, p in entry["causes"].items())
        sheets = {r.sheet for r in alternatives[-1].routes}
        fixes = tuple(_fix(f, sheets, f"{where}: fix {i + 1}") for i, f in enumerate(entry.get("fixes", ())))
        margin = float(entry.get("margin", MARGIN))
        return SymptomEntry(name, entry["title"], entry["meaning"], section, alternatives, priors, asked, fixes, margin)

    def _alternative(self, entry: Any, rows: Mapping[str, Row], where: str) -> Alternative:
        _fields(entry, {"when", "take"}, {"take"}, f"{where}: routes")
        routes: list[Route] = []
        for item in entry["take"]:
            if isinstance(item, str):
                routes.extend(rows[known(item, rows, "row of the table", where)].routes)
            else:
                routes.append(self.route(item, where))
        return Alternative(check_condition(entry.get("when", {}), fact_names(), where), tuple(routes))


def _sentence(text: str, names: Collection[str], where: str) -> str:
    for place in places(text):
        known(place, names, "fact", where)
    return text


def _evidence(entry: Any, where: str) -> Evidence:
    _fields(entry, {"when", "say", "weight", "decisive"}, {"when", "say"}, where)
    when = check_condition(entry["when"], fact_names(), where)
    weight, decisive = entry.get("weight", 1.0), bool(entry.get("decisive", False))
    if not isinstance(weight, int | float) or weight <= 0:
        raise BadConfig(f"{where}: weight must be a number above 0, not {weight!r}")
    return Evidence(when, _sentence(entry["say"], fact_names(), where), float(weight), decisive)


def _fix(entry: Any, sheets: Collection[str], where: str) -> FixRule:
    _fields(entry, {"action", "plain", "sheet", "when", "with", "change"}, {"action", "sheet"}, where)
    known(entry["sheet"], sheets, "sheet among the cause's routes", where)
    when = check_condition(entry.get("when", {}), fact_names(), where)
    numbers = {k: check_expression(e, fact_names(), f"{where}: with {k}") for k, e in entry.get("with", {}).items()}
    action = _sentence(entry["action"], fact_names() | set(numbers), where)
    change = {
        known(k, vocabulary(), "setting", where): check_expression(e, fact_names(), f"{where}: change {k}")
        for k, e in entry.get("change", {}).items()
    }
    plain = entry.get("plain")
    if numbers and plain is None and not when:
        raise BadConfig(f"{where}: needs `plain`, said where a number is missing")
    return FixRule(action, entry["sheet"], plain, when, numbers, change)
