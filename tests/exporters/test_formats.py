"""JSON, JSON lines and Markdown."""

import json
import math
import re

import numpy as np
import pytest
from golden import check_golden

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
