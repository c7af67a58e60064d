"""The report as strict JSON, schema `trainmon.report/1`, and as JSON lines, a run a line."""

from __future__ import annotations

import json

from trainmon_rules.report import Report, run_dict


def render_json(report: Report) -> str:
    """Return the whole report as one indented JSON document."""
    return json.dumps(report.as_dict(), indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def render_jsonl(report: Report) -> str:
    """Return a line a run, then a line an error (`{"error": …}`)."""
    data = report.as_dict()
    rows = [json.dumps(run_dict(r), allow_nan=False, ensure_ascii=False) for r in report.runs]
    rows += [json.dumps({"error": e}, allow_nan=False, ensure_ascii=False) for e in data["errors"]]
    return "".join(row + "\n" for row in rows)
