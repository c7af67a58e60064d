"""Where the knowledge comes from: each fact of the three seeds, with its source line and the place where it stands.

`data/facts.tsv` has one row a fact: `seed` and `line` (the source, from 1), `fact` (a few words), `where` (a sheet or
pack and the anchor of one of its headings, or `routing.yaml#ID`), `says` (what must be written there, literally).
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from trainmon_rules.diagnosis.knowledge import page_text
from trainmon_rules.errors import BadConfig
from trainmon_rules.yamlfile import load_packaged

SEEDS = ("routing-table.txt", "training-and-optimization.txt", "training-recipes.txt")
COLUMNS = ("seed", "line", "fact", "where", "says")
TABLE = "routing.yaml"


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact: the line of the seed that holds it, the place where it stands, and the words that must stand there."""

    seed: str
    line: int
    fact: str
    where: str
    says: str

    def holds(self) -> bool:
        """Return whether the place says it; BadConfig if there is no such place."""
        return _plain(self.says) in passage(self.where)


def load_facts() -> tuple[Fact, ...]:
    """Return all facts, in the order of their sources; BadConfig if the file can't be used."""
    return parse_facts(resources.files("trainmon_rules").joinpath("data", "facts.tsv").read_text("utf-8"))


def parse_facts(text: str, name: str = "facts.tsv") -> tuple[Fact, ...]:
    """Return the facts of a table; BadConfig, with `name` and line, for a row that can't be used."""
    head, *rows = text.splitlines() or [""]
    if tuple(head.split("\t")) != COLUMNS:
        raise BadConfig(f"{name}:1: the columns must be {', '.join(COLUMNS)}, separated by tabs")
    facts = tuple(_fact(row, f"{name}:{n}") for n, row in enumerate(rows, 2))
    for n, (before, fact) in enumerate(itertools.pairwise(facts), 3):
        if (SEEDS.index(before.seed), before.line) > (SEEDS.index(fact.seed), fact.line):
            raise BadConfig(f"{name}:{n}: rows stand in the order of the seeds and their lines")
    if len(set(facts)) < len(facts):
        twice = next(n for n, fact in enumerate(facts, 2) if fact in facts[: n - 2])
        raise BadConfig(f"{name}:{twice}: this row stands there twice")
    return facts


def _fact(row: str, where: str) -> Fact:
    cells = row.split("\t")
    if len(cells) != len(COLUMNS) or not all(cell.strip() for cell in cells):
        raise BadConfig(f"{where}: needs {len(COLUMNS)} filled cells, separated by tabs")
    seed, line, fact, place, says = cells
    if seed not in SEEDS:
        raise BadConfig(f"{where}: unknown seed {seed!r}; known: {', '.join(SEEDS)}")
    if not line.isdecimal() or int(line) < 1:
        raise BadConfig(f"{where}: {line!r} is no line of a file")
    if not re.fullmatch(r"[a-z.-]+#[\w-]+", place):
        raise BadConfig(f"{where}: {place!r} is no place; write SHEET#heading or {TABLE}#ID")
    return Fact(seed, int(line), fact, place, says)


# --------------------------------------------------------------------- places
def passage(where: str) -> str:
    """Return what stands at a place, without line breaks and marks of emphasis.

    Parameters
    ----------
    where : str
        `SHEET#anchor` or `PACK#anchor`, the anchor of a heading as GitHub makes it (the title's stands for the
        introduction); or `routing.yaml#ID`, the ID of a row, a question, a pack, or a part of the routing table.

    Raises
    ------
    BadConfig
        If there is no such sheet, heading or ID.
    """
    page, _, anchor = where.partition("#")
    known = _rows() if page == TABLE else _sections(page)
    if anchor not in known:
        raise BadConfig(f"{where}: {page} has no {anchor!r}")
    return known[anchor]


def anchor_of(heading: str) -> str:
    """Return the anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-")


@functools.cache
def _sections(page: str) -> Mapping[str, str]:
    parts = re.split(r"^##? (.*)$", re.sub(r"^```.*?^```$", _fenced, page_text(page), flags=re.M | re.S), flags=re.M)
    found = {anchor_of(heading): _plain(text) for heading, text in zip(parts[1::2], parts[2::2], strict=True)}
    if 2 * len(found) != len(parts) - 1:
        raise BadConfig(f"{page}: two headings have the same anchor")
    return found


def _fenced(block: re.Match[str]) -> str:
    return block[0].replace("\n#", "\n #")  # a comment at the beginning of a line of code is no heading


@functools.cache
def _rows() -> Mapping[str, str]:
    table = load_packaged(TABLE)
    return {name: _plain(" ".join(_words(entry))) for name, entry in _named(table)}


def _named(table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for part, content in table.items():
        yield part, content
        if isinstance(content, Mapping):
            yield from content.items()
        else:
            yield from ((entry["id"], entry) for entry in content if "id" in entry)


def _words(entry: Any) -> Iterator[str]:
    if isinstance(entry, Mapping):
        for key, value in entry.items():
            yield str(key)
            yield from _words(value)
    elif isinstance(entry, list) and not any(isinstance(e, (list, Mapping)) for e in entry):
        yield ", ".join(map(str, entry))
    elif isinstance(entry, list):
        for e in entry:
            yield from _words(e)
    else:
        yield str(entry)


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"`+|\*\*", "", text)).strip()
