"""Reading YAML: the files that hold the knowledge, and those of users, with errors that name file and line."""

from __future__ import annotations

import functools
import re
from importlib import resources
from pathlib import Path
from typing import Any

from trainmon_rules.errors import BadConfig

MAX_SIZE = 1 << 16  # bytes of a file that a person writes; parsers are slow on nonsense
MAX_DEPTH = 20  # of lists and mappings in one another
MAX_DIGITS = 300  # of a number; more are none that a computer counts with
LONG_NUMBER = re.compile(rf"[-+.]*[0-9][0-9a-fA-FxobXOB_.:+-]{{{MAX_DIGITS},}}")
BEYOND_WORDS = (ValueError, OverflowError, RecursionError)  # of a parser, on numbers and dates that are none


def packaged_text(name: str) -> str:
    """Return the text of `data/NAME` inside this package."""
    return resources.files("trainmon_rules").joinpath("data", name).read_text("utf-8")


def load_packaged(name: str) -> Any:
    """Return the content of `data/NAME` inside this package."""
    return parse(packaged_text(name), name)


def read_text(path: Path, name: str, what: str) -> str:
    """Return the text of a small file that a user named.

    Parameters
    ----------
    path : Path
        The file.
    name, what : str
        How to call it in a message: its name, and what it should be ("rule file").

    Raises
    ------
    BadConfig
        If it is missing, no regular file, too large or not UTF-8.
    """
    try:
        if not path.is_file():
            raise BadConfig(f"{name}: {'is no regular file' if path.exists() else 'no such file'}")
        with path.open("rb") as f:
            data = f.read(MAX_SIZE + 1)
    except (OSError, ValueError) as error:
        raise BadConfig(f"{name}: can't be read: {(getattr(error, 'strerror', '') or str(error)).lower()}") from None
    if len(data) > MAX_SIZE:
        raise BadConfig(f"{name}: larger than {MAX_SIZE} bytes, that is no {what}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadConfig(f"{name}: not UTF-8 at byte {error.start}") from None


def parse_untrusted(text: str, name: str) -> Any:
    """Parse YAML that anyone may have written: without anchors, tags, endless numbers or endless nesting."""
    from ruamel.yaml import YAML  # noqa: PLC0415
    from ruamel.yaml.error import YAMLError  # noqa: PLC0415

    depth = 0
    try:
        for event in YAML(typ="safe").parse(text):
            kind = type(event).__name__
            depth += kind.endswith("StartEvent") - kind.endswith("EndEvent")
            line = event.start_mark.line + 1
            if getattr(event, "anchor", None):
                sign = "*" if kind == "AliasEvent" else "&"
                raise BadConfig(f"{name}:{line}: anchors ({sign}{event.anchor}) aren't taken here; write it out")
            if getattr(event, "tag", None):
                raise BadConfig(f"{name}:{line}: tags ({_one_line(event.tag)}) aren't taken here")
            if kind == "ScalarEvent" and not event.style and LONG_NUMBER.fullmatch(event.value):
                raise BadConfig(f"{name}:{line}: a number of more than {MAX_DIGITS} digits")
            if depth > MAX_DEPTH:
                raise BadConfig(f"{name}:{line}: nested deeper than {MAX_DEPTH} levels")
    except YAMLError:
        pass  # said below
    return parse(text, name)


def parse(text: str, name: str) -> Any:
    """Parse YAML 1.2; BadConfig with `name` and line if it isn't."""
    from ruamel.yaml import YAML  # noqa: PLC0415 - costs 40 ms, not needed by --help
    from ruamel.yaml.error import MarkedYAMLError, YAMLError  # noqa: PLC0415

    try:
        return YAML(typ="safe").load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"{name}:{mark.line + 1}" if mark is not None else name
        raise BadConfig(f"{where}: not valid YAML: {_one_line(error.problem)}") from None
    except (YAMLError, *BEYOND_WORDS) as error:
        raise BadConfig(f"{name}: not valid YAML: {_one_line(error)}") from None


def _one_line(problem: object) -> str:
    text = " ".join(str(problem).split())
    return text if len(text) <= 200 else f"{text[:200]}..."


def line_of(text: str, path: tuple[str | int, ...]) -> int | None:
    """Return the line (from 1) on which the entry at `path` begins in a YAML text, None if it can't be told."""
    node: Any = _composed(text) if text else None
    line: int | None = None
    for step in path:
        if node is None or isinstance(node.value, str):
            break
        if isinstance(step, int):
            node = node.value[step]
            line = node.start_mark.line + 1
        else:
            found = [(k, v) for k, v in node.value if isinstance(k.value, str) and k.value == step]
            if not found:
                break
            line, node = found[0][0].start_mark.line + 1, found[0][1]
    return line


@functools.lru_cache(maxsize=2)
def _composed(text: str) -> Any:
    """Return a text as nodes, which know their lines; kept, because a file may have many faults."""
    from ruamel.yaml import YAML  # noqa: PLC0415 - only needed for a message

    return YAML(typ="safe").compose(text)
