"""Rules as data: which detector judges which roles, how severe it is, and what symptom it means.

`data/rules.yaml` is the shipped set. Unknown keys, detectors, roles and parameters are refused with the
closest known name.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from trainmon_rules.detectors import DETECTORS, Rule
from trainmon_rules.errors import BadConfig
from trainmon_rules.findings import Severity
from trainmon_rules.yamlfile import load_packaged

SYMPTOMS = (
    "nonfinite", "loss-spike", "divergence", "grad-spike", "grad-explosion", "grad-vanishing", "oscillation",
    "flat", "slow", "plateau", "chance-accuracy", "overfit", "val-suspect", "loss-scale-collapse",
    "lr-schedule", "throughput-drop", "low-utilization", "periodic-stall", "stall", "dead-units",
    "activation-scale", "memory-growth", "periodic", "regime-shift", "resume-jump", "preference-instability",
)  # fmt: skip

FAMILIES = ("instability", "learning", "generalization", "speed", "schedule", "units", "memory")
"""Findings of one family that begin close together are one incident."""

_KEYS = {
    "rule",
    "detector",
    "roles",
    "companions",
    "needs",
    "symptom",
    "severity",
    "family",
    "for",
    "parameters",
}


def load_rules(roles: Collection[str]) -> list[Rule]:
    """Return the shipped rules; `roles` are the known role names."""
    return parse_rules(load_packaged("rules.yaml"), "rules.yaml", roles)


def parse_rules(data: Any, name: str, roles: Collection[str]) -> list[Rule]:
    """Return the rules of one file's content; BadConfig names what is wrong."""
    if not isinstance(data, list):
        raise BadConfig(f"{name}: a rule file is a list of rules")
    rules = [_rule(entry, f"{name}: rule {i + 1}", roles) for i, entry in enumerate(data)]
    seen: set[str] = set()
    for rule in rules:
        if rule.name in seen:
            raise BadConfig(f"{name}: two rules are called {rule.name!r}")
        seen.add(rule.name)
    return rules


def known(value: object, options: Iterable[str], what: str, where: str) -> str:
    """Return `value` if it is one of `options`; else BadConfig with the closest of them."""
    names = list(options)
    if isinstance(value, str) and value in names:
        return value
    close = difflib.get_close_matches(str(value), names, 1)
    hint = f"; did you mean {close[0]!r}?" if close else f"; known: {', '.join(sorted(names))}"
    raise BadConfig(f"{where}: unknown {what} {value!r}{hint}")


def _rule(entry: Any, where: str, roles: Collection[str]) -> Rule:
    if not isinstance(entry, Mapping):
        raise BadConfig(f"{where}: not a mapping")
    where = f"{where} ({entry['rule']})" if "rule" in entry else where
    for key in entry:
        known(key, _KEYS, "key", where)
    for key in ("rule", "detector", "roles", "symptom", "severity", "family"):
        if key not in entry:
            raise BadConfig(f"{where}: the key {key!r} is missing")
    detector = known(entry["detector"], DETECTORS, "detector", where)
    parameters = dict(entry.get("parameters") or {})
    defaults = DETECTORS[detector].parameters()
    for key, value in parameters.items():
        known(key, defaults, "parameter", where)
        if isinstance(defaults[key], int | float) and not isinstance(value, int | float):
            raise BadConfig(f"{where}: parameter {key} must be a number, not {value!r}")
    try:
        severity = Severity.parse(str(entry["severity"]))
    except ValueError as error:
        raise BadConfig(f"{where}: {error}") from None
    return Rule(
        name=str(entry["rule"]),
        detector=detector,
        roles=tuple(known(r, roles, "role", where) for r in entry["roles"]),
        companions=tuple(known(r, roles, "role", where) for r in entry.get("companions", ())),
        needs=tuple(known(r, roles, "role", where) for r in entry.get("needs", ())),
        symptom=known(entry["symptom"], SYMPTOMS, "symptom", where),
        severity=severity,
        family=known(entry["family"], FAMILIES, "family", where),
        hold=int(entry.get("for", 0)),
        parameters=tuple(sorted(parameters.items())),
    )
