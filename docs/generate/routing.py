"""`routing.md`: the routing table, part by part."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from docs.generate.markup import KNOWLEDGE, NOTE, bullets, in_short, routes, sentence, table, when
from trainmon_rules.diagnosis.knowledge import shipped_table
from trainmon_rules.diagnosis.table import Row

INTRO = (
    "What to read for what, and what to ask before. `trainmon route TEXT` answers from it, and so does the diagnosis "
    "of every incident. The knowledge is that of the skill *using-training-optimization* (early 2026). A route is "
    "*primary* (first), *secondary*, *also*, or *cross-pack* (the topic of another pack, told in short under "
    f"[packs]({KNOWLEDGE}/packs))."
)
TITLES = {
    "loss_behaviour": "How the loss behaves",
    "gpu_utilization": "GPU utilisation",
    "dataset_size": "Size of the dataset",
    "direct_questions": "Direct questions",
    "modern_triggers": "Modern optimizers, schedules, precision",
    "scenarios": "Scenarios",
    "boundaries": "Where packs meet",
}


def page() -> str:
    """Return routing.md."""
    known = shipped_table()
    out = [NOTE, "# The routing table", INTRO, bullets(known.principles)]
    out.append(f"## When to use it\n\nIt is about {known.covers}.\n\n{bullets(known.use_when)}")
    elsewhere = ((e.what, f"[{e.use}]({KNOWLEDGE}/packs/{e.use}.md)") for e in known.dont_use_for)
    out.append("## Not for\n\n" + table(("what", "use instead"), elsewhere))
    out.append("## By symptom")
    out += map(_section, known.part("sections"))
    out += (f"## {title}\n\n{PARTS[part](known.part(part))}" for part, title in TITLES.items())
    return "\n\n".join([*out, _clarifications(), _mistakes()]) + "\n"


def _section(row: Row) -> str:
    known = shipped_table()
    out = [f"### {row.id}", f"**{' / '.join(row.data['names'])}**"]
    if row.data["keywords"]:
        out.append("Keywords: " + ", ".join(row.data["keywords"]) + ".")
    if row.data["questions"]:
        first = row.data.get("ask_first")
        asked = (known.questions[q].text({}) + (" **(first)**" if q == first else "") for q in row.data["questions"])
        out.append("Ask before routing:\n\n" + bullets(asked))
    found = [s.id for s in known.symptoms.values() if s.section == row.id]
    if found:
        out.append("Symptoms: " + ", ".join(f"[{s}](symptoms/{s}.md)" for s in found) + ".")
    out.append(routes(row.routes))
    if "note" in row.data:
        out.append(sentence(row.data["note"]))
    return "\n\n".join(out)


def _behaviour(rows: Iterable[Row]) -> str:
    cells = ((r.data["behaviour"], r.data["causes"], in_short(r.routes), _why(r)) for r in rows)
    return table(("loss", "likely cause", "read", "why"), cells)


def _utilization(rows: Iterable[Row]) -> str:
    def said(row: Row) -> str:
        return f"{row.data['utilization']}{' (ours: the text leaves it out)' if row.data.get('own') else ''}"

    cells = ((said(r), when(r.when), r.data["causes"], in_short(r.routes), _why(r)) for r in rows)
    return table(("GPU", "when", "likely cause", "read", "why"), cells)


def _dataset(rows: Iterable[Row]) -> str:
    cells = ((r.data["size"], when(r.when), in_short(r.routes), _why(r)) for r in rows)
    return table(("examples", "when", "read", "why"), cells)


def _questions(rows: Iterable[Row]) -> str:
    cells = ((r.data["query"], in_short(r.routes), ", ".join(r.data["examples"])) for r in rows)
    return table(("question", "read", "examples"), cells)


def _triggers(rows: Iterable[Row]) -> str:
    return table(
        ("trigger", "read", "why"), ((", ".join(r.data["triggers"]), in_short(r.routes), _why(r)) for r in rows)
    )


def _scenarios(rows: Iterable[Row]) -> str:
    return "\n\n".join(map(_scenario, rows))


def _scenario(row: Row) -> str:
    out = [f"### {row.data['name']}", routes(row.routes), f"Why this order: {row.data['why_order']}."]
    if "mistakes" in row.data:
        out.append("Common mistakes:\n\n" + bullets(row.data["mistakes"]))
    return "\n\n".join(out)


def _boundaries(rows: Iterable[Row]) -> str:
    return table(("question", "read", "why"), ((r.data["topic"], in_short(r.routes), _why(r)) for r in rows))


PARTS: dict[str, Callable[[Iterable[Row]], str]] = {
    "loss_behaviour": _behaviour,
    "gpu_utilization": _utilization,
    "dataset_size": _dataset,
    "direct_questions": _questions,
    "modern_triggers": _triggers,
    "scenarios": _scenarios,
    "boundaries": _boundaries,
}


def _why(row: Row) -> str:
    return row.routes[0].why


def _clarifications() -> str:
    known = shipped_table()
    rows = []
    for c in known.clarifications:
        question = known.questions[c.question] if c.question else None
        answers = c.answers or (question.answers if question else ())
        ways = [f'`trainmon route "{a}"`' for a in answers]
        if question and question.set:
            ways.append(f"`--set {question.set}={question.example}`")
        rows.append((c.query, c.ask, c.why, ", ".join(ways)))
    return "## Vague queries\n\nAsked once, then routed.\n\n" + table(("query", "question", "why", "go on with"), rows)


def _mistakes() -> str:
    known = shipped_table()
    rows = []
    for m in known.mistakes:
        wrong = m.wrong + (" alone" if m.how == "alone" else "") if m.wrong else m.habit
        right = known.questions[m.ask].ask if m.ask else in_short(m.correct)
        found = ", ".join(f"[{s}](symptoms/{s}.md)" for s in m.symptoms) or "queries only"
        rows.append((m.says, wrong, f"ask: {right}" if m.ask else right, m.why, found))
    head = ("symptom", "wrong", "right", "why", "enforced on")
    return "## Common mistakes\n\n" + table(head, rows)
