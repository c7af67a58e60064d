"""Every fact of the three seeds stands where facts.tsv says; every line of a seed is accounted for."""

import itertools
import re
from pathlib import Path

import pytest

from trainmon_rules.diagnosis.factsheet import COLUMNS, SEEDS, anchor_of, load_facts, parse_facts, passage
from trainmon_rules.diagnosis.knowledge import page_text, shipped_table
from trainmon_rules.errors import BadConfig

FACTS = load_facts()
WITHOUT = Path(__file__).parents[1] / "data" / "facts" / "without.tsv"
SHARED = next((p / "shared" / "seeds" for p in Path(__file__).parents[3:] if (p / "shared" / "seeds").is_dir()), None)
needs_seeds = pytest.mark.skipif(SHARED is None, reason="the seeds don't lie beside the checkout")


@pytest.mark.parametrize("fact", FACTS, ids=lambda f: f"{f.seed.removesuffix('.txt')}:{f.line}:{f.fact}")
def test_a_fact_stands_where_the_table_says(fact):
    assert fact.holds(), f"{fact.where} doesn't say {fact.says!r}"


@pytest.mark.parametrize("seed", SEEDS)
def test_every_line_of_a_seed_has_a_fact_or_is_listed_as_having_none(seed):
    """Without the seeds, as far as the two tables tell: they neither overlap nor leave a hole larger than a blank."""
    told, without = {f.line for f in FACTS if f.seed == seed}, lines_without(seed)
    assert not told & without
    both = sorted(told | without)
    assert both[0] == 1
    assert max(b - a for a, b in itertools.pairwise(both)) <= 4


@needs_seeds
@pytest.mark.parametrize("seed", SEEDS)
def test_no_line_of_the_source_is_forgotten(seed):
    lines = (SHARED / seed).read_text("utf-8").splitlines()
    told, without = {f.line for f in FACTS if f.seed == seed}, lines_without(seed)
    written = {n for n, line in enumerate(lines, 1) if line.strip(" -")}
    assert sorted(written - told - without) == []
    assert told <= written
    assert max(without) <= len(lines)


@needs_seeds
@pytest.mark.parametrize("seed", SEEDS)
def test_a_table_on_one_line_has_a_fact_for_each_of_its_rows(seed):
    for n, line in enumerate((SHARED / seed).read_text("utf-8").splitlines(), 1):
        rows = [r for r in re.split(r"\| \|", line) if not re.fullmatch(r"[-|\s]+", r)]
        if len(rows) > 2:
            assert len([f for f in FACTS if (f.seed, f.line) == (seed, n)]) >= len(rows) - 1, n


@needs_seeds
@pytest.mark.parametrize("page", [*shipped_table().sheets, *shipped_table().packs])
def test_no_sentence_is_copied(page):
    """Six plain words in a row, outside code, tables and quotations, are a sentence of the source."""
    prose = re.sub(r"```.*?```|`[^`]*`|\"[^\"]*\"|^- People say:.*$|^\|.*$", "\n", page_text(page), flags=re.M | re.S)
    for seed in SEEDS:
        assert phrases(prose) & phrases((SHARED / seed).read_text("utf-8")) == set()


def phrases(text, long=6):
    found = set()
    for line in text.splitlines():
        words = re.findall(r"\b[a-z']+\b", line)
        found |= {" ".join(words[i : i + long]) for i in range(len(words) - long + 1)}
    return found


def lines_without(seed):
    spans = [row.split("\t") for row in WITHOUT.read_text("utf-8").splitlines()[1:]]
    assert all(reason for _, _, reason in spans)
    ends = [[int(n) for n in span.split("-")] for name, span, _ in spans if name == seed]
    return {n for end in ends for n in range(end[0], end[-1] + 1)}


# ----------------------------------------------------------------------------------------- places
def test_a_place_is_a_heading_the_introduction_or_a_row():
    assert passage("gradient-management#gradient-management").startswith("Stabilise gradients before")
    assert passage("gradient-management#initialisation").startswith("The aim:")
    assert "He (Kaiming)" not in passage("gradient-management#background")
    assert passage("llm-specialist#pairs")
    assert "gradient-management rank primary" in passage("routing.yaml#loss-nonfinite")
    assert passage("routing.yaml#any-nan").startswith("ask Any NaN or Inf")


def test_anchors_are_those_of_github():
    assert anchor_of("Slow: where is the time?") == "slow-where-is-the-time"
    assert anchor_of("torch.amp and FP8") == "torchamp-and-fp8"


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("gradient-managment#background", "did you mean 'gradient-management'"),
        ("gradient-management#bakground", "gradient-management has no 'bakground'"),
        ("routing.yaml#loss-nonfinit", "routing.yaml has no 'loss-nonfinit'"),
    ],
)
def test_an_unknown_place_is_refused(where, message):
    with pytest.raises(BadConfig, match=message):
        passage(where)


# ------------------------------------------------------------------------------------------- bad tables
HEAD = "\t".join(COLUMNS)
GOOD = "training-recipes.txt\t2\tclipping\tgradient-management#settings\t1.0"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], r"f.tsv:1: the columns must be seed, line, fact, where, says"),
        ([HEAD, "training-recipes.txt\t2\tclipping"], r"f.tsv:2: needs 5 filled cells"),
        ([HEAD, GOOD.replace("1.0", " ")], r"f.tsv:2: needs 5 filled cells"),
        ([HEAD, GOOD, GOOD.replace("recipes", "recipe")], r"f.tsv:3: unknown seed 'training-recipe.txt'"),
        ([HEAD, GOOD.replace("\t2\t", "\ttwo\t")], r"f.tsv:2: 'two' is no line"),
        ([HEAD, GOOD.replace("#settings", "")], r"f.tsv:2: 'gradient-management' is no place"),
        ([HEAD, GOOD, GOOD.replace("\t2\t", "\t1\t")], r"f.tsv:3: rows stand in the order"),
        ([HEAD, GOOD, GOOD], r"f.tsv:3: this row stands there twice"),
    ],
)
def test_a_bad_table_is_refused_with_its_line(rows, message):
    with pytest.raises(BadConfig, match=message):
        parse_facts("\n".join(rows), "f.tsv")


def test_a_fact_that_a_place_does_not_say_does_not_hold():
    (fact,) = parse_facts(f"{HEAD}\n{GOOD.replace('1.0', 'max_norm 7.3')}")
    assert not fact.holds()
