"""The phrases of every row: `data/queries.yaml` and the table's own words."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainmon_rules.diagnosis.conditions import known
from trainmon_rules.diagnosis.entries import fields_of, mapping
from trainmon_rules.diagnosis.knowledge import shipped_table
from trainmon_rules.diagnosis.table import Row, Table
from trainmon_rules.errors import BadConfig
from trainmon_rules.routing.phrases import Phrase, phrase, phrase_of
from trainmon_rules.routing.text import Word, sentences
from trainmon_rules.vocabulary import check_answer, vocabulary
from trainmon_rules.yamlfile import load_packaged

_FILE = "queries.yaml"
TIERS = (
    "mistakes", "boundaries", "direct_questions", "clarifications", "modern_triggers", "scenarios", "loss_behaviour",
    "gpu_utilization", "dataset_size", "symptoms", "sections", "dont_use_for", "sheets",
)  # fmt: skip
"""The parts that a query may be about: which goes first where phrases are equally long."""
OF_A_RUN = frozenset({"symptoms", "sections", "loss_behaviour", "gpu_utilization", "dataset_size"})
"""Those that say what goes wrong; beside one of them a mere name ("AdamW", "TensorBoard") is no topic."""


@dataclass(frozen=True, slots=True)
class Target:
    """Something that a query may be about."""

    id: str
    part: str

    @property
    def tier(self) -> int:
        """Its place among the parts."""
        return TIERS.index(self.part)


@dataclass(frozen=True, slots=True)
class Told:
    """A setting that a text may tell: a value by phrases, or (`value` None) the number in a phrase."""

    setting: str
    value: Any
    phrases: tuple[Phrase, ...]


@dataclass(frozen=True, slots=True)
class Queries:
    """All phrases, checked."""

    fillers: frozenset[str]
    negations: frozenset[str]
    phrases: tuple[tuple[Target, Phrase], ...]
    told: tuple[Told, ...] = field(default=())

    def read(self, text: str) -> list[tuple[Word, ...]]:
        """Return the sentences of a text."""
        return sentences(text, self.fillers, self.negations)


@functools.cache
def shipped_queries() -> Queries:
    """Return the shipped phrases, read once a process; BadConfig if the file can't be used."""
    return parse_queries(load_packaged(_FILE), shipped_table())


def parse_queries(data: Any, table: Table) -> Queries:
    """Return the phrases of a file and of the table."""
    parts = {"fillers", "negations", "exact", "facts", "says"}
    fields_of(data, parts, parts, _FILE)
    words = frozenset(data["fillers"]), frozenset(data["negations"])
    lost = words[0] | words[1] - {"not"}
    targets = {t.id: t for t in _targets(table)}
    said: list[tuple[Target, Phrase]] = []
    for name, text in _own_words(table):
        said += [(targets[name], phrase_of(s, data["exact"])) for s in sentences(text, *words)]
    for name, texts in mapping(data["says"], f"{_FILE}: says").items():
        target = targets[known(name, targets, "row, symptom or sheet", f"{_FILE}: says")]
        said += [(target, _phrase(t, lost, f"{_FILE}: says: {name}")) for t in texts]
    told = [t for i, entry in enumerate(data["facts"]) for t in _told(entry, lost, f"{_FILE}: facts: {i + 1}")]
    return Queries(*words, tuple(said), tuple(told))


def _phrase(text: Any, lost: Collection[str], where: str) -> Phrase:
    """Return a phrase; BadConfig for a word that `sentences` passes over, or that it would never give as it stands."""
    if not isinstance(text, str) or not text.replace("not", "").strip():
        raise BadConfig(f"{where}: {text!r} is no phrase")
    for word in (w for pattern in text.split() for w in pattern.split("|")):
        bare = word.removeprefix("=").removesuffix("*")
        if word in lost or not (word in ("<n>", "<%>") or bare.isalnum()):
            raise BadConfig(f"{where}: {text!r}: {word!r} is never found: passed over, or more than letters and digits")
    return phrase(text)


def _told(entry: Any, lost: Collection[str], where: str) -> Iterator[Told]:
    fields_of(entry, {"set", "says", "number"}, {"set"}, where)
    setting = known(entry["set"], vocabulary(), "setting", where)
    for value, texts in entry.get("says", {}).items():
        yield Told(setting, check_answer(setting, value, where)[1], _phrases(texts, lost, where))
    if "number" in entry:
        yield Told(setting, None, _phrases(entry["number"], lost, where))


def _phrases(texts: Iterable[Any], lost: Collection[str], where: str) -> tuple[Phrase, ...]:
    return tuple(_phrase(t, lost, where) for t in texts)


# ---------------------------------------------------------------------- the table's own words
def _targets(table: Table) -> Iterator[Target]:
    for row in table.rows.values():
        yield Target(row.id, row.part)
    yield from (Target(c.id, "clarifications") for c in table.clarifications)
    yield from (Target(e.id, "dont_use_for") for e in table.dont_use_for)
    yield from (Target(s, "symptoms") for s in table.symptoms)
    yield from (Target(s, "sheets") for s in table.sheets)


def _own_words(table: Table) -> Iterator[tuple[str, str]]:
    """Yield what the table itself calls a thing."""
    named = {t.casefold() for row in table.part("modern_triggers") for t in row.data["triggers"]}
    for row in table.rows.values():
        texts = (t for t in _names(row) if row.part != "direct_questions" or t.casefold() not in named)
        yield from ((row.id, text) for text in texts)  # a trigger is more than an example
    for mistake in table.mistakes:
        yield from ((mistake.id, text) for text in mistake.says.split(" / "))
    yield from ((c.id, c.query) for c in table.clarifications)
    yield from ((e.id, e.what) for e in table.dont_use_for)
    for s in table.symptoms.values():
        yield from ((s.id, text) for text in (s.id, s.title))
    yield from ((name, name) for name in table.sheets)


def _names(row: Row) -> Sequence[str]:
    said: Mapping[str, Any] = row.data
    one = [said[key] for key in ("behaviour", "query", "name", "topic") if key in said]
    many = [text for key in ("names", "keywords", "examples", "triggers") for text in said.get(key, ())]
    return [*one, *many]
