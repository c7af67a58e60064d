"""What the logs hold, as tables for a terminal: sources, attempts, tags with their roles, what is blind."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trainmon_exporters.wording import axis_word
from trainmon_rules.inspection import Inspection, RunFacts, TagFacts
from trainmon_rules.report import Blind

WIDTH = 80
SHOWN = 40  # unmapped tags named
NARROWEST = 12  # columns of a name, however little room there is
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def render_inspect_json(inspection: Inspection) -> str:
    """Return the inspection as one indented JSON document, schema `trainmon.inspect/1`."""
    return json.dumps(inspection.as_dict(), indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def print_inspection(inspection: Inspection, console: Console) -> None:
    """Print the tables, at least 80 columns wide; plain text where the console is no terminal."""
    console.width = max(WIDTH, console.width)
    for number, run in enumerate(inspection.runs):
        if number:
            console.print()
        _print_run(run, console)


def _print_run(run: RunFacts, console: Console) -> None:
    steps = f"{axis_word(run.axis)} {_span(run.first_step, run.last_step)}, " if run.first_step is not None else ""
    ends = {"ended": "", "finished": "finished, ", "running": "still running, "}.get(run.status, f"{run.status}, ")
    _line(console, Text(_safe(run.run), "bold"), f"  {ends}{steps}{run.points:,} points")
    _print_sources(run, console)
    if len(run.attempts) > 1:
        rows = [(str(a.attempt), _span(a.first_step, a.last_step), f"{a.points:,}") for a in run.attempts]
        console.print(_table(("attempt (a resume begins one)", "steps", ">points"), rows, console.width))
    mapped = [t for t in run.tags if t.role]
    if mapped:
        number = {s.source: str(i) for i, s in enumerate(run.sources, 1)} if len(run.sources) > 1 else {}
        heads = ("role", "tag", *(("#",) if number else ()), ">points", "steps", "a row every", "last value")
        console.print(_table(heads, [_tag(t, number) for t in mapped], console.width, names=("tag", "role")))
    notes = [*_unmapped(run.unmapped), *_blind(run.blind)]
    if notes:
        console.print(_notes(notes))


def _print_sources(run: RunFacts, console: Console) -> None:
    rows = []
    many = len(run.sources) > 1
    for number, s in enumerate(run.sources, 1):
        skipped = ", ".join(f"{n:,} {kind}" for kind, n in sorted(s.skipped.items()) if n)
        more = f" and {len(s.files) - 1} more" if len(s.files) > 1 else ""
        name = _safe(s.source) + more
        counts = (s.format or "unreadable", f"{s.records:,}", f"{s.points:,}", _safe(skipped))
        rows.append((*((str(number),) if many else ()), name, *counts))
    heads = (*(("#",) if many else ()), "source", "format", ">records", ">points", "skipped")
    console.print(_table(heads, rows, console.width, names=("source",)))


def _unmapped(tags: Sequence[str]) -> Iterable[tuple[str, str]]:
    if tags:
        more = f" and {len(tags) - SHOWN} more" if len(tags) > SHOWN else ""
        yield "unmapped", ", ".join(_safe(t) for t in tags[:SHOWN]) + more
        yield "", "(give them a meaning under [roles] in trainmon.toml)"


def _blind(rules: Sequence[Blind]) -> Iterable[tuple[str, str]]:
    """Name the rules that could not work, together where they want the same thing."""
    wants: dict[str, list[str]] = {}
    for blind in rules:
        wants.setdefault(blind.needs, []).append(blind.rule)
    for number, (needs, names) in enumerate(wants.items()):
        yield ("" if number else "not judged"), _safe(f"{', '.join(names)} ({needs})")


def _notes(rows: Iterable[tuple[str, str]]) -> Table:
    table = Table.grid(padding=(0, 1), pad_edge=True)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for label, text in rows:
        table.add_row(label, Text(text))
    return table


def _tag(t: TagFacts, number: Mapping[str, str]) -> tuple[str, ...]:
    """Return a tag's row; where a run has several sources, with the number of its own."""
    every = "" if t.steps_per_report is None else f"{t.steps_per_report:,} step{'s'[: t.steps_per_report != 1]}"
    if t.seconds_per_report is not None:
        every += f", {_duration(t.seconds_per_report)}"
    source = (number[t.source],) if number else ()
    span = _span(t.first_step, t.last_step)
    return (t.role, _safe(t.tag), *source, f"{t.points:,}", span, every, _number(t.last_value))


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], width: int, names: Sequence[str] = ()) -> Table:
    """Return a table without lines; a head that begins with ">" stands over numbers.

    The columns of `names` share what the others leave; a name that is longer is broken where it has a joint.
    """
    table = Table(box=None, pad_edge=True, padding=(0, 1), header_style="dim", show_edge=False)
    titles = [head.lstrip(">") for head in heads]
    wide = [max([len(t), *(cell_len(row[i]) for row in rows)]) for i, t in enumerate(titles)]
    left = width - sum(w + 2 for t, w in zip(titles, wide, strict=True) if t not in names)
    for n, name in enumerate(t for t in titles if t in names):
        i = titles.index(name)
        share = left // (len(names) - n) - 2
        wide[i] = min(wide[i], max(NARROWEST, share))
        left -= wide[i] + 2
    for head, title in zip(heads, titles, strict=True):
        table.add_column(title, justify="right" if head.startswith(">") else "left", overflow="fold")
    for row in rows:
        cells = [broken(c, w) if t in names else c for c, w, t in zip(row, wide, titles, strict=True)]
        table.add_row(*map(Text, cells))
    return table


def broken(name: str, width: int) -> str:
    """Return a name in lines of at most `width` columns, broken after `/`, `_`, `-`, `.` or a space; else cut."""
    lines = [""]
    for piece in re.findall(r"[^/_. -]*[/_. -]?", name):
        if cell_len(lines[-1] + piece) > width and lines[-1]:
            lines.append("")
        lines[-1] += piece if cell_len(piece) <= width else _cut(piece, width)
    return "\n".join(lines)


def _cut(piece: str, width: int) -> str:
    """Return the beginning and the end of a piece that has no joint to break it at."""
    half = (width - 3) // 2
    return f"{piece[: width - 3 - half]}...{piece[len(piece) - half :]}"


def _line(console: Console, *pieces: str | Text) -> None:
    console.print(Text.assemble(*pieces), highlight=False)


def _span(first: int | None, last: int | None) -> str:
    return f"{first}–{last}" if first != last else str(first)


def _number(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else "NaN" if math.isnan(value) else "Inf" if value > 0 else "-Inf"


def _duration(seconds: float) -> str:
    """Return a time span in the unit that a person would choose."""
    for limit, size, unit in ((0.1, 1e-3, "ms"), (120.0, 1.0, "s"), (7200.0, 60.0, "min"), (math.inf, 3600.0, "h")):
        if seconds < limit:
            return f"{seconds / size:.3g} {unit}"
    return ""


def _safe(text: str) -> str:
    """Return a name from a log without what could command a terminal."""
    return _CONTROL.sub("\ufffd", text)
