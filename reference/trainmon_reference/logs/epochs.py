"""Tables of an epoch a row: Keras' `CSVLogger` and Ultralytics' `results.csv`.

A row has the means of the epoch's training numbers, the last learning rate, and the evaluation made in it ("NA" where
there was none, as Keras has it; a row is written when its epoch is over, so the rest of an unfinished one is lost).
Neither file holds a wall time (Ultralytics' `time` is seconds since the start) or settings (Ultralytics' stand in
`args.yaml`). A resumed job appends.
"""

from __future__ import annotations

import csv
import math
from typing import ClassVar, Literal

from trainmon_reference.logs.base import Writer
from trainmon_reference.record import Record, role_of


class EpochCsv(Writer):
    """Writer of a table; options: `file`, `first` (number of the first epoch), `form`, `seconds` (a column)."""

    axis: ClassVar[Literal["step", "epoch"]] = "epoch"

    def begin(self) -> None:
        """Hold the rows: the header needs all columns."""
        self._rows: list[dict[str, float]] = []
        self._ends: list[tuple[int, int]] = []  # of each row: the epoch's number, and updates made at its end
        self._epoch, self._train, self._valid = -1, list[Record](), dict[str, float]()

    def write(self, record: Record) -> None:
        """Add a record to its epoch; write the row of the one before if it is over."""
        epoch = math.ceil(record.epoch) - 1  # what is reported at 1.0 ends the first epoch
        if epoch != self._epoch:
            self._end()
            self._epoch = epoch
        if record.phase == "train":
            self._train.append(record)
        else:
            self._valid = self.framework.tags(record)

    def resume(self, step: int) -> None:
        """Forget the epoch that was interrupted."""
        if not self._is_over():
            self._train.clear()
        self._end()

    def close(self) -> None:
        """Write the table."""
        self.resume(0)
        options = self.framework.options
        known = {key for row in self._rows for key in row}
        tags = [*self.framework.train.values(), *self.framework.valid.values()]
        head = ["epoch", *([options["seconds"]] if options.get("seconds") else [])]
        columns = [*head, *sorted(tag for tag in tags if tag in known)]
        with (self.folder / options["file"]).open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file, lineterminator="\n")
            table.writerow(columns)
            for row in self._rows:
                table.writerow([format(row[key], options["form"]) if key in row else "NA" for key in columns])

    @property
    def updates_per_step(self) -> float:
        """Updates an epoch."""
        gone = self._ends[-1][0] - self.framework.options["first"] + 1 if self._ends else 0
        return self._ends[-1][1] / gone if gone else 1.0

    def place(self, update: int) -> int:
        """Return the epoch in which an update is made."""
        after = self._ends[-1][0] + 1 if self._ends else int(self.framework.options["first"])
        return next((epoch for epoch, end in self._ends if end > update), after)

    def _is_over(self) -> bool:
        return bool(self._train) and self._train[-1].epoch >= self._epoch + 1

    def _end(self) -> None:
        """Write the row of the epoch that is over."""
        if self._train:
            number, last = self._epoch + int(self.framework.options["first"]), self._train[-1]
            row: dict[str, float] = {"epoch": number}
            if seconds := self.framework.options.get("seconds"):
                row[seconds] = last.seconds
            self._rows.append(row | self._means() | self._valid)
            self._ends.append((number, last.step))
        self._train.clear()
        self._valid = {}

    def _means(self) -> dict[str, float]:
        """Return the epoch's mean of each tag; of a learning rate, the last."""
        out = {}
        for key, tag in self.framework.train.items():
            values = [record.values[key] for record in self._train if key in record.values]
            if values:
                out[tag] = values[-1] if role_of(key) == "learning_rate" else sum(values) / len(values)
        return out
