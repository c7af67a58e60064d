"""The report as Markdown to paste into an issue: the terminal's story with tables; every name is inert."""

from __future__ import annotations

from collections.abc import Iterable

from trainmon_exporters.curves import course, loss_curves
from trainmon_exporters.escape import code, markdown
from trainmon_exporters.incident_block import CAUSES, FIXES
from trainmon_exporters.plot import Mark, Stroke, draw
from trainmon_exporters.story import (
    NAME,
    RUNS_IN_FULL,
    Numbered,
    Telling,
    blind_groups,
    change_lines,
    ending,
    extent,
    headline,
    lead,
    many,
    number,
    serious,
    since,
    skipped,
    tally,
    telling,
    worst_first,
)
from trainmon_rules.report import Fix, IncidentReport, Report, RunReport

ERRORS = 20  # unreadable sources and records listed
PLOT_WIDTH = 90


def render_markdown(report: Report) -> str:
    """Return the report as one Markdown document."""
    runs = worst_first(report)
    blocks: list[str] = []
    if len(runs) > 1:
        blocks.append(_summary(runs))
        runs = [r for r in runs if serious(r)]
    for run in runs[:RUNS_IN_FULL]:
        blocks += _run(run)
    if len(runs) > RUNS_IN_FULL:
        blocks.append(f"{many(len(runs) - RUNS_IN_FULL, 'run')} more with incidents in the table above.")
    if report.errors:
        blocks.append("### Not read\n\n" + _list(_errors(report)))
    return "\n\n".join(blocks) + "\n" if blocks else "Nothing was read.\n"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    names = list(head)
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _list(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def _summary(runs: list[RunReport]) -> str:
    rows = []
    for run in runs:
        what = headline(run)
        rows.append(
            (run.verdict, code(run.run, NAME, cell=True), markdown(what) or "-", markdown(extent(run, brief=True)))
        )
    return _table(("verdict", "run", "what went wrong", "read"), rows)


def _errors(report: Report) -> list[str]:
    out = []
    for e in report.errors[:ERRORS]:
        line = "" if e.line is None else f", line {e.line}"
        out.append(f"{code(e.source, NAME)}{line}: {markdown(e.error)}")
    if len(report.errors) > ERRORS:
        out.append(f"{len(report.errors) - ERRORS:,} more")
    return out


# ---------------------------------------------------------------------- one run
def _run(run: RunReport) -> list[str]:
    told = telling(run)
    out = [f"## {run.verdict}: {code(run.run, NAME)}", markdown(extent(run)) + "."]
    if told.full:
        out[-1] += f" {many(len(run.incidents), 'incident')}: {tally(run.incidents)}."
        out += _plot(run, told)
        for n in told.full:
            out += _incident(n, run.axis)
    else:
        went = "; ".join(course(run))
        what = "Too little was logged to judge it" if run.verdict == "insufficient-data" else "Nothing went wrong"
        out.append(markdown(f"{what}{': ' + went if went else ''}."))
    if told.brief:
        out.append("### Also noted\n\n" + _list(_brief(i, run.axis) for i in told.brief))
    if told.untold:
        out.append(f"And {many(told.untold, 'more incident')}.")
    return out + _end(run)


def _plot(run: RunReport, told: Telling) -> list[str]:
    marks = [Mark(n.incident.onset_step, str(n.number)) for n in told.full]
    train, val = loss_curves(run)
    strokes = [s for s in (Stroke(train, ""), Stroke(val, "", dots=True)) if s.curves]
    rows = draw(strokes, marks, PLOT_WIDTH, 11, unicode=False, axis=run.axis or "step")
    if not rows:
        return []
    names = [f"{sign} {code(c[0].tag, 60)}" for sign, c in (("line:", train), ("o:", val)) if c]
    body = "\n".join("".join(text for text, _ in row).rstrip() for row in rows)
    return [
        f"{', '.join(names)}; the numbers above the plot mark the onset of the incidents below",
        f"```\n{body}\n```",
    ]


def _brief(i: IncidentReport, axis: str) -> str:
    return markdown(f"{i.severity} {i.symptom}: {i.summary} (since {since(i, axis)}; until {ending(i, axis)})")


def _end(run: RunReport) -> list[str]:
    out = []
    if run.blind:
        rows = [(markdown(needs), ", ".join(map(markdown, rules))) for needs, rules in blind_groups(run)]
        out.append(_folded("What could not be judged", _table(("for want of", "rules"), rows)))
    if run.skipped and (text := skipped(run)):
        out.append("Passed over: " + markdown(text) + ".")
    return out


def _folded(title: str, body: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


# ---------------------------------------------------------------------- one incident
def _incident(n: Numbered, axis: str) -> list[str]:
    i = n.incident
    out = [f"### {n.number}. {i.severity}: {i.symptom}", markdown(i.summary), _table(("", ""), _facts(i, axis))]
    if i.precursors:
        heralds = [
            f"{p.symptom} on {code(p.series, NAME)} at {axis or 'step'} {p.onset_step}, "
            f"{lead(p.lead_steps, p.lead_reports)}: {markdown(p.summary)}"
            for p in i.precursors
        ]
        out.append("**Before it**\n\n" + _list(heralds))
    if i.also:
        out.append("**With it**\n\n" + _list(map(markdown, i.also)))
    out += _why(i)
    if i.fixes:
        out.append("**Do first**\n\n" + "\n".join(_fix(k + 1, f) for k, f in enumerate(i.fixes[:FIXES])))
    if i.routes:
        out.append("**Read**\n\n" + _list(f"{r.rank}: {code(r.sheet)} – {markdown(r.why)}" for r in i.routes))
    if i.questions:
        out.append("**To know more**\n\n" + _list(map(markdown, i.questions)))
    return out


def _facts(i: IncidentReport, axis: str) -> list[tuple[str, str]]:
    rows = [
        ("series", ", ".join(code(s, NAME, cell=True) for s in i.series)),
        ("since", markdown(since(i, axis))),
        ("until", markdown(ending(i, axis))),
    ]
    rows += [(markdown(k, 40), markdown(number(v), NAME)) for k, v in i.evidence.items()]
    return [*rows, ("id", code(i.id, cell=True))]


def _why(i: IncidentReport) -> list[str]:
    lines = []
    for k, c in enumerate(i.causes[:CAUSES]):
        lines.append(f"{k + 1}. {markdown(c.cause)}" + (f": {markdown(c.why)}" if c.why else ""))
        lines += [f"   - for: {markdown(t)}" for t in c.evidence_for]
        lines += [f"   - against: {markdown(t)}" for t in c.evidence_against]
    if i.ruled_out:
        lines += ["", "Ruled out: " + "; ".join(markdown(c.cause) for c in i.ruled_out)]
    return ["**Why**\n\n" + "\n".join(lines).lstrip("\n")] if lines else []


def _fix(k: int, fix: Fix) -> str:
    text = f"{k}. {markdown(fix.action)} ({code(fix.sheet)})"
    lines = change_lines(fix.change or {})
    return text + (f": {', '.join(code(line) for line in lines)}" if lines else "")
