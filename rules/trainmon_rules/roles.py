"""What a tag means: the role table.

A tag's role is judged once, when it first appears, from the keys its source has shown so far, and then kept:
first the user's config, then the framework recognised by its fingerprint of keys, then general patterns with the
part of the data taken from the tag, else from the directory; else the tag is unmapped ("").

The knowledge lies in `data/roles.yaml`; this file only says in which order it is asked.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from trainmon_rules.errors import BadConfig
from trainmon_rules.tags import MAX_TAG, Patterns, SplitWords, listed, plain
from trainmon_rules.yamlfile import load_packaged

@dataclass(frozen=True, slots=True)
class Role:
    """What a tag can mean.

    `direction` is +1 where rising is bad, −1 where falling is bad, 0 where neither is; `log` roles are judged by
    their logarithm; `unit` is "" where frameworks differ.
    """

    name: str
    direction: int
    log: bool
    about: str
    unit: str = ""


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
class _Table:
    """The shipped file, read."""

    roles: dict[str, Role]
    splits: SplitWords
    totals: dict[str, tuple[str, ...]]
    axes: Patterns[str]
    frameworks: tuple[Framework, ...]
    claims: Patterns[tuple[tuple[Framework, str], ...]]
    ignore: Patterns[bool]
    paths: Patterns[Meaning]
    names: Patterns[Meaning]
    fallback: Patterns[Meaning]


@dataclass(frozen=True, slots=True)
class RoleTable:
    """The roles, and what gives them to tags. Pickles as its overrides alone."""

    overrides: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def load(cls, overrides: Mapping[str, str] | None = None) -> RoleTable:
        """Return the shipped table with a user's `tag → role` overrides.

        A tag may be given with its sub-directory or without, and with the wildcards `*` and `?`; the role "" takes
        a tag's role away. BadConfig for an unknown role.
        """
        roles = _table().roles
        for tag, role in (overrides or {}).items():
            if role and role not in roles:
                close = difflib.get_close_matches(role, roles, 1)
                hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(sorted(roles))}"
                raise BadConfig(f"role {role!r} for tag {tag!r} is unknown; {hint}")
        return cls(dict(overrides or {}))

    def __reduce__(self) -> tuple[Any, ...]:
        return (RoleTable, (dict(self.overrides),))

    @property
    def roles(self) -> Mapping[str, Role]:
        """All roles by name."""
        return _table().roles

    def assign(self, tag: str, keys: Collection[str], prefix: str = "", facts: Collection[str] = ()) -> str:
        """Return the role of `tag`, "" if none is known.

        Parameters
        ----------
        tag : str
            The tag as logged, without the directory.
        keys : collection of str
            All tags that the source has shown up to the record in which `tag` first appears, that record
            included. Only membership is asked, so a dict or set is quick.
        prefix : str
            The sub-directory of the source ("validation/"), "" for none.
        facts : collection of str
            Names of the hyper-parameters that the source has shown up to that record.
        """
        if self.overrides and (given := self._override(tag, prefix)) is not None:
            return given
        if len(tag) > MAX_TAG:
            return ""
        path = plain(tag)
        claimed = self._claimed(path, keys, facts)
        return _general(tag, path, keys, prefix) if claimed is None else claimed

    def frameworks(self, keys: Collection[str], facts: Collection[str] = ()) -> list[str]:
        """Return the names of the frameworks whose fingerprint the keys show."""
        return [f.name for f in _table().frameworks if f.fits(keys, facts)]

    def axis(self, tag: str) -> str:
        """Return the x-axis that a tag is known to live on ("samples", "timesteps", "episodes"), "" for steps."""
        path = plain(tag[:MAX_TAG])
        return _table().axes.exact_end(path) or _table().axes.loose(path) or ""

    def _override(self, tag: str, prefix: str) -> str | None:
        for name in (prefix + tag, tag):
            if name in self.overrides:
                return self.overrides[name]
        for pattern, role in self.overrides.items():
            if fnmatchcase(prefix + tag, pattern) or fnmatchcase(tag, pattern):
                return role
        return None

    def _claimed(self, path: str, keys: Collection[str], facts: Collection[str]) -> str | None:
        claims = _table().claims
        short = path.removeprefix("train/")
        for found in (claims.exact(path), claims.exact(short), claims.loose(path), claims.loose(short)):
            for framework, role in found or ():
                if framework.fits(keys, facts):
                    return role
        return None


# ---------------------------------------------------------------------- general patterns
def _general(tag: str, path: str, keys: Collection[str], prefix: str) -> str:
    table = _table()
    split, rest = table.splits.cut(path)
    split = split or table.splits.cut(plain(prefix))[0]
    name = path.rpartition("/")[2]
    meaning = table.paths.exact_end(path) or table.paths.exact_end(rest)
    if meaning is None and (table.ignore.exact(name) or table.ignore.loose(path) or table.ignore.loose(name)):
        return ""
    meaning = meaning or table.names.exact(name) or table.paths.loose(path) or table.paths.loose(rest)
    if meaning is None:
        whole = rest.rpartition("/")[2]
        short = _without_marks(whole)
        meaning = _by_name(short) or _by_name(whole)
        meaning = meaning or table.fallback.loose(path) or table.fallback.loose(rest) or table.fallback.loose(short)
        if meaning is not None and _is_twin(tag, name, split, keys):
            return "twin"
    return "" if meaning is None else _choose(meaning, split, tag, keys)


def _by_name(name: str) -> Meaning | None:
    names = _table().names
    found = names.exact(name) or names.loose(name)
    if found is None and (bare := name.rstrip("0123456789").rstrip("_")) != name:  # TF1 calls a second one NAME_1
        found = names.exact(bare) or names.loose(bare)
    return found


def _is_twin(tag: str, name: str, split: str, keys: Collection[str]) -> bool:
    """Whether another series tells the same better, of which one is known or must come."""
    if "best" in name.split("_"):
        return True
    if split == "val":  # one batch; the mean over all follows
        return name.endswith("_step")
    if tag.endswith("_epoch"):
        return tag.removesuffix("_epoch") + "_step" in keys
    if name.startswith("epoch_"):
        return tag.replace("epoch_", "batch_", 1) in keys
    return name == "train_loss" and tag[: -len(name)] + "loss" in keys


def _without_marks(name: str) -> str:
    """Return the name without Lightning's and Keras' marks of step and epoch, and without `best`."""
    for mark in ("_step", "_epoch", "_vs_iterations"):
        name = name.removesuffix(mark)
    return name.removeprefix("epoch_").removeprefix("batch_").replace("best_", "")


def _choose(meaning: Meaning, split: str, tag: str, keys: Collection[str]) -> str:
    totals = _table().totals
    if split == "val":
        if meaning.val_beside and any(t in keys and t != tag for t in totals["val"]):
            return meaning.val_beside
        return meaning.val
    if meaning.beside and any(t in keys and t != tag for t in totals["train"]):
        return meaning.beside
    if split == "train" or (meaning.split_matters and "val_" + tag in keys):
        return meaning.train
    return meaning.role


def _shown(key: str, keys: Collection[str]) -> bool:
    return key in keys or "train/" + key in keys


# ---------------------------------------------------------------------- reading the file
@cache
def _table() -> _Table:
    data: Any = load_packaged("roles.yaml")
    sign = {"down": 1, "up": -1, "none": 0}
    roles = {
        name: Role(name, sign[str(r["direction"])], bool(r.get("log", False)), str(r["about"]), str(r.get("unit", "")))
        for name, r in data["roles"].items()
    }
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
    return _Table(roles, splits, totals, axes, frameworks, claims, ignore, paths, names, fallback)


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
