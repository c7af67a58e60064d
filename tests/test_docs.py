"""docs/: the generated pages are fresh, every example runs, every link leads somewhere, every field is told."""

import doctest
import importlib
import pkgutil
import re
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

import trainmon
import trainmon_exporters
import trainmon_rules
from docs import generate
from trainmon.checking import check_files
from trainmon.config import load_settings, parse_config
from trainmon.readers import keys, shapes_of_json
from trainmon.readers.dialects import load_dialects
from trainmon.readers.jsonl import CONFIG_KEYS
from trainmon_rules import inspection, report, strict
from trainmon_rules.diagnosis.knowledge import shipped_table
from trainmon_rules.rules import FAMILIES, KEYS, NEEDED, SYMPTOMS
from trainmon_rules.state import Settings

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md")])
MODULES = sorted(
    info.name
    for package in (trainmon, trainmon_rules, trainmon_exporters)
    for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if not info.name.endswith("__main__")
)


def test_the_generated_pages_are_fresh():
    assert generate.stale() == [], "run `make docs`, read the difference, commit it"


def test_a_changed_page_is_stale_and_so_is_one_that_nothing_writes(tmp_path):
    (tmp_path / "config.md").write_text((DOCS / "config.md").read_text())
    generate.write(tmp_path)
    assert generate.stale(tmp_path) == []
    page = tmp_path / "rules.md"
    page.write_text(page.read_text().replace("nonfinite", "infinite", 1))
    (tmp_path / "symptoms" / "gone.md").write_text("once a symptom")
    assert generate.stale(tmp_path) == ["rules.md", "symptoms/gone.md"]
    generate.write(tmp_path)
    assert generate.stale(tmp_path) == []
    assert not (tmp_path / "symptoms" / "gone.md").exists()


@pytest.mark.parametrize("symptom", SYMPTOMS)
def test_a_symptom_has_a_page_that_leads_on(symptom):
    text = (DOCS / "symptoms" / f"{symptom}.md").read_text("utf-8")
    entry = shipped_table().symptoms[symptom]
    for part in ("First checks", "Causes, the likeliest first", "Read"):
        assert f"\n## {part}\n" in text
    for cause, _ in entry.causes:
        assert f"### {shipped_table().causes[cause].name}\n" in text
    for rule in Settings.default().rules:
        assert (f"rules.md#{rule.name})" in text) == (rule.symptom == symptom)
    for name in {r.sheet for a in entry.routes for r in a.routes}:
        assert f"/{name}.md" in text
    checks = text.partition("## First checks\n")[2].partition("\n## ")[0]
    assert len(re.findall(r"^(?:\d+\.|-) ", checks, re.MULTILINE)) >= 2


def test_a_symptom_page_explains_the_topic_of_another_pack():
    text = (DOCS / "symptoms" / "stall.md").read_text("utf-8")
    first, _, rest = text.partition("## Read\n")
    assert "py-spy dump" in first
    assert "packs/pytorch-engineering.md#distributed-bring-up)" in first
    assert "### pytorch-engineering: Profiling\n" in rest
    assert text.count("py-spy dump") == 1


def test_the_examples_of_the_python_page_run(monkeypatch):
    monkeypatch.chdir(ROOT)
    failed, tried = doctest.testfile(str(DOCS / "python.md"), module_relative=False)
    assert tried > 10
    assert failed == 0


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


# ---------------------------------------------------------------------- links
def anchors(page):
    """Headings as GitHub turns them into anchors."""
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h).strip().lower().replace(" ", "-") for h in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_link_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
        if target.startswith(("http:", "https:")):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if file == DOCS / "corpus.md" and not file.exists():  # written where the corpus is
            continue
        assert file.exists(), target
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file), target


def test_the_start_page_links_every_page():
    linked = set(re.findall(r"\]\((\w[\w.-]*\.md)\)", (DOCS / "README.md").read_text("utf-8")))
    assert linked >= {p.name for p in DOCS.glob("*.md")} - {"README.md"}


# ---------------------------------------------------------------------- fields
RECORDS = [r for m in (report, inspection) for r in vars(m).values() if is_dataclass(r) and r.__module__ == m.__name__]


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: r.__name__)
def test_every_field_of_the_report_is_told(record):
    text = (DOCS / "report.md").read_text("utf-8")
    renamed = strict.RENAMED
    for f in fields(record):
        assert f"`{renamed.get(f.name, f.name)}`" in text, f.name


# ---------------------------------------------------------------------- what the pages name
def test_the_example_config_is_accepted_and_shows_every_key(tmp_path):
    example = re.search(r"```toml\n(.*?)```", (DOCS / "config.md").read_text("utf-8"), re.DOTALL)[1]
    file = tmp_path / "trainmon.toml"
    file.write_text(example)
    settings = load_settings(str(file))
    assert "plateau" not in {r.name for r in settings.rules}
    config = parse_config(example, "trainmon.toml")
    assert all([config.roles, config.answers, config.disabled])
    assert {key for changes in config.rules.values() for key in changes} <= set(KEYS)


def test_the_example_rule_file_is_accepted_and_every_key_is_told(tmp_path):
    page = (DOCS / "config.md").read_text("utf-8")
    (tmp_path / "mine.yaml").write_text(re.search(r"```yaml\n(.*?)```", page, re.DOTALL)[1])
    file = str(tmp_path / "mine.yaml")
    assert check_files([file]) == ([f"{file}: 3 rules, ok (1 changed, 1 added, 1 disabled)"], [])
    told = page[page.index("## The rule file") : page.index("## --set")]
    assert {f"| `{key}` |" for key in KEYS} <= set(re.findall(r"^\| `\w+` \|", told, re.MULTILINE))
    assert all(f"`{word}`" in told for word in (*FAMILIES, *NEEDED))


def test_the_reading_page_names_every_key_dialect_and_file():
    text = (DOCS / "reading.md").read_text("utf-8")
    named = {*keys.STEP_KEYS, *keys.EPOCH_KEYS, *keys.TIME_KEYS, *keys.TOTAL_KEYS, *keys.MODE_KEYS, *keys.MODES}
    named |= {p.dialect for p in load_dialects().patterns} | CONFIG_KEYS | set(shapes_of_json.ROWS)
    assert {n for n in named if f"`{n}`" not in text} == set()


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda p: p.name)
def test_no_page_shows_pythons_own_words(page):
    assert not re.search(r"<(bound|function|class|module)[ _]| at 0x[0-9a-f]+", page.read_text())
