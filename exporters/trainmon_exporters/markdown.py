"""The report as Markdown to paste into an issue: the long form, with tables; every name is inert."""

from __future__ import annotations

from collections.abc import Iterable

from trainmon_exporters.compared import headline as parting
from trainmon_exporters.compared import name_of, rows, told_series
from trainmon_exporters.curves import Picture, in_values, levels, picture
from trainmon_exporters.escape import code, markdown
from trainmon_exporters.plot import Stroke, draw
from trainmon_exporters.plot_scale import Scale
from trainmon_exporters.story import (
    NAME,
    RUNS_IN_FULL,
    Numbered,
    again,
    blind_groups,
    headline,
    heralds,
    serious,
    skipped,
    spikes,
    telling,
    worst_first,
)
from trainmon_exporters.wording import (
    axis_word,
    change_lines,
    ending,
    extent,
    many,
    note,
    number,
    since,
    tally,
)
from trainmon_rules.report import Comparison, Fix, IncidentReport, Report, RunReport

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
    for run in report.runs:
        if run.comparison:
            blocks += _comparison(run, run.comparison)
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
        out += _plot(run, picture(run, told))
        for n in told.full:
            out += _incident(n, run.axis)
    else:
        out.append(markdown(_nothing_serious(run)))
    if told.brief:
        title = "Also noted" if told.full else "Notes"
        out.append(f"### {title}\n\n" + _list(markdown(note(i, run.axis)) for i in told.brief))
    if told.untold:
        out.append(f"And {many(told.untold, 'more incident')}.")
    return out + _end(run)


def _nothing_serious(run: RunReport) -> str:
    went = "; ".join(levels(run))
    text = "Too little was logged to judge it" if run.verdict == "insufficient-data" else "No incident found"
    text += f": {went}." if went else "."
    return text + (f" Nothing that needs action; {many(len(run.incidents), 'note')}." if run.incidents else "")


def _plot(run: RunReport, shown: Picture) -> list[str]:
    if not shown.main:
        return []
    if not shown.worth_it:
        return [_list(markdown(in_values(c, run.axis)) for c in (shown.main, shown.val) if c)]
    strokes = [s for s in (Stroke(shown.main, ""), Stroke(shown.val, "", dots=True)) if s.curves]
    rows = draw(strokes, shown.marks, PLOT_WIDTH, 11, unicode=False, axis=axis_word(run.axis))
    names = [f"{sign} {code(c[0].tag, 60)}" for sign, c in (("line:", shown.main), ("o:", shown.val)) if c]
    if Scale.of([*shown.main, *shown.val]).log:
        names.append("log scale")
    if shown.remark:
        names.append(shown.remark)
    marked = "; the numbers above the plot mark the onset of the incidents below" if shown.marks else ""
    body = "\n".join("".join(text for text, _ in row).rstrip() for row in rows)
    return [", ".join(names) + marked, f"```\n{body}\n```"]


def _comparison(run: RunReport, c: Comparison) -> list[str]:
    """Return where a run parts from another, as a table of all series."""
    title = f"## {code(run.run, NAME)} against {code(c.against, NAME)}"
    table = _table(("series", ""), ((code(name_of(s), NAME, cell=True), markdown(s.summary)) for s in told_series(c)))
    below = _list(f"{label}: {markdown(text)}".removeprefix(": ") for label, text in rows(run, c))
    head = f"{markdown(parting(c, run.axis))} The other run is {c.verdict} ({c.chosen})."
    return [part for part in (title, head, table if c.series else "", below) if part]


def _end(run: RunReport) -> list[str]:
    out = []
    if spiky := spikes(run):
        out.append(f"In all: {markdown(spiky)}.")
    if run.blind:
        rows = [(markdown(needs), ", ".join(map(markdown, rules))) for needs, rules in blind_groups(run)]
        out.append(_folded("What could not be judged", _table(("why", "rules"), rows)))
    if run.skipped and (text := skipped(run)):
        out.append("Passed over: " + markdown(text) + ".")
    return out


def _folded(title: str, body: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


# ---------------------------------------------------------------------- one incident
def _incident(n: Numbered, axis: str) -> list[str]:
    i = n.incident
    first = f", the first of {n.times:,}" if n.again else ""
    out = [f"### {n.number}. {i.severity}: {i.symptom}{first}", markdown(i.summary), _table(("", ""), _facts(i, axis))]
    if n.again:
        out.append(f"**And again** {markdown(again(n, axis))}.")
    if announced := heralds(i):
        before = [
            f"{symptoms} on {code(p.series, NAME)} at {axis_word(axis)} {p.onset_step}: {markdown(p.lead)}; "
            f"{markdown(p.summary)}"
            for symptoms, p in announced
        ]
        out.append("**Before it**\n\n" + _list(before))
    if i.also:
        out.append("**With it**\n\n" + _list(map(markdown, i.also)))
    out += _why(i)
    if i.fixes:
        out.append("**Do first**\n\n" + "\n".join(_fix(k + 1, f) for k, f in enumerate(i.fixes)))
    if i.routes:
        out.append("**Read**\n\n" + _list(f"{r.rank}: {code(r.sheet)} – {markdown(r.why)}" for r in i.routes))
    if i.checklist:
        out.append(f"Step by step: {code(f'trainmon explain {i.checklist}')}")
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
    for k, c in enumerate(i.causes):
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
