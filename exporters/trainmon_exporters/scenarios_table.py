"""The scenarios of `trainmon simulate` as a list: a line each, below it what it is about."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from trainmon_exporters.page import Page

HEADS = ("scenario", "family", "half", "cause")
GAP = 2


def print_scenarios(rows: Sequence[tuple[str, str, str, str, str]], console: Console) -> None:
    """Print the list.

    Parameters
    ----------
    rows : sequence of (name, family, half, cause, about)
        The cause is "" for a healthy one.
    console : Console
        Where to.
    """
    page = Page.on(console)
    shown = [(*row[:3], row[3] or "healthy") for row in rows]
    wide = [max(len(row[i]) for row in (HEADS, *shown)) + GAP for i in range(3)]
    page.row([("".join(head.ljust(w) for head, w in zip(HEADS, [*wide, 0], strict=True)), "label")])
    for row, (*_, cause, about) in zip(shown, rows, strict=True):
        styles = ("name", "", "", "" if cause else "healthy")
        page.put(*(page.say(cell.ljust(w), s) for cell, w, s in zip(row, [*wide, 0], styles, strict=True)))
        page.put(page.say(about, "label"), indent=GAP)
