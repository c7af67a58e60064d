"""Checklists, failure modes and typical values: read from `data/checklists.yaml`, checked, printed as pages."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from trainmon_rules.diagnosis.conditions import known, show
from trainmon_rules.diagnosis.entries import fields_of
from trainmon_rules.diagnosis.knowledge import shipped_table
from trainmon_rules.errors import BadConfig
from trainmon_rules.rules import SYMPTOMS
from trainmon_rules.vocabulary import vocabulary
from trainmon_rules.yamlfile import load_packaged

FAILURES, TYPICAL = "failure-modes", "typical-values"
_FILE = "checklists.yaml"


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do or to look at, and the sheet or pack that tells more."""

    do: str
    sheet: str


@dataclass(frozen=True, slots=True)
class Checklist:
    """A list to go through; `ordered` if the first step comes first."""

    id: str
    title: str
    ordered: bool
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class FailureMode:
    """What one sees (and the word for it here), what is likely behind it, what cures it."""

    id: str
    says: str
    symptom: str
    causes: str
    fixes: tuple[str, ...]
    sheet: str


@dataclass(frozen=True, slots=True)
class Typical:
    """What is usual: one value, a range, or a value for each case (`levels`)."""

    id: str
    what: str
    sheet: str
    setting: str | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    levels: Mapping[str, float] = field(default_factory=dict)
    unit: str = ""
    note: str = ""

    @property
    def numbers(self) -> tuple[float, ...]:
        """Every number of it."""
        return tuple(n for n in (self.value, self.low, self.high, *self.levels.values()) if n is not None)

    @property
    def words(self) -> str:
        """The value as a person reads it."""
        if self.levels:
            return ", ".join(f"{show(n)}{self.unit} ({case})" for case, n in self.levels.items())
        if self.value is not None:
            return f"{show(self.value)}{self.unit}"
        return f"{show(self.low)} to {show(self.high)}{self.unit}"


@dataclass(frozen=True, slots=True)
class Checklists:
    """The whole file."""

    lists: Mapping[str, Checklist]
    failures: tuple[FailureMode, ...]
    typical: Mapping[str, Typical]

    @property
    def names(self) -> tuple[str, ...]:
        """Everything in it that has a page."""
        return (*self.lists, FAILURES, TYPICAL)


@functools.cache
def shipped_checklists() -> Checklists:
    """Return the shipped lists, read once a process; BadConfig if the file can't be used."""
    table = shipped_table()
    return parse_checklists(load_packaged(_FILE), {**table.sheets, **table.packs})


def parse_checklists(data: Any, sheets: Collection[str]) -> Checklists:
    """Return the content of the file; `sheets` are the names of all sheets and packs."""
    parts = {"checklists", "failure_modes", "typical"}
    fields_of(data, parts, parts, _FILE)
    lists = [_checklist(e, sheets, f"{_FILE}: checklists: {i + 1}") for i, e in enumerate(data["checklists"])]
    failures = [_failure(e, sheets, f"{_FILE}: failure_modes: {i + 1}") for i, e in enumerate(data["failure_modes"])]
    typical = [_typical(e, sheets, f"{_FILE}: typical: {i + 1}") for i, e in enumerate(data["typical"])]
    for names in ([c.id for c in lists], [f.id for f in failures], [t.id for t in typical]):
        if twice := [n for n in names if names.count(n) > 1]:
            raise BadConfig(f"{_FILE}: two entries are called {twice[0]!r}")
    return Checklists({c.id: c for c in lists}, tuple(failures), {t.id: t for t in typical})


def _checklist(entry: Any, sheets: Collection[str], where: str) -> Checklist:
    needed = {"id", "title", "ordered", "steps"}
    fields_of(entry, needed, needed, where)
    steps = []
    for i, step in enumerate(entry["steps"]):
        at = f"{where} ({entry['id']}): step {i + 1}"
        fields_of(step, {"do", "sheet"}, {"do", "sheet"}, at)
        steps.append(Step(step["do"], known(step["sheet"], sheets, "sheet or pack", at)))
    return Checklist(entry["id"], entry["title"], bool(entry["ordered"]), tuple(steps))


def _failure(entry: Any, sheets: Collection[str], where: str) -> FailureMode:
    needed = {"id", "says", "symptom", "causes", "fixes", "sheet"}
    fields_of(entry, needed, needed, where)
    known(entry["symptom"], SYMPTOMS, "symptom", where)
    known(entry["sheet"], sheets, "sheet or pack", where)
    return FailureMode(**{**entry, "fixes": tuple(entry["fixes"])})


def _typical(entry: Any, sheets: Collection[str], where: str) -> Typical:
    needed = {"id", "what", "sheet"}
    fields_of(entry, needed | {"setting", "value", "low", "high", "levels", "unit", "note"}, needed, where)
    known(entry["sheet"], sheets, "sheet or pack", where)
    if "setting" in entry:
        known(entry["setting"], vocabulary(), "setting", where)
    kinds = ["value" in entry, "low" in entry and "high" in entry, "levels" in entry]
    if sum(kinds) != 1:
        raise BadConfig(f"{where} ({entry['id']}): needs a value, or low and high, or levels; one of them")
    record = Typical(**entry)
    if not all(isinstance(n, int | float) and not isinstance(n, bool) for n in record.numbers):
        raise BadConfig(f"{where} ({entry['id']}): its values must be numbers")
    if record.low is not None and record.high is not None and record.low >= record.high:
        raise BadConfig(f"{where} ({entry['id']}): low must be below high")
    return record


# ---------------------------------------------------------------------- pages
def page(name: str) -> str:
    """Return a list, the failure modes or the typical values as Markdown; BadConfig if nothing has that name."""
    shipped = shipped_checklists()
    known(name, shipped.names, "checklist", "checklists")
    if name == FAILURES:
        head = "# Common failure modes"
        rows = _table(
            ("You see", "Symptom", "Likely cause", "Do", "Read"),
            ((f.says, f"`{f.symptom}`", f.causes, ", ".join(f.fixes), f"`{f.sheet}`") for f in shipped.failures),
        )
        return f"{head}\n\n{rows}\n"
    if name == TYPICAL:
        head = "# Typical values"
        rows = _table(
            ("What", "Usual", "Setting", "Read"),
            (
                (t.what, t.words + (f"; {t.note}" if t.note else ""), f"`{t.setting}`" if t.setting else "", t.sheet)
                for t in shipped.typical.values()
            ),
        )
        return f"{head}\n\n{rows}\n"
    return _list(shipped.lists[name])


def _list(c: Checklist) -> str:
    offered = [s for s, name in shipped_table().checklists.items() if name == c.id]
    out = [f"# {c.title}"]
    if offered:
        out.append(f"For: {', '.join(f'`{s}`' for s in offered)}.")
    if c.ordered:
        out.append("In this order:")
    out.append("\n".join(f"{f'{n}.' if c.ordered else '-'} {s.do} (`{s.sheet}`)" for n, s in enumerate(c.steps, 1)))
    return "\n\n".join(out) + "\n"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in lines)
