"""The rules as a list: a line each, what it judges wrapped beside it, below it what a user's file changed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from rich.console import Console

from trainmon_exporters.page import Page
from trainmon_exporters.wording import number
from trainmon_rules.rulebook import RuleFacts, as_dict

HEADS = ("rule", "symptom", "severity", "judges")
GAP = 2


def render_rules_json(rules: Iterable[RuleFacts]) -> str:
    """Return the rules as one indented JSON document, schema `trainmon.rules/1`."""
    return json.dumps(as_dict(rules), indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def print_rules(rules: Sequence[RuleFacts], console: Console) -> None:
    """Print the list."""
    page = Page.on(console)
    rows = [(r.rule, r.symptom, r.severity if r.enabled else "off", _judges(r)) for r in rules]
    wide = [max(len(row[i]) for row in (HEADS, *rows)) + GAP for i in range(3)]
    page.row([(_line(HEADS, wide), "label")])
    for rule, row in zip(rules, rows, strict=True):
        styles = ("name", "", rule.severity if rule.enabled else "label")
        cells = (page.say(cell.ljust(w), style) for cell, w, style in zip(row, wide, styles, strict=False))
        page.put(*cells, page.say(row[-1]), hanging=sum(wide))
        if rule.file:
            page.put(page.say(_told(rule), "label"), indent=GAP, hanging=GAP)


def _line(cells: Sequence[str], wide: Sequence[int]) -> str:
    return "".join(cell.ljust(w) for cell, w in zip(cells, wide, strict=False)) + cells[-1]


def _judges(r: RuleFacts) -> str:
    needs = f"; needs {', '.join(r.needs)}" if r.needs else ""
    return ", ".join(r.roles) + needs


def _told(r: RuleFacts) -> str:
    """Return what a file did to the rule: "disabled by rules.yaml", "changed by rules.yaml: ratio 3 → 5"."""
    if not r.enabled:
        return f"disabled by {r.file}"
    if not r.shipped:
        return f"added by {r.file}, with the detector {r.detector}"
    if not r.changed:
        return f"named by {r.file}, which changes nothing"
    said = (f"{k.removeprefix('parameters.')} {_value(old)} → {_value(new)}" for k, (old, new) in r.changed.items())
    return f"changed by {r.file}: {', '.join(said)}"


def _value(value: object) -> str:
    return f"[{', '.join(map(str, value))}]" if isinstance(value, tuple) else number(value)
