"""Reading TOML with errors that name the line: the parser of the standard library tells it for its own errors only."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Iterator
from typing import Any

from trainmon_rules.errors import BadConfig
from trainmon_rules.yamlfile import MAX_DIGITS

TOO_LARGE = 10**MAX_DIGITS


def parse(text: str, name: str) -> dict[str, Any]:
    """Return the content of a TOML text; BadConfig with `name` and line if it isn't one."""
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError too for whole numbers of more than 4300 digits
        found = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", str(error), re.DOTALL)
        where, what = (f":{found.group(2)}", found.group(1)) if found else ("", str(error))
        raise BadConfig(f"{name}{where}: not valid TOML: {what[:1].lower()}{what[1:]}") from None
    for path, value in _leaves(data, ()):
        if isinstance(value, int) and abs(value) >= TOO_LARGE:
            raise BadConfig(f"{name}:{line_of(text, path) or 1}: a number of more than {MAX_DIGITS} digits")
    return data


def _leaves(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Yield each plain value with the keys that lead to it."""
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(item, (*path, key))
    else:
        yield path, value


def line_of(text: str, path: tuple[str | int, ...]) -> int | None:
    """Return the line of the last of the keys that stands on one of its own; None if there is none.

    This looks for what people write: a table's header, or the key at the beginning of a line below the right header.
    """
    keys = [str(p) for p in path]
    places = _places(text)
    while keys:
        found = (places.get((".".join(keys), "")), places.get((".".join(keys[:-1]), keys[-1])))
        if any(found):
            return min(number for number in found if number is not None)
        keys.pop()
    return None


@functools.lru_cache(maxsize=4)
def _places(text: str) -> dict[tuple[str, str], int]:
    """Return the line of each (table, "") header and each (table, key)."""
    header, table = re.compile(r"\s*\[([^\[\]]+)\]\s*(#.*)?"), ""
    key_first = re.compile(r"\s*(\"[^\"]*\"|'[^']*'|[\w-]+)\s*[=.]")
    places: dict[tuple[str, str], int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if found := header.fullmatch(line):
            table = ".".join(p.strip().strip("\"'") for p in found.group(1).split("."))
            places.setdefault((table, ""), number)
        elif key := key_first.match(line):
            places.setdefault((table, key.group(1).strip("\"'")), number)
    return places
