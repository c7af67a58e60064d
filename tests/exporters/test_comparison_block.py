"""A comparison as a person reads it, in the terminal and in Markdown."""

import re
from dataclasses import replace

import pytest
from markdown_it import MarkdownIt

from tests.golden import check_golden
from trainmon_exporters import render
from trainmon_exporters.terminal import render_text


def compared(make, **changes):
    return make.report(make.run(comparison=make.comparison(**changes)), make.healthy())


@pytest.mark.parametrize("width", [80, 120])
def test_in_the_terminal(make, width):
    text = render_text(compared(make), width)
    check_golden(f"terminal/compared-{width}.txt", text[text.index("COMPARED") :])
    assert max(map(len, text.splitlines())) <= width


def test_in_markdown(make):
    text = render(compared(make), "markdown")
    check_golden("markdown/compared.md", text[text.index("## `exp/broken.jsonl` against") :])


def test_what_parts_comes_first_in_the_order_of_its_steps(make):
    text = render_text(compared(make))
    text = text[text.index("COMPARED") :]
    places = [text.index(f"   {name}") for name in ("lr ", "train/loss (loss there) ", "train/grad_norm", "tokens/s")]
    assert places == sorted(places)
    assert "They part first in lr, at step 1000; 1 more series follows." in text


def test_of_runs_that_do_not_part_or_can_not_be_compared_just_that_is_said(make):
    together = [replace(s, outcome="together", parted_step=None) for s in make.comparison().series]
    nothing = {"parted_step": None, "parted_series": None, "settings": (), "only_here": (), "only_there": ()}
    assert "They don't part in any of 5 series." in render_text(compared(make, series=tuple(together), **nothing))
    assert "They don't part in train/loss." in render_text(compared(make, series=tuple(together[:1]), **nothing))
    said = render_text(compared(make, series=(), notes=("one counts steps, the other epochs",), **nothing))
    assert "They can't be compared step by step.\n   note       one counts steps, the other epochs\n" in said


def test_of_many_series_settings_and_incidents_the_first_are_told(make):
    one = make.comparison()
    many = compared(
        make, series=one.series * 10, settings=one.settings * 10, only_here=one.only_here * 10, only_there=()
    )
    text = " ".join(render_text(many).split())
    assert "and 38 more series: --format json lists all" in text
    assert "not logged there and 22 more" in text
    assert "since step 1500 and 5 more" in text


def test_names_and_values_steer_neither_terminal_nor_page(make):
    nasty = make.NASTY
    one = make.comparison()
    series = tuple(replace(s, series=nasty * 20, summary=nasty) for s in one.series)
    settings = tuple(replace(s, setting=nasty * 20, value=nasty * 20) for s in one.settings)
    report = compared(make, series=series, settings=settings, against=nasty, parted_series=nasty * 20, notes=(nasty,))
    text = render_text(report)
    assert not any(c in text for c in "\x1b\x07\u202e")
    page = render(report, "markdown")
    page = page[page.index("## ", page.index("details>")) :]
    outside = re.sub(r"(`+).*?(?<!`)\1(?!`)", "", page)
    assert "<b>" not in outside
    assert "@me" not in outside
    html = MarkdownIt("gfm-like", {"html": True, "linkify": False}).render(page)
    assert "<a " not in html
    assert {row.count("|") for row in outside.replace("\\|", "").splitlines() if row.startswith("|")} == {3}
