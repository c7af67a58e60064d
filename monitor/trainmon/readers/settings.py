"""Settings that writers put into event files: the hparams plugin, and text summaries.

Hugging Face and TRL log their arguments as one JSON text, CleanRL and others as a Markdown table, Megatron
each argument as a text of its own whose tag is the argument's name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from trainmon.readers.values import flatten

MAX_TEXT = 1 << 18  # bytes; a longer text is no list of settings
MAX_LINE = 512  # characters; a longer line is no single setting
TEXT_SUFFIX = "/text_summary"  # added to the tag by torch and tensorboardX
_name = re.compile(r"[A-Za-z_][\w.\-]*")


def from_text(tag: str, text: str) -> dict[str, Any]:
    """Return the settings that a text summary holds, flat; empty if it holds none."""
    text = text.strip().removeprefix("```json").removeprefix("```").removesuffix("```").strip()
    if text.startswith("{"):
        return _from_json(text)
    if "|" in text and "\n" in text:
        return _from_table(text)
    name = tag.removesuffix(TEXT_SUFFIX)
    if text and "\n" not in text and len(text) <= MAX_LINE and _name.fullmatch(name):
        return {name: plain(text)}
    return {}


def _from_json(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return {}
    return flatten(value) if isinstance(value, Mapping) else {}


def _from_table(text: str) -> dict[str, Any]:
    """Return the rows of a Markdown table of two columns, without its heading and ruler."""
    rows = []
    for line in text.splitlines():
        stripped = line.strip()
        if not stripped:
            continue
        if "|" not in stripped:
            return {}
        rows.append([c.strip().strip("`*") for c in stripped.removeprefix("|").removesuffix("|").split("|", 1)])
    ruler = next((i for i, r in enumerate(rows) if all(c and not c.strip("-: ") for c in r)), -1)
    return {r[0]: plain(r[1]) for r in rows[ruler + 1 :] if len(r) == 2 and r[0]}


def plain(text: str) -> Any:
    """Return what a printed Python value was: a number, True, False, None, else the text itself."""
    words = {"True": True, "False": False, "None": None, "true": True, "false": False, "null": None}
    if text in words:
        return words[text]
    for kind in (int, float) if "_" not in text else ():
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def from_hparams(content: bytes) -> dict[str, Any]:
    """Return the settings in the hparams plugin's data; empty if it holds a description or an end mark.

    Raises
    ------
    ValueError
        If the bytes are no data of that plugin.
    """
    from google.protobuf.message import DecodeError  # noqa: PLC0415
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData  # noqa: PLC0415

    try:
        data = HParamsPluginData.FromString(content)
    except DecodeError:
        raise ValueError("the hparams plugin's data can't be decoded") from None
    out: dict[str, Any] = {}
    for name, value in sorted(data.session_start_info.hparams.items()):
        kind = value.WhichOneof("kind")
        if kind == "number_value":  # always a double; 256 was meant where it says 256.0
            number = value.number_value
            out[name] = int(number) if number.is_integer() and abs(number) < 1 << 53 else number
        elif kind in ("string_value", "bool_value"):
            out[name] = getattr(value, kind)
    return out
