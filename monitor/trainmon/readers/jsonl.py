"""JSON lines: one object a line, under any suffix.

Nested objects are flattened with "/"; an object under `config`, `args`, `hparams` or the like is settings,
not metrics. Python's bare NaN and Infinity are read. A line that is no JSON object is reported with its
number and the rest goes on; a git conflict marker ends a run.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import msgspec

from trainmon.readers.lines import BOM, LineCutter
from trainmon.readers.records import Records, flatten
from trainmon_rules.points import Batch

CONFIG_KEYS = frozenset(
    {"config", "args", "argv", "hparams", "hyperparameters", "hyper_parameters", "settings", "cfg", "_config"}
)
CONFLICT = (b"<<<<<<<", b"=======", b">>>>>>>")

_decode = msgspec.json.Decoder().decode


def parse_object(line: bytes) -> Any:
    """Return the JSON value of a line; ValueError with a short reason if there is none.

    The fast decoder refuses NaN and Infinity, which Python writes and which we exist to see, so what it
    refuses is read again by the standard library.
    """
    try:
        return _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return json.loads(line.decode("utf-8", "replace"))
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"not valid JSON: {error.msg} at column {error.colno}") from None


def take_config(record: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the record without its settings, and the settings."""
    config = {k: v for k, v in record.items() if k in CONFIG_KEYS and isinstance(v, Mapping)}
    return {k: v for k, v in record.items() if k not in config}, flatten(
        {k: v for c in config.values() for k, v in c.items()}
    )


class JsonlReader:
    """Reads JSON lines as they come."""

    format: ClassVar[str] = "jsonl"

    def __init__(self) -> None:
        self.lines = LineCutter()
        self.records = Records()

    @property
    def axis(self) -> str:
        """Name of the step axis."""
        return self.records.axis

    @property
    def skipped(self) -> Counter[str]:
        """What was passed over."""
        counts = self.records.skipped.copy()
        if self.lines.too_long:
            counts["lines over the limit"] = self.lines.too_long
        return counts

    @property
    def offset(self) -> int:
        """Offset of the first byte not consumed."""
        return self.lines.offset

    def feed(self, data: bytes) -> Batch:
        """Take the next bytes; return the records that became complete."""
        self._read(self.lines.feed(data))
        return self.records.take()

    def finish(self) -> Batch:
        """Return the last line, if it is whole, and what was held back."""
        last = list(self.lines.finish())
        if last and last[0][2].strip().startswith(b"{") and not last[0][2].rstrip().endswith(b"}"):
            self.records.skipped["cut last line"] += 1
        else:
            self._read(last)
        return self.records.finish()

    def _read(self, lines: Iterable[tuple[int, int, bytes]]) -> None:
        for number, offset, raw in lines:
            line = raw.removeprefix(BOM).strip() if number == 1 else raw.strip()
            if not line:
                continue
            if line.startswith(CONFLICT):
                self.records.skipped["conflict markers"] += 1
                self.records.boundary("git conflict marker")
                continue
            try:
                record = parse_object(line)
            except ValueError as error:
                self.records.skipped["corrupt records"] += 1
                self.records.problem(f"{error}; the line was skipped", number, offset)
                continue
            self._record(record, number)

    def _record(self, record: Any, number: int) -> None:
        if not isinstance(record, Mapping):
            self.records.skipped["lines that are no object"] += 1
            return
        metrics, config = take_config(record)
        if config:
            self.records.params(config)
        if metrics:
            self.records.add(flatten(metrics))
