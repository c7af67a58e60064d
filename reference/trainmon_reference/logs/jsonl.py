"""A JSON object a line, as W&B's history or a script's own log has it; settings in the first line.

A resumed job appends to its log.
"""

from __future__ import annotations

import json

from trainmon_reference.logs.base import START, Writer
from trainmon_reference.record import Record


class JsonLines(Writer):
    """Writer of `log.jsonl`."""

    def begin(self) -> None:
        """Open the file."""
        self._file = (self.folder / "log.jsonl").open("w", encoding="utf-8")
        if self.settings:
            self._file.write(json.dumps({"config": self.settings}) + "\n")

    def write(self, record: Record) -> None:
        """Write one record."""
        row = {"_step": record.step, "_timestamp": START + record.seconds, "epoch": round(record.epoch, 4)}
        self._file.write(json.dumps(row | self.framework.tags(record)) + "\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()
