"""`data/roles.yaml` as objects: roles, split words, fingerprints of frameworks, and patterns over names."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from trainmon_rules.roles.tags import Patterns, SplitWords, listed
from trainmon_rules.yamlfile import load_packaged


@dataclass(frozen=True, slots=True)
class Role:
    """What a tag can mean.

    `direction` is +1 where rising is bad, −1 where falling is bad, 0 where neither is; `log` roles are judged by
    their logarithm; `unit` is "" where frameworks differ; `total` is the role that speaks in its place where it
    is logged ("" for none).
    """

    name: str
    direction: int
    log: bool
    about: str
    unit: str = ""
    total: str = ""


@dataclass(frozen=True, slots=True)
class Meaning:
    """The role of a name: by itself, on training data, on validation data, and beside a total."""

    role: str
    train: str
    val: str
    beside: str = ""
    val_beside: str = ""
    split_matters: bool = False


@dataclass(frozen=True, slots=True)
class Framework:
    """Keys (or names of hyper-parameters) that give a framework away."""

    name: str
    any: tuple[str, ...] = ()
    all: tuple[str, ...] = ()
    none: tuple[str, ...] = ()
    facts: frozenset[str] = frozenset()

    def fits(self, keys: Collection[str], facts: Collection[str]) -> bool:
        """Whether the keys shown so far (and the hyper-parameters) are this framework's."""
        if any(_shown(k, keys) for k in self.none) or not all(_shown(k, keys) for k in self.all):
            return False
        if any(_shown(k, keys) for k in self.any) or (self.all and not self.any):
            return True
        return bool(self.facts) and any(f.replace(".", "/").rpartition("/")[2] in self.facts for f in facts)


@dataclass(frozen=True, slots=True)
class Table:
    """The shipped file, read."""

    roles: dict[str, Role]
    splits: SplitWords
    totals: dict[str, tuple[str, ...]]
    summaries: frozenset[str]
    axes: Patterns[str]
    frameworks: tuple[Framework, ...]
    claims: Patterns[tuple[tuple[Framework, str], ...]]
    ignore: Patterns[bool]
    paths: Patterns[Meaning]
    names: Patterns[Meaning]
    fallback: Patterns[Meaning]


def _shown(key: str, keys: Collection[str]) -> bool:
    return key in keys or "train/" + key in keys


@cache
def table() -> Table:
    """Return the shipped table, read once a process."""
    data: Any = load_packaged("roles.yaml")
    roles = {name: _role(name, entry) for name, entry in data["roles"].items()}
    words = {w: split for split in ("train", "val") for w in listed(data["splits"][split])}
    splits = SplitWords(words, frozenset(listed(data["splits"]["anywhere"])))
    axes: Patterns[str] = Patterns()
    for axis, patterns in data["axes"].items():
        for pattern in listed(patterns):
            axes.add(pattern, axis)
    frameworks, claims = _frameworks(data["frameworks"])
    paths, names, fallback = Patterns[Meaning](), Patterns[Meaning](), Patterns[Meaning]()
    for entry in data["general"]:
        _add(entry, paths, names)
    for entry in data["fallback"]:
        _add(entry, fallback, fallback)
    ignore: Patterns[bool] = Patterns()
    for pattern in listed(data["ignore"]):
        ignore.add(pattern, True)
    totals = {split: tuple(keys) for split, keys in data["totals"].items()}
    return Table(
        roles, splits, totals, frozenset(data["summaries"]), axes, frameworks, claims, ignore, paths, names, fallback
    )


def _role(name: str, entry: Mapping[str, Any]) -> Role:
    direction = {"down": 1, "up": -1, "none": 0}[entry["direction"]]
    unit, total = entry.get("unit", ""), entry.get("total", "")
    return Role(name, direction, entry.get("log", False), entry["about"], unit, total)


def _add(entry: Mapping[str, str], paths: Patterns[Meaning], names: Patterns[Meaning]) -> None:
    role = entry["role"]
    meaning = Meaning(
        role,
        entry.get("train", role),
        entry.get("val", role),
        entry.get("beside", ""),
        entry.get("val_beside", ""),
        "train" in entry or "val" in entry,
    )
    for pattern in listed(entry["names"]):
        (paths if "/" in pattern else names).add(pattern, meaning)


def _frameworks(
    entries: list[dict[str, Any]],
) -> tuple[tuple[Framework, ...], Patterns[tuple[tuple[Framework, str], ...]]]:
    frameworks = []
    claimed: dict[str, list[tuple[Framework, str]]] = {}
    for e in entries:
        keys = {k: tuple(e.get(k, ())) for k in ("any", "all", "none")}
        framework = Framework(e["name"], facts=frozenset(e.get("facts", ())), **keys)
        frameworks.append(framework)
        for role, patterns in e["tags"].items():
            for pattern in listed(patterns):
                claimed.setdefault(pattern, []).append((framework, role))
    claims: Patterns[tuple[tuple[Framework, str], ...]] = Patterns()
    for pattern, who in claimed.items():
        claims.add(pattern, tuple(who))
    return tuple(frameworks), claims
