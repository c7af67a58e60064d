"""What a tag means: the role table.

A tag's role is judged once, when it first appears, from the keys its source has shown so far, and then kept:
first the user's config, then the framework recognised by its fingerprint of keys, then the directory, then
general patterns; else the tag is unmapped ("").
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from trainmon_rules.errors import BadConfig
from trainmon_rules.yamlfile import load_packaged


@dataclass(frozen=True, slots=True)
class Role:
    """What a tag can mean.

    `direction` is +1 where rising is bad, −1 where falling is bad, 0 where neither is; `log` roles are judged by
    their logarithm.
    """

    name: str
    direction: int
    log: bool
    about: str


@dataclass(frozen=True, slots=True)
class RoleTable:
    """The roles, and the patterns that give them to tags."""

    roles: Mapping[str, Role]
    general: tuple[tuple[re.Pattern[str], str], ...]
    overrides: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def load(cls, overrides: Mapping[str, str] | None = None) -> RoleTable:
        """Return the shipped table with a user's `tag → role` overrides; BadConfig for an unknown role."""
        data: Any = load_packaged("roles.yaml")
        sign = {"down": 1, "up": -1, "none": 0}
        roles = {
            name: Role(name, sign[str(r["direction"])], bool(r.get("log", False)), str(r["about"]))
            for name, r in data["roles"].items()
        }
        general = tuple((re.compile(p["match"], re.IGNORECASE), str(p["role"])) for p in data["general"])
        for tag, role in (overrides or {}).items():
            if role not in roles:
                raise BadConfig(f"role {role!r} for tag {tag!r} is unknown; known: {', '.join(sorted(roles))}")
        return cls(roles, general, dict(overrides or {}))

    def assign(self, tag: str, keys: Collection[str], prefix: str = "") -> str:
        """Return the role of `tag`, "" if none is known.

        Parameters
        ----------
        tag : str
            The tag as logged, without the directory.
        keys : collection of str
            All tags that the source has shown up to the record in which `tag` first appears.
        prefix : str
            The sub-directory of the source ("validation/"), "" for none.
        """
        if prefix + tag in self.overrides:
            return self.overrides[prefix + tag]
        for pattern, role in self.general:
            if pattern.search(tag):
                return role
        return ""
