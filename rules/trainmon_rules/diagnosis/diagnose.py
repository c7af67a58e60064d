"""Why it happened and what to do: symptom + answered questions → causes → routes → fixes, and what to ask.

The knowledge is data (see `knowledge`); here it is applied. Causes are ranked by the evidence for and against
them. Routes come from the table's rows for the symptom, the causes' sheets behind them; the table's mistakes
are enforced last. One question is asked if the evidence leaves the best cause undecided and an answer would
lead to other routes; that is found out by thinking each answer through.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trainmon_rules.diagnosis.conditions import fill, holds
from trainmon_rules.diagnosis.facts import find_facts
from trainmon_rules.diagnosis.fixes import Advice, advise
from trainmon_rules.diagnosis.knowledge import shipped_table
from trainmon_rules.diagnosis.rates import placed
from trainmon_rules.diagnosis.routes import applies, demoted, merged, ordered, put_all_right
from trainmon_rules.diagnosis.table import CauseRule, Evidence, Question, SymptomEntry, Table
from trainmon_rules.incidents import Incident
from trainmon_rules.report import Cause, Fix, Route
from trainmon_rules.state import Run

MAX_CAUSES = 5


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What the routing table says about one incident."""

    causes: tuple[Cause, ...] = ()
    ruled_out: tuple[Cause, ...] = ()
    routes: tuple[Route, ...] = ()
    advice: tuple[Advice, ...] = ()
    questions: tuple[str, ...] = ()
    checklist: str | None = None

    @property
    def fixes(self) -> tuple[Fix, ...]:
        """What to do."""
        return tuple(a.fix for a in self.advice)


@dataclass(frozen=True, slots=True)
class Knowledge:
    """The routing table, causes and symptoms; the shipped ones are read when first needed."""

    own: Table | None = None

    @classmethod
    def load(cls) -> Knowledge:
        """Return the shipped knowledge. Reads nothing yet: a healthy run never needs it."""
        return cls()

    @property
    def table(self) -> Table:
        """The table; BadConfig if a file of it can't be used."""
        return self.own if self.own is not None else shipped_table()


@dataclass(frozen=True, slots=True)
class _Ranked:
    """A cause with its score and the sentences behind it; `suspected` if anything at all pointed at it."""

    rule: CauseRule
    score: float
    suspected: bool
    speaks_for: tuple[str, ...]
    against: tuple[str, ...]
    out: bool

    @property
    def record(self) -> Cause:
        return Cause(self.rule.name, self.rule.why, self.speaks_for, self.against)


def diagnose(incident: Incident, run: Run, knowledge: Knowledge) -> Diagnosis:
    """Return the diagnosis of an incident of a run; empty for a symptom that the knowledge doesn't have."""
    table = knowledge.table
    entry = table.symptoms.get(incident.symptom)
    if entry is None:
        return Diagnosis()
    facts = find_facts(incident, run)
    ranked = _rank(entry, table, facts)
    facts["top_cause"] = _top(ranked)
    alive = _alive(ranked)
    question = _question(entry, table, facts, alive)
    return Diagnosis(
        causes=tuple(r.record for r in alive),
        ruled_out=tuple(r.record for r in ranked if r.out and r.suspected),
        routes=_routes(entry, table, facts, alive),
        advice=advise([*entry.fixes, *(f for r in alive for f in r.rule.fixes)], facts),
        questions=(question.text(facts),) if question else (),
        checklist=None if facts.get("judged") == "reward" else table.checklists.get(entry.id),  # they are about losses
    )


def suppose(symptom: str, facts: Mapping[str, Any], table: Table) -> Diagnosis:
    """Return what the table alone says of a symptom: its routes and the one question, without a run.

    Parameters
    ----------
    symptom : str
        The symptom.
    facts : mapping
        What is known otherwise: settings by name.
    table : Table
        The routing table.
    """
    entry = table.symptoms[symptom]
    known: dict[str, Any] = {**facts, "symptom": symptom, "symptoms": (symptom,)}
    known |= placed(known, known.get("learning_rate"))
    ranked = _rank(entry, table, known)
    known["top_cause"] = _top(ranked)
    question = _question(entry, table, known, _alive(ranked))
    asked = (question.text(known),) if question else ()
    return Diagnosis(routes=_routes(entry, table, known, ()), questions=asked)


# ------------------------------------------------------------------------------------------------ causes
def _rank(entry: SymptomEntry, table: Table, facts: Mapping[str, Any]) -> list[_Ranked]:
    """Return the symptom's causes, the best first, those ruled out last."""
    rules = [(table.causes[name], prior) for name, prior in entry.causes]
    judged = [_judge(r, prior, facts) for r, prior in rules if not any(holds(c, facts) for c in r.unless)]
    return sorted(judged, key=lambda r: (r.out, -r.score))


def _top(ranked: Sequence[_Ranked]) -> str:
    return ranked[0].rule.id if ranked and not ranked[0].out else ""


def _alive(ranked: Iterable[_Ranked]) -> list[_Ranked]:
    """Return the causes worth telling, the best first."""
    return [r for r in ranked if not r.out and r.score > 0][:MAX_CAUSES]


def _judge(rule: CauseRule, prior: float, facts: Mapping[str, Any]) -> _Ranked:
    pro = [e for e in rule.evidence_for if holds(e.when, facts)]
    contra = [e for e in rule.evidence_against if holds(e.when, facts)]
    score = round(prior + sum(e.weight for e in pro) - sum(e.weight for e in contra), 6)
    out = any(e.decisive for e in contra) or (score <= 0 and bool(contra))
    return _Ranked(rule, score, bool(prior or pro), _said(pro, facts), _said(contra, facts), out)


def _said(evidence: Iterable[Evidence], facts: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(s for e in evidence if (s := fill(e.say, facts)) is not None)


# ------------------------------------------------------------------------------------------------ routes
def _routes(entry: SymptomEntry, table: Table, facts: Mapping[str, Any], alive: Sequence[_Ranked]) -> tuple[Route, ...]:
    """Return the table's routes for the symptom, then the causes' sheets, with the mistakes put right."""
    taken = next(a.routes for a in entry.routes if holds(a.when, facts))
    routes = merged([], taken)
    for i, r in enumerate(alive):
        routes = merged(routes, [demoted(route, "also" if i else "secondary") for route in r.rule.routes])
    routes = put_all_right([m for m in table.mistakes if applies(m, facts)], routes)
    return tuple(_fitted(r, table, facts, alive) for r in ordered(routes))


def _fitted(route: Route, table: Table, facts: Mapping[str, Any], alive: Sequence[_Ranked]) -> Route:
    """Return the route with a reason that fits this run: the table's is about the usual case."""
    for r in table.rewordings:
        if r.sheet == route.sheet and holds(r.when, facts) and (why := fill(r.why, facts)) is not None:
            return replace(route, why=why)
    best = alive[0] if alive else None
    if route.rank != "primary" or best is None or not best.speaks_for:
        return route
    if route.sheet in {r.sheet for r in best.rule.routes}:
        return route
    return replace(route, why=f"{route.why}; but what this log shows points at {best.rule.name} first")


# --------------------------------------------------------------------------------------------- questions
def _question(entry: SymptomEntry, table: Table, facts: Mapping[str, Any], alive: Sequence[_Ranked]) -> Question | None:
    """Return the one question worth asking, if any."""
    if len(alive) > 1 and alive[0].score - alive[1].score >= entry.margin:
        return None
    for name, when in entry.questions:
        question = table.questions[name]
        answered = any(
            facts.get(f) is not None and not (f == "has_validation" and not facts[f]) for f in question.facts
        )
        if question.set and not answered and holds(when, facts) and _matters(question, entry, table, facts):
            return question
    return None


def _matters(question: Question, entry: SymptomEntry, table: Table, facts: Mapping[str, Any]) -> bool:
    """Return whether two answers would lead to different main routes."""
    outcomes = set()
    for answer in question.tries:
        supposed = {**facts, question.set or "": _typed(answer)}
        if question.set == "learning_rate":
            supposed |= placed(supposed, supposed["learning_rate"])
        ranked = _rank(entry, table, supposed)
        supposed["top_cause"] = _top(ranked)
        alive = _alive(ranked)
        routes = _routes(entry, table, supposed, alive)
        outcomes.add((routes[0].sheet, frozenset(r.sheet for r in routes if r.rank == "secondary")))
    return len(outcomes) > 1


def _typed(answer: Any) -> Any:
    return {"yes": True, "no": False}.get(answer, answer) if isinstance(answer, str) else answer
