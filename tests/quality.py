"""How often each rule fires on healthy runs: `python -m tests.quality [--rows N] [--seeds K] [--write FILE]`.

The runs are those of `tests.healthy`. A page is a critical finding; there must be none.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path

import numpy as np

from tests.healthy import WHOLE
from tests.streams import SETTINGS
from trainmon_rules.engine import Session
from trainmon_rules.findings import Finding, Severity
from trainmon_rules.points import Batch, chunk

Fires = Counter[tuple[str, str, Severity]]  # (stream, rule, severity)


def judged(columns: Mapping[str, np.ndarray]) -> list[Finding]:
    """Return all findings over a run whose columns hold NaN where nothing is logged; a column `time` is the clock."""
    time = columns.get("time")
    chunks = []
    for tag, values in columns.items():
        rows = np.flatnonzero(~np.isnan(values))
        if tag != "time" and len(rows):
            chunks.append(chunk(tag, rows, values[rows], None if time is None else time[rows], rows))
    session = Session("run", SETTINGS)
    session.feed("log", Batch(chunks))
    return [f for run in session.runs for f in run.findings.values()]


def fires(stream: str, seed: int, rows: int) -> Fires:
    """Return how often each rule fires on one run of a stream, by severity."""
    return Counter((stream, f.rule, f.severity) for f in judged(WHOLE[stream](rows, seed)))


def measure(rows: int, seeds: int) -> Fires:
    """Return the fires over all streams and seeds, on all cores."""
    jobs = list(product(WHOLE, range(seeds), [rows]))
    with ProcessPoolExecutor() as pool:
        return sum(pool.map(fires, *zip(*jobs, strict=True), chunksize=1), Fires())


HEADER = """# Quiet on healthy runs

Written by `make quality`. Each stream is a healthy run of {rows:,} rows, with {seeds} seeds: a loss with its gradient
norm and learning rate, and beside it evaluations, step time with pauses, GPU use and memory, a loss scale with rare
overflows, dead units and the size of activations (`tests/healthy.py`); `preference` and `policy` are runs that learn
from rewards. The numbers are findings over all seeds of a stream: `w` warnings, `i` infos (listed, never sent).

"""


def document(found: Fires, rows: int, seeds: int) -> str:
    """Return docs/quality.md: rules by streams, and the totals."""
    out = [HEADER.format(rows=rows, seeds=seeds), f"{summary(found, seeds)}\n\n"]
    out.append(
        "| rule | " + " | ".join(s.replace("_", " ") for s in WHOLE) + " |\n" + "|---" * (len(WHOLE) + 1) + "|\n"
    )
    out.extend(
        f"| {rule.name} | " + " | ".join(_cell(found, s, rule.name) for s in WHOLE) + " |\n" for rule in SETTINGS.rules
    )
    return "".join(out)


def _cell(found: Fires, stream: str, rule: str) -> str:
    marks = ((Severity.CRITICAL, " **critical**"), (Severity.WARNING, "w"), (Severity.INFO, "i"))
    said = [f"{n}{mark}" for severity, mark in marks if (n := found[stream, rule, severity])]
    return " ".join(said) or "–"


def summary(found: Fires, seeds: int) -> str:
    """Return the totals in a sentence."""
    total = {s: sum(n for key, n in found.items() if key[2] is s) for s in Severity}
    return (
        f"{len(WHOLE) * seeds} runs: {total[Severity.CRITICAL]} pages, {total[Severity.WARNING]} warnings, "
        f"{total[Severity.INFO]} infos."
    )


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--write", type=Path)
    args = parser.parse_args(argv)
    found = measure(args.rows, args.seeds)
    text = document(found, args.rows, args.seeds)
    print(text)
    if args.write:
        args.write.write_text(text, "utf-8")
    return int(any(key[2] is Severity.CRITICAL for key in found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
