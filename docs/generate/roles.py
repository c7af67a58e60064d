"""`roles.md`: what a tag can mean."""

from __future__ import annotations

from docs.generate.markup import NOTE, codes, table
from trainmon_rules.state import Settings

DIRECTIONS = {1: "down", -1: "up", 0: "–"}


def page() -> str:
    """Return roles.md."""
    known = Settings.default().roles.roles
    heard = {r: codes(u.name for u in Settings.default().rules if r in u.roles) for r in known}
    intro = (
        "A tag gets its role when it first appears, and keeps it. What decides, in this order: the `[roles]` of the "
        "[config](config.md); the framework, recognised by its keys; general patterns over the name, with the part of "
        "the data taken from the name, else from the directory. A tag that none of them knows is unmapped, and no rule "
        "looks at it.\n\n"
        "*Good* is the direction in which the value should go (– where neither is bad by itself); *log* marks roles "
        "that are judged by their logarithm; a unit stands only where all frameworks agree on it. *Judged by* lists "
        "the [rules](rules.md) for the role; others may read it beside the series they judge. `trainmon inspect` "
        "shows which role each tag got."
    )
    head = ("role", "meaning", "good", "unit", "", "judged by")
    rows = (
        (f"`{r.name}`", r.about, DIRECTIONS[r.direction], r.unit, "log" if r.log else "", heard[r.name])
        for r in known.values()
    )
    return "\n\n".join([NOTE, "# The roles", intro, table(head, rows)]) + "\n"
