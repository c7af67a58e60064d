"""Names of metrics as text: one spelling for all, the part of the data they speak of, and patterns over them.

Frameworks write the same name in many ways (`lm loss`, `lm-loss`, `LM_Loss`; `mfu(%)`), and put the part of the
data before, behind, in the middle or in a directory (`val/loss`, `loss/valid`, `lm loss validation`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

MAX_TAG = 256  # characters; a longer tag is no metric's name and stays unmapped

_CAMEL = re.compile(r"([a-z]{2})([A-Z])")  # two letters, so that mAP stays one word
_JOINTS = re.compile(r"[^a-z0-9/]+")
_LOADER = re.compile(r"/dataloader_idx_\d+$")  # Lightning's mark of one of several validation sets
_SLASHES = re.compile(r"_*/[_/]*")

T = TypeVar("T")


def plain(tag: str) -> str:
    """Return the tag in lower case with its words joined by `_`; `/` stays, `%` becomes the word `pct`."""
    text = _CAMEL.sub(r"\1_\2", tag).lower().replace("%", "_pct_")
    text = _LOADER.sub("", text)
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
        found = ""
        kept: list[str] = []
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
    """Patterns over plain names, each with a meaning; `*` is anything, `#` a number.

    Exact patterns win over those with wildcards, then the one that was added first. Patterns with a `/` are
    about the end of a path, directories and all; the others about one name.
    """

    __slots__ = ("_buckets", "_exact", "_meanings", "_regexes")

    def __init__(self) -> None:
        self._exact: dict[str, T] = {}
        self._meanings: list[T] = []
        # Wildcard patterns by the character they must begin or end with, so that a name is held against few.
        self._buckets: dict[str, list[tuple[int, str]]] = {}
        self._regexes: dict[str, re.Pattern[str]] = {}  # of the buckets, compiled when first asked

    def add(self, pattern: str, meaning: T) -> None:
        """Add one pattern."""
        if "*" not in pattern and "#" not in pattern:
            self._exact.setdefault(pattern, meaning)
            return
        first, last = pattern[0], pattern[-1]
        key = f"{first}…" if first not in "*#" else f"…{last}" if last not in "*#" else "…"
        self._buckets.setdefault(key, []).append((len(self._meanings), pattern))
        self._meanings.append(meaning)

    def __iter__(self) -> Iterator[T]:
        """Yield the meaning of every pattern."""
        yield from self._exact.values()
        yield from self._meanings

    def exact(self, text: str) -> T | None:
        """Return the meaning of a pattern without wildcards."""
        return self._exact.get(text)

    def exact_end(self, path: str) -> T | None:
        """Return the meaning of the longest end of the path that is a pattern without wildcards."""
        return next((found for end in _ends(path) if (found := self._exact.get(end)) is not None), None)

    def loose(self, text: str) -> T | None:
        """Return the meaning of the first pattern with wildcards that fits the whole text."""
        if not text:
            return None
        found = [self._in_bucket(key, text) for key in (f"{text[0]}…", f"…{text[-1]}", "…") if key in self._buckets]
        first = min(found, default=len(self._meanings))
        return self._meanings[first] if first < len(self._meanings) else None

    def _in_bucket(self, key: str, text: str) -> int:
        regex = self._regexes.get(key)
        if regex is None:
            regex = self._regexes[key] = re.compile("|".join(f"({_regex(p)})" for _, p in self._buckets[key]))
        m = regex.fullmatch(text)
        return len(self._meanings) if m is None or m.lastindex is None else self._buckets[key][m.lastindex - 1][0]

    def loose_end(self, path: str) -> T | None:
        """Return the meaning of a pattern with wildcards that fits an end of the path, the longest first."""
        return next((found for end in _ends(path) if (found := self.loose(end)) is not None), None)


def _ends(path: str) -> Iterator[str]:
    while path:
        yield path
        path = path.partition("/")[2]


def _regex(pattern: str) -> str:
    """Return the pattern as a regular expression; its `*` stays within one name unless it is about a path."""
    anything = ".*" if "/" in pattern else "[^/]*"
    return re.escape(pattern).replace(r"\*", anything).replace(r"\#", r"\d+")


def listed(text: str) -> Iterator[str]:
    """Yield the names of a comma-separated list."""
    return (name for part in text.split(",") if (name := part.strip()))
