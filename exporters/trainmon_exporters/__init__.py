"""Everything that leaves: each exporter only formats a `Report` (or an incident); nothing here decides.

`FORMATS` names the formats of `trainmon replay --format`; `render` returns a report in one of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainmon_rules.report import Report

FORMATS = ("text", "json", "jsonl", "markdown")


def render(report: Report, fmt: str) -> str:
    """Return a report as text in one of `FORMATS`; "text" is the terminal report without colour, 100 wide."""
    if fmt == "json":
        from trainmon_exporters.json_report import render_json  # noqa: PLC0415 - only what is asked for is loaded

        return render_json(report)
    if fmt == "jsonl":
        from trainmon_exporters.json_report import render_jsonl  # noqa: PLC0415

        return render_jsonl(report)
    if fmt == "markdown":
        from trainmon_exporters.markdown import render_markdown  # noqa: PLC0415

        return render_markdown(report)
    if fmt == "text":
        from trainmon_exporters.terminal import render_text  # noqa: PLC0415

        return render_text(report)
    raise ValueError(f"format {fmt!r} is not one of {', '.join(FORMATS)}")
