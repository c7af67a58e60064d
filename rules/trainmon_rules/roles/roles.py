"""What a tag means: the role table.

A tag's role is judged once, when it first appears, from the keys its source has shown so far, and then kept:
first the user's config, then the framework recognised by its fingerprint of keys, then general patterns with the
part of the data taken from the tag, else from the directory; else the tag is unmapped ("").

The knowledge lies in `data/roles.yaml`, which `rolefile` reads; this file says in which order it is asked.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from trainmon_rules.errors import BadConfig
from trainmon_rules.roles.rolefile import Meaning, Role, table
from trainmon_rules.roles.tags import MAX_TAG, plain

FINAL = "final/"  # how the readers mark the numbers of a trainer's closing summary

__all__ = ["Role", "RoleTable"]


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
        roles = table().roles
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
        return table().roles

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
        if tag.startswith(FINAL):
            return "final_summary"
        path = plain(tag)
        claimed = self._claimed(path, keys, facts)
        return _general(tag, path, keys, prefix) if claimed is None else claimed

    def frameworks(self, keys: Collection[str], facts: Collection[str] = ()) -> list[str]:
        """Return the names of the frameworks whose fingerprint the keys show."""
        return [f.name for f in table().frameworks if f.fits(keys, facts)]

    def axis(self, tag: str) -> str:
        """Return the x-axis that a tag is known to live on ("samples", "timesteps", "episodes"), "" for steps."""
        path = plain(tag[:MAX_TAG])
        return table().axes.exact_end(path) or table().axes.loose_end(path) or ""

    def _override(self, tag: str, prefix: str) -> str | None:
        for name in (prefix + tag, tag):
            if name in self.overrides:
                return self.overrides[name]
        for pattern, role in self.overrides.items():
            if fnmatchcase(prefix + tag, pattern) or fnmatchcase(tag, pattern):
                return role
        return None

    def _claimed(self, path: str, keys: Collection[str], facts: Collection[str]) -> str | None:
        claims = table().claims
        short = path.removeprefix("train/")
        for found in (claims.exact(path), claims.exact(short), claims.loose(path), claims.loose(short)):
            for framework, role in found or ():
                if framework.fits(keys, facts):
                    return role
        return None


# ---------------------------------------------------------------------- general patterns
def _general(tag: str, path: str, keys: Collection[str], prefix: str) -> str:
    known = table()
    split, rest = known.splits.cut(path)
    split = split or known.splits.cut(plain(prefix[-MAX_TAG:]))[0]
    name = path.rpartition("/")[2]
    ways = dict.fromkeys((path, rest))  # with the words of the split, then without
    meaning = _first(known.paths.exact_end, ways)
    if meaning is None and (known.ignore.exact(name) or known.ignore.loose_end(path)):
        return ""
    meaning = meaning or known.names.exact(name) or _first(known.paths.loose_end, ways)
    if meaning is None:
        whole = rest.rpartition("/")[2]
        short = _without_marks(whole)
        meaning = _first(_by_name, dict.fromkeys((short, whole)))
        meaning = meaning or _first(known.fallback.loose_end, dict.fromkeys((path, rest, short)))
        if meaning is not None and _is_twin(tag, name, split, keys):
            return "twin"
    return "" if meaning is None else _choose(meaning, split, tag, keys)


def _first(find: Callable[[str], Meaning | None], texts: Iterable[str]) -> Meaning | None:
    return next((found for text in texts if (found := find(text)) is not None), None)


def _by_name(name: str) -> Meaning | None:
    names = table().names
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
        finer = tag.replace("epoch_", "batch_", 1)
        return finer != tag and finer in keys
    plainer = name.removeprefix("train_")
    return name in table().summaries and tag[: -len(name)] + plainer in keys


def _without_marks(name: str) -> str:
    """Return the name without Lightning's and Keras' marks of step and epoch, and without `best`."""
    for mark in ("_step", "_epoch", "_vs_iterations"):
        name = name.removesuffix(mark)
    return name.removeprefix("epoch_").removeprefix("batch_").replace("best_", "")


def _choose(meaning: Meaning, split: str, tag: str, keys: Collection[str]) -> str:
    totals = table().totals
    if split == "val":
        if meaning.val_beside and any(t in keys and t != tag for t in totals["val"]):
            return meaning.val_beside
        return meaning.val
    if meaning.beside and any(t in keys and t != tag for t in totals["train"]):
        return meaning.beside
    if split == "train" or (meaning.split_matters and "val_" + tag in keys):
        return meaning.train
    return meaning.role
