"""`trainmon rules check`: whether files that change the rules can be used, without using them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from trainmon.config import load_settings, with_rule_file
from trainmon_rules.detectors import Rule
from trainmon_rules.errors import BadConfig
from trainmon_rules.state import Settings

CONFIG = ".toml"  # what a config file's name ends with; any other file is a rule file


def check_files(files: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return a line for each file that can be used, and all problems of the others.

    Parameters
    ----------
    files : iterable of str
        Rule files (YAML), held against the shipped rules, and config files, with the rule files that they name.
    """
    good: list[str] = []
    problems: list[str] = []
    for file in files:
        try:
            good.append(f"{file}: {_said(_rules(file))}")
        except BadConfig as error:
            problems += error.problems
    return good, problems


def _rules(file: str) -> list[Rule]:
    """Return the rules that a file changes, adds or disables."""
    if Path(file).suffix.lower() == CONFIG:
        settings = load_settings(file)
        return [r for r in (*settings.rules, *settings.off) if r.origin]
    shipped = Settings.default()
    return [r for r in with_rule_file(shipped.rules, Path(file), shipped.roles.roles) if r.origin]


def _said(rules: list[Rule]) -> str:
    shipped = {r.name for r in Settings.default().rules}
    off = [r for r in rules if not r.enabled]
    added = [r for r in rules if r.enabled and r.name not in shipped]
    counts = {"changed": len(rules) - len(off) - len(added), "added": len(added), "disabled": len(off)}
    parts = ", ".join(f"{n} {word}" for word, n in counts.items() if n)
    return f"{len(rules)} rule{'' if len(rules) == 1 else 's'}, ok" + (f" ({parts})" if parts else "")
