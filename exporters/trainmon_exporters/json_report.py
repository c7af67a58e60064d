"""The report as strict JSON, schema `trainmon.report/1`, and as JSON lines, a run a line."""

from __future__ import annotations

import json
from typing import Any

from trainmon_rules.report import Report, error_dict, run_dict
from trainmon_rules.strict import plain


def render_json(report: Report) -> str:
    """Return the whole report as one indented JSON document."""
    return _dumps(report.as_dict(), indent=2) + "\n"


def render_jsonl(report: Report) -> str:
    """Return a line a run, then a line an error (`{"error": …}`)."""
    rows = [_dumps(run_dict(r)) for r in report.runs]
    rows += [_dumps({"error": error_dict(e)}) for e in report.errors]
    return "".join(row + "\n" for row in rows)


def _dumps(data: object, indent: int | None = None) -> str:
    """Return strict JSON that can be encoded: half a surrogate pair, as a file name may hold, is escaped."""
    text = json.dumps(data, indent=indent, allow_nan=False, ensure_ascii=False, default=_other)
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _other(value: Any) -> Any:
    """Numbers of numpy become Python's (the non-finite ones strings, as everywhere); the rest its text."""
    if hasattr(value, "item"):
        value = value.item()
        if isinstance(value, bool | int | float | str):
            return plain(value)
    return str(value)
