"""`trainmon.toml` and the `--set` options: what a user changes about the rules and the roles.

    [roles]                     # what a tag means, by its full name
    "loss/total" = "train_loss"

    [set]                       # what the log can't tell; the same as --set KEY=VALUE
    precision = "fp16"

    [text]                      # a file of patterns of your own, in the form of the shipped dialects.yaml
    dialects = "dialects.yaml"

    [rules]
    disable = ["plateau"]

    [rules.loss-spike]          # any of these
    severity = "info"
    for = 2
    parameters = {single = 3.0}

Whatever isn't known is refused, with file, line and the closest known name.
"""

from __future__ import annotations

import difflib
import functools
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from trainmon.discovery.folders import showable
from trainmon.readers.dialects import use_dialects
from trainmon_rules.detectors import DETECTORS, Rule
from trainmon_rules.errors import BadConfig
from trainmon_rules.findings import Severity
from trainmon_rules.rules import known
from trainmon_rules.state import Settings
from trainmon_rules.vocabulary import check_answer

FILE = "trainmon.toml"
SECTIONS = ("roles", "set", "rules", "text")
MAX_SIZE = 1 << 16  # bytes; the parser of the standard library is slow on nonsense

Plain = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Config:
    """A config file's content, not yet held against the rules and roles.

    Attributes
    ----------
    name : str
        The file, for messages.
    text : str
        Its text, to find the line of a key.
    roles : mapping of str to str
        Tag (with its directory) to role.
    answers : mapping
        What the log can't tell.
    disabled : tuple of str
        Rules that are switched off.
    rules : mapping of str to mapping
        Rule to what is changed about it.
    """

    name: str
    text: str = ""
    roles: Mapping[str, str] = field(default_factory=dict)
    answers: Mapping[str, Plain] = field(default_factory=dict)
    disabled: tuple[str, ...] = ()
    rules: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    dialects: str = ""  # a file beside this one

    def at(self, *keys: str) -> str:
        """Return where a key stands, as "file:line: table.key"."""
        line = _line_of(self.text, keys)
        return f"{self.name}{'' if line is None else f':{line}'}: {'.'.join(keys)}"


def load_settings(file: str | None = None, options: Iterable[str] = ()) -> Settings:
    """Return what runs are judged by: the shipped rules and roles, changed by a config file and `--set` options.

    Parameters
    ----------
    file : str, optional
        The config file; without it `trainmon.toml` in the current directory is used if it is there.
    options : iterable of str
        "KEY=VALUE" each; they go before what the file says.

    Raises
    ------
    BadConfig
        If the file can't be read, or says anything that isn't known.
    """
    answers = parse_options(options)
    config = read_config(file)
    if config is None:
        return Settings.default(answers)
    shipped = Settings.default()
    if config.dialects:
        use_dialects(Path(config.name).parent / config.dialects)
    for tag, role in config.roles.items():
        if role:  # "" takes a tag's role away
            known(role, shipped.roles.roles, "role", config.at("roles", tag))
    settings = Settings.default({**config.answers, **answers}, config.roles or None)
    return replace(settings, rules=_changed(settings.rules, config))


def read_config(file: str | None = None) -> Config | None:
    """Return the config file's content; None if none was named and there is none in the current directory."""
    path = Path(file or FILE)
    if file is None and not path.is_file():
        return None
    name = showable(str(path))
    try:
        if not path.is_file():
            raise BadConfig(f"{name}: {'is no regular file' if path.exists() else 'no such file'}")
        with path.open("rb") as f:
            data = f.read(MAX_SIZE + 1)
    except (OSError, ValueError) as error:
        raise BadConfig(f"{name}: can't be read: {(getattr(error, 'strerror', '') or str(error)).lower()}") from None
    if len(data) > MAX_SIZE:
        raise BadConfig(f"{name}: larger than {MAX_SIZE} bytes, that is no config file")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadConfig(f"{name}: not UTF-8 at byte {error.start}") from None
    return parse_config(text, name)


def parse_config(text: str, name: str) -> Config:
    """Return the content of a config file; BadConfig with file, line and key if it isn't one."""
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError too for whole numbers of more than 4300 digits
        found = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", str(error), re.DOTALL)
        where, what = (f":{found.group(2)}", found.group(1)) if found else ("", str(error))
        raise BadConfig(f"{name}{where}: not valid TOML: {what[:1].lower()}{what[1:]}") from None
    bare = Config(name, text)
    for section, value in data.items():
        known(section, SECTIONS, "section", bare.at(section))
        if not isinstance(value, dict):
            raise BadConfig(f"{bare.at(section)}: must be a table, [{section}]")
    rules = dict(data.get("rules", {}))
    disabled = rules.pop("disable", [])
    if not isinstance(disabled, list) or not all(isinstance(r, str) for r in disabled):
        raise BadConfig(f'{bare.at("rules", "disable")}: must be a list of rules, ["plateau"]')
    for rule, changes in rules.items():
        if not isinstance(changes, dict):
            raise BadConfig(f"{bare.at('rules', rule)}: must be a table, [rules.{rule}]")
    roles = {tag: _text(role, bare.at("roles", tag)) for tag, role in data.get("roles", {}).items()}
    given = {key: _plain(value, bare.at("set", key)) for key, value in data.get("set", {}).items()}
    answers = dict(check_answer(key, value, bare.at("set", key)) for key, value in given.items())
    for key in data.get("text", {}):
        known(key, ("dialects",), "key", bare.at("text", key))
    dialects = _text(data.get("text", {}).get("dialects", ""), bare.at("text", "dialects"))
    return Config(name, text, roles, answers, tuple(disabled), rules, dialects)


def parse_options(options: Iterable[str]) -> dict[str, Plain]:
    """Return `--set KEY=VALUE` options in the names and kinds of the vocabulary; BadConfig for what isn't in it."""
    out: dict[str, Plain] = {}
    for option in options:
        key, equals, value = option.partition("=")
        key = key.strip()
        if not equals or not key:
            raise BadConfig(f"--set {showable(option)}: must be KEY=VALUE, as in --set precision=fp16")
        name, answer = check_answer(key, parse_value(value.strip()), f"--set {showable(option)}")
        out[name] = answer
    return out


def parse_value(text: str) -> Plain:
    """Return the number, truth value or string that a text stands for; quotes keep it a string."""
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        if re.fullmatch(r"[+-]?[0-9.][0-9._]*([eE][+-]?[0-9]+)?", text):
            try:
                return kind(text)
            except ValueError:
                continue
    return text


# ---------------------------------------------------------------------- rules
LARGEST = 1_000_000  # of a rule's parameters
CHANGES = ("severity", "for", "parameters")


def _changed(rules: tuple[Rule, ...], config: Config) -> tuple[Rule, ...]:
    names = [r.name for r in rules]
    for rule in config.disabled:
        known(rule, names, "rule", config.at("rules", "disable"))
    for rule in config.rules:
        # `disable` is a key of the same table, so a misspelt one is met here.
        if rule not in names and difflib.get_close_matches(rule, ["disable"], 1):
            known(rule, ["disable"], "key", config.at("rules", rule))
        known(rule, names, "rule", config.at("rules", rule))
    return tuple(_change(r, config) if r.name in config.rules else r for r in rules if r.name not in config.disabled)


def _change(rule: Rule, config: Config) -> Rule:
    changes = config.rules[rule.name]
    for key in changes:
        known(key, CHANGES, "key", config.at("rules", rule.name, key))
    severity, hold = rule.severity, changes.get("for", rule.hold)
    if "severity" in changes:
        where = config.at("rules", rule.name, "severity")
        severity = Severity.parse(known(changes["severity"], [str(s) for s in Severity], "severity", where))
    if not isinstance(hold, int) or isinstance(hold, bool) or not 0 <= hold <= LARGEST:
        raise BadConfig(f"{config.at('rules', rule.name, 'for')}: must be a number of reports, not {hold!r}")
    parameters = {**dict(rule.parameters), **_parameters(rule, changes.get("parameters", {}), config)}
    fixed = "severity" in changes
    return replace(rule, severity=severity, fixed=fixed, hold=hold, parameters=tuple(sorted(parameters.items())))


def _parameters(rule: Rule, given: Any, config: Config) -> dict[str, Any]:
    where = config.at("rules", rule.name, "parameters")
    if not isinstance(given, dict):
        raise BadConfig(f"{where}: must be a table, {{name = value}}")
    defaults = DETECTORS[rule.detector].parameters()
    for key, value in given.items():
        known(key, defaults, "parameter", where)
        default = defaults[key]
        wanted: tuple[type, ...] = (int, float) if isinstance(default, float) else (type(default),)
        if type(value) not in wanted:
            name = {bool: "true or false", int: "a whole number", float: "a number"}.get(type(default), "a text")
            raise BadConfig(f"{where}: {key} must be {name}, not {value!r}")
        if wanted not in ((bool,), (str,)) and not 0 < value <= LARGEST:
            raise BadConfig(f"{where}: {key} must be above 0 and at most {LARGEST:,}, not {value!r}")
    return given


# ---------------------------------------------------------------------- values
def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise BadConfig(f"{where}: must be the name of a role, not {value!r}")
    return value


def _plain(value: Any, where: str) -> Plain:
    if not isinstance(value, str | int | float):
        raise BadConfig(f"{where}: must be a number, a text, true or false")
    return value


def _line_of(text: str, keys: tuple[str, ...]) -> int | None:
    """Return the line on which the last of the keys stands, None if it can't be told (inline tables, say).

    The parser of the standard library doesn't say, so this looks for what people write: a table's header, or
    the key at the beginning of a line below the right header.
    """
    places = _places(text)
    found = (places.get((".".join(keys), "")), places.get((".".join(keys[:-1]), keys[-1])))
    return min((number for number in found if number is not None), default=None)


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
