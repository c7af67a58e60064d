"""Draw the picture of the README from a shipped sample run: `make pictures`."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI

from trainmon import replay
from trainmon_exporters.terminal import print_report

ROOT = Path(__file__).resolve().parent.parent
SAMPLE = ROOT / "tests" / "data" / "samples" / "nan-after-explosion.jsonl"


def main() -> None:
    """Write docs/report.svg: the report as an 100-column colour terminal shows it."""
    console = Console(record=True, width=100, force_terminal=True, color_system="truecolor", file=io.StringIO())
    print_report(replay(SAMPLE), console)
    svg = console.export_svg(title=f"trainmon replay {SAMPLE.name}", theme=MONOKAI, unique_id="trainmon")
    (ROOT / "docs" / "report.svg").write_text(svg)


if __name__ == "__main__":
    main()
