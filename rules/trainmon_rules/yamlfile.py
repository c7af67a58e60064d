"""Reading the YAML files that hold the knowledge, with errors that name file and line."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

from trainmon_rules.errors import BadConfig


def load_packaged(name: str) -> Any:
    """Return the content of `data/NAME` inside this package."""
    text = resources.files("trainmon_rules").joinpath("data", name).read_text("utf-8")
    return parse(text, name)


def load_file(path: Path) -> Any:
    """Return the content of a user's YAML file; BadConfig if it can't be read or parsed."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadConfig(f"{path}: can't be read: {error}") from None
    return parse(text, str(path))


def parse(text: str, name: str) -> Any:
    """Parse YAML 1.2; BadConfig with `name` and line if it isn't."""
    from ruamel.yaml import YAML  # noqa: PLC0415 - costs 40 ms, not needed by --help
    from ruamel.yaml.error import MarkedYAMLError, YAMLError  # noqa: PLC0415

    try:
        return YAML(typ="safe").load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"{name}:{mark.line + 1}" if mark is not None else name
        raise BadConfig(f"{where}: not valid YAML: {error.problem}") from None
    except YAMLError as error:
        raise BadConfig(f"{name}: not valid YAML: {error}") from None
