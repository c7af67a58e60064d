"""Names of metrics as text: one spelling for all, the part of the data they speak of, and patterns over them.

Frameworks write the same name in many ways (`lm loss`, `lm-loss`, `LM_Loss`; `mfu(%)`), and put the part of the
data before, behind, in the middle or in a directory (`val/loss`, `loss/valid`, `lm loss validation`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Generic, TypeVar

MAX_TAG = 256  # characters; a longer tag is no metric's name and stays unmapped

_CAMEL = re.compile(r"([a-z]{2})([A-Z])")  # two letters, so that mAP stays one word
_JOINTS = re.compile(r"[^a-z0-9/]+")
_SLASHES = re.compile(r"_*/[_/]*")

T = TypeVar("T")


def plain(tag: str) -> str:
    """Return the tag in lower case with its words joined by `_`; `/` stays, `%` becomes the word `pct`."""
    text = _CAMEL.sub(r"\1_\2", tag).lower().replace("%", "_pct_")
    hidden = "_" if tag.startswith("_") else ""  # W&B's own _step and _runtime
    return hidden + _SLASHES.sub("/", _JOINTS.sub("_", text)).strip("_/")


@dataclass(frozen=True, slots=True)
class SplitWords:
    """Words that name a part of the data: word → "train" or "val"; `anywhere` also count inside a name."""

    words: Mapping[str, str]
    anywhere: frozenset[str]

    def cut(self, path: str) -> tuple[str, str]:
        """Return the split that a plain path names ("" for none) and the path without the words that name it.

        The innermost directory or name that holds such a word decides.
        """
        found, kept = "", []
        for part in reversed(path.split("/")):
            split, rest = self._cut_part(part, last=not kept)
            found = found or split
            if rest:
                kept.append(rest)
        return found, "/".join(reversed(kept))

    def _cut_part(self, part: str, last: bool) -> tuple[str, str]:
        words = part.split("_")
        if (split := self.words.get(words[0], "")) or (split := self.words.get(words[-1], "")):
            words = words[1:] if words[0] in self.words else words[:-1]
        elif last and (inner := next((w for w in words if w in self.anywhere), "")):
            split = self.words[inner]
            words.remove(inner)
        return split, "_".join(words)


class Patterns(Generic[T]):
    """Comma-separated patterns over plain names, each with a meaning; `*` is anything, `#` a number.

    Exact patterns win over those with wildcards, then the one that was added first. Patterns with a `/` are
    about the end of a path, directories and all; the others about one name.
    """

    __slots__ = ("_exact", "_loose", "_regex")

    def __init__(self) -> None:
        self._exact: dict[str, T] = {}
        self._loose: list[tuple[str, T]] = []
        self._regex: re.Pattern[str] | None = None

    def add(self, pattern: str, meaning: T) -> None:
        """Add one pattern."""
        if "*" in pattern or "#" in pattern:
            self._loose.append((pattern, meaning))
        else:
            self._exact.setdefault(pattern, meaning)

    def exact(self, text: str) -> T | None:
        """Return the meaning of a pattern without wildcards."""
        return self._exact.get(text)

    def exact_end(self, path: str) -> T | None:
        """Return the meaning of the longest end of the path that is a pattern without wildcards."""
        while path:
            if (found := self._exact.get(path)) is not None:
                return found
            path = path.partition("/")[2]
        return None

    def loose(self, text: str) -> T | None:
        """Return the meaning of the first pattern with wildcards that fits."""
        if not self._loose:
            return None
        if self._regex is None:
            self._regex = _compiled(tuple(p for p, _ in self._loose))
        m = self._regex.fullmatch(text)
        return None if m is None or m.lastindex is None else self._loose[m.lastindex - 1][1]


@cache
def _compiled(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"({_regex(p)})" for p in patterns))


def _regex(pattern: str) -> str:
    if "/" not in pattern:
        return re.escape(pattern).replace(r"\*", "[^/]*").replace(r"\#", r"\d+")
    return "(?:.*/)?" + re.escape(pattern).replace(r"\*", ".*").replace(r"\#", r"\d+")


def listed(text: str) -> Iterable[str]:
    """Yield the names of a comma-separated list."""
    return (name for part in text.split(",") if (name := part.strip()))
