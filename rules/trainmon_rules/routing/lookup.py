"""What the routing table says of one thing that a query is about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trainmon_rules.diagnosis.conditions import holds
from trainmon_rules.diagnosis.diagnose import suppose
from trainmon_rules.diagnosis.table import Clarification, Mistake, Row, Table
from trainmon_rules.report import Route
from trainmon_rules.routing.queries import OF_A_RUN, Target
from trainmon_rules.routing.records import Topic


@dataclass(frozen=True, slots=True)
class Lookup:
    """The table, and the settings that are known."""

    table: Table
    settings: Mapping[str, Any]

    def topic(self, target: Target, words: tuple[str, ...] = ()) -> Topic:
        """Return what the table says of a target; `words` are those of the query that led to it."""
        name = target.id
        if target.part == "mistakes":
            found = self._mistake(self._fault(name))
        elif target.part == "clarifications":
            found = self._clarification(next(c for c in self.table.clarifications if c.id == name))
        elif target.part == "symptoms":
            found = self._symptom(name, ask_first=True)
        elif target.part == "dont_use_for":
            found = self._elsewhere(name)
        elif target.part == "sheets":
            found = Topic(name, "sheets", name, routes=(Route(name, "primary", self.table.sheets[name]),))
        else:
            found = self._row(self.table.rows[name])
        return replace(found, row=name, part=target.part, words=words)

    # ------------------------------------------------------------------ what goes wrong
    def of_a_run(self, target: Target) -> bool:
        """Whether a target says what goes wrong in a run, rather than asks how something is done."""
        if target.part == "mistakes":
            return bool(self._fault(target.id).symptoms)
        if target.part in OF_A_RUN:
            return target.id not in ("direct-question", "modern", "tracking")
        row = self.table.rows.get(target.id)
        return row is not None and "symptom" in row.data

    def same(self, one: Target, other: Target) -> bool:
        """Whether two targets are about one thing: the section that they belong to."""
        a, b = self._section(one), self._section(other)
        return one.id == other.id or (a == b != "")

    def _section(self, target: Target) -> str:
        if target.part == "sections":
            return target.id
        if target.part == "mistakes":
            seen = self._fault(target.id).symptoms
            return self.table.symptoms[seen[0]].section if seen else ""
        if target.part == "symptoms":
            return self.table.symptoms[target.id].section
        return next((s.id for s in self.table.part("sections") if s.data.get("table") == target.part), "")

    # ------------------------------------------------------------------ kinds of topics
    def _symptom(self, name: str, ask_first: bool, title: str = "") -> Topic:
        entry = self.table.symptoms[name]
        section = self.table.rows[entry.section]
        first = section.data.get("ask_first")
        found = suppose(name, self.settings, self.table)
        if ask_first and first in [q for q, _ in entry.questions] and not self._answered(first, {}):
            return self._asked(section, title or entry.title)
        facts = {**self.settings, "symptom": name}
        return Topic(
            name, "symptoms", title or entry.title, routes=found.routes,
            avoids=tuple(m.warning for m in self.table.mistakes if name in m.symptoms and holds(m.when, facts)),
            questions=tuple(dict.fromkeys((*found.questions, *self._open(section.data["questions"], facts)))),
            note=section.data.get("note", ""),
        )  # fmt: skip

    def _row(self, row: Row, ask_first: bool = True) -> Topic:
        if "symptom" in row.data and row.part == "loss_behaviour":
            return self._symptom(row.data["symptom"], ask_first, row.data["behaviour"])
        first = row.data.get("ask_first")
        if first and ask_first and not self._answered(first, {}):
            return self._asked(row, _title(row))
        if "symptom" in row.data and row.part == "sections":
            return self._symptom(row.data["symptom"], ask_first=False, title=_title(row))
        avoids = [self._fault(row.data["avoids"]).warning] if "avoids" in row.data else []
        return Topic(
            row.id, row.part, _title(row), routes=row.routes,
            avoids=(*avoids, *row.data.get("mistakes", ())),
            questions=self._open((*row.data.get("questions", ()), *filter(None, [row.data.get("ask")])), self.settings),
            note=row.data.get("note") or row.data.get("why_order") or "",
        )  # fmt: skip

    def _asked(self, section: Row, title: str) -> Topic:
        """Return a section's first question; what else it asks can wait, and so can reading."""
        question = self.table.questions[section.data["ask_first"]]
        return Topic(
            section.id, section.part, title, ask=question.text(self.settings), answers=question.answers,
            avoids=tuple(m.warning for m in self.table.mistakes if m.ask == question.id),
            note=section.data.get("note", ""),
        )  # fmt: skip

    def _mistake(self, mistake: Mistake) -> Topic:
        if mistake.ask is not None:
            section = self.table.rows[self.table.symptoms[mistake.symptoms[0]].section]
            return replace(self._row(section), title=mistake.says)
        if mistake.symptoms:
            return self._symptom(mistake.symptoms[0], ask_first=False, title=mistake.says)
        return Topic(mistake.id, "mistakes", mistake.says, routes=mistake.correct, avoids=(mistake.warning,))

    def _clarification(self, c: Clarification) -> Topic:
        question = self.table.questions[c.question] if c.question else None
        given = str(self.settings.get(question.set or "")) if question else ""
        if given in c.then:
            return self._row(self.table.rows[c.then[given]], ask_first=False)
        avoids = (self._fault(c.avoids).warning,) if c.avoids else ()
        ask, answers = (question.text({}), question.answers) if question else (c.ask, c.answers)
        return Topic(c.id, "clarifications", c.query, ask=ask, answers=answers, avoids=avoids, note=c.why)

    def _elsewhere(self, name: str) -> Topic:
        entry = next(e for e in self.table.dont_use_for if e.id == name)
        pack = self.table.packs[entry.use]
        routes = (Route(entry.use, "primary", pack["owns"], entry.use),)
        return Topic(name, "dont_use_for", entry.what, routes=routes, note=pack["boundary"])

    # ------------------------------------------------------------------ questions
    def _fault(self, name: str) -> Mistake:
        return next(m for m in self.table.mistakes if m.id == name)

    def _answered(self, question: str, facts: Mapping[str, Any]) -> bool:
        known = {**self.settings, **facts}
        return any(known.get(f) is not None for f in (*self.table.questions[question].facts, *self._instead(question)))

    def _instead(self, question: str) -> Sequence[str]:
        """A profile answers more than the percentage that is asked for."""
        return ("bottleneck", "memory_limited") if question == "gpu-utilization" else ()

    def _open(self, questions: Iterable[str], facts: Mapping[str, Any]) -> tuple[str, ...]:
        return tuple(self.table.questions[q].text(facts) for q in questions if not self._answered(q, facts))


def _title(row: Row) -> str:
    said = row.data
    names = said.get("names") or [said.get(k) for k in ("behaviour", "query", "name", "topic", "utilization", "size")]
    first = next(filter(None, names), "")
    return first or " / ".join(said.get("triggers", ())) or row.id
