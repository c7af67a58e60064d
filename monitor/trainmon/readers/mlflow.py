"""MLflow's file store: one file a metric, a line a value, `timestamp_ms value step`, no header.

The tag is the file's name. Lines have 2 fields (no step: the line is the step), 3, or 5 (with the data set's
name and digest). Infinity stands as ±1.797e308.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import ClassVar

from trainmon.readers.linewise import LinewiseReader
from trainmon.readers.values import number, wall_time, whole

LINE = re.compile(rb"\d{12,14} [-+.\deEnaifNAIF]+( -?\d+( \S+ \S+)?)?")


class MlflowReader(LinewiseReader):
    """Reads one metric of an MLflow run.

    Parameters
    ----------
    tag : str
        The metric's name: the last part of the file's path.
    """

    format: ClassVar[str] = "mlflow"

    def __init__(self, tag: str) -> None:
        self.tag = tag
        super().__init__()

    def _read(self, lines: Iterable[tuple[int, int, bytes]], cut: bool = False) -> None:
        for at, offset, raw in lines:
            if not (fields := raw.decode("utf-8", "replace").split()):
                continue
            time = wall_time(fields[0])
            value = number(fields[1]) if len(fields) in (2, 3, 5) else None
            step = whole(fields[2]) if len(fields) > 2 else self.records.row
            if time is not None and value is not None and step is not None:
                self.records.axis = self.records.axis or ("step" if len(fields) > 2 else "row")
                self.records.put_value(self.tag, step, value, time)
            elif cut:
                self.records.skipped["cut last line"] += 1
            else:
                self.records.skipped["corrupt records"] += 1
                self.records.problem("is no line of `timestamp value step`; it was skipped", at, offset)
