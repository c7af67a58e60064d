"""The report for a terminal: verdict, plot, each incident, what was not judged, and at the end the verdict again.

A run without incidents is told in a few lines. Of many runs a table comes first, the worst at the top, then
those in which something went wrong.
"""

from __future__ import annotations

import io

from rich.console import Console
from rich.text import Text

from trainmon_exporters.closing import print_closing
from trainmon_exporters.comparison_block import print_comparisons
from trainmon_exporters.curves import Picture, in_values, levels, picture
from trainmon_exporters.incident_block import Said, print_brief, print_incident, shared_advice
from trainmon_exporters.page import PIPED_WIDTH, Page
from trainmon_exporters.plot import Stroke, draw
from trainmon_exporters.plot_scale import Scale
from trainmon_exporters.run_table import print_table
from trainmon_exporters.story import (
    NAME,
    RUNS_IN_FULL,
    blind_groups,
    serious,
    skipped,
    spikes,
    telling,
    worst_first,
)
from trainmon_exporters.wording import axis_word, extent, many, tally
from trainmon_rules.report import Report, RunReport

PLOT_ROWS = 5
BLIND_NEEDS = 4  # reasons named why rules could not work
BLIND_RULES = 3  # rules that are named rather than counted
TAGS = 4  # tags without a meaning that are named


def render_text(report: Report, width: int = PIPED_WIDTH) -> str:
    """Return the terminal report as plain text of the given width."""
    out = io.StringIO()
    print_report(report, Console(file=out, width=width, color_system=None, force_terminal=False, legacy_windows=False))
    return out.getvalue()


def print_report(report: Report, console: Console) -> None:
    """Print the report to a console, as wide and as colourful as that is."""
    page = Page.on(console)
    every = runs = worst_first(report)
    if len(runs) > 1:
        print_table(page, runs)
        runs = [r for r in runs if serious(r)]
    said = Said()
    for n, run in enumerate(runs[:RUNS_IN_FULL]):
        if n or len(every) > 1:
            page.blank()
        _run(page, run, said)
    if len(runs) > RUNS_IN_FULL:
        page.blank()
        left = many(len(runs) - RUNS_IN_FULL, "run")
        page.put(page.say(f"{left} more with incidents in the table above: replay one alone to read about it."))
    print_comparisons(page, report)
    print_closing(page, every)


def _run(page: Page, run: RunReport, said: Said) -> None:
    name = page.say(run.run, "name", NAME)
    told = telling(run)
    text = extent(run)
    if told.full and len(run.incidents) > 1:
        text += f"; {tally(run.incidents)}"
    page.put(page.say(run.verdict.upper() + "  ", run.verdict), name, page.say(f"  {text}"), hanging=2)
    if told.full:
        _plot(page, run, picture(run, told))
        main = shared_advice(told.main.incident)
        for n in told.full:
            print_incident(page, n, run, said, main=n == told.main or shared_advice(n.incident) == main)
        if told.brief:
            page.blank()
            page.put(page.say("Also noted", "name"))
    else:
        _nothing_serious(page, run)
    for i in told.brief:
        print_brief(page, i, run.axis)
    if told.untold:
        page.put(page.say(f"and {many(told.untold, 'more incident')}: --format json lists all"), indent=3)
    _end(page, run, said, indent=0 if told.full else 2)


def _nothing_serious(page: Page, run: RunReport) -> None:
    went = "; ".join(levels(run))
    went = f" {went}." if went else ""
    if run.verdict == "insufficient-data":
        text = f"Too little was logged to judge this run.{went}"
    else:
        text = f"No incident found.{went}"
    if run.incidents:
        text += f" Nothing that needs action; {many(len(run.incidents), 'note')}:"
    page.put(page.say(text), indent=2)


# ---------------------------------------------------------------------- the plot
def _plot(page: Page, run: RunReport, shown: Picture) -> None:
    """Print the plot, or in a line the values that aren't worth one."""
    if not shown.main:
        return
    if not shown.worth_it:
        for curves in (shown.main, shown.val):
            if curves:
                page.put(page.say(in_values(curves, run.axis)), indent=2, hanging=2)
        return
    strokes = [Stroke(shown.main, "train")]
    if shown.val:
        strokes.append(Stroke(shown.val, "val", dots=True))
    page.put(*_legend(page, shown), indent=2)
    for row in draw(strokes, shown.marks, page.width - 2, PLOT_ROWS, page.unicode, axis_word(run.axis)):
        page.row(row)


def _legend(page: Page, shown: Picture) -> list[Text]:
    line = "\u2812\u2812" if page.unicode else "--"
    log = " (log scale)" if Scale.of([*shown.main, *shown.val]).log else ""
    out = [page.say(f"{line} ", "train"), page.say(shown.main[0].tag, limit=60)]
    if shown.val:
        out += [page.say("   o ", "val"), page.say(shown.val[0].tag, limit=60)]
    out.append(page.say(log))
    if shown.remark:
        out.append(page.say(f"   {shown.remark}", "label"))
    if shown.marks:
        labels = ", ".join(m.label for m in shown.marks)
        began = "incident began" if len(shown.marks) == 1 else "incidents began"
        out.append(page.say(f"   {labels}: where the {began}", "label"))
    return out


# ---------------------------------------------------------------------- the end
def _end(page: Page, run: RunReport, said: Said, indent: int) -> None:
    """Print how spiky it was, what was not judged, understood, read: a line each, the same of several runs once."""
    for text in _remarks(page, run):
        if text not in said.remarks:
            page.put(page.say(text, "label"), indent=indent, hanging=2)
        said.remarks.add(text)


def _remarks(page: Page, run: RunReport) -> list[str]:
    out = []
    if spiky := spikes(run):
        out.append(f"In all: {spiky}")
    if groups := blind_groups(run):
        needs = [needs.removesuffix(" is logged").removesuffix(" are logged") for needs, _ in groups]
        names = [rule for _, rules in groups for rule in rules]
        rules = ", ".join(names) if len(names) <= BLIND_RULES else f"{len(names)} rules, named by trainmon inspect"
        out.append(f"Not judged: {rules} ({_some(needs, BLIND_NEEDS, '; ')})")
    if run.unmapped:
        shown = [page.say(t, limit=40).plain for t in run.unmapped]
        out.append(f"Tags without a known meaning: {_some(shown, TAGS)}")
    if left_out := skipped(run):
        out.append(f"Passed over while reading: {left_out}")
    return out


def _some(items: list[str], most: int, between: str = ", ") -> str:
    """Return the first items, and how many more there are."""
    text = between.join(items[:most])
    return f"{text} and {len(items) - most:,} more" if len(items) > most else text
