"""Places in a file that a person wrote, and what is wrong there: messages that name file, line and key."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from trainmon_rules.errors import BadConfig
from trainmon_rules.yamlfile import line_of as yaml_line

Path = tuple[str | int, ...]
LONGEST = 60  # characters of a value shown
MOST = 100  # problems of a file that are kept


def closest(value: object, options: Collection[str]) -> str:
    """Return the end of an error message: what may have been meant, or what there is."""
    close = difflib.get_close_matches(str(value)[:LONGEST], options, 1) if isinstance(value, str | int) else []
    return f"; did you mean {close[0]!r}?" if close else f"; known: {', '.join(sorted(options))}"


def shown(value: object) -> str:
    """Return a value from a file for a message: short, however large or deep it is."""
    short = reprlib.Repr()
    short.maxlevel, short.maxstring, short.maxother, short.maxlong = 2, LONGEST, LONGEST, LONGEST
    return short.repr(value)


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a file, for messages: the line is looked up only when something is wrong.

    Attributes
    ----------
    name, text : str
        The file, and what stands in it.
    path : tuple of str and int
        Keys and indices that lead to the place.
    labels : tuple of str or None
        What the place is called in a message ("grad-spike.severity"); None for nothing but its line.
    find : callable
        Tells the line of a path in the text; that of YAML by default.
    """

    name: str
    text: str
    path: Path = ()
    labels: tuple[str, ...] | None = None
    find: Callable[[str, Path], int | None] = yaml_line

    def at(self, *more: str | int) -> Place:
        """Return the place of an entry further in."""
        labels = None if self.labels is None else (*self.labels, *(m for m in more if isinstance(m, str)))
        return replace(self, path=(*self.path, *more), labels=labels)

    def named(self, label: str) -> Place:
        """Return the place under another name: an entry of a list has none of its own."""
        return replace(self, labels=(*(self.labels or ()), label))

    @property
    def where(self) -> str:
        """File, line and name, as a message begins."""
        line = self.find(self.text, self.path)
        label = f": {shorter('.'.join(self.labels))}" if self.labels else ""
        return f"{self.name}{f':{line}' if line else ''}{label}"

    def error(self, message: str) -> BadConfig:
        """Return the error to raise, with file, line and name."""
        return BadConfig(f"{self.where}: {message}")

    def known(self, value: object, options: Collection[str], what: str) -> str:
        """Return `value` if it is one of `options`; else BadConfig with the closest of them."""
        if isinstance(value, str) and value in options:
            return value
        raise self.error(f"unknown {what} {shown(value)}{closest(value, options)}")

    def mapping(self, raw: Any, known: tuple[str, ...]) -> Mapping[str, Any]:
        """Return `raw` if it is a mapping with known keys only."""
        if not isinstance(raw, Mapping):
            raise self.error("must be a mapping of keys to values")
        for key in raw:
            self.at(str(key)).known(key, known, "key")
        return raw

    def strings(self, entry: Mapping[str, Any], key: str) -> tuple[str, ...]:
        """Return a list of strings."""
        value = entry.get(key, ())
        if isinstance(value, str) or not all(isinstance(v, str) for v in value):
            raise self.at(key).error(f"{key} must be a list of strings")
        return tuple(value)

    def table(self, entry: Mapping[str, Any], key: str) -> dict[str, str]:
        """Return a mapping, its values as strings."""
        value = entry.get(key) or {}
        if not isinstance(value, Mapping):
            raise self.at(key).error(f"{key} must be a mapping")
        return {str(k): str(v) for k, v in value.items()}

    def number(self, entry: Mapping[str, Any], key: str, default: float) -> float:
        """Return a number."""
        value = entry.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.at(key).error(f"{key} must be a number, not {shown(value)}")
        return float(value)


def shorter(text: str) -> str:
    """Return a name with its middle cut out if it is too long for a message."""
    return text if len(text) <= 2 * LONGEST else f"{text[:LONGEST]}...{text[-LONGEST:]}"


@dataclass(slots=True)
class Problems:
    """What is wrong with a file, collected so that all of it is said at once."""

    found: list[str] = field(default_factory=list)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Note what the body finds wrong, and go on after it."""
        try:
            yield
        except BadConfig as error:
            self.note(error)

    def note(self, error: BadConfig) -> None:
        """Note what is wrong; of too much, no more is looked for."""
        self.found.extend(error.problems)
        if len(self.found) >= MOST:
            raise BadConfig(*self.found[:MOST])

    def end(self) -> None:
        """Raise BadConfig if anything was found."""
        if self.found:
            raise BadConfig(*self.found)
