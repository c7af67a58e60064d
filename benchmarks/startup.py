"""Time from the command to its end: `make bench-start`.

Prints the median of eleven runs of `trainmon --help` and of `trainmon replay` on a generated JSONL of 1,000 rows.
The aims: 300 ms and 1 s on two cores.
"""

from __future__ import annotations

import json
import math
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUNS = 11


def median_of(command: list[str]) -> float:
    """Return the median wall time in milliseconds."""
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times)


def main() -> None:
    rng = random.Random(0)
    rows = [
        {
            "step": i,
            "loss": 2 + 6 * math.exp(-i / 150) + rng.gauss(0, 0.05) + (3 if 700 <= i < 704 else 0),
            "grad_norm": 0.5 * math.exp(rng.gauss(0, 0.2)),
            "lr": 1e-3 * (1 - i / 1200),
            "eval_loss": 2.2 + 6 * math.exp(-i / 150),
        }
        for i in range(1000)
    ]
    command = [sys.executable, "-m", "trainmon"]
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "run.jsonl"
        log.write_text("".join(json.dumps(r) + "\n" for r in rows))
        print(f"trainmon --help                     {median_of([*command, '--help']):7.0f} ms  (aim: under 300)")
        took = median_of([*command, "replay", str(log)])
        print(f"trainmon replay, 1,000 rows of JSONL {took:6.0f} ms  (aim: under 1000)")


if __name__ == "__main__":
    main()
