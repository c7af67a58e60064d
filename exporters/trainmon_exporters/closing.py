"""The last lines of a long report: the verdict once more, since when, and the first thing to do.

On a small terminal the top of a report has scrolled away when the prompt comes back.
"""

from __future__ import annotations

from collections import Counter

from trainmon_exporters.page import Page
from trainmon_exporters.story import NAME, Telling, recovered, serious, telling
from trainmon_exporters.wording import axis_word, change_lines, in_short, many, outcome
from trainmon_rules.report import RunReport

NAMES = 40  # columns for the name of a series


def print_closing(page: Page, runs: list[RunReport]) -> None:
    """Print verdict, what, since when and the first fix; nothing if no run had an incident.

    Of several runs it is the worst that is told, one in which something goes on before one in which all came back.
    """
    bad = [r for r in runs if serious(r)]
    if not bad:
        return
    page.blank()
    if len(runs) > 1:
        counts = Counter(r.verdict for r in runs)
        page.put(page.say(f"{many(len(runs), 'run')}: " + ", ".join(f"{n} {verdict}" for verdict, n in counts.items())))
    run = min(bad, key=recovered)
    _worst(page, run, telling(run), named=len(runs) > 1)


def _worst(page: Page, run: RunReport, told: Telling, named: bool) -> None:
    n = told.main
    i = n.incident
    what = f"{i.symptom} on {page.say(i.series[0], limit=NAMES).plain}" if i.series else i.symptom
    times, each = (f" {n.times:,} times", " each time") if n.again else ("", "")
    text = f"  {what}{times} since {axis_word(run.axis)} {i.onset_step}, {outcome(i)}{each}"
    remarks = [f"incident {n.number} of {len(told.full)}"] if len(told.full) > 1 else []
    if i.severity != run.verdict:
        remarks = [f"a {i.severity}", *remarks, f"what was {run.verdict} is over"]
    elif remarks and recovered(run):
        remarks.append("all recovered")
    text += f" ({', '.join(remarks)})" if remarks else ""
    if named:
        text += f"; {page.say(run.run, limit=NAME).plain}"
    more = page.say("  (all of it: --format markdown)", "label")
    page.put(page.say(run.verdict.upper(), run.verdict), page.say(text), hanging=2, spare=more)
    if i.fixes:
        change = "; ".join(change_lines(i.fixes[0].change or {}))
        page.put(
            page.say("First: ", "first"),
            page.say(in_short(i.fixes[0].action), "first"),
            page.say(f" -- {change}" if change and len(change) < NAME else "", "copy"),
            hanging=2,
        )
