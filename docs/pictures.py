"""Draw the picture of the README from a shipped sample run: `make pictures`."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import MONOKAI

from trainmon import replay
from trainmon_exporters.terminal import print_report

ROOT = Path(__file__).resolve().parent.parent
SAMPLE = ROOT / "tests" / "data" / "samples" / "nan-after-explosion.jsonl"


def main() -> None:
    """Write docs/report.svg: the report as an 100-column colour terminal shows it."""
    console = Console(record=True, width=100, force_terminal=True, color_system="truecolor", file=io.StringIO())
    report = replay(SAMPLE)
    [run] = report.runs
    [incident] = run.incidents
    short = replace(
        incident, ruled_out=(), routes=incident.routes[:2], fixes=incident.fixes[:2], causes=incident.causes[:2]
    )
    print_report(replace(report, runs=(replace(run, incidents=(short,), blind=()),)), console)
    frame = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)  # no fonts from the network
    title = f"trainmon replay {SAMPLE.name} (shortened)"
    svg = console.export_svg(title=title, theme=MONOKAI, unique_id="trainmon", code_format=frame)
    (ROOT / "docs" / "report.svg").write_text(svg)


if __name__ == "__main__":
    main()
