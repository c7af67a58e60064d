"""Reading the knowledge files: the routing table, the causes and the symptoms, every reference checked.

`routing.yaml` is the table, `causes.yaml` what can lie behind a symptom, `symptoms.yaml` ties both together.
Unknown sheets, packs, symptoms, facts, tests, settings and keys are refused with file and key.
"""

from __future__ import annotations

import functools
from importlib import resources
from typing import Any

from trainmon_rules.diagnosis.conditions import known
from trainmon_rules.diagnosis.entries import EntryReader, fields_of, mapping, question_of
from trainmon_rules.diagnosis.table import Row, Table
from trainmon_rules.errors import BadConfig
from trainmon_rules.rules import SYMPTOMS
from trainmon_rules.yamlfile import load_packaged

PARTS = (
    "sections", "loss_behaviour", "gpu_utilization", "dataset_size", "direct_questions", "modern_triggers",
    "scenarios", "boundaries",
)  # fmt: skip
_TOP = {"sheets", "packs", "dont_use_for", "questions", "clarifications", "mistakes", "rewordings", *PARTS}


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
    for entry in routing["dont_use_for"]:
        known(entry.get("use"), read.packs, "pack", "routing.yaml: dont_use_for")
    questions = {q: question_of(q, entry) for q, entry in routing["questions"].items()}
    rows: dict[str, Row] = {}
    for part in PARTS:
        for i, entry in enumerate(routing[part]):
            row = read.row(part, entry, f"routing.yaml: {part}: row {i + 1}")
            if row.id in rows:
                raise BadConfig(f"routing.yaml: {part}: two rows are called {row.id!r}")
            for q in row.data.get("questions", ()):
                known(q, questions, "question", f"routing.yaml: {part}: {row.id}")
            rows[row.id] = row
    mistakes = tuple(
        read.mistake(m, questions, f"routing.yaml: mistakes: row {i + 1}") for i, m in enumerate(routing["mistakes"])
    )
    for m in mistakes:
        rows[m.id] = Row(m.id, "mistakes", m.correct, m.when, {"says": m.says})
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
        dont_use_for=tuple(routing["dont_use_for"]),
        rows=rows,
        questions=questions,
        clarifications=tuple(routing["clarifications"]),
        mistakes=mistakes,
        causes=known_causes,
        symptoms=entries,
        rewordings=tuple(
            read.rewording(e, f"routing.yaml: rewordings: {i + 1}") for i, e in enumerate(routing["rewordings"])
        ),
    )
