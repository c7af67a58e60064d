"""`trainmon.toml`, the rule file and the `--set` options: what a user changes about the rules and the roles.

    [roles]                     # what a tag means, by its full name
    "loss/total" = "train_loss"

    [set]                       # what the log can't tell; the same as --set KEY=VALUE
    precision = "fp16"

    [text]                      # a file of patterns of your own, in the form of the shipped dialects.yaml
    dialects = "dialects.yaml"

    [rules]                     # or above all tables, if there is nothing else to say of rules: rules = "rules.yaml"
    file = "rules.yaml"         # in the form of the shipped rules.yaml
    disable = ["plateau"]

    [rules.loss-spike]          # any key that an entry of a rule file has
    severity = "info"
    for = 2
    parameters = {single = 3.0}

Whatever isn't known is refused, with file, line and the closest known name; all problems of a file are said at once.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from trainmon import tomlfile
from trainmon.answers import Plain, parse_options
from trainmon.discovery.folders import showable
from trainmon.readers.dialects import use_dialects
from trainmon_rules.detectors import Rule
from trainmon_rules.places import Place, Problems, shown
from trainmon_rules.roles import RoleTable
from trainmon_rules.rules import amended, read_rule_file
from trainmon_rules.state import Settings
from trainmon_rules.vocabulary import check_answer
from trainmon_rules.yamlfile import read_text

FILE = "trainmon.toml"
SECTIONS = ("roles", "set", "rules", "text")
RULE_KEYS = ("file", "disable")  # of [rules], beside the tables of rules


@dataclass(frozen=True, slots=True)
class Config:
    """A config file's content, not yet held against the rules and roles.

    Attributes
    ----------
    place : Place
        The file, for messages.
    folder : Path
        Where it lies; the files that it names lie beside it.
    roles : mapping of str to str
        Tag (with its directory) to role.
    answers : mapping
        What the log can't tell.
    rule_file, dialects : str
        Files that it names, "" for none.
    disabled : tuple of str
        Rules that are switched off.
    rules : mapping of str to mapping
        Rule to what is changed about it.
    """

    place: Place
    folder: Path = Path()
    roles: Mapping[str, str] = field(default_factory=dict)
    answers: Mapping[str, Plain] = field(default_factory=dict)
    rule_file: str = ""
    disabled: tuple[str, ...] = ()
    rules: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    dialects: str = ""

    def changed(self, rules: Iterable[Rule], roles: Iterable[str]) -> list[Rule]:
        """Return the rules as the file's own tables change them; BadConfig names what is wrong."""
        problems = Problems()
        tables = [({"rule": name, **changes}, self.place.at("rules", name)) for name, changes in self.rules.items()]
        out = list(rules)
        with problems.kept():
            out = amended(out, tables, tuple(roles), user=True)
        for name in self.disabled:
            with problems.kept():
                self.place.at("rules", "disable").known(name, [r.name for r in out], "rule")
        problems.end()
        return [replace(r, enabled=False, origin=self.place.name) if r.name in self.disabled else r for r in out]


def load_settings(file: str | None = None, options: Iterable[str] = (), rules: str | None = None) -> Settings:
    """Return what runs are judged by: the shipped rules and roles, changed by a config file, a rule file and `--set`.

    Parameters
    ----------
    file : str, optional
        The config file; without it `trainmon.toml` in the current directory is used if it is there.
    options : iterable of str
        "KEY=VALUE" each; they go before what the file says.
    rules : str, optional
        A rule file; it goes before the rule file that the config names, and before the config's own tables.

    Raises
    ------
    BadConfig
        If a file can't be read, or says anything that isn't known.
    """
    problems = Problems()
    answers: dict[str, Plain] = {}
    config: Config | None = None
    with problems.kept():
        answers = parse_options(options)
    with problems.kept():
        config = read_config(file)
    shipped = Settings.default()
    roles, every = shipped.roles.roles, list(shipped.rules)
    if config is not None:
        if config.dialects:
            with problems.kept():
                use_dialects(config.folder / config.dialects)
        for tag, role in config.roles.items():
            if role:  # "" takes a tag's role away
                with problems.kept():
                    config.place.at("roles", tag).known(role, roles, "role")
        if config.rule_file:
            with problems.kept():
                every = with_rule_file(every, config.folder / config.rule_file, roles)
        with problems.kept():
            every = config.changed(every, roles)
    if rules is not None:
        with problems.kept():
            every = with_rule_file(every, Path(rules), roles)
    problems.end()
    if config is None:
        return replace(shipped, answers=answers).judged_by(every)
    table = RoleTable.load(config.roles)
    return replace(shipped, roles=table, answers={**config.answers, **answers}).judged_by(every)


def files_read(file: str | None = None, rules: str | None = None) -> list[Path]:
    """Return the files that `load_settings` reads."""
    config = read_config(file)
    named = [n for n in (config.rule_file, config.dialects) if n] if config else []
    beside = [Path(file or FILE), *(config.folder / n for n in named)] if config else []
    return [*beside, *([Path(rules)] if rules is not None else [])]


def with_rule_file(rules: Iterable[Rule], path: Path, roles: Iterable[str]) -> list[Rule]:
    """Return rules as a rule file changes them; BadConfig with all that is wrong with it."""
    return amended(rules, read_rule_file(path, showable(str(path))), tuple(roles), user=True)


def read_config(file: str | None = None) -> Config | None:
    """Return the config file's content; None if none was named and there is none in the current directory."""
    path = Path(file or FILE)
    if file is None and not path.is_file():
        return None
    name = showable(str(path))
    return replace(parse_config(read_text(path, name, "config file"), name), folder=path.parent)


def parse_config(text: str, name: str) -> Config:
    """Return the content of a config file; BadConfig with file, line and key if it isn't one."""
    data, place = tomlfile.parse(text, name), Place(name, text, labels=(), find=tomlfile.line_of)
    problems = Problems()
    tables: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    for section, value in data.items():
        with problems.kept():
            where = place.at(section)
            where.known(section, SECTIONS, "section")
            tables[section] = {"file": value} if section == "rules" and isinstance(value, str) else value
            if not isinstance(tables[section], dict):
                tables[section] = {}
                raise where.error(f"must be a table, [{section}]")
    roles, answers = _roles(tables["roles"], place, problems), _answers(tables["set"], place, problems)
    rule_file, disabled, rules = _rules(tables["rules"], place.at("rules"), problems)
    for key in tables["text"]:
        with problems.kept():
            place.at("text", key).known(key, ("dialects",), "key")
    dialects = _file(tables["text"], "dialects", place.at("text"), problems)
    problems.end()
    return Config(place, Path(), roles, answers, rule_file, disabled, rules, dialects)


def _roles(table: Mapping[str, Any], place: Place, problems: Problems) -> dict[str, str]:
    for tag, role in table.items():
        if not isinstance(role, str):
            problems.note(place.at("roles", tag).error(f"must be the name of a role, not {shown(role)}"))
    return dict(table)


def _answers(table: Mapping[str, Any], place: Place, problems: Problems) -> dict[str, Plain]:
    out: dict[str, Plain] = {}
    for key, value in table.items():
        with problems.kept():
            at = place.at("set", key)
            if not isinstance(value, str | int | float):
                raise at.error("must be a number, a text, true or false")
            name, answer = check_answer(key, value, at.where)
            out[name] = answer
    return out


def _rules(
    table: Mapping[str, Any], place: Place, problems: Problems
) -> tuple[str, tuple[str, ...], dict[str, Mapping[str, Any]]]:
    """Return the rule file that [rules] names, what it disables, and the tables of rules in it."""
    disabled = table.get("disable", [])
    if not isinstance(disabled, list) or not all(isinstance(r, str) for r in disabled):
        problems.note(place.at("disable").error('must be a list of rules, ["plateau"]'))
        disabled = []
    rules: dict[str, Mapping[str, Any]] = {}
    for name, changes in table.items():
        if name in RULE_KEYS:
            continue
        with problems.kept():
            if not isinstance(changes, dict):
                if difflib.get_close_matches(name, RULE_KEYS, 1):
                    place.at(name).known(name, RULE_KEYS, "key")
                raise place.at(name).error(f"must be a table, [rules.{name}]")
            if "rule" in changes:
                raise place.at(name, "rule").error(f"the table's name names the rule, [rules.{name}]")
            rules[name] = changes
    return _file(table, "file", place, problems), tuple(disabled), rules


def _file(table: Mapping[str, Any], key: str, place: Place, problems: Problems) -> str:
    """Return the name of a file beside the config, "" for none."""
    value = table.get(key, "")
    if not isinstance(value, str) or (key in table and not value):
        problems.note(place.at(key).error(f"must be the name of a file, not {shown(value)}"))
    return str(value)
