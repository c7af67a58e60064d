"""Reading the knowledge files: the routing table, the causes and the symptoms, every reference checked.

`routing.yaml` is the table, `causes.yaml` what can lie behind a symptom, `symptoms.yaml` ties both together.
Unknown sheets, packs, symptoms, facts, tests, settings and keys are refused with file and key.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from importlib import resources
from typing import Any

from trainmon_rules.diagnosis.asking import clarification_of, elsewhere_of, question_of
from trainmon_rules.diagnosis.conditions import known
from trainmon_rules.diagnosis.entries import ROW_KEYS, EntryReader, fields_of, mapping
from trainmon_rules.diagnosis.table import Mistake, Question, Row, Table
from trainmon_rules.errors import BadConfig
from trainmon_rules.rules import SYMPTOMS
from trainmon_rules.yamlfile import load_packaged

_TOP = {
    "sheets", "packs", "covers", "principles", "use_when", "dont_use_for", "questions", "clarifications", "mistakes",
    "checklists", "rewordings", *ROW_KEYS,
}  # fmt: skip


def load_table() -> Table:
    """Return the shipped table; BadConfig if a file can't be used."""
    files = {name: load_packaged(f"{name}.yaml") for name in ("routing", "causes", "symptoms")}
    return parse_table(files["routing"], files["causes"], files["symptoms"])


@functools.cache
def shipped_table() -> Table:
    """Return the shipped table, read once a process."""
    return load_table()


def sheet_text(name: str) -> str:
    """Return a sheet as Markdown; BadConfig if there is no such sheet."""
    known(name, shipped_table().sheets, "sheet", "sheets")
    return _page("sheets", name)


def pack_text(name: str) -> str:
    """Return the page of another pack as Markdown: what to do first on its topics; BadConfig if there is none."""
    known(name, shipped_table().packs, "pack", "packs")
    return _page("packs", name)


def page_text(name: str) -> str:
    """Return a sheet or the page of a pack as Markdown; BadConfig if nothing has that name."""
    return pack_text(name) if name in shipped_table().packs else sheet_text(name)


def _page(folder: str, name: str) -> str:
    return resources.files("trainmon_rules").joinpath(folder, f"{name}.md").read_text("utf-8")


def parse_table(routing: Any, causes: Any, symptoms: Any) -> Table:
    """Return the table from the content of its three files."""
    fields_of(routing, _TOP, _TOP, "routing.yaml")
    read = EntryReader(routing["sheets"], routing["packs"])
    questions = {q: question_of(q, entry) for q, entry in routing["questions"].items()}
    rows = _rows(routing, read)
    mistakes = tuple(
        read.mistake(m, questions, f"routing.yaml: mistakes: row {i + 1}") for i, m in enumerate(routing["mistakes"])
    )
    for m in mistakes:
        rows[m.id] = Row(m.id, "mistakes", m.correct, m.when, {"says": m.says})
    _check_references(rows, mistakes, questions)
    known_causes = {c: read.cause(c, entry) for c, entry in mapping(causes, "causes.yaml").items()}
    entries = {
        known(s, SYMPTOMS, "symptom", "symptoms.yaml"): read.symptom(s, entry, rows, questions, known_causes)
        for s, entry in mapping(symptoms, "symptoms.yaml").items()
    }
    if missing := [s for s in SYMPTOMS if s not in entries]:
        raise BadConfig(f"symptoms.yaml: no entry for {', '.join(missing)}")
    return Table(
        sheets=dict(routing["sheets"]),
        packs=dict(routing["packs"]),
        covers=routing["covers"],
        principles=tuple(routing["principles"]),
        use_when=tuple(routing["use_when"]),
        dont_use_for=tuple(
            elsewhere_of(e, read.packs, f"routing.yaml: dont_use_for: {i + 1}")
            for i, e in enumerate(routing["dont_use_for"])
        ),
        rows=rows,
        questions=questions,
        clarifications=tuple(
            clarification_of(e, rows, questions, f"routing.yaml: clarifications: {i + 1}")
            for i, e in enumerate(routing["clarifications"])
        ),
        mistakes=mistakes,
        checklists=_checklists(routing["checklists"]),
        causes=known_causes,
        symptoms=entries,
        rewordings=tuple(
            read.rewording(e, f"routing.yaml: rewordings: {i + 1}") for i, e in enumerate(routing["rewordings"])
        ),
    )


def _rows(routing: Any, read: EntryReader) -> dict[str, Row]:
    rows: dict[str, Row] = {}
    for part in ROW_KEYS:
        for i, entry in enumerate(routing[part]):
            row = read.row(part, entry, f"routing.yaml: {part}: row {i + 1}")
            if row.id in rows:
                raise BadConfig(f"routing.yaml: {part}: two rows are called {row.id!r}")
            rows[row.id] = row
    return rows


def _check_references(rows: Mapping[str, Row], mistakes: Iterable[Mistake], questions: Mapping[str, Question]) -> None:
    """Refuse a row that names a question, a part of the table or a mistake that there isn't."""
    faults = {m.id for m in mistakes}
    for row in rows.values():
        where = f"routing.yaml: {row.part}: {row.id}"
        for q in (*row.data.get("questions", ()), *filter(None, (row.data.get("ask_first"), row.data.get("ask")))):
            known(q, questions, "question", where)
        if "table" in row.data:
            known(row.data["table"], ROW_KEYS, "part of the table", where)
        if "avoids" in row.data:
            known(row.data["avoids"], faults, "mistake", where)


def _checklists(entries: Any) -> dict[str, str]:
    """Return the name of the checklist for each symptom that has one."""
    out: dict[str, str] = {}
    for name, symptoms in mapping(entries, "routing.yaml: checklists").items():
        for symptom in symptoms:
            if known(symptom, SYMPTOMS, "symptom", f"routing.yaml: checklists: {name}") in out:
                raise BadConfig(f"routing.yaml: checklists: {symptom} has two")
            out[symptom] = name
    return out
