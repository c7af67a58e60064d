"""The report for a terminal: verdict first, the loss with its incidents marked, each incident, last what was blind.

A healthy run is told in a few lines. Of many runs a table comes first, the worst at the top, then those in
which something went wrong.
"""

from __future__ import annotations

import io

from rich.console import Console
from rich.text import Text

from trainmon_exporters.curves import course, loss_curves, side_curves
from trainmon_exporters.incident_block import print_brief, print_incident
from trainmon_exporters.page import PIPED_WIDTH, Page
from trainmon_exporters.plot import Mark, Stroke, draw
from trainmon_exporters.story import (
    NAME,
    RUNS_IN_FULL,
    Telling,
    blind_groups,
    extent,
    headline,
    many,
    serious,
    skipped,
    tally,
    telling,
    worst_first,
)
from trainmon_rules.report import Curve, Report, RunReport

QUIET_RUNS = 50  # runs without incidents that get a line in the table
BLIND_GROUPS = 8  # lines about what it was blind to
BLIND_RULES = 5  # rules named on a run in which nothing serious happened


def render_text(report: Report, width: int = PIPED_WIDTH) -> str:
    """Return the terminal report as plain text of the given width."""
    out = io.StringIO()
    print_report(report, Console(file=out, width=width, color_system=None, force_terminal=False, legacy_windows=False))
    return out.getvalue()


def print_report(report: Report, console: Console) -> None:
    """Print the report to a console, as wide and as colourful as that is."""
    page = Page.on(console)
    runs = worst_first(report)
    if len(runs) > 1:
        _summary(page, runs)
        runs = [r for r in runs if serious(r)]
    for n, run in enumerate(runs[:RUNS_IN_FULL]):
        _run(page, run, first=n == 0 and len(report.runs) == 1)
    if len(runs) > RUNS_IN_FULL:
        page.blank()
        left = many(len(runs) - RUNS_IN_FULL, "run")
        page.put(page.say(f"{left} more with incidents in the table above: replay one alone to read about it."))


def _summary(page: Page, runs: list[RunReport]) -> None:
    """Print a line a run; of many in which nothing went wrong, the first ones."""
    quiet = [r for r in runs if not serious(r)]
    left_out = {id(r) for r in quiet[QUIET_RUNS:]}
    runs = [r for r in runs if id(r) not in left_out]
    verdicts = max(len(r.verdict) for r in runs) + 2
    names = min(max(len(page.say(r.run, limit=NAME)) for r in runs), page.width // 2) + 2
    for run in runs:
        what = headline(run)
        read = extent(run, brief=True)
        text = f"{what} -- {read}" if what else read
        head = page.say(run.verdict.upper().ljust(verdicts), run.verdict)
        name = page.say(run.run, "name", NAME)
        name.pad_right(max(2, names - len(name)))
        page.put(head, name, page.say(text), hanging=verdicts + 2)
    if left_out:
        page.put(
            page.say(f"and {many(len(left_out), 'more run')} in which nothing went wrong or too little was logged")
        )


def _run(page: Page, run: RunReport, first: bool) -> None:
    if not first:
        page.blank()
    name = page.say(run.run, "name", NAME)
    page.put(page.say(run.verdict.upper() + "  ", run.verdict), name, page.say("  " + extent(run)), hanging=2)
    told = telling(run)
    if told.full:
        _plots(page, run, told)
        if len(run.incidents) > 1:
            page.blank()
            page.put(page.say(f"{many(len(run.incidents), 'incident')}: {tally(run.incidents)}"))
        for n in told.full:
            print_incident(page, n, run.axis)
    else:
        _nothing_serious(page, run)
    if told.brief:
        page.blank()
        page.put(page.say("Also noted", "name"))
        for i in told.brief:
            print_brief(page, i, run.axis)
    if told.untold:
        page.put(page.say(f"and {many(told.untold, 'more incident')}: --format json lists all"), indent=3)
    _blind(page, run, in_full=bool(told.full))


def _nothing_serious(page: Page, run: RunReport) -> None:
    went = "; ".join(course(run))
    if run.verdict == "insufficient-data":
        page.put(page.say("Too little was logged to judge this run." + (f" {went}." if went else "")), indent=2)
    else:
        page.put(page.say("Nothing went wrong." + (f" {went}." if went else "")), indent=2)


# ---------------------------------------------------------------------- plots
def _plots(page: Page, run: RunReport, told: Telling) -> None:
    marks = [Mark(n.incident.onset_step, str(n.number), n.incident.severity) for n in told.full]
    train, val = loss_curves(run)
    _plot(page, run, train, val, marks, 11)
    side = side_curves(run, told)
    if side:
        _plot(page, run, side, [], marks, 5)


def _plot(page: Page, run: RunReport, train: list[Curve], val: list[Curve], marks: list[Mark], height: int) -> None:
    strokes = [Stroke(val, "val", dots=True)] if val else []
    if train:
        strokes.insert(0, Stroke(train, "train"))
    rows = draw(strokes, marks, page.width - 2, height, page.unicode, run.axis or "step")
    if not rows:
        return
    page.blank()
    page.put(*_legend(page, train, val, marks), indent=2)
    for row in rows:
        page.row(row)


def _legend(page: Page, train: list[Curve], val: list[Curve], marks: list[Mark]) -> list[Text]:
    line = "\u2812\u2812" if page.unicode else "--"
    out: list[Text] = []
    if train:
        out += [page.say(f"{line} ", "train"), page.say(train[0].tag, limit=60), Text("   ")]
    if val:
        out += [page.say("o ", "val"), page.say(val[0].tag, limit=60), Text("   ")]
    if marks:
        out.append(page.say(f"{' '.join(m.label for m in marks)}: onset of an incident below", "label"))
    return out


# ---------------------------------------------------------------------- the end
def _blind(page: Page, run: RunReport, in_full: bool) -> None:
    groups = blind_groups(run)
    left_out = skipped(run)
    if in_full and (groups or left_out or run.unmapped):
        page.blank()
    indent = 0 if in_full else 2
    if groups and in_full:
        page.put(page.say("Blind", "name"), page.say(": what could not be judged, and what would open its eyes"))
        for needs, rules in groups[:BLIND_GROUPS]:
            page.put(page.say(f"{needs}: "), page.say(", ".join(rules), "label"), indent=3, hanging=2)
        if len(groups) > BLIND_GROUPS:
            page.put(page.say(f"and {len(groups) - BLIND_GROUPS} more: trainmon inspect lists them"), indent=3)
    elif groups:
        rules = [r for _, names in groups for r in names]
        names = ", ".join(rules[:BLIND_RULES])
        if len(rules) > BLIND_RULES:
            names += f" and {len(rules) - BLIND_RULES} more"
        why = groups[0][0] if len(groups) == 1 else "trainmon inspect says for want of what"
        page.put(page.say(f"Blind: {names} ({why})."), indent=indent, hanging=2)
    if run.unmapped:
        shown = ", ".join(page.say(t, limit=40).plain for t in run.unmapped[:5])
        more = f" and {len(run.unmapped) - 5:,} more" if len(run.unmapped) > 5 else ""
        page.put(page.say(f"Tags not understood: {shown}{more}"), indent=indent, hanging=2)
    if left_out:
        page.put(page.say(f"Passed over: {left_out}"), indent=indent, hanging=2)
