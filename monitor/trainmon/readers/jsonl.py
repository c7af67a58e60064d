"""JSON lines: one object a line, under any suffix.

Nested objects are flattened with "/"; an object under `config`, `args`, `hparams` or the like is settings,
not metrics. Python's bare NaN and Infinity are read. A line that is no JSON is reported with its number, one that is
JSON but no object is counted, and the rest goes on; a git conflict marker ends a run.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import msgspec

from trainmon.readers.keys import EPOCH_KEYS, STEP_KEYS
from trainmon.readers.lines import BOM
from trainmon.readers.linewise import CONFLICT, LinewiseReader
from trainmon.readers.records import Records
from trainmon.readers.values import find_key, flatten

CONFIG_KEYS = frozenset(
    {"config", "args", "argv", "hparams", "hyperparameters", "hyper_parameters", "settings", "cfg", "_config"}
)

_decode = msgspec.json.Decoder().decode


def parse_json(data: bytes) -> Any:
    """Return the JSON value of `data`; ValueError with a short reason if there is none.

    The fast decoder refuses NaN and Infinity, which Python writes and which we exist to see, so what it
    refuses is read again by the standard library.
    """
    try:
        return _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return json.loads(data.decode("utf-8", "replace"), parse_int=parse_int)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"not valid JSON: {error.msg} at column {error.colno}") from None


def parse_int(digits: str) -> int | float:
    """Return an integer, or the infinity that it overflows to: Python refuses more than 4300 digits."""
    return int(digits) if len(digits) < 400 else math.copysign(math.inf, -1 if digits[0] == "-" else 1)


def take_config(record: Mapping[str, Any]) -> tuple[Mapping[str, Any], dict[str, Any]]:
    """Return the record without its settings, and the settings.

    A record with settings and no place on an axis is settings as a whole.
    """
    if CONFIG_KEYS.isdisjoint(record):
        return record, {}
    rest = {k: v for k, v in record.items() if k not in CONFIG_KEYS or not isinstance(v, Mapping | list)}
    if len(rest) == len(record):
        return record, {}
    config = flatten({k: v for key in record if key not in rest for k, v in _named(key, record[key]).items()})
    if find_key(rest, STEP_KEYS) is None and find_key(rest, EPOCH_KEYS) is None:
        return {}, flatten(rest) | config
    return rest, config


def _named(key: str, value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {key: value}


def add_record(records: Records, record: Mapping[str, Any]) -> None:
    """Give an object to the records: its settings as such, its nested objects as one level."""
    record, config = take_config(record)
    if config:
        records.params(config)
    if dict in set(map(type, record.values())):
        record = flatten(record, skipped=records.skipped)
    if record:
        records.add_row(tuple(record), tuple(record.values()))


class JsonlReader(LinewiseReader):
    """Reads JSON lines as they come."""

    format: ClassVar[str] = "jsonl"

    def _read(self, lines: Iterable[tuple[int, int, bytes]], cut: bool = False) -> None:
        """Read lines; `cut` says that they may end anywhere, which is no error."""
        records = self.records
        for number, offset, raw in lines:
            line = raw.strip()
            if line[:1] != b"{":
                line = self._cleaned(line, number)
                if not line:
                    continue
            try:
                record = parse_json(line)
            except ValueError as error:
                if cut:
                    records.skipped["cut last line"] += 1
                else:
                    records.skipped["corrupt records"] += 1
                    records.problem(f"{error}; the line was skipped", number, offset)
                continue
            if isinstance(record, dict):
                add_record(records, record)
            else:
                records.skipped["lines that are no object"] += 1

    def _cleaned(self, line: bytes, number: int) -> bytes:
        """Return a line that doesn't begin with an object without what may stand before one; b"" if nothing is left."""
        if number == 1:
            line = line.removeprefix(BOM).lstrip()
        if line.startswith(b"\0"):  # a hole that a crash left in the file
            line = line.lstrip(b"\0")
            self.records.skipped["zero-filled gaps"] += 1
        if CONFLICT.match(line):
            self._conflict(number)
            return b""
        return line
