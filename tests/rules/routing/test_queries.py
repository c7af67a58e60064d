"""The phrases and their file: what a phrase finds, and bad data refused with its place."""

import copy
import re

import pytest

from trainmon_rules.diagnosis.knowledge import shipped_table
from trainmon_rules.errors import BadConfig
from trainmon_rules.routing import route
from trainmon_rules.routing.lookup import Lookup
from trainmon_rules.routing.phrases import SLACK, phrase
from trainmon_rules.routing.queries import TIERS, parse_queries, shipped_queries
from trainmon_rules.routing.text import MOST, sentences
from trainmon_rules.yamlfile import load_packaged

FILLERS, NEGATIONS = {"the", "my", "is"}, {"not", "no"}


def words(text):
    return sentences(text, FILLERS, NEGATIONS)


def found(pattern, text):
    """The words of a text that a phrase takes, sentence by sentence."""
    return [[s[at].text for at in phrase(pattern).find(s)] for s in words(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The loss is NaN.", [["loss", "nan"]]),
        ("Loss: 3.5. Then 1,000 steps", [["loss", "3.5"], ["then", "1,000", "steps"]]),
        ("GPU at 35 % and 8bit", [["gpu", "at", "35%", "and", "8bit"]]),
        ("ZeRO-3/FSDP_x", [["zero", "3", "fsdp", "x"]]),
        ("why? now! go; on\nand", [["why"], ["now"], ["go"], ["on"], ["and"]]),
        ("loss=2.5e-3 50K", [["loss", "2.5e-3", "50k"]]),
        ("", []),
        ("the. my", []),
    ],
)
def test_a_text_is_cut_into_sentences_of_words_that_count(text, expected):
    assert [[w.text for w in s] for s in words(text)] == expected


def test_a_denial_reaches_three_words_and_ends_with_its_clause():
    [sentence] = words("it does not learn much from data here, loss flat")
    assert {w.text: w.denied for w in sentence if w.denied} == {"learn": 1, "much": 2, "from": 3}
    [sentence] = words("isn't learning but fine")
    assert [w.denied for w in sentence] == [1, 0, 0]


def test_no_more_words_are_read_than_a_question_has():
    assert sum(map(len, words("loss nan. " * 5000))) == MOST


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("loss nan", "NaN in the loss", ["nan", "loss"]),
        ("loss nan|inf", "the loss is inf", ["loss", "inf"]),
        ("diverg*", "training diverged", ["diverged"]),
        ("diverg*", "it is not diverging", []),
        ("not learn*", "it is not learning", ["learning"]),
        ("not learn*", "learning rate", []),
        ("not learn*", "no real learning", ["learning"]),
        ("loss down", "loss not really down", ["loss", "down"]),
        ("=ZeRO", "ZeRO stage", ["zero"]),
        ("=ZeRO", "zero stage", []),
        ("gpu <%>", "gpu at 35%", ["gpu", "35%"]),
        ("gpu <%>", "gpu at 35", []),
        ("accuracy <n> class*", "accuracy 0.1 with ten classes", ["accuracy", "0.1", "classes"]),
        ("dpo|sft vs dpo|sft", "dpo vs sft", ["dpo", "vs", "sft"]),
        ("dpo|sft vs dpo|sft", "dpo vs", []),
        ("loss nan", "loss one two three nan", ["loss", "nan"]),
        ("loss nan", "loss one two three four nan", []),
    ],
)
def test_a_phrase_finds_its_words_close_together(pattern, text, expected):
    assert found(pattern, text) == [expected]


def test_the_closest_words_are_taken():
    assert phrase("loss nan").find(words("loss then loss a nan")[0]) == (2, 4)
    assert SLACK == 3


def test_words_of_two_sentences_are_no_phrase():
    assert found("loss nan", "loss fine. grad nan") == [[], []]


def plainly(pattern):
    """A text that a phrase is in."""
    shown = {"<n>": "3.5", "<%>": "35%"}
    return " ".join(shown.get(w, w).strip("=*") for w in (p.split("|")[0] for p in pattern.split()))


SAID = [(name, text) for name, texts in load_packaged("queries.yaml")["says"].items() for text in texts]


@pytest.mark.parametrize("name", sorted({name for name, _ in SAID}))
def test_no_phrase_is_hidden_behind_that_of_another_row(name):
    targets = {target.id: target for target, _ in shipped_queries().phrases}
    lookup = Lookup(shipped_table(), {})
    for text in (t for n, t in SAID if n == name):
        found = [t.row for t in route(plainly(text)).topics]
        assert any(lookup.same(targets[name], targets[f]) for f in found), (text, found)


def test_every_part_of_the_table_has_its_place_among_the_tiers():
    assert {target.part for target, _ in shipped_queries().phrases} == set(TIERS)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("fillers"), "the key 'fillers' is missing"),
        (lambda d: d.update(extra=[]), "unknown key 'extra'"),
        (lambda d: d["says"].update({"loss-spikes": ["x"]}), "did you mean 'loss-spike'"),
        (lambda d: d["says"]["flat"].append("the loss"), "'the loss': 'the' is never found"),
        (lambda d: d["says"]["flat"].append("loss never|flat"), "'never' is never found"),
        (lambda d: d["says"]["flat"].append("train/val"), "'train/val' is never found"),
        (lambda d: d["says"]["flat"].append("not"), "'not' is no phrase"),
        (lambda d: d["says"]["flat"].append(3), "3 is no phrase"),
        (lambda d: d["facts"][0].update(set="precison"), "facts: 1: unknown setting 'precison'"),
        (lambda d: d["facts"][0]["says"].update(fp4=["fp4"]), "facts: 1: precision"),
    ],
)
def test_a_bad_file_is_refused_with_its_place(change, message):
    data = copy.deepcopy(load_packaged("queries.yaml"))
    change(data)
    with pytest.raises(BadConfig) as caught:
        parse_queries(data, shipped_table())
    assert message in str(caught.value)
    assert re.match(r"queries\.yaml", str(caught.value))
