"""An evaluation on the terminal."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console

from trainmon_exporters import evaluated
from trainmon_exporters.page import PIPED_WIDTH, Page
from trainmon_rules.evaluation import TOTAL, Evaluation

SHOWN = 20  # misses, false alarms, wrong routes listed
GAP = 2
MET = {True: "for", False: "bad", None: "label"}


def render_evaluation_json(e: Evaluation) -> str:
    """Return the evaluation as one indented JSON document, schema `trainmon.evaluation/1`."""
    return json.dumps(e.as_dict(), indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def render_evaluation_text(e: Evaluation) -> str:
    """Return the terminal's text without colour, 100 columns wide."""
    out = io.StringIO()
    print_evaluation(e, Console(file=out, width=PIPED_WIDTH, height=25, highlight=False, markup=False, emoji=False))
    return out.getvalue()


def print_evaluation(e: Evaluation, console: Console) -> None:
    """Print the figures, the tables, and what was missed."""
    page = Page.on(console)
    page.put(page.say("EVALUATION  ", "first"), page.say(evaluated.title(e)), hanging=GAP)
    for label, text in evaluated.totals(e):
        page.field(label, page.say(text))
    for b in e.bars:
        page.put(page.say(evaluated.met(b).ljust(9), MET[b.met]), page.say(evaluated.bar(b)), indent=3, hanging=9)
    page.blank()
    _table(page, evaluated.SYMPTOM_HEADS, evaluated.symptom_rows(e))
    page.put(page.say(evaluated.WHAT, "label"), indent=GAP)
    page.blank()
    _table(page, evaluated.PEER_HEADS, evaluated.peer_rows(e))
    page.put(page.say(f"{evaluated.PEERS} Sources and parameters: --format markdown.", "label"), indent=GAP)
    if e.traceless:
        page.blank()
        page.put(page.say("WITHOUT A TRACE  "), page.say("out of recall: nothing logged can show these", "label"))
        for t in e.traceless:
            about = f" ({t.runs}): {t.why}; told: {evaluated.said(t)}"
            page.put(page.say(t.scenario, "name"), page.say(about), indent=3, hanging=3)
    _listed(page, "MISSED", evaluated.missed(e.trials))
    _listed(page, "FALSE ALARMS", evaluated.false_alarms(e.trials))
    _listed(page, "WRONG ROUTES", evaluated.wrong_routes(e.trials))
    page.blank()
    page.put(page.say(evaluated.how(e), "label"))


def _listed(page: Page, head: str, lines: Sequence[str]) -> None:
    if not lines:
        return
    page.blank()
    page.put(page.say(f"{head}  {len(lines)}"))
    for line in lines[:SHOWN]:
        page.put(page.say(line), indent=3, hanging=3)
    if len(lines) > SHOWN:
        page.put(page.say(f"{len(lines) - SHOWN:,} more: --format json lists all", "label"), indent=3)


def _table(page: Page, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; a head that begins with ">" stands over numbers."""
    titles, right = [h.lstrip(">") for h in heads], [h.startswith(">") for h in heads]
    safe = [[page.say(cell).plain for cell in row] for row in (titles, *rows)]
    wide = [max(cell_len(row[i]) for row in safe) for i in range(len(titles))]
    for number, row in enumerate(safe):
        cells = [c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, wide, right, strict=True)]
        style = "label" if not number else "name" if row[0] == TOTAL else ""
        page.row([((" " * GAP).join(cells).rstrip(), style)], indent=GAP)
