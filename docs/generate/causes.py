"""`causes.md`: what may be behind a symptom, and what in the log speaks for and against it."""

from __future__ import annotations

from collections.abc import Iterable

from docs.generate.markup import NOTE, bullets, fix, routes, sentence
from trainmon_rules.diagnosis.knowledge import shipped_table
from trainmon_rules.diagnosis.table import CauseRule, Evidence

HOW = (
    "Names in code font are settings ([config.md]({up}config.md)) or facts found in the log (`DERIVED` in "
    "`rules/trainmon_rules/diagnosis/factnames.py` says what each means); names in braces are filled in with their "
    "values. What has a condition that isn't met is left out."
)


def page() -> str:
    """Return causes.md."""
    intro = (
        "The causes of a symptom are ranked by a prior, which the [symptom's page](symptoms.md) gives, plus the weight "
        "of the evidence for it (the numbers here), minus that against it. " + HOW.format(up="")
    )
    causes = shipped_table().causes.values()
    return "\n\n".join([NOTE, "# The causes", intro, *map(_cause, causes)]) + "\n"


def evidence(items: Iterable[Evidence]) -> str:
    """Return evidence as a list, with its weight."""
    return bullets(f"{e.say} ({'rules it out' if e.decisive else f'{e.weight:g}'})" for e in items)


def _cause(c: CauseRule) -> str:
    behind = [s.id for s in shipped_table().symptoms.values() if any(c.id == name for name, _ in s.causes)]
    out = [f"## {c.id}", sentence(c.why)]
    out.append("May be behind: " + ", ".join(f"[{s}](symptoms/{s}.md)" for s in behind) + ".")
    for word, items in (("For", c.evidence_for), ("Against", c.evidence_against)):
        if items:
            out.append(f"{word} it:\n\n{evidence(items)}")
    out.append("Read:\n\n" + routes(c.routes))
    out.append("Do:\n\n" + bullets(map(fix, c.fixes)))
    return "\n\n".join(out)
