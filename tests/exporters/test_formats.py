"""JSON, JSON lines and Markdown."""

import json
import math
import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tests.golden import check_golden
from trainmon_exporters import FORMATS, render


def refuse(name):
    raise ValueError(f"{name} is not strict JSON")


def strict(text):
    return json.loads(text, parse_constant=refuse)


def test_json_is_golden_and_strict(make):
    text = render(make.many(), "json")
    check_golden("json/several.json", text)
    data = strict(text)
    assert data["schema"] == "trainmon.report/1"
    assert [r["verdict"] for r in data["runs"]] == ["healthy", "insufficient-data", "critical"]
    assert data["errors"][0]["source"] == "exp/gone.jsonl"


def test_odd_values_become_strict_json(make):
    evidence = {
        "nan": math.nan,
        "inf": -math.inf,
        "numpy nan": np.float32("nan"),
        "numpy": np.float32(1.5),
        "count": np.int64(3),
        "flag": np.bool_(True),
        "set": {1},
        "big": 10**30,
    }
    text = render(make.report(make.run(incidents=(make.incident(evidence=evidence),))), "json")
    found = strict(text)["runs"][0]["incidents"][0]["evidence"]
    assert found == {
        "nan": "NaN",
        "inf": "-Infinity",
        "numpy nan": "NaN",
        "numpy": 1.5,
        "count": 3,
        "flag": True,
        "set": "{1}",
        "big": 10**30,
    }


@pytest.mark.parametrize("fmt", FORMATS)
def test_every_format_can_be_encoded_whatever_the_names(make, fmt):
    nasty = make.NASTY
    run = make.run(run=nasty, unmapped=(nasty,), incidents=(make.incident(series=(nasty,), summary=nasty),))
    report = make.report(run, errors=(make.error(nasty, nasty, fatal=True),))
    text = render(report, fmt).encode("utf-8").decode("utf-8")
    if fmt == "json":
        assert strict(text)["runs"][0]["run"] == nasty


def test_json_lines_are_a_run_a_line_then_an_error_a_line(make):
    lines = [strict(line) for line in render(make.many(), "jsonl").splitlines()]
    assert [line.get("run", "error") for line in lines] == [
        "exp/good.jsonl",
        "exp/short.csv",
        "exp/broken.jsonl",
        "error",
        "error",
    ]


def test_markdown_is_golden(make):
    check_golden("markdown/broken.md", render(make.report(), "markdown"))
    check_golden("markdown/several.md", render(make.many(), "markdown"))
    check_golden("markdown/healthy.md", render(make.report(make.healthy()), "markdown"))


def test_markdown_tables_keep_their_columns(make):
    nasty = make.NASTY
    run = make.run(run=nasty, incidents=(make.incident(series=(nasty,), summary=nasty, evidence={nasty: nasty}),))
    text = render(make.report(run, make.healthy(nasty)), "markdown")
    tables = [line for line in text.splitlines() if line.startswith("| ")]
    assert {line.replace("\\|", "").count("|") for line in tables} <= {3, 5}
    outside = re.sub(r"(`+).*?(?<!`)\1(?!`)", "", text)
    assert "<b>" not in outside
    assert "&lt;b&gt;" in outside


def test_an_unknown_format_is_refused(make):
    with pytest.raises(ValueError, match="'yaml' is not one of text, json, jsonl, markdown"):
        render(make.report(), "yaml")


TRICKY = st.text(st.sampled_from("`*_[]()<>!|\\~#&@+-=. \n1axh:/\"'"), max_size=40)


def kinds(tokens):
    """Return the kinds of all tokens, inner ones too."""
    for token in tokens:
        yield token.type
        yield from kinds(token.children or ())


@settings(suppress_health_check=[*settings.default.suppress_health_check, HealthCheck.function_scoped_fixture])
@given(TRICKY)
def test_no_text_becomes_markup(make, text):
    """A real parser (the one that rich brings) must see paragraphs, lists, tables and our own `<details>` only."""
    i = make.incident(
        series=(text,), summary=text, evidence={text: text}, questions=(text,), also=(text,), others=((text, text),)
    )
    page = render(make.report(make.run(run=text, incidents=(i,), skipped={text: 1})), "markdown")
    parsed = list(kinds(MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(page)))
    inert = list(kinds(MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(like(make))))
    for kind in ("link_open", "image", "em_open", "s_open", "html_inline", "blockquote_open", "code_block"):
        assert kind not in parsed
    for kind in ("strong_open", "heading_open", "bullet_list_open", "ordered_list_open", "td_open", "html_block"):
        assert parsed.count(kind) == inert.count(kind), kind


def like(make):
    """The same page with a harmless text."""
    i = make.incident(
        series=("a",), summary="a", evidence={"a": "a"}, questions=("a",), also=("a",), others=(("a", "a"),)
    )
    return render(make.report(make.run(run="a", incidents=(i,), skipped={"a": 1})), "markdown")
