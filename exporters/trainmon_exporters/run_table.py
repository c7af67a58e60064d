"""Many runs, a line each: the verdict, the name, what went wrong or how much was read."""

from __future__ import annotations

from trainmon_exporters.page import Page
from trainmon_exporters.story import NAME, headline, later_run, serious
from trainmon_exporters.wording import extent, many, note, steps_read
from trainmon_rules.report import RunReport

QUIET_RUNS = 50  # runs without incidents that get a line
NOTES = 5  # notes told of runs that are otherwise well
LEAST = 16  # columns for a name, however much there is to say


def print_table(page: Page, runs: list[RunReport]) -> None:
    """Print a line a run, none longer than the page; of many in which nothing went wrong, the first ones."""
    quiet = [r for r in runs if not serious(r)]
    left_out = {id(r) for r in quiet[QUIET_RUNS:]}
    shown = [r for r in runs if id(r) not in left_out]
    verdicts = max(len(r.verdict) for r in shown) + 2
    texts = [_text(r) for r in shown]
    longest = max(len(page.say(r.run, limit=NAME)) for r in shown)
    room = page.width - verdicts - 2
    if longest + max(map(len, texts)) > room:
        texts = [headline(r) or steps_read(r) for r in shown]
    names = min(longest, max(LEAST, room // 2, room - max(map(len, texts))))
    for run, text in zip(shown, texts, strict=True):
        name = page.say(run.run, "name", names)
        name.pad_right(names + 2 - len(name))
        line = page.say(run.verdict.upper().ljust(verdicts), run.verdict) + name + page.say(text, limit=room - names)
        page.raw(line)
    if left_out:
        page.put(page.say(f"and {many(len(left_out), 'more run')} without an incident, or with too little logged"))
    if mark := later_run(shown):
        page.put(page.say(f"{mark}: the {_ordinal(mark[1:])} run in the same file (its steps begin again)", "label"))
    _notes(page, quiet)


def _ordinal(n: str) -> str:
    return {"2": "second", "3": "third"}.get(n, f"{n}th")


def _text(run: RunReport) -> str:
    what, read = headline(run), extent(run, brief=True)
    return f"{what}; {read}" if what else read


def _notes(page: Page, quiet: list[RunReport]) -> None:
    """Print the notes on runs that have nothing worse, which are told nowhere else."""
    noted = [(r, i) for r in quiet for i in r.incidents]
    if not noted:
        return
    page.blank()
    page.put(page.say("Notes, nothing that needs action", "name"))
    for run, i in noted[:NOTES]:
        name = page.say(run.run, limit=page.width // 2)
        page.put(name, page.say(f": {note(i, run.axis)}"), indent=2, hanging=2)
    if len(noted) > NOTES:
        page.put(page.say(f"and {many(len(noted) - NOTES, 'note')} more"), indent=2)
