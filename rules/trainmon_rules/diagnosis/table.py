"""The records of the knowledge files: routes, rows, questions, mistakes, causes, symptoms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trainmon_rules.report import Route

Condition = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """A row of one of the table's parts; `part` names the part, `data` holds what else the row says."""

    id: str
    part: str
    routes: tuple[Route, ...]
    when: Condition = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Question:
    """A question in the table's own words.

    It is answered if any of `facts` is known; `set` is the `--set` key that answers it (None where only the
    log can), `example` a value to show, `tries` the answers to think through; `also_set` are further keys that answer
    a part of it, with an example each; `answers` what to tell `trainmon route` where no key can.
    """

    id: str
    ask: str
    facts: tuple[str, ...]
    set: str | None = None
    example: Any = None
    tries: tuple[Any, ...] = ()
    also_set: Mapping[str, Any] = field(default_factory=dict)
    answers: tuple[str, ...] = ()

    def text(self, facts: Mapping[str, Any]) -> str:
        """Return the question with the way to answer it, less what is known already."""
        if self.set is None:
            return self.ask
        keys = [(self.set, self.example), *((k, v) for k, v in self.also_set.items() if facts.get(k) is None)]
        return f"{self.ask} (answer with {' '.join(f'--set {key}={value}' for key, value in keys)})"


@dataclass(frozen=True, slots=True)
class Clarification:
    """A vague query and the one question to ask of it.

    `answers` are the queries to go on with; `question` is that of the table which asks the same, and `then` the row
    for each answer to it; `avoids` names a mistake.
    """

    id: str
    query: str
    ask: str
    why: str
    answers: tuple[str, ...] = ()
    question: str | None = None
    then: Mapping[str, str] = field(default_factory=dict)
    avoids: str | None = None


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What the table is not for, and the pack that is."""

    id: str
    what: str
    use: str


@dataclass(frozen=True, slots=True)
class Mistake:
    """A wrong route and the right one. `how` is "primary" or "alone"; `wrong` a sheet or pack, else it is a `habit`."""

    id: str
    says: str
    wrong: str
    how: str
    symptoms: tuple[str, ...]
    when: Condition
    ask: str | None
    correct: tuple[Route, ...]
    why: str
    habit: str = ""

    @property
    def warning(self) -> str:
        """What not to do, and why."""
        wrong = f"{self.wrong} {'alone' if self.how == 'alone' else 'first'}" if self.wrong else self.habit
        return f"{wrong}: {self.why}"


@dataclass(frozen=True, slots=True)
class Evidence:
    """A condition that speaks for or against a cause, by how much, and in which words."""

    when: Condition
    say: str
    weight: float = 1.0
    decisive: bool = False


@dataclass(frozen=True, slots=True)
class FixRule:
    """Something to do: the sentence, the computed numbers in it, and the settings to change.

    `touches` names settings that the sentence is about without computing a change.
    """

    action: str
    sheet: str
    plain: str | None = None
    when: Condition = field(default_factory=dict)
    numbers: Mapping[str, Any] = field(default_factory=dict)
    change: Mapping[str, Any] = field(default_factory=dict)
    touches: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rewording:
    """What a route says of itself where `when` holds, as the table's own reason would be wrong about this run."""

    sheet: str
    when: Condition
    why: str


@dataclass(frozen=True, slots=True)
class CauseRule:
    """A cause with its evidence, routes and fixes; out of the question where any of `unless` holds."""

    id: str
    name: str
    why: str
    unless: tuple[Condition, ...]
    evidence_for: tuple[Evidence, ...]
    evidence_against: tuple[Evidence, ...]
    routes: tuple[Route, ...]
    fixes: tuple[FixRule, ...]


@dataclass(frozen=True, slots=True)
class Alternative:
    """Routes of a symptom, taken where `when` holds."""

    when: Condition
    routes: tuple[Route, ...]


@dataclass(frozen=True, slots=True)
class SymptomEntry:
    """A symptom: meaning, section, routes, causes with priors, questions, fixes.

    Each question comes with the condition under which it makes sense; `fixes` stand before those of the causes;
    `margin` is the lead of the best cause over the next from which on nothing needs to be asked.
    """

    id: str
    title: str
    meaning: str
    section: str
    routes: tuple[Alternative, ...]
    causes: tuple[tuple[str, float], ...]
    questions: tuple[tuple[str, Condition], ...]
    fixes: tuple[FixRule, ...]
    margin: float


@dataclass(frozen=True, slots=True)
class Table:
    """All of it, checked."""

    sheets: Mapping[str, str]
    packs: Mapping[str, Mapping[str, str]]
    covers: str
    principles: tuple[str, ...]
    use_when: tuple[str, ...]
    dont_use_for: tuple[Elsewhere, ...]
    rows: Mapping[str, Row]
    questions: Mapping[str, Question]
    clarifications: tuple[Clarification, ...]
    mistakes: tuple[Mistake, ...]
    checklists: Mapping[str, str]  # by symptom
    causes: Mapping[str, CauseRule]
    symptoms: Mapping[str, SymptomEntry]
    rewordings: tuple[Rewording, ...] = ()

    def part(self, name: str) -> tuple[Row, ...]:
        """Return the rows of one part of the table ("sections", "loss_behaviour", "scenarios", …), in order."""
        return tuple(r for r in self.rows.values() if r.part == name)
