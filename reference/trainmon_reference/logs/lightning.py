"""Lightning's `metrics.csv`: a row a call of the logger, blank cells for what it didn't log, columns by name.

Its `LearningRateMonitor` calls the logger itself, so the rate stands in a row of its own without an epoch. The file
holds no wall time. Settings go into `hparams.yaml` beside it, which isn't read as a log, so they are left out. A
resumed job begins a folder `version_1` with a table of its own: that isn't one log any more, so a resume is refused.
"""

from __future__ import annotations

import csv

from trainmon_reference.logs.base import Writer
from trainmon_reference.record import Record
from trainmon_rules.errors import BadConfig


class LightningCsv(Writer):
    """Writer of `metrics.csv`."""

    def begin(self) -> None:
        """Hold the rows: the header needs all columns (Lightning rewrites the file for each new one)."""
        self._rows: list[dict[str, float]] = []

    def write(self, record: Record) -> None:
        """Write one record: the rates in one row, the rest in another."""
        tags = self.framework.tags(record)
        rates = {tag: tags.pop(tag) for tag in list(tags) if tag.startswith("lr-")}
        if rates:
            self._rows.append({**rates, "step": record.step})
        if tags:
            self._rows.append({**tags, "epoch": int(record.epoch), "step": record.step})

    def resume(self, step: int) -> None:
        """Refuse."""
        raise BadConfig(f"{self.framework.name}: a resumed job begins another table; use another framework's log")

    def close(self) -> None:
        """Write the table."""
        columns = sorted({key for row in self._rows for key in row})
        with (self.folder / "metrics.csv").open("w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, columns, restval="", lineterminator="\n")
            table.writeheader()
            table.writerows(self._rows)
