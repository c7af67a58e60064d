"""A comparison on the terminal: where the two runs part, series by series, and what else they don't share."""

from __future__ import annotations

from trainmon_exporters.compared import headline, name_of, rows, told_series
from trainmon_exporters.page import COLUMN, INDENT, Page
from trainmon_exporters.story import NAME
from trainmon_rules.report import Comparison, Report, RunReport

MOST = 10  # comparisons told
NAMES = 24  # columns for the name of a series
STYLES = {"run": "for", "against": "bad"}


def print_comparisons(page: Page, report: Report) -> None:
    """Print the comparison of each run that has one."""
    found = [(r, r.comparison) for r in report.runs if r.comparison]
    for run, comparison in found[:MOST]:
        page.blank()
        _comparison(page, run, comparison)
    if len(found) > MOST:
        page.put(page.say(f"{len(found) - MOST:,} more runs were compared: --format json lists all"))


def _comparison(page: Page, run: RunReport, c: Comparison) -> None:
    page.put(
        page.say("COMPARED  "),
        page.say(run.run, "name", NAME),
        page.say(" against "),
        page.say(c.against, "name", NAME),
        page.say(f"  {c.verdict}; {c.chosen}", "label"),
        hanging=2,
    )
    page.put(page.say(headline(c, run.axis), "first"), indent=INDENT)
    series = told_series(c)
    named = [page.say(name_of(s), limit=NAMES).plain for s in series]
    wide = max([COLUMN, *(len(n) + 2 for n in named)])
    for s, name in zip(series, named, strict=True):
        shade = "label" if s.outcome == "unknown" else STYLES.get(s.better or "", "")
        page.put(page.say(name.ljust(wide), "label"), page.say(s.summary, shade), indent=INDENT, hanging=wide)
    for label, text in rows(run, c):
        page.put(page.say(label.ljust(wide), "label"), page.say(text), indent=INDENT, hanging=wide)
