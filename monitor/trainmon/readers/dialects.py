"""Dialects as data: how each framework prints its numbers.

`trainmon/data/dialects.yaml` is the shipped set and documents the form; a user's file of the same form is
tried first. Everything is checked when it is loaded, so that reading can't fail later.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from trainmon_rules.errors import BadConfig
from trainmon_rules.yamlfile import load_file, parse

NUM = (
    r"(?:[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
    r"|[-+]?(?:nan|NaN|NAN|inf|Inf|INF|infinity|Infinity)(?:\.0)?(?![A-Za-z_]))"
)
INT = r"\d{1,15}"
KINDS = ("metrics", "position", "overflow", "floor", "header", "noise")
SPECIAL = frozenset(
    {"step", "total", "epoch", "epochs", "batch", "batches", "pairs", "json", "columns", "scale", "scaler"}
)
NEEDS = {"overflow": "scale", "header": "columns"}
"""The group without which a pattern of that kind is useless."""

_TOP = ("version", "fragments", "pairs", "dialects")
_DIALECT = ("name", "about", "fallback", "lines")
_LINE = (
    "match", "hints", "kind", "pairs", "step_from", "epochs_from", "names", "prefix", "plain", "drop", "absent",
    "missing", "redrawn", "last_batch", "copies", "ignore_case",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Missing:
    """A metric that the framework leaves out where it isn't finite; see `dialects.yaml`."""

    tag: str
    beside: str
    unless: str
    sure: str


@dataclass(frozen=True, slots=True)
class LinePattern:
    """One line of one dialect; the fields are those of `dialects.yaml`."""

    dialect: str
    match: re.Pattern[str]
    kind: str = "metrics"
    hints: tuple[str, ...] = ()
    pairs: re.Pattern[str] | None = None
    metrics: tuple[str, ...] = ()
    groups: frozenset[str] = frozenset()
    step_from: tuple[str, ...] = ()
    epochs_from: int = 1
    names: Mapping[str, str] | None = None
    prefix: str = ""
    plain: frozenset[str] = frozenset()
    drop: frozenset[str] = frozenset()
    absent: Mapping[str, float] | None = None
    missing: Missing | None = None
    redrawn: bool = False
    last_batch: bool = False
    copies: bool = False
    fallback: bool = False
    own: bool = False  # a user's

    def try_line(self, line: str) -> re.Match[str] | None:
        """Return the match at the beginning of `line`, if any."""
        if self.hints and not any(h in line for h in self.hints):
            return None
        return self.match.match(line)


def load_dialects(extra: Path | None = None) -> tuple[LinePattern, ...]:
    """Return the patterns in the order in which they are tried: the user's, the shipped, the fallbacks.

    Parameters
    ----------
    extra : path, optional
        A user's dialect file.

    Raises
    ------
    BadConfig
        If that file can't be read or holds what isn't known; names file, entry and key.
    """
    shipped = _shipped()
    if extra is None:
        return shipped
    own = parse_dialects(load_file(extra), str(extra), extra.read_text("utf-8"))
    return (*(replace(p, own=True) for p in own), *shipped)


@cache
def _shipped() -> tuple[LinePattern, ...]:
    text = resources.files("trainmon").joinpath("data", "dialects.yaml").read_text("utf-8")
    patterns = parse_dialects(parse(text, "dialects.yaml"), "dialects.yaml", text)
    return tuple(sorted(patterns, key=lambda p: p.fallback))


def parse_dialects(data: Any, name: str, text: str = "") -> Iterator[LinePattern]:
    """Yield the patterns of a dialect file's content; BadConfig names what is wrong, and the line."""
    top = _Place(name, text)
    entry = top.mapping(data, _TOP)
    if entry.get("version", 1) != 1:
        raise BadConfig(f"{name}: version {entry['version']!r} is unknown; this trainmon reads version 1")
    fragments = {"num": NUM, "int": INT} | _shared("fragments", entry, top)
    ways = {k: _pairs(v, fragments, top.at("pairs", k)) for k, v in _shared("pairs", entry, top).items()}
    dialects = entry.get("dialects")
    if not isinstance(dialects, list) or not dialects:
        raise BadConfig(f"{name}: the key 'dialects' must be a list of dialects")
    for i, raw in enumerate(dialects):
        where = top.at("dialects", i)
        dialect = where.mapping(raw, _DIALECT)
        if not isinstance(dialect.get("name"), str):
            raise where.error("the key 'name' is missing")
        lines = dialect.get("lines")
        if not isinstance(lines, list) or not lines:
            raise where.error(f"dialect {dialect['name']!r} needs a list 'lines'")
        for k, line in enumerate(lines):
            yield _line(line, dialect, fragments, ways, where.at("lines", k))


def _shared(key: str, entry: Mapping[str, Any], top: _Place) -> dict[str, str]:
    """Return the file's own fragments or pairs over the shipped ones."""
    own = entry.get(key) or {}
    if not isinstance(own, Mapping):
        raise top.at(key).error(f"{key} is a mapping of names to expressions")
    base = {} if top.name == "dialects.yaml" else _shipped_raw()[key]
    return {**base, **{str(k): str(v) for k, v in own.items()}}


@cache
def _shipped_raw() -> Mapping[str, Mapping[str, str]]:
    text = resources.files("trainmon").joinpath("data", "dialects.yaml").read_text("utf-8")
    data: Mapping[str, Mapping[str, str]] = parse(text, "dialects.yaml")
    return data


def _line(
    raw: Any,
    dialect: Mapping[str, Any],
    fragments: Mapping[str, str],
    ways: Mapping[str, re.Pattern[str]],
    where: _Place,
) -> LinePattern:
    entry = where.mapping(raw, _LINE)
    if "match" not in entry:
        raise where.error("the key 'match' is missing")
    match = compiled(entry["match"], fragments, where.at("match"), re.IGNORECASE if entry.get("ignore_case") else 0)
    kind = str(entry.get("kind", "metrics"))
    if kind not in KINDS:
        raise where.at("kind").error(f"unknown kind {kind!r}{_closest(kind, KINDS)}")
    groups = frozenset(match.groupindex)
    metrics = tuple(g for g in match.groupindex if g not in SPECIAL)
    _check_groups(kind, groups, metrics, where)
    pairs = entry.get("pairs")
    if ("pairs" in groups) != (pairs is not None):
        raise where.error("the group 'pairs' and the key 'pairs' belong together")
    if pairs is not None and pairs not in ways:
        raise where.at("pairs").error(f"unknown pairs {pairs!r}{_closest(str(pairs), tuple(ways))}")
    missing = entry.get("missing")
    return LinePattern(
        str(dialect["name"]),
        match,
        kind,
        where.strings(entry, "hints"),
        None if pairs is None else ways[pairs],
        metrics,
        groups,
        where.strings(entry, "step_from"),
        int(where.number(entry, "epochs_from", 1)),
        where.table(entry, "names") or None,
        str(entry.get("prefix", "")),
        frozenset(where.strings(entry, "plain")),
        frozenset(where.strings(entry, "drop")),
        {k: where.at("absent").number(entry["absent"], k, 0) for k in where.table(entry, "absent")} or None,
        None if missing is None else _missing(missing, where.at("missing")),
        bool(entry.get("redrawn", False)),
        bool(entry.get("last_batch", False)),
        bool(entry.get("copies", False)),
        bool(dialect.get("fallback", False)),
    )


def _check_groups(kind: str, groups: frozenset[str], metrics: tuple[str, ...], where: _Place) -> None:
    need = NEEDS.get(kind)
    if need is not None and need not in groups:
        raise where.at("match").error(f"a pattern of kind {kind!r} needs a named group {need!r}: (?P<{need}>…)")
    if kind == "metrics" and not metrics and groups.isdisjoint({"pairs", "json", "columns"}):
        raise where.at("match").error(
            "the pattern catches no number: name a group after a metric, (?P<loss>{num}), or use (?P<pairs>…)"
        )


def _missing(raw: Any, where: _Place) -> Missing:
    entry = where.mapping(raw, ("tag", "beside", "unless", "sure"))
    for key in ("tag", "beside"):
        if key not in entry:
            raise where.error(f"the key {key!r} is missing")
    return Missing(str(entry["tag"]), str(entry["beside"]), str(entry.get("unless", "")), str(entry.get("sure", "")))


def _pairs(raw: str, fragments: Mapping[str, str], where: _Place) -> re.Pattern[str]:
    pattern = compiled(raw, fragments, where)
    if list(pattern.groupindex) != ["key", "value"] or pattern.groups != 2:
        raise where.error("a way of writing pairs has exactly the named groups 'key' and 'value', in this order")
    return pattern


def compiled(raw: Any, fragments: Mapping[str, str], where: _Place, flags: int = 0) -> re.Pattern[str]:
    """Return the regular expression with its fragments put in; BadConfig if it isn't one."""
    text = str(raw)
    for _ in range(3):  # fragments may use fragments
        for key, value in fragments.items():
            text = text.replace("{" + key + "}", value)
    try:
        return re.compile(text, flags)
    except (re.error, OverflowError) as error:
        raise where.error(f"bad regular expression: {error}") from None


def _closest(value: str, options: tuple[str, ...]) -> str:
    close = difflib.get_close_matches(value, options, 1)
    return f"; did you mean {close[0]!r}?" if close else f"; known: {', '.join(sorted(options))}"


@dataclass(frozen=True, slots=True)
class _Place:
    """A place in a YAML file, for messages: the line is looked up only when something is wrong."""

    name: str
    text: str
    path: tuple[str | int, ...] = ()

    def at(self, *more: str | int) -> _Place:
        return _Place(self.name, self.text, (*self.path, *more))

    def error(self, message: str) -> BadConfig:
        line = line_of(self.text, self.path)
        return BadConfig(f"{self.name}{f':{line}' if line else ''}: {message}")

    def mapping(self, raw: Any, known: tuple[str, ...]) -> Mapping[str, Any]:
        if not isinstance(raw, Mapping):
            raise self.error("must be a mapping of keys to values")
        for key in raw:
            if key not in known:
                raise self.at(str(key)).error(f"unknown key {key!r}{_closest(str(key), known)}")
        return raw

    def strings(self, entry: Mapping[str, Any], key: str) -> tuple[str, ...]:
        value = entry.get(key, ())
        if isinstance(value, str) or not all(isinstance(v, str) for v in value):
            raise self.at(key).error(f"{key} must be a list of strings")
        return tuple(value)

    def table(self, entry: Mapping[str, Any], key: str) -> dict[str, str]:
        value = entry.get(key) or {}
        if not isinstance(value, Mapping):
            raise self.at(key).error(f"{key} must be a mapping")
        return {str(k): str(v) for k, v in value.items()}

    def number(self, entry: Mapping[str, Any], key: str, default: float) -> float:
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
