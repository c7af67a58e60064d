"""The answer to a query, as plain records; `as_dict` gives strict JSON, schema `trainmon.route/1`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trainmon_rules.report import Route
from trainmon_rules.strict import plain

SCHEMA = "trainmon.route/1"


@dataclass(frozen=True, slots=True)
class Topic:
    """One thing that a query is about, and what the routing table says of it.

    Attributes
    ----------
    row : str
        Id of the row, symptom, mistake, clarification or sheet.
    part : str
        Where it stands: a part of the table, "mistakes", "clarifications", "symptoms", "dont_use_for" or "sheets".
    title : str
        What it is about, in the table's words.
    words : tuple of str
        The words of the query that decided, as typed.
    ask : str or None
        The question to answer before anything is read.
    answers : tuple of str
        Queries to go on with, where the question is answered by a word.
    routes : tuple of Route
        What to read, in order; none where a question comes first.
    avoids : tuple of str
        Common mistakes about it, and why they are some.
    questions : tuple of str
        What else to answer, with the `--set` that does where one can.
    note : str
        What the table says beside it, "" if nothing.
    """

    row: str
    part: str
    title: str
    words: tuple[str, ...] = ()
    ask: str | None = None
    answers: tuple[str, ...] = ()
    routes: tuple[Route, ...] = ()
    avoids: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Close:
    """A symptom that shares words with a query in which no phrase was found."""

    symptom: str
    title: str


@dataclass(frozen=True, slots=True)
class Routed:
    """The answer to a query: its topics, the best first; if none was recognised, the closest symptoms.

    `settings` are the answers that were given, and those that the query tells by itself.
    """

    query: str
    topics: tuple[Topic, ...]
    settings: dict[str, Any]
    closest: tuple[Close, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return it as data for strict JSON."""
        data: dict[str, Any] = plain(self)
        return {"schema": SCHEMA, **data}
