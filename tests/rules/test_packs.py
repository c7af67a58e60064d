"""The pages of the other packs: one for each, with a heading for every topic that a route names."""

import difflib
import re
from importlib import resources

import pytest

from trainmon_rules.diagnosis.knowledge import pack_text, page_text, sheet_text, shipped_table
from trainmon_rules.diagnosis.manual import explain
from trainmon_rules.errors import BadConfig
from trainmon_rules.yamlfile import load_packaged

PACKS = list(shipped_table().packs)


def topics(entry):
    """(pack, topic) of every route in a knowledge file; a route's topic may list several."""
    if isinstance(entry, dict):
        if "pack" in entry and "topic" in entry:
            yield from ((entry["pack"], topic.strip().lower()) for topic in entry["topic"].split(","))
        for value in entry.values():
            yield from topics(value)
    elif isinstance(entry, list):
        for value in entry:
            yield from topics(value)


NAMED = sorted({t for name in ("routing", "symptoms", "causes") for t in topics(load_packaged(f"{name}.yaml"))})


def told(pack):
    """Topics that a pack's page tells: its headings, and the names that reports use for them."""
    names = re.findall(r"^## (.*)$", pack_text(pack), re.MULTILINE)
    for line in re.findall(r"^\*In reports: (.*)\.\*$", pack_text(pack), re.MULTILINE):
        names += line.split(", ")
    return {name.lower() for name in names}


def test_there_is_a_page_for_each_pack_and_no_other():
    files = {f.name for f in resources.files("trainmon_rules").joinpath("packs").iterdir()}
    assert files == {f"{pack}.md" for pack in PACKS}


def test_routes_name_topics():
    assert len(NAMED) > 20
    assert ("pytorch-engineering", "data loading") in NAMED


@pytest.mark.parametrize(("pack", "topic"), NAMED)
def test_a_topic_that_a_route_names_is_told(pack, topic):
    assert topic in told(pack)


@pytest.mark.parametrize("pack", PACKS)
def test_a_page_says_whose_words_it_is_where_the_line_runs_and_what_to_do_first(pack):
    text = pack_text(pack)
    assert text.startswith(f"# {pack}\n")
    for part in ("isn't shipped with trainmon", "**It holds**", "**The line**", "Written for trainmon"):
        assert part in text
    sections = re.split(r"^## .*$", text.partition("\n---\n")[0], flags=re.MULTILINE)[1:]
    assert len(sections) >= 3
    for section in sections:
        assert re.search(r"^(1\.|-|\|) ?\S", section, re.MULTILINE) or len(section.split()) > 20
    assert 250 < len(text.split()) < 950


@pytest.mark.parametrize("page", [*PACKS, *shipped_table().sheets])
def test_no_page_misspells_a_sheet_or_a_pack(page):
    known = [*PACKS, *shipped_table().sheets]
    for name in set(re.findall(r"\b[a-z]+(?:-[a-z]+)+\b", page_text(page))):
        close = difflib.get_close_matches(name, known, 1, 0.8)
        assert close in ([], [name]), name


@pytest.mark.parametrize("pack", PACKS)
def test_the_manual_prints_the_page(pack):
    assert explain(pack, ()) == pack_text(pack).strip() + "\n"


def test_a_page_is_a_sheets_or_a_packs():
    assert page_text("deep-rl") == pack_text("deep-rl")
    assert page_text("gradient-management") == sheet_text("gradient-management")
    with pytest.raises(BadConfig, match="unknown pack 'deep-lr'; did you mean 'deep-rl'"):
        pack_text("deep-lr")
