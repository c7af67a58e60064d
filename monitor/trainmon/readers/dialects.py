"""Dialects as data: how each framework prints its numbers.

`trainmon/data/dialects.yaml` is the shipped set and documents the form; a user's file of the same form, given to
`TextReader`, is tried first. Everything is checked when it is loaded, so that reading can't fail later.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from trainmon.readers.textvalues import to_number
from trainmon_rules.errors import BadConfig
from trainmon_rules.places import Place, closest
from trainmon_rules.yamlfile import parse, parse_untrusted, read_text

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

    def speaks(self, m: re.Match[str]) -> bool:
        """Return whether what a fallback caught holds a number at all; other patterns demand one themselves."""
        if not self.fallback or self.pairs is None:
            return True
        return any(to_number(v) is not None and k not in self.drop for k, v in self.pairs.findall(m["pairs"]))


class Dialects:
    """Patterns in the order in which they are tried, found quickly by a literal string of theirs."""

    def __init__(self, patterns: tuple[LinePattern, ...]) -> None:
        self.patterns = patterns
        self.tries = tuple((hint, i) for i, p in enumerate(patterns) for hint in (p.hints or ("",)))
        self.has_own = any(p.own for p in patterns)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the shipped set as a reference to it, so that the state of a reader stays small."""
        return (Dialects, (self.patterns,)) if self.has_own else (_shipped, ())

    def find(self, text: str, first: int = -1) -> tuple[int, re.Match[str]] | None:
        """Return the pattern that fits a message, as index and match; `first` fitted last time, -1 for none.

        Shipped patterns exclude each other, except the fallbacks, so that trying one first saves time and changes
        nothing. A user's pattern may overlap with a shipped one and always goes first.
        """
        patterns = self.patterns
        if first >= 0 and not self.has_own and not patterns[first].fallback:
            m = patterns[first].match.match(text)
            if m is not None:
                return first, m
        for hint, i in self.tries:
            if hint in text and (m := patterns[i].match.match(text)) is not None and patterns[i].speaks(m):
                return i, m
        return None


def load_dialects(extra: Path | None = None) -> Dialects:
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
    shipped, extra = _shipped(), extra or _own.get("file")
    if extra is None:
        return shipped
    text = read_text(extra, str(extra), "dialect file")
    own = parse_dialects(parse_untrusted(text, str(extra)), str(extra), text)
    return Dialects((*(replace(p, own=True) for p in own), *shipped.patterns))


_own: dict[str, Path] = {}


def use_dialects(file: Path | None) -> None:
    """Try a user's dialect file before the shipped ones, in this process from now on; None stops it.

    Raises
    ------
    BadConfig
        If that file can't be read or holds what isn't known; names file, entry and key.
    """
    _own.clear()
    if file is not None:
        load_dialects(file)
        _own["file"] = file


@cache
def _shipped() -> Dialects:
    text = resources.files("trainmon").joinpath("data", "dialects.yaml").read_text("utf-8")
    patterns = parse_dialects(parse(text, "dialects.yaml"), "dialects.yaml", text)
    return Dialects(tuple(sorted(patterns, key=lambda p: p.fallback)))


def parse_dialects(data: Any, name: str, text: str = "") -> Iterator[LinePattern]:
    """Yield the patterns of a dialect file's content; BadConfig names what is wrong, and the line."""
    top = Place(name, text)
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


def _shared(key: str, entry: Mapping[str, Any], top: Place) -> dict[str, str]:
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
    where: Place,
) -> LinePattern:
    entry = where.mapping(raw, _LINE)
    if "match" not in entry:
        raise where.error("the key 'match' is missing")
    match = compiled(entry["match"], fragments, where.at("match"), re.IGNORECASE if entry.get("ignore_case") else 0)
    kind = str(entry.get("kind", "metrics"))
    if kind not in KINDS:
        raise where.at("kind").error(f"unknown kind {kind!r}{closest(kind, KINDS)}")
    groups = frozenset(match.groupindex)
    metrics = tuple(g for g in match.groupindex if g not in SPECIAL)
    _check_groups(kind, groups, metrics, where)
    pairs = entry.get("pairs")
    if ("pairs" in groups) != (pairs is not None):
        raise where.error("the group 'pairs' and the key 'pairs' belong together")
    if pairs is not None and pairs not in ways:
        raise where.at("pairs").error(f"unknown pairs {pairs!r}{closest(str(pairs), tuple(ways))}")
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


def _check_groups(kind: str, groups: frozenset[str], metrics: tuple[str, ...], where: Place) -> None:
    need = NEEDS.get(kind)
    if need is not None and need not in groups:
        raise where.at("match").error(f"a pattern of kind {kind!r} needs a named group {need!r}: (?P<{need}>…)")
    if kind == "metrics" and not metrics and groups.isdisjoint({"pairs", "json", "columns"}):
        raise where.at("match").error(
            "the pattern catches no number: name a group after a metric, (?P<loss>{num}), or use (?P<pairs>…)"
        )


def _missing(raw: Any, where: Place) -> Missing:
    entry = where.mapping(raw, ("tag", "beside", "unless", "sure"))
    for key in ("tag", "beside"):
        if key not in entry:
            raise where.error(f"the key {key!r} is missing")
    return Missing(str(entry["tag"]), str(entry["beside"]), str(entry.get("unless", "")), str(entry.get("sure", "")))


def _pairs(raw: str, fragments: Mapping[str, str], where: Place) -> re.Pattern[str]:
    pattern = compiled(raw, fragments, where)
    if list(pattern.groupindex) != ["key", "value"] or pattern.groups != 2:
        raise where.error("a way of writing pairs has exactly the named groups 'key' and 'value', in this order")
    return pattern


def compiled(raw: Any, fragments: Mapping[str, str], where: Place, flags: int = 0) -> re.Pattern[str]:
    """Return the regular expression with its fragments put in; BadConfig if it isn't one."""
    text = str(raw)
    for _ in range(3):  # fragments may use fragments
        for key, value in fragments.items():
            text = text.replace("{" + key + "}", value)
    try:
        return re.compile(text, flags)
    except (re.error, OverflowError) as error:
        raise where.error(f"bad regular expression: {error}") from None
