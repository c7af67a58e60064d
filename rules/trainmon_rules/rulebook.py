"""The rules in force, as a list of plain facts: what each one finds, judges and needs, and what a user changed.

The field names are those of the schema `trainmon.rules/1`; exporters only format it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from trainmon_rules.detectors import DETECTORS, Rule
from trainmon_rules.rules import FIELDS, KEYS
from trainmon_rules.state import Settings
from trainmon_rules.strict import plain

SCHEMA = "trainmon.rules/1"


@dataclass(frozen=True, slots=True)
class RuleFacts:
    """One rule.

    `parameters` has all of them; `changed` is what differs from the shipped rule: a key, or "parameters.NAME", to the
    shipped value and the one in force. `file` is the user's file that changed or added the rule last, None for none;
    `shipped` is false for a rule that was added.
    """

    rule: str
    detector: str
    symptom: str
    severity: str
    family: str
    roles: tuple[str, ...]
    companions: tuple[str, ...]
    needs: tuple[str, ...]
    hold: int
    parameters: Mapping[str, Any]
    enabled: bool
    shipped: bool
    file: str | None
    changed: Mapping[str, tuple[Any, Any]]


def rule_facts(settings: Settings) -> list[RuleFacts]:
    """Return the facts of every rule, those that are switched off at the end."""
    return [_facts(r) for r in (*settings.rules, *settings.off)]


def as_dict(rules: Iterable[RuleFacts]) -> dict[str, Any]:
    """Return the list as strict-JSON data, schema `trainmon.rules/1`."""
    rows = [plain(r) for r in rules]
    return {"schema": SCHEMA, "rules": [{"for" if k == "hold" else k: v for k, v in r.items()} for r in rows]}


@functools.cache
def shipped_rules() -> Mapping[str, Rule]:
    """Return the shipped rules by name, read once a process."""
    return {r.name: r for r in Settings.default().rules}


def parameters_of(rule: Rule) -> dict[str, Any]:
    """Return all parameters of a rule: its detector's defaults, then its own."""
    return {**DETECTORS[rule.detector].parameters(), **dict(rule.parameters)}


def changes_of(rule: Rule) -> dict[str, tuple[Any, Any]]:
    """Return what differs from the shipped rule of that name: key to the shipped value and this one's."""
    old = shipped_rules().get(rule.name)
    if old is None:
        return {}
    before, now = parameters_of(old), parameters_of(rule)
    pairs = {k: (_word(getattr(old, FIELDS.get(k, k))), _word(getattr(rule, FIELDS.get(k, k)))) for k in _PLAIN}
    pairs |= {f"parameters.{k}": (before[k], now[k]) for k in now}
    return {k: pair for k, pair in pairs.items() if pair[0] != pair[1]}


_PLAIN = [k for k in KEYS if k not in ("rule", "parameters")]


def _word(value: Any) -> Any:
    return value if isinstance(value, bool | int | tuple) and not hasattr(value, "name") else str(value)


def _facts(rule: Rule) -> RuleFacts:
    return RuleFacts(
        rule.name,
        rule.detector,
        rule.symptom,
        str(rule.severity),
        rule.family,
        rule.roles,
        rule.companions,
        rule.needs,
        rule.hold,
        parameters_of(rule),
        rule.enabled,
        rule.name in shipped_rules(),
        rule.origin or None,
        changes_of(rule),
    )
