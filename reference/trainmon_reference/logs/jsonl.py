"""A JSON object a line, as W&B's history or a script's own log has it; settings in the first line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainmon_reference.logs.base import START, Framework
from trainmon_reference.record import Record


class JsonLines:
    """Writer of `log.jsonl`."""

    def __init__(self, folder: Path, framework: Framework, settings: Mapping[str, Any]) -> None:
        self._framework = framework
        self._file = (folder / "log.jsonl").open("w", encoding="utf-8")
        if settings:
            self._file.write(json.dumps({"config": dict(settings)}) + "\n")

    def write(self, record: Record) -> None:
        """Write one record."""
        row = {"_step": record.step, "_timestamp": START + record.seconds, "epoch": round(record.epoch, 4)}
        self._file.write(json.dumps(row | self._framework.tags(record)) + "\n")

    def resume(self) -> None:
        """Append, as a job does that opens its log again."""

    def close(self) -> None:
        """Close the file."""
        self._file.close()
