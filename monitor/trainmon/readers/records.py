"""From rows of keys and values to chunks: the part that JSON lines, documents, tables and text logs share.

Finds the step axis, the wall time and the numbers of each record.

The axis is decided by the first records and then kept: a step-like key, else a whole-numbered epoch, else the
row. A fractional epoch, or one that several records of the same metrics share, makes the row the axis. A first
record without any axis key, followed by one that has it, is a header of settings. An iteration that starts
over each epoch (mmcv) is unrolled into one that goes on.

Records with the same keys in the same order share one `Shape`, whose keys are looked at once; their values are
kept as rows and turned into columns when the batch is taken. So the cost of a record is one look-up and four
appends, whatever it holds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trainmon.readers.keys import WEAK_KEYS, Bin, Shape, same_axis
from trainmon.readers.values import is_whole, number, numbers, settings, wall_time, whole
from trainmon_rules.points import Batch, Boundary, Chunk, Event, Finish, Params, Problem

MAX_KEYS = 4096  # a record
MAX_HELD = 8  # records looked at to decide the axis
MAX_SHAPES = 256  # remembered between batches
MAX_PROBLEMS = 1000  # reported one by one; the rest is counted

Row = tuple[int, tuple[str, ...], tuple[Any, ...], float]


@dataclass(slots=True)
class Records:
    """Assembles records into a `Batch`; `take` returns what has come together since the last call.

    Parameters
    ----------
    axis : str
        Name of the step axis, "" while unknown.
    settings_first : bool
        Whether a first record without an axis key may be settings (no: a table's rows are all alike).
    total : int
        Planned number of steps if known from outside; the record that reaches it ends the training.
    """

    axis: str = ""
    settings_first: bool = True
    total: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    row: int = 0  # records so far
    metric_rows: int = 0  # records of this run with at least one number
    last_step: int = 0
    _last_iter: int = -1  # for an iteration that starts over each epoch
    _last_epoch: float = -math.inf
    _bases: dict[float, int] = field(default_factory=dict)  # where each epoch began
    _base: int = 0
    _run_row: int = 0  # first record of this run
    _finished: bool = False
    _stated: int = 0  # planned number of steps as the records say, and how often in a row they said so
    _stated_times: int = 0
    _counts: bool = False  # it changes from record to record: a counter, no plan
    _last_keys: tuple[str, ...] = ()
    _problem_count: int = 0
    _held: list[Row] = field(default_factory=list)
    _shapes: dict[tuple[str, ...], Shape] = field(default_factory=dict)
    _events: list[Event] = field(default_factory=list)
    _problems: list[Problem] = field(default_factory=list)

    # ------------------------------------------------------------------ in
    def add(self, values: Mapping[str, Any], time: float = math.nan) -> None:
        """Take one record: flat keys to numbers, strings, None or lists; `time` if known from outside."""
        self.add_row(tuple(values), tuple(values.values()), time)

    def add_row(self, keys: tuple[str, ...], cells: tuple[Any, ...], time: float = math.nan) -> None:
        """Take one record as its keys and their values, equally long."""
        row = self.row
        self.row = row + 1
        if len(keys) > MAX_KEYS:
            self.skipped["keys over the limit"] += len(keys) - MAX_KEYS
            keys, cells = keys[:MAX_KEYS], cells[:MAX_KEYS]
        if self.axis:
            self._put(row, keys, cells, time)
        else:
            self._held.append((row, keys, cells, time))
            self._decide()

    def put_value(self, tag: str, step: int, value: float, time: float) -> None:
        """Take a record of one value whose step is known."""
        shape = self._shape((tag,))
        b = shape.bins.get((None, None, "")) or shape.bin(None, None, "")
        b.row.append(self.row)
        b.step.append(step)
        b.time.append(time)
        b.cells.append((value,))
        self.row += 1

    def params(self, values: Mapping[str, Any]) -> None:
        """Take settings found in the log; they are no record of their own."""
        if plain := settings(values):
            self._events.append(Params(self.row, plain))

    def settle(self, axis: str, step: int) -> bool:
        """Say from outside which axis the records are on from `step` on; False if they keep the one they have.

        Records that were held back to learn the axis are emitted as rows. Rows give way to steps where that doesn't
        go back; epochs don't.
        """
        if self.axis == "" or (self.axis == "row" and step >= self.last_step):
            if self._held:
                self._begin("row")
            self.axis = axis
        return self.axis == axis

    def boundary(self, why: str) -> None:
        """Say that what follows is another run; nothing happens if this run has no record yet."""
        self._release()
        if self.row > self._run_row:
            self._events.append(Boundary(self.row, "run", why))
        self._run_row = self.row
        self.metric_rows, self.last_step, self._finished = 0, 0, False
        self._stated, self._stated_times, self._counts = 0, 0, False
        self._last_iter, self._last_epoch, self._base, self._bases = -1, -math.inf, 0, {}

    def finish_run(self, why: str) -> None:
        """Say that the log reports the planned end of training."""
        self._events.append(Finish(self.row, why))

    def problem(self, error: str, line: int | None = None, offset: int | None = None) -> None:
        """Report a record that can't be read; after a thousand they are only counted."""
        self._problem_count += 1
        if self._problem_count <= MAX_PROBLEMS:
            self._problems.append(Problem(error, offset, line))
        else:
            self.skipped["problems not listed"] += 1

    # ------------------------------------------------------------------ out
    def take(self) -> Batch:
        """Return everything assembled since the last call."""
        columns: dict[str, list[Chunk]] = {}
        for shape in self._shapes.values():
            for b in shape.bins.values():
                if b.row:
                    self._columns(b, columns, shape.mode_at)
        chunks = [parts[0] if len(parts) == 1 else _merge(tag, parts) for tag, parts in columns.items()]
        # Events wait for records that are held back before them, so that nothing is told out of order.
        events, self._events = (self._events, []) if not self._held else ([], self._events)
        batch = Batch(chunks, events, self._problems)
        self._problems = []
        if len(self._shapes) > MAX_SHAPES:
            self._shapes = {}
        return batch

    def finish(self) -> Batch:
        """Return what is left, with the first records that were held back to learn the axis."""
        self._release()
        return self.take()

    def _columns(self, b: Bin, out: dict[str, list[Chunk]], modes: tuple[int, ...]) -> None:
        step, time, row = np.array(b.step, np.int64), np.array(b.time, np.float64), np.array(b.row, np.int64)
        columns = list(zip(*b.cells, strict=True))
        b.row, b.step, b.time, b.cells = [], [], [], []
        for at, tag in b.tags:
            # "train" and "val" are understood, not passed over
            value, kept = numbers(columns[at], Counter() if at in modes else self.skipped)
            if len(value):
                chunk = Chunk(tag, step, time, value, row)
                if kept is not None:
                    chunk = Chunk(tag, step[kept], time[kept], value, row[kept])
                out.setdefault(tag, []).append(chunk)

    # ------------------------------------------------------------------ the axis
    def _decide(self) -> None:
        """Decide the axis if the records held back allow it; see the module's text."""
        _, keys, cells, _ = self._held[-1]
        shape = self._shape(keys)
        step_key = next((keys[i] for i in shape.step_at if is_whole(cells[i])), None)
        epoch = self._epoch(shape, cells)
        earlier = self._held[:-1]
        if step_key in WEAK_KEYS and not earlier:
            return
        plain_first = bool(earlier) and self._epoch_of(earlier[0]) is None and step_key not in earlier[0][1]
        if step_key is not None or epoch is not None:
            if plain_first and len(earlier) == 1 and self.settings_first:
                self._emit_header()
            if step_key is not None:
                self._begin(step_key)
            elif plain_first and not self.settings_first:
                self._begin("row")
            elif epoch is not None:
                self._decide_epoch(epoch)
        elif plain_first:
            self._begin("row")
        if not self.axis and len(self._held) >= MAX_HELD:
            self._begin("epoch")

    def _decide_epoch(self, epoch: float) -> None:
        if epoch != math.floor(epoch):
            self._begin("row")
            return
        names = self._metric_names(self._held[-1])
        for held in self._held[:-1]:
            before = self._epoch_of(held)
            if before is not None and before != epoch:
                self._begin("epoch")
                return
            # The learning rate may stand in the training and in the validation record of one epoch.
            other = self._metric_names(held)
            if before == epoch and 2 * len(names & other) > min(len(names), len(other)):
                self._begin("row")
                return

    def _begin(self, axis: str) -> None:
        self.axis = axis
        held, self._held = self._held, []
        for row, keys, cells, time in held:
            self._put(row, keys, cells, time)

    def _release(self) -> None:
        if self._held:
            epochs = [self._epoch_of(h) for h in self._held]
            self._begin("row" if any(e is None or e != math.floor(e) for e in epochs[:1]) else "epoch")

    def _emit_header(self) -> None:
        row, keys, cells, _ = self._held.pop(0)
        if plain := settings(dict(zip(keys, cells, strict=True))):
            self._events.append(Params(row, plain))

    def _metric_names(self, held: Row) -> set[str]:
        _, keys, cells, _ = held
        shape = self._shape(keys)
        prefix = shape.prefix(cells)
        return {prefix + keys[i] for i in shape.metric_at if number(cells[i]) is not None}

    def _epoch_of(self, held: Row) -> float | None:
        return self._epoch(self._shape(held[1]), held[2])

    def _epoch(self, shape: Shape, cells: tuple[Any, ...]) -> float | None:
        epoch = None if shape.epoch_at is None else number(cells[shape.epoch_at])
        return epoch if epoch is not None and math.isfinite(epoch) else None

    def _shape(self, keys: tuple[str, ...]) -> Shape:
        shape = self._shapes.get(keys)
        if shape is None:
            shape = self._shapes[keys] = Shape.of(keys)
        return shape

    # ------------------------------------------------------------------ one record
    def _put(self, row: int, keys: tuple[str, ...], cells: tuple[Any, ...], time: float) -> None:
        shape = self._shapes.get(keys)
        if shape is None:
            shape = self._shape(keys)
        prefix = shape.prefix(cells) if shape.mode_at else ""
        step, step_at = self._step(shape, cells, prefix)
        if step < self.last_step:
            self._finished = False
        self.last_step = step
        time_at = None
        for at in shape.time_at:
            found = wall_time(cells[at])
            if found is not None:
                time_at, time = at, found
                break
        b = shape.bins.get((step_at, time_at, prefix)) or shape.bin(step_at, time_at, prefix)
        b.row.append(row)
        b.step.append(step)
        b.time.append(time)
        b.cells.append(cells)
        if shape.final or shape.total_at is not None or self.total:
            self._look_for_the_end(row, step, shape, cells)

    def _step(self, shape: Shape, cells: tuple[Any, ...], prefix: str) -> tuple[int, int | None]:
        """Return the record's step and the position of the key that gave it."""
        if self.axis == "row":
            row = self.metric_rows
            self.metric_rows += any(number(cells[at]) is not None for at in shape.metric_at)
            return row, None
        if self.axis == "epoch":
            return self._whole_at(shape.epoch_at, cells), shape.epoch_at
        if self.axis not in shape.axis_at:
            shape.axis_at[self.axis] = same_axis(shape, self.axis)
        at = shape.axis_at[self.axis]
        count = None if at is None else whole(cells[at])
        if count is None:
            return self.last_step, at
        if shape.epoch_at is not None and "iter" in self.axis.lower():
            epoch = self._epoch(shape, cells)
            if epoch is not None and epoch == math.floor(epoch):
                return self._iter_in_epoch(count, epoch, prefix, shape.keys), at
        return count, at

    def _whole_at(self, at: int | None, cells: tuple[Any, ...]) -> int:
        """Return the step at a position, the one before where there is none."""
        step = None if at is None else whole(cells[at])
        return self.last_step if step is None else step

    def _iter_in_epoch(self, it: int, epoch: float, prefix: str, keys: tuple[str, ...]) -> int:
        """Unroll an iteration that starts over each epoch; a validation record stands at the last one.

        The same iteration in the next epoch starts over if the record is of the same kind (one report an
        epoch); of another kind it may be an evaluation beside a global iteration.
        """
        if prefix:
            return self._base + max(self._last_iter, 0)
        over = it < self._last_iter or (it == self._last_iter and keys == self._last_keys)
        self._last_keys = keys
        if epoch > self._last_epoch > -math.inf and over:
            self._base += self._last_iter
        elif epoch < self._last_epoch:  # resumed at an earlier epoch, or another run that begins anew
            self._base = self._bases.get(epoch, 0)
            self._bases = {e: b for e, b in self._bases.items() if e <= epoch}
        self._bases.setdefault(epoch, self._base)
        if len(self._bases) > MAX_KEYS:
            del self._bases[next(iter(self._bases))]
        self._last_iter, self._last_epoch = it, epoch
        return self._base + it

    def _look_for_the_end(self, row: int, step: int, shape: Shape, cells: tuple[Any, ...]) -> None:
        if shape.final:
            self._events.append(Finish(row, "the trainer wrote its final summary"))
            self._finished = True
            return
        total = self.total
        if shape.total_at is not None:
            total = self._planned(row, shape.keys[shape.total_at], whole(cells[shape.total_at]) or 0)
        if 0 < total <= step and not self._finished and self.axis not in ("row", "epoch"):
            self._events.append(Finish(row, f"step {step} of {total}"))
            self._finished = True

    def _planned(self, row: int, key: str, total: int) -> int:
        """Return the planned number of steps that a record states, 0 while it may be a running counter.

        A plan stays the same from record to record; some loggers call a counter `total_steps`.
        """
        if total != self._stated:
            self._counts = self._counts or self._stated_times == 1
            self._stated, self._stated_times = total, 0
        self._stated_times += 1
        if self._counts or self._stated_times < 2:
            return 0
        if self._stated_times == 2 and total > 0:
            self._events.append(Params(row, {key: total}))
        return total


def _merge(tag: str, parts: list[Chunk]) -> Chunk:
    """Join the points that one tag has in records of several shapes, in the order of the records."""
    row = np.concatenate([p.row for p in parts])
    order = np.argsort(row, kind="stable")
    return Chunk(
        tag,
        np.concatenate([p.step for p in parts])[order],
        np.concatenate([p.time for p in parts])[order],
        np.concatenate([p.value for p in parts])[order],
        row[order],
    )
