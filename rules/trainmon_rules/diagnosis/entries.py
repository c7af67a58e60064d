"""One entry of a knowledge file → one checked record. `knowledge` reads the files with it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from trainmon_rules.diagnosis.conditions import check_condition, check_expression, known, names_in, places
from trainmon_rules.diagnosis.factnames import fact_names
from trainmon_rules.diagnosis.table import (
    Alternative,
    CauseRule,
    Evidence,
    FixRule,
    Mistake,
    Rewording,
    Row,
    SymptomEntry,
)
from trainmon_rules.errors import BadConfig
from trainmon_rules.report import Route
from trainmon_rules.rules import SYMPTOMS
from trainmon_rules.vocabulary import vocabulary

RANKS = ("primary", "secondary", "also", "cross-pack")
MARGIN = 2.0  # lead of the best cause over the next from which on the log has decided
ROW_KEYS: Mapping[str, frozenset[str]] = {
    "sections": frozenset({"names", "keywords", "symptom", "questions", "ask_first", "table", "note"}),
    "loss_behaviour": frozenset({"behaviour", "causes", "symptom"}),
    "gpu_utilization": frozenset({"utilization", "causes", "ask"}),
    "dataset_size": frozenset({"size"}),
    "direct_questions": frozenset({"query", "examples"}),
    "modern_triggers": frozenset({"triggers"}),
    "scenarios": frozenset({"name", "why_order", "mistakes"}),
    "boundaries": frozenset({"topic", "ask", "symptom"}),
}
"""The parts of the table, and what a row of each says beside its routes."""
ALWAYS = {"symptom", "onset_step", "usual_rate_low", "usual_rate_high", "usual_rate_start"}  # facts of every incident


def mapping(data: Any, where: str) -> Mapping[str, Any]:
    """Return `data` if it is a mapping; BadConfig if not."""
    if not isinstance(data, Mapping):
        raise BadConfig(f"{where}: must be a mapping")
    return data


def fields_of(entry: Any, allowed: Collection[str], needed: Collection[str], where: str) -> Mapping[str, Any]:
    """Check an entry's keys: none unknown, none missing."""
    mapping(entry, where)
    for key in entry:
        known(key, allowed, "key", where)
    for key in sorted(needed):
        if entry.get(key) is None:
            raise BadConfig(f"{where}: the key {key!r} is missing")
    return entry  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class EntryReader:
    """Turns entries into records; knows the sheets and packs that routes may name."""

    sheets: Mapping[str, str]
    packs: Mapping[str, Mapping[str, str]]

    def route(self, entry: Any, where: str) -> Route:
        """Return a route; one that names a pack carries its name as the sheet too."""
        fields_of(entry, {"sheet", "pack", "rank", "why", "topic"}, {"rank", "why"}, where)
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
        fields_of(entry, {"id", "routes", "when", "own", "avoids", *ROW_KEYS[part]}, {"id", "routes"}, where)
        where = f"{where} ({entry['id']})"
        when = check_condition(entry.get("when", {}), fact_names(), where)
        if "symptom" in entry:
            known(entry["symptom"], SYMPTOMS, "symptom", where)
        rest = {k: v for k, v in entry.items() if k not in ("id", "routes", "when")}
        return Row(entry["id"], part, self.routes(entry["routes"], where), when, rest)

    def mistake(self, entry: Any, questions: Collection[str], where: str) -> Mistake:
        """Return a row of the mistakes' table."""
        fields_of(
            entry, {"id", "says", "wrong", "symptoms", "when", "ask", "correct", "why"},
            {"id", "says", "wrong", "correct", "why"}, where,
        )  # fmt: skip
        wrong = fields_of(entry["wrong"], {"sheet", "pack", "how", "action"}, set(), f"{where}: wrong")
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
            wrong.get("action", ""),
        )

    def cause(self, name: str, entry: Any) -> CauseRule:
        """Return a cause."""
        where = f"causes.yaml: {name}"
        needed = {"name", "why", "routes", "fixes"}
        fields_of(entry, needed | {"for", "against", "unless"}, needed, where)
        routes = self.routes(entry["routes"], where)
        fixes = tuple(_fix(f, {r.sheet for r in routes}, f"{where}: fix {i + 1}") for i, f in enumerate(entry["fixes"]))
        unless = tuple(check_condition(c, fact_names(), f"{where}: unless") for c in entry.get("unless", ()))
        return CauseRule(
            name, entry["name"], entry["why"], unless,
            tuple(_evidence(e, f"{where}: for {i + 1}") for i, e in enumerate(entry.get("for", ()))),
            tuple(_evidence(e, f"{where}: against {i + 1}") for i, e in enumerate(entry.get("against", ()))),
            routes, fixes,
        )  # fmt: skip

    def rewording(self, entry: Any, where: str) -> Rewording:
        """Return what a route says of itself in a special case."""
        fields_of(entry, {"route", "when", "why"}, {"route", "when", "why"}, where)
        sheet = known(entry["route"], {**self.sheets, **self.packs}, "sheet or pack", where)
        return Rewording(sheet, check_condition(entry["when"], fact_names(), where), _sentence(entry["why"], where))

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
        fields_of(entry, needed | {"questions", "ask_when", "margin", "fixes"}, needed, where)
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
        fields_of(entry, {"when", "take"}, {"take"}, f"{where}: routes")
        routes: list[Route] = []
        for item in entry["take"]:
            if isinstance(item, str):
                routes.extend(rows[known(item, rows, "row of the table", where)].routes)
            else:
                routes.append(self.route(item, where))
        return Alternative(check_condition(entry.get("when", {}), fact_names(), where), tuple(routes))


def _sentence(text: str, where: str, names: Collection[str] = ()) -> str:
    for place in places(text):
        known(place, names or fact_names(), "fact", where)
    return text


def _evidence(entry: Any, where: str) -> Evidence:
    fields_of(entry, {"when", "say", "weight", "decisive"}, {"when", "say"}, where)
    when = check_condition(entry["when"], fact_names(), where)
    weight, decisive = entry.get("weight", 1.0), bool(entry.get("decisive", False))
    if not isinstance(weight, int | float) or weight <= 0:
        raise BadConfig(f"{where}: weight must be a number above 0, not {weight!r}")
    return Evidence(when, _sentence(entry["say"], where), float(weight), decisive)


def _fix(entry: Any, sheets: Collection[str], where: str) -> FixRule:
    fields_of(entry, {"action", "plain", "sheet", "when", "with", "change", "touches"}, {"action", "sheet"}, where)
    known(entry["sheet"], sheets, "sheet among the cause's routes", where)
    when = check_condition(entry.get("when", {}), fact_names(), where)
    numbers = {k: check_expression(e, fact_names(), f"{where}: with {k}") for k, e in entry.get("with", {}).items()}
    action = _sentence(entry["action"], where, fact_names() | set(numbers))
    change = {
        known(k, vocabulary(), "setting", where): check_expression(e, fact_names(), f"{where}: change {k}")
        for k, e in entry.get("change", {}).items()
    }
    plain = entry.get("plain")
    used = set(places(action)) - set(numbers) | {n for e in numbers.values() for n in names_in(e)}
    sure = {name for name, test in when.items() if test != "unknown"} | ALWAYS
    if plain is None and used - sure:
        raise BadConfig(f"{where}: needs `plain`, to be said where {', '.join(sorted(used - sure))} isn't known")
    touches = tuple(known(k, vocabulary(), "setting", where) for k in entry.get("touches", ()))
    return FixRule(action, entry["sheet"], plain, when, numbers, change, touches)
