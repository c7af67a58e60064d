"""escape: nothing from a log steers what shows it."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmon_exporters.escape import clean, code, markdown, plain

ANY = st.text(st.characters(codec=None, exclude_categories=()))  # with control characters and lone surrogates


@given(ANY)
def test_what_is_clean_has_no_character_that_steers(text):
    out = clean(text)
    bad = {unicodedata.category(c) for c in out if c not in "\u200c\u200d"} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert not bad
    out.encode("utf-8")


@given(st.text(st.characters(codec="ascii", exclude_categories=["Cc"])))
def test_plain_text_stays(text):
    assert clean(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31mb", "a\\e[31mb"),
        ("a\nb\r\tc", "a\\nb\\r\\tc"),
        ("x\u202ey", "x\\u202ey"),
        ("\x9b31m", "\\x9b31m"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
        ("loss/日本", "loss/日本"),
        ("می\u200cخواهم", "می\u200cخواهم"),
    ],
)
def test_the_invisible_is_spelt_out(text, shown):
    assert clean(text) == shown


def test_a_long_name_keeps_its_ends():
    out = clean("a" * 500 + "z" * 500, 20)
    assert len(out) == 20
    assert (out[0], out[-1]) == ("a", "z")


def test_our_typography_has_an_ascii_spelling():
    assert plain("3 × 4 → 5 … σ ≥ 2") == "3 x 4 -> 5 ... sigma >= 2"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a|b", "a\\|b"),
        ("<img src=x>", "&lt;img src=x&gt;"),
        ("[a](b)", "\\[a\\](b)"),
        ("*a* _b_ ~~c~~ `d`", "\\*a\\* \\_b_ \\~\\~c\\~\\~ \\`d\\`"),
        ("train_loss", "train_loss"),
        ("clip_grad_norm_ before", "clip_grad_norm_ before"),
        ("__init__", "\\_\\_init_\\_"),
        ("0.6 -> 0.3", "0.6 → 0.3"),
        ("a->b", "a-&gt;b"),
        ("@me fixes #12", "&#64;me fixes &#35;12"),
        ("# head", "\\# head"),
        ("- item", "\\- item"),
        ("1. item", "1\\. item"),
        ("1.5 times", "1.5 times"),
        ("-1.5", "-1.5"),
        ("---", "\\---"),
        ("a&lt;", "a&amp;lt;"),
    ],
)
def test_markdown_is_inert(text, shown):
    assert markdown(text) == shown


@given(ANY, st.booleans())
def test_a_code_span_can_not_be_ended_from_inside(text, cell):
    out = code(text, cell=cell)
    fence = out[: len(out) - len(out.lstrip("`"))]
    assert out.endswith(fence)
    assert fence not in [run for run in out[len(fence) : -len(fence)].split() if set(run) == {"`"}]
    assert "\n" not in out
    if cell:
        assert "|" not in out.replace("\\|", "")
