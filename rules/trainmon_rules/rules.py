"""Rules as data: which detector judges which roles, how severe it is, and what symptom it means.

`data/rules.yaml` is the shipped set. A user's rule file has the same form, and a `[rules.NAME]` of `trainmon.toml` the
same keys; `amended` is the one way in for all three. What isn't known is refused with file, line and the closest name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trainmon_rules.detectors import DETECTORS, Rule
from trainmon_rules.errors import BadConfig
from trainmon_rules.findings import Severity
from trainmon_rules.places import Place, Problems, closest, shown
from trainmon_rules.yamlfile import packaged_text, parse, parse_untrusted, read_text

SYMPTOMS = (
    "nonfinite", "loss-spike", "divergence", "grad-spike", "grad-explosion", "grad-vanishing", "oscillation",
    "flat", "slow", "plateau", "chance-accuracy", "overfit", "val-suspect", "loss-scale-collapse",
    "lr-schedule", "throughput-drop", "low-utilization", "periodic-stall", "stall", "dead-units",
    "activation-scale", "memory-growth", "periodic", "regime-shift", "resume-jump", "preference-instability",
)  # fmt: skip

FAMILIES = ("instability", "learning", "generalization", "speed", "schedule", "units", "memory")
"""Findings of one family that begin close together are one incident."""

KEYS = (
    "rule", "enabled", "detector", "roles", "companions", "needs", "symptom", "severity", "family", "for",
    "parameters",
)  # fmt: skip
"""The keys of an entry; those after `rule` may also stand in a `[rules.NAME]` of trainmon.toml."""

NEEDED = ("detector", "roles", "symptom", "severity", "family")  # by a rule that isn't there yet
FIELDS = {"for": "hold"}  # keys that a `Rule` calls otherwise
LARGEST = 1_000_000  # of `for` and of a rule's parameters
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
MAX_NAME = 64  # characters
MAX_RULES = 500  # of one file

Entry = tuple[Any, Place]
"""What a file says of one rule, and where."""


def load_rules(roles: Collection[str]) -> list[Rule]:
    """Return the shipped rules; `roles` are the known role names."""
    name = "rules.yaml"
    return list(amended((), rule_entries(packaged_text(name), name), roles))


def read_rule_file(path: Path, name: str) -> list[Entry]:
    """Return the entries of a user's rule file; BadConfig if it can't be read or isn't one."""
    return rule_entries(read_text(path, name, "rule file"), name, parse_untrusted)


def rule_entries(text: str, name: str, read: Callable[[str, str], Any] = parse) -> list[Entry]:
    """Return the entries of a rule file's text, not yet held against anything."""
    data, place = read(text, name), Place(name, text)
    if data is None:
        return []
    if not isinstance(data, list):
        raise place.error("a rule file is a list of rules, each beginning with - rule: NAME")
    if len(data) > MAX_RULES:
        raise place.error(f"holds {len(data):,} rules; {MAX_RULES} at most")
    return [(entry, place.at(i)) for i, entry in enumerate(data)]


def amended(rules: Iterable[Rule], entries: Iterable[Entry], roles: Collection[str], user: bool = False) -> list[Rule]:
    """Return rules changed by entries: one that names a rule changes the keys it gives, another one adds a rule.

    Parameters
    ----------
    rules : iterable of Rule
        Those that there are, in their order.
    entries : iterable of (entry, place)
        What a file says.
    roles : collection of str
        The known role names.
    user : bool
        The file is a user's: the severity that it gives is the last word, and the rules carry its name.

    Raises
    ------
    BadConfig
        If anything in an entry isn't known or can't be; all problems are told at once.
    """
    table = {r.name: r for r in rules}
    problems = Problems()
    seen: set[str] = set()
    for entry, place in entries:
        with problems.kept():
            name, where = _name(entry, place)
            if name in seen:
                raise where.error(f"two rules are called {name!r}")
            seen.add(name)
            table[name] = _amended(name, table.get(name), entry, where, EntryCheck(list(table), roles, user))
    problems.end()
    return list(table.values())


def _name(entry: Any, place: Place) -> tuple[str, Place]:
    if not isinstance(entry, Mapping):
        raise place.error("a rule is a mapping that begins with rule: NAME")
    name = entry.get("rule")
    if name is None:
        raise place.error("the key 'rule' is missing")
    if not isinstance(name, str) or len(name) > MAX_NAME or not NAME.fullmatch(name):
        raise place.at("rule").error(f"a rule's name is lower-case letters and digits with -, not {shown(name)}")
    return name, place if place.labels else place.named(name)


def _amended(name: str, old: Rule | None, entry: Mapping[str, Any], place: Place, check: EntryCheck) -> Rule:
    """Return the rule as an entry makes it; what is wrong with each of its keys is told together."""
    if old is None and "detector" not in entry:
        hint = closest(name, check.names)
        own = f"; one of your own needs {', '.join(NEEDED)}" if "?" not in hint else ""
        raise place.error(f"unknown rule {name!r}{hint}{own}")
    problems = Problems()
    given: dict[str, Any] = {}
    for key, value in entry.items():
        if key == "rule":
            continue
        at = place.at(str(key))
        with problems.kept():
            at.known(key, KEYS, "key")
            if key != "parameters":
                given[FIELDS.get(key, key)] = check.value(key, value, at)
    for key in NEEDED:
        if old is None and key not in entry:
            problems.note(place.error(f"the key {key!r} is missing"))
    detector = given.get("detector", old.detector if old else None)
    if old is not None and detector != old.detector:
        problems.note(place.at("detector").error(f"{name} has the detector {old.detector!r}; {OWN}"))
    elif detector is not None:
        with problems.kept():
            values = dict(old.parameters if old else ())
            values |= check.parameters(detector, entry.get("parameters", {}), place.at("parameters"))
            given["parameters"] = tuple(sorted(values.items()))
    problems.end()
    if check.user:
        given |= {"origin": place.name, "fixed": "severity" in entry or bool(old and old.fixed)}
    return replace(old, **given) if old is not None else Rule(name, **given)


OWN = "for another one give the rule a name of its own"


@dataclass(frozen=True, slots=True)
class EntryCheck:
    """Holds an entry's values against what is known: the names of rules and roles, and whether a user wrote it."""

    names: Collection[str]
    roles: Collection[str]
    user: bool

    def value(self, key: str, value: Any, at: Place) -> Any:
        """Return the value of a key other than `parameters`, as a `Rule` holds it."""
        match key:
            case "detector":
                return at.known(value, DETECTORS, "detector")
            case "symptom":
                return at.known(value, SYMPTOMS, "symptom")
            case "family":
                return at.known(value, FAMILIES, "family")
            case "severity":
                return Severity.parse(at.known(value, [str(s) for s in Severity], "severity"))
            case "enabled":
                if not isinstance(value, bool):
                    raise at.error(f"must be true or false, not {shown(value)}")
                return value
            case "for":
                if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= LARGEST:
                    raise at.error(f"must be a number of reports, not {shown(value)}")
                return value
        return self._roles(key, value, at)

    def _roles(self, key: str, value: Any, at: Place) -> tuple[str, ...]:
        if not isinstance(value, list) or (key == "roles" and not value):
            raise at.error(f"must be a list of roles, [train_loss], not {shown(value)}")
        return tuple(dict.fromkeys(at.at(i).known(r, self.roles, "role") for i, r in enumerate(value)))

    def parameters(self, detector: str, given: Any, at: Place) -> dict[str, Any]:
        """Return a detector's parameters, of the kind of their defaults and within reason."""
        if not isinstance(given, Mapping):
            raise at.error(f"must be a table of names and values, not {shown(given)}")
        defaults = DETECTORS[detector].parameters()
        problems = Problems()
        for key, value in given.items():
            with problems.kept():
                at.at(str(key)).known(key, defaults, "parameter")
                _check_parameter(value, defaults[key], at.at(key))
        problems.end()
        return dict(given)


def _check_parameter(value: Any, default: Any, at: Place) -> None:
    wanted: tuple[type, ...] = (int, float) if isinstance(default, float) else (type(default),)
    if type(value) not in wanted:
        kind = {bool: "true or false", int: "a whole number", float: "a number"}.get(type(default), "a text")
        raise at.error(f"must be {kind}, not {shown(value)}")
    if type(default) in (int, float) and value != default and not 0 < value <= LARGEST:
        raise at.error(f"must be above 0 and at most {LARGEST:,}, not {shown(value)}")


def known(value: object, options: Iterable[str], what: str, where: str) -> str:
    """Return `value` if it is one of `options`; else BadConfig with the closest of them."""
    names = list(options)
    if isinstance(value, str) and value in names:
        return value
    raise BadConfig(f"{where}: unknown {what} {shown(value)}{closest(value, names)}")
