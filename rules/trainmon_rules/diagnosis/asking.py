"""Entries of the table that ask, or send elsewhere: questions, vague queries, what other packs are for."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from trainmon_rules.diagnosis.conditions import known
from trainmon_rules.diagnosis.entries import fields_of
from trainmon_rules.diagnosis.factnames import fact_names
from trainmon_rules.diagnosis.table import Clarification, Elsewhere, Question
from trainmon_rules.errors import BadConfig
from trainmon_rules.vocabulary import vocabulary


def question_of(name: str, entry: Any) -> Question:
    """Return a question from its entry."""
    where = f"routing.yaml: questions: {name}"
    fields_of(entry, {"ask", "facts", "set", "example", "tries", "also_set", "answers"}, {"ask", "facts"}, where)
    for fact in entry["facts"]:
        known(fact, fact_names(), "fact", where)
    if "set" in entry:
        known(entry["set"], vocabulary(), "setting", where)
        if "example" not in entry or not entry.get("tries"):
            raise BadConfig(f"{where}: a question that --set answers needs an example and tries")
    tries, also = tuple(entry.get("tries", ())), dict(entry.get("also_set", {}))
    for key in also:
        known(key, vocabulary(), "setting", where)
    facts, answers = tuple(entry["facts"]), tuple(entry.get("answers", ()))
    return Question(name, entry["ask"], facts, entry.get("set"), entry.get("example"), tries, also, answers)


def clarification_of(entry: Any, rows: Collection[str], questions: Collection[str], where: str) -> Clarification:
    """Return a vague query and its question."""
    needed = {"id", "query", "ask", "why"}
    fields_of(entry, needed | {"answers", "question", "then", "avoids"}, needed, where)
    if ("answers" in entry) == ("question" in entry):
        raise BadConfig(f"{where}: needs answers or a question of the table, one of them")
    if "question" in entry:
        known(entry["question"], questions, "question", where)
    for row in (*entry.get("then", {}).values(), *filter(None, [entry.get("avoids")])):
        known(row, rows, "row of the table", where)
    return Clarification(
        entry["id"], entry["query"], entry["ask"], entry["why"], tuple(entry.get("answers", ())),
        entry.get("question"), dict(entry.get("then", {})), entry.get("avoids"),
    )  # fmt: skip


def elsewhere_of(entry: Any, packs: Collection[str], where: str) -> Elsewhere:
    """Return something that another pack is for."""
    fields_of(entry, {"id", "what", "use"}, {"id", "what", "use"}, where)
    return Elsewhere(entry["id"], entry["what"], known(entry["use"], packs, "pack", where))
