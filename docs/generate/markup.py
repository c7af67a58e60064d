"""What the generated pages are made of: tables, links, conditions in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from trainmon_rules.diagnosis.table import FixRule
from trainmon_rules.report import Route

NOTE = "<!-- Written by docs/generate; `make docs` writes it afresh. -->"
KNOWLEDGE = "../rules/trainmon_rules"


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table."""
    names = list(head)
    cells = [names, ["---"] * len(names), *([c.replace("|", "\\|") for c in row] for row in rows)]
    return "\n".join("| " + " | ".join(row) + " |" for row in cells)


def bullets(items: Iterable[str]) -> str:
    """Return a list."""
    return "\n".join(f"- {item}" for item in items)


def numbered(items: Iterable[str]) -> str:
    """Return a list in order."""
    return "\n".join(f"{n}. {item}" for n, item in enumerate(items, 1))


def sentence(clause: str) -> str:
    """Return a clause as a sentence."""
    return (clause[:1].upper() if clause[:1].isascii() else clause[:1]) + clause[1:] + "."


def codes(words: Iterable[object]) -> str:
    """Return words in code font, with commas."""
    return ", ".join(f"`{w}`" for w in words)


def read_at(route: Route, up: str = "") -> str:
    """Return the link to a sheet or to the page of a pack, from docs/ or (`up` "../") a folder in it."""
    folder = "packs" if route.pack else "sheets"
    return f"[{route.sheet}]({up}{KNOWLEDGE}/{folder}/{route.sheet}.md)"


def routes(items: Iterable[Route], up: str = "") -> str:
    """Return routes as a list: rank, link, why."""
    return bullets(f"{r.rank}: {read_at(r, up)}, {r.why}" for r in items)


def in_short(items: Iterable[Route], up: str = "") -> str:
    """Return routes in a cell of a table."""
    return "; ".join(f"{r.rank}: {read_at(r, up)}" for r in items)


def fix(f: FixRule) -> str:
    """Return a fix with its condition."""
    return f.action + (f" (when {when(f.when)})" if f.when else "")


def when(condition: Mapping[str, Any]) -> str:
    """Return a condition in words."""
    return " and ".join(_test(name, test) for name, test in condition.items())


def _test(name: str, test: Any) -> str:
    if isinstance(test, Mapping):
        verbs = ("has" if op == "has" else f"is {op.replace('_', ' ')}" for op in test)
        limits = (codes(limit if isinstance(limit, list) else [limit]) for limit in test.values())
        return f"`{name}` " + " and ".join(f"{v} {n}" for v, n in zip(verbs, limits, strict=True))
    if test in ("known", "unknown") and isinstance(test, str):
        return f"`{name}` is {test}"
    return f"`{name}`" if test is True else f"not `{name}`" if test is False else f"`{name}` is `{test}`"
