"""Places in a YAML file, and what is wrong there: messages that name file and line."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainmon_rules.errors import BadConfig


def closest(value: str, options: tuple[str, ...]) -> str:
    """Return the end of an error message: what may have been meant, or what there is."""
    close = difflib.get_close_matches(value, options, 1)
    return f"; did you mean {close[0]!r}?" if close else f"; known: {', '.join(sorted(options))}"


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a YAML file, for messages: the line is looked up only when something is wrong."""

    name: str
    text: str
    path: tuple[str | int, ...] = ()

    def at(self, *more: str | int) -> Place:
        """Return the place of an entry further in."""
        return Place(self.name, self.text, (*self.path, *more))

    def error(self, message: str) -> BadConfig:
        """Return the error to raise, with file and line."""
        line = line_of(self.text, self.path)
        return BadConfig(f"{self.name}{f':{line}' if line else ''}: {message}")

    def mapping(self, raw: Any, known: tuple[str, ...]) -> Mapping[str, Any]:
        """Return `raw` if it is a mapping with known keys only."""
        if not isinstance(raw, Mapping):
            raise self.error("must be a mapping of keys to values")
        for key in raw:
            if key not in known:
                raise self.at(str(key)).error(f"unknown key {key!r}{closest(str(key), known)}")
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
            raise self.at(key).error(f"{key} must be a number, not {value!r}")
        return float(value)


def line_of(text: str, path: tuple[str | int, ...]) -> int | None:
    """Return the line (from 1) on which the entry at `path` begins in a YAML text, None if it can't be told."""
    from ruamel.yaml import YAML  # noqa: PLC0415 - only needed for a message

    node: Any = YAML().compose(text) if text else None
    line: int | None = None
    for step in path:
        if node is None or isinstance(node.value, str):
            break
        if isinstance(step, int):
            node = node.value[step]
            line = node.start_mark.line + 1
        else:
            found = [(k, v) for k, v in node.value if k.value == step]
            if not found:
                break
            line, node = found[0][0].start_mark.line + 1, found[0][1]
    return line
