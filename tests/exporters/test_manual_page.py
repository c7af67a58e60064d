"""A page of the manual, laid out on a terminal and plain in a pipe."""

import io

import pytest
from rich.console import Console

from trainmon_exporters.manual_page import print_names, print_page
from trainmon_rules.diagnosis.knowledge import page_text, shipped_table

PAGE = "# Title\n\nA `word` – said.\n\n- item one\n"


def shown(force_terminal, width=80, term="xterm", page=PAGE):
    file = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    console = Console(file=file, width=width, force_terminal=force_terminal, _environ={"TERM": term})
    print_page(page, console)
    file.flush()
    return file.buffer.getvalue().decode()


def test_piped_it_is_the_markdown_itself():
    assert shown(force_terminal=False) == PAGE
    assert shown(force_terminal=True, term="dumb") == PAGE


def test_on_a_terminal_it_is_laid_out():
    text = shown(force_terminal=True)
    assert "# Title" not in text
    assert "\x1b[" in text
    assert "item one" in text
    assert "`" not in text


@pytest.mark.parametrize("name", [*shipped_table().sheets, *shipped_table().packs])
def test_no_cell_of_a_page_is_cut_at_80_columns(name):
    page = page_text(name)
    assert shown(force_terminal=True, page=page).count("…") == page.count("…")


def test_names_stand_by_kind():
    out = io.StringIO()
    print_names({"sheet": ["a", "b"], "pack": ["c"]}, Console(file=out, width=80))
    assert out.getvalue() == "Sheets: a, b\nOther packs: c\n"
