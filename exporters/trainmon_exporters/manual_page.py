"""A page of the manual on a terminal (rendered) or in a pipe (as the Markdown it is), and the list of all pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.markdown import Markdown

from trainmon_exporters.escape import plain
from trainmon_exporters.page import Page, speaks_unicode

TITLES = {
    "sheet": "Sheets",
    "symptom": "Symptoms",
    "rule": "Rules",
    "cause": "Causes",
    "pack": "Other packs",
    "list": "Lists",
}


def print_page(text: str, console: Console) -> None:
    """Print a Markdown page: with headings and lists on a terminal, else its text unchanged."""
    if console.is_terminal and not console.is_dumb_terminal:
        page = Page.on(console)
        safe = text if speaks_unicode(console) else plain(text)
        console.print(Markdown(safe, inline_code_theme="ansi_dark"), width=page.width)
    else:
        console.file.write(text)


def print_names(names: Mapping[str, Sequence[str]], console: Console) -> None:
    """Print what there is a page for, by kind."""
    page = Page.on(console)
    for kind, known in names.items():
        page.put(page.say(TITLES[kind], "name"), page.say(": "), page.say(", ".join(known)), hanging=2)
