"""Which rows of the routing table a query is about, and what they say.

Phrases are looked for; the one with the most words wins, among equals a mistake goes before a direct question, that
before a symptom (`queries.TIERS`). What else is said with other words is a topic of its own. Vague queries are asked
back, and so are those of which the table says "ask first". A symptom is read off the table as for an incident of
which only the settings are known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainmon_rules.diagnosis.knowledge import shipped_table
from trainmon_rules.errors import BadConfig
from trainmon_rules.routing.closest import closest
from trainmon_rules.routing.lookup import Lookup
from trainmon_rules.routing.queries import OF_A_RUN, Queries, Target, shipped_queries
from trainmon_rules.routing.records import Routed, Topic
from trainmon_rules.routing.text import Word
from trainmon_rules.vocabulary import read_value, vocabulary

MOST = 3  # topics of a query that are told

Place = tuple[int, int]  # sentence, word


@dataclass(frozen=True, slots=True)
class Match:
    """A phrase of a target, found in a query."""

    target: Target
    places: frozenset[Place]

    @property
    def order(self) -> tuple[int, int]:
        """The more words the better, then the part."""
        return (-len(self.places), self.target.tier)


def route(query: str, answers: Mapping[str, Any] | None = None) -> Routed:
    """Return what the routing table says of a query.

    Parameters
    ----------
    query : str
        What is wrong or asked, in a person's words: "my loss is NaN".
    answers : mapping, optional
        Answers to the table's questions, in the vocabulary's names and kinds.

    Raises
    ------
    BadConfig
        If the query is empty.
    """
    if not query.strip():
        raise BadConfig('route: say what is wrong, as in trainmon route "my loss is NaN"')
    queries, table = shipped_queries(), shipped_table()
    text = queries.read(query)
    settings = {**_told(text, queries), **(answers or {})}
    lookup = Lookup(table, settings)
    chosen = _chosen(_matches(text, queries), lookup)
    topics = _told_once([_topic(m, text, lookup) for m in chosen])
    return Routed(query, topics, settings, () if topics else closest(text, queries, table))


def _topic(match: Match, text: Sequence[Sequence[Word]], lookup: Lookup) -> Topic:
    words = tuple(text[s][w].raw for s, w in sorted(match.places))
    return lookup.topic(match.target, words)


def _told_once(topics: Sequence[Topic]) -> tuple[Topic, ...]:
    """Return the topics without those that only repeat what an earlier one leads to."""
    kept: list[Topic] = []
    read: set[str] = set()
    for topic in topics:
        own = {r.sheet for r in topic.routes}
        if topic.ask or topic.part in OF_A_RUN or not own <= read:
            kept.append(topic)
            read |= own
    return tuple(kept)


# ---------------------------------------------------------------------- matches
def _matches(text: Sequence[Sequence[Word]], queries: Queries) -> list[Match]:
    """Return every phrase that is found, the best first."""
    found = []
    for target, phrase in queries.phrases:
        for n, sentence in enumerate(text):
            if places := phrase.find(sentence):
                found.append(Match(target, frozenset((n, at) for at in places)))
    return sorted(found, key=lambda m: m.order)


def _chosen(found: Sequence[Match], lookup: Lookup) -> list[Match]:
    """Return the matches to tell: the best, and those of other words that are about something else."""
    of_a_run = [m for m in found if lookup.of_a_run(m.target)]
    if of_a_run:
        found = [m for m in found if m.target.part != "clarifications" and (len(m.places) > 1 or m in of_a_run)]
    chosen: list[Match] = []
    for match in found:
        rivals = [c for c in chosen if c.places & match.places or lookup.same(c.target, match.target)]
        if not rivals or _ambiguous(match, rivals, lookup):
            chosen.append(match)
    return sorted(chosen, key=lambda m: not lookup.of_a_run(m.target))[:MOST]  # what goes wrong comes first


def _ambiguous(match: Match, rivals: Sequence[Match], lookup: Lookup) -> bool:
    """Whether the same words may as well mean something else that goes wrong: then both are told."""
    return all(
        r.places == match.places
        and {r.target.part, match.target.part} <= OF_A_RUN
        and not lookup.same(r.target, match.target)
        for r in rivals
    )


# ---------------------------------------------------------------------- settings
def _told(text: Sequence[Sequence[Word]], queries: Queries) -> dict[str, Any]:
    """Return the settings that a query tells by itself; of several values of one setting none."""
    said: dict[str, set[Any]] = {}
    numbers: set[Place] = set()  # each is told of one setting only
    every = ((told, phrase) for told in queries.told for phrase in told.phrases)
    for told, phrase in sorted(every, key=lambda pair: -len(pair[1])):
        for n, sentence in enumerate(text):
            if places := phrase.find(sentence):
                value = told.value
                if value is None:
                    at = next(at for at in places if sentence[at].number)
                    if (n, at) in numbers:
                        continue
                    numbers.add((n, at))
                    value = read_value(sentence[at].text, vocabulary()[told.setting].kind)
                said.setdefault(told.setting, set()).add(value)
    return {name: values.pop() for name, values in said.items() if len(values) == 1 and None not in values}
