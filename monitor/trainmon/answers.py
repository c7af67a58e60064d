"""`--set KEY=VALUE`: what a log can't tell, as typed."""

from __future__ import annotations

import re
from collections.abc import Iterable

from trainmon.discovery.folders import showable
from trainmon_rules.errors import BadConfig
from trainmon_rules.places import Problems
from trainmon_rules.vocabulary import check_answer

Plain = str | int | float | bool


def parse_options(options: Iterable[str]) -> dict[str, Plain]:
    """Return `--set KEY=VALUE` options in the names and kinds of the vocabulary; BadConfig for what isn't in it."""
    out: dict[str, Plain] = {}
    problems = Problems()
    for option in options:
        key, equals, value = option.partition("=")
        key = key.strip()
        with problems.kept():
            if not equals or not key:
                raise BadConfig(f"--set {showable(option)}: must be KEY=VALUE, as in --set precision=fp16")
            name, answer = check_answer(key, parse_value(value.strip()), f"--set {showable(option)}")
            out[name] = answer
    problems.end()
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
