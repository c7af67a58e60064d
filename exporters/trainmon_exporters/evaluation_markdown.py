"""An evaluation as Markdown: the tables in full, and the sources of the peers' rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trainmon_exporters import evaluated
from trainmon_exporters.escape import code, markdown
from trainmon_rules.evaluation import Evaluation


def render_evaluation_markdown(e: Evaluation) -> str:
    """Return the evaluation as one Markdown document."""
    blocks = [
        f"## Evaluation: {markdown(evaluated.title(e))}",
        _table(("", ""), ((label, markdown(text)) for label, text in evaluated.totals(e))),
        "### Wanted\n\n" + _table(("", ""), ((evaluated.met(b), markdown(evaluated.bar(b))) for b in e.bars)),
        "### By symptom\n\n" + _aligned(evaluated.SYMPTOM_HEADS, evaluated.symptom_rows(e)),
        markdown(evaluated.WHAT),
        "### Beside the peers\n\n" + _aligned(evaluated.PEER_HEADS, evaluated.peer_rows(e)),
        markdown(evaluated.PEERS),
        _list(f"**{markdown(p.peer)}**: {markdown(evaluated.peer_about(p))}" for p in e.peers),
    ]
    if e.traceless:
        rows = [(code(t.scenario, cell=True), str(t.runs), markdown(t.why), evaluated.said(t)) for t in e.traceless]
        blocks.append("### Without a trace\n\n" + _table(("scenario", "runs", "why", "told"), rows))
    for head, lines in (
        ("Missed", evaluated.missed(e.trials)),
        ("False alarms", evaluated.false_alarms(e.trials)),
        ("Wrong routes", evaluated.wrong_routes(e.trials)),
        ("Not used", [f"{error.source}: {error.error}" for error in e.errors]),
    ):
        if lines:
            blocks.append(f"### {head}\n\n" + _list(map(markdown, lines)))
    return "\n\n".join([*blocks, markdown(evaluated.how(e))]) + "\n"


def _aligned(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose heads that begin with ">" stand over numbers."""
    body = ["| " + " | ".join(markdown(cell) for cell in row) + " |" for row in rows]
    titles = "| " + " | ".join(head.lstrip(">") for head in heads) + " |"
    rule = "|" + "|".join("---:" if head.startswith(">") else "---" for head in heads) + "|"
    return "\n".join([titles, rule, *body])


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _list(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)
