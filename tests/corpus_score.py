"""Score trainmon on the corpus of real public logs: `python tests/corpus_score.py CORPUS [--write docs/corpus.md]`.

The bar (rows of high and medium confidence): no critical on a healthy or too-short file, a warning beyond the
tolerated ones on at most one in ten of them, and the required symptoms on at least four in five of the others.
Rows that are wrong are corrected, with the numbers that show it, in tests/data/corpus_corrections.tsv.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from trainmon import replay

CORRECTIONS = Path(__file__).parent / "data" / "corpus_corrections.tsv"
SEVERITIES = ("info", "warning", "critical")


@dataclass
class Row:
    """One labelled file with what trainmon says of it."""

    path: str
    verdict: str
    required: str
    tolerated: frozenset[str]
    confidence: str
    found: dict[str, str] = field(default_factory=dict)  # symptom → worst severity
    points: int = 0
    errors: list[str] = field(default_factory=list)

    @property
    def counted(self) -> bool:
        return self.confidence in ("high", "medium")

    @property
    def quiet_expected(self) -> bool:
        return self.verdict in ("healthy", "too short to say")

    @property
    def said(self) -> str:
        worst = max((SEVERITIES.index(s) for s in self.found.values()), default=-1)
        return SEVERITIES[worst] if worst >= 0 else "quiet"

    @property
    def critical(self) -> bool:
        return "critical" in self.found.values()

    @property
    def stray(self) -> list[str]:
        """Warnings (or worse) that the label neither requires nor tolerates."""
        allowed = self.tolerated | frozenset(self.required.replace("|", ",").split(","))
        return sorted(s for s, v in self.found.items() if v != "info" and s not in allowed)

    @property
    def missing(self) -> list[str]:
        """Required symptoms that were not found at any severity above info (a comma means all, | either)."""
        need = [part.split("|") for part in self.required.split(",") if part]
        return ["|".join(p) for p in need if not any(self.found.get(s) in SEVERITIES for s in p)]


def labels(corpus: Path) -> Iterator[Row]:
    """Yield the labelled rows, corrected."""
    fixed = {r["path"]: r for r in _tsv(CORRECTIONS)} if CORRECTIONS.exists() else {}
    for r in _tsv(corpus / "labels.tsv"):
        c = fixed.get(r["path"], {})
        yield Row(
            r["path"],
            c.get("verdict") or r["verdict"],
            c.get("required_symptoms", r["required_symptoms"]) or "",
            frozenset((c.get("tolerated_symptoms") or r["tolerated_symptoms"]).split(",")),
            r["confidence"],
        )


def _tsv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as f:
        return list(csv.DictReader(f, delimiter="\t"))


def score(corpus: Path) -> list[Row]:
    """Replay every labelled file on its own."""
    rows = []
    for row in labels(corpus):
        report = replay(corpus / row.path)
        row.errors = [e.error for e in report.errors]
        for run in report.runs:
            row.points += run.points
            for i in run.incidents:
                for symptom, severity in _symptoms(i):
                    if SEVERITIES.index(severity) > SEVERITIES.index(row.found.get(symptom, "info")):
                        row.found[symptom] = severity
                    row.found.setdefault(symptom, severity)
        rows.append(row)
    return rows


def _symptoms(incident) -> Iterator[tuple[str, str]]:
    yield incident.symptom, incident.severity
    yield from incident.others


@dataclass(frozen=True)
class Result:
    """The three figures of the bar."""

    quiet: int
    criticals: list[str]
    strays: list[str]
    failing: int
    missed: list[str]
    quietly: list[str]  # found, but as info only

    @property
    def passed(self) -> bool:
        return not self.criticals and len(self.strays) <= 0.1 * self.quiet and len(self.missed) <= 0.2 * self.failing


def judge(rows: list[Row]) -> Result:
    """Hold the rows of high and medium confidence against the bar."""
    counted = [r for r in rows if r.counted]
    quiet = [r for r in counted if r.quiet_expected]
    failing = [r for r in counted if not r.quiet_expected and r.required]
    return Result(
        len(quiet),
        [r.path for r in quiet if r.critical],
        [f"{r.path}: {', '.join(r.stray)}" for r in quiet if r.stray],
        len(failing),
        [f"{r.path}: {', '.join(r.missing)}" for r in failing if r.missing],
        [r.path for r in failing if not r.missing and r.said == "info"],
    )


HEADER = """# The corpus: what trainmon says of real public logs

Written by `make corpus` from a folder of public training logs that isn't part of this repository (many of those
repositories have no licence, so nothing of them is copied). Each row names the public repository and commit a log came
from. *Label* is a human reading of the numbers with its confidence; *said* is the worst severity that trainmon
reports. A label that is wrong is corrected in `tests/data/corpus_corrections.tsv`, with the reason.

The bar counts labels of high and medium confidence: no critical on a healthy or too-short file; a warning beyond the
tolerated ones on at most one in ten of them; the required symptoms on at least four in five of the others.

"""


def document(rows: list[Row], result: Result, manifest: dict[str, dict[str, str]]) -> str:
    """Return docs/corpus.md."""
    out = [HEADER, f"Result: {summary(result)}\n\n"]
    out.append("| file | repository @ commit | label | said | symptoms found | points |\n|---|---|---|---|---|---|\n")
    for r in rows:
        m = manifest.get(r.path, {})
        origin = f"{m.get('source_repo', '?')} @ {m.get('commit', '')[:10]}"
        found = ", ".join(f"{s} ({v})" for s, v in sorted(r.found.items())) or "–"
        note = " **missed: " + ", ".join(r.missing) + "**" if r.missing and not r.quiet_expected else ""
        note += " **stray**" if r.quiet_expected and r.stray else ""
        name = r.path.replace("|", "\\|")
        out.append(f"| {name} | {origin} | {r.verdict} ({r.confidence}) | {r.said} | {found}{note} | {r.points} |\n")
    return "".join(out)


def summary(result: Result) -> str:
    """Return the three figures in a sentence."""
    return (
        f"{result.quiet} healthy or short files: {len(result.criticals)} with a critical, {len(result.strays)} with a "
        f"stray warning; {result.failing} failing files: {result.failing - len(result.missed)} with the required "
        f"symptoms ({len(result.quietly)} of them as info only). The bar is {'met' if result.passed else 'not met'}."
    )


def main(argv: list[str]) -> int:
    corpus = Path(argv[0])
    rows = score(corpus)
    for r in rows:
        marks = ("C" if r.quiet_expected and r.critical else "") + ("s" if r.stray and r.quiet_expected else "")
        marks += "M" if r.missing else ""
        marks = marks if r.counted else marks.lower()
        found = ",".join(f"{s}:{v[0]}" for s, v in sorted(r.found.items()))
        print(
            f"{marks:3} {r.points:7} {r.verdict[:8]:8} need={r.required:32.32} found={found}  "
            f"{r.path[-60:]} {r.errors[:1]}"
        )
    result = judge(rows)
    print("\n" + summary(result))
    if "--write" in argv:
        manifest = {m["path"]: m for m in _tsv(corpus / "MANIFEST.tsv")}
        Path(argv[argv.index("--write") + 1]).write_text(document(rows, result, manifest))
    return 0 if result.passed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
