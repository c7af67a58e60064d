"""The symptoms nearest to a text in which no phrase was found: to choose from, not an answer."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from trainmon_rules.diagnosis.table import SymptomEntry, Table
from trainmon_rules.routing.queries import Queries
from trainmon_rules.routing.records import Close
from trainmon_rules.routing.text import Word

SHOWN = 5
STEM = 5  # letters that two words must share at their beginning
ALIKE = 0.8  # of a misspelt word


def closest(text: Sequence[Sequence[Word]], queries: Queries, table: Table) -> tuple[Close, ...]:
    """Return the symptoms whose title, meaning or phrases share words with a text, those with most first."""
    said = {w.text for sentence in text for w in sentence}
    scores = {s.id: _score(said, s, queries) for s in table.symptoms.values()}
    best = sorted((s for s in scores if scores[s]), key=lambda s: -scores[s])
    return tuple(Close(s, table.symptoms[s].title) for s in best[:SHOWN])


def _score(said: set[str], s: SymptomEntry, queries: Queries) -> int:
    """A word of the name weighs more than one of the meaning or the phrases."""
    name, meaning = ({w.text for words in queries.read(t) for w in words} for t in (f"{s.id}. {s.title}", s.meaning))
    patterns = [p for target, phrase in queries.phrases if target.id == s.id for p in phrase.patterns]
    return 2 * _shared(said, name) + _shared(said, meaning | {w for p in patterns for w in (*p.words, *p.beginnings)})


def _shared(said: set[str], words: set[str]) -> int:
    """Count the words that are the same, begin alike or are a misspelling."""
    stems = {w[:STEM] for w in words if len(w) >= STEM}
    long = [w for w in words if len(w) >= STEM]
    return sum(
        w in words or (len(w) >= STEM and (w[:STEM] in stems or bool(difflib.get_close_matches(w, long, 1, ALIKE))))
        for w in said
    )
