"""`checklists.md`: the lists to go through, failure modes, typical values."""

from __future__ import annotations

from docs.generate.markup import KNOWLEDGE, NOTE, bullets, numbered, table
from trainmon_rules.diagnosis.checklists import FAILURES, TYPICAL, Checklist, shipped_checklists
from trainmon_rules.diagnosis.knowledge import shipped_table


def page() -> str:
    """Return checklists.md."""
    shipped = shipped_checklists()
    intro = (
        "`trainmon explain NAME` prints each; a report names the one that fits. From *Model Training & Optimization* "
        "(2026-08) and *ML Training Recipes* (Orchestra-Research/AI-Research-SKILLs, MIT)."
    )
    failures = table(
        ("You see", "Symptom", "Likely cause", "Do", "Read"),
        ((f.says, _symptom(f.symptom), f.causes, ", ".join(f.fixes), read(f.sheet)) for f in shipped.failures),
    )
    typical = table(
        ("What", "Usual", "Setting", "Read"),
        (
            (t.what, t.words + (f"; {t.note}" if t.note else ""), f"`{t.setting}`" if t.setting else "", read(t.sheet))
            for t in shipped.typical.values()
        ),
    )
    parts = [*map(_list, shipped.lists.values()), f"## {FAILURES}\n\n{failures}", f"## {TYPICAL}\n\n{typical}"]
    return "\n\n".join([NOTE, "# Checklists", intro, *parts]) + "\n"


def read(name: str, up: str = "") -> str:
    """Return the link to a sheet or pack by its name."""
    folder = "packs" if name in shipped_table().packs else "sheets"
    return f"[{name}]({up}{KNOWLEDGE}/{folder}/{name}.md)"


def steps(c: Checklist, up: str = "") -> str:
    """Return a checklist's steps as a list."""
    return (numbered if c.ordered else bullets)(f"{s.do} ({read(s.sheet, up)})" for s in c.steps)


def _list(c: Checklist) -> str:
    offered = [s for s, name in shipped_table().checklists.items() if name == c.id]
    out = [f"## {c.id}", f"**{c.title}**"]
    if offered:
        out[-1] += ": for " + ", ".join(map(_symptom, offered))
    return "\n\n".join([*out, steps(c)])


def _symptom(name: str) -> str:
    return f"[{name}](symptoms/{name}.md)"
