"""From rows of keys and values to chunks: the part that JSON lines, CSV and text logs share.

Finds the step axis, the wall time and the numbers of each record. The axis is decided by the first records
and then kept: a step-like key, else a whole-numbered epoch, else the row. A first record without any axis
key, followed by one that has it, is a header of settings.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any

import numpy as np

from trainmon_rules.points import Batch, Boundary, Chunk, Event, Finish, Params, Problem

STEP_KEYS = (
    "step", "_step", "global_step", "trainer/global_step", "train/global_step", "iteration", "iter", "it",
    "current_steps", "current_step", "num_updates", "update_step", "update", "optimizer_step", "steps", "step_num",
    "total_step", "total_steps_done", "global_samples", "time/total_timesteps", "total timesteps", "total_timesteps",
    "timesteps", "env_step", "timestep", "training_iteration", "episode",
)  # fmt: skip
EPOCH_KEYS = ("epoch", "epochs", "train/epoch", "current_epoch")
TIME_KEYS = (
    "_timestamp",
    "timestamp",
    "wall_time",
    "walltime",
    "wall time",
    "time",
    "date",
    "datetime",
    "asctime",
    "ts",
)
TOTAL_KEYS = ("max_steps", "total_steps", "max_iters", "num_iterations", "total_iterations")
INFINITE = 1.797e308  # MLflow and others store infinity as the largest double
MAX_KEYS = 4096  # a record


@dataclass(slots=True)
class _Column:
    step: list[int] = field(default_factory=list)
    time: list[float] = field(default_factory=list)
    value: list[float] = field(default_factory=list)
    row: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Records:
    """Assembles records into a `Batch`; `take` returns what has come together since the last call."""

    axis: str = ""
    skipped: Counter[str] = field(default_factory=Counter)
    row: int = 0  # records so far
    metric_rows: int = 0  # records with at least one number
    last_step: int = 0
    last_iter: int = -1  # for an iteration that starts over each epoch
    last_epoch: float = -math.inf
    epoch_base: int = 0
    _held: tuple[int, Mapping[str, Any], float] | None = None
    _columns: dict[str, _Column] = field(default_factory=dict)
    _events: list[Event] = field(default_factory=list)
    _problems: list[Problem] = field(default_factory=list)

    # ------------------------------------------------------------------ in
    def add(self, values: Mapping[str, Any], time: float = math.nan) -> None:
        """Take one record: flat keys to numbers, strings, None or lists; `time` if known from outside."""
        row, self.row = self.row, self.row + 1
        if len(values) > MAX_KEYS:
            self.skipped["keys over the limit"] += len(values) - MAX_KEYS
            values = dict(list(values.items())[:MAX_KEYS])
        if not self.axis and not self._decide(row, values, time):
            return
        self._emit(row, values, time)

    def params(self, values: Mapping[str, Any]) -> None:
        """Take settings found in the log; they are no record of their own."""
        self._events.append(Params(self.row, dict(values)))

    def settle(self, axis: str, step: int) -> bool:
        """Say from outside which axis the records are on from `step` on; False if they keep the one they have.

        A record that was held back to learn the axis is emitted. Rows give way to steps where that doesn't go
        back; epochs don't.
        """
        if self.axis == "" or (self.axis == "row" and step >= self.last_step):
            if self._held is not None:
                self.axis = "row"
                self._emit_held()
            self.axis = axis
        return self.axis == axis

    def boundary(self, why: str) -> None:
        """Say that what follows is another run."""
        self._release()
        self._events.append(Boundary(self.row, "run", why))
        self.last_iter, self.last_epoch, self.epoch_base = -1, -math.inf, 0

    def finish_run(self, why: str) -> None:
        """Say that the log reports the planned end of training."""
        self._events.append(Finish(self.row, why))

    def problem(self, error: str, line: int | None = None, offset: int | None = None) -> None:
        """Report a record that can't be read."""
        self._problems.append(Problem(error, offset, line))

    def take(self) -> Batch:
        """Return everything assembled since the last call."""
        chunks = [
            Chunk(
                tag,
                np.array(c.step, np.int64),
                np.array(c.time, np.float64),
                np.array(c.value, np.float64),
                np.array(c.row, np.int64),
            )
            for tag, c in self._columns.items()
        ]
        batch = Batch(chunks, self._events, self._problems)
        self._columns, self._events, self._problems = {}, [], []
        return batch

    def finish(self) -> Batch:
        """Return what is left, with a first record that was held back to learn the axis."""
        self._release()
        return self.take()

    # ------------------------------------------------------------------ the axis
    def _decide(self, row: int, values: Mapping[str, Any], time: float) -> bool:
        """Decide the axis from the first two records; False while the record is held back."""
        step_key = find_key(values, STEP_KEYS)
        if step_key is not None:
            self.axis = step_key
            if self._held is not None:
                self._emit_header()
            return True
        if self._held is None:
            self._held = (row, values, time)
            return False
        first = self._held[1]
        a, b = _epoch(first), _epoch(values)
        if a is None and b is not None:
            self.axis = "epoch" if b == int(b) else "row"
            self._emit_header()
            return True
        whole = a is not None and b is not None and a == int(a) and b == int(b)
        repeated = a == b and not set(first).isdisjoint(k for k in values if find_key({k: 0}, EPOCH_KEYS) is None)
        self.axis = "epoch" if whole and not repeated else "row"
        self._emit_held()
        return True

    def _release(self) -> None:
        if self._held is not None:
            epoch = _epoch(self._held[1])
            self.axis = self.axis or ("epoch" if epoch is not None and epoch == int(epoch) else "row")
            self._emit_held()

    def _emit_held(self) -> None:
        if self._held is not None:
            held, self._held = self._held, None
            self._emit(*held)

    def _emit_header(self) -> None:
        if self._held is not None:
            row, values, _ = self._held
            self._held = None
            self._events.append(Params(row, {k: v for k, v in values.items() if isinstance(v, str | int | float)}))

    def _step_of(self, values: Mapping[str, Any]) -> tuple[int, str | None]:
        """Return the record's step and the key that gave it."""
        if self.axis == "row":
            return self.metric_rows, None
        if self.axis == "epoch":
            key = find_key(values, EPOCH_KEYS)
            epoch = None if key is None else number(values[key])
            return (int(epoch), key) if epoch is not None and math.isfinite(epoch) else (self.last_step, key)
        key = self.axis if self.axis in values else find_key(values, STEP_KEYS)
        it = None if key is None else number(values[key])
        if it is None or not math.isfinite(it) or abs(it) >= 2**62:
            return self.last_step, key
        epoch = _epoch(values)
        if epoch is not None and "iter" in self.axis.lower():
            return self._iter_in_epoch(int(it), epoch, values), key
        return int(it), key

    def _iter_in_epoch(self, it: int, epoch: float, values: Mapping[str, Any]) -> int:
        """Unroll an iteration that starts over each epoch (mmcv); a validation record stands at the last one."""
        if values.get("mode") == "val":
            return self.epoch_base + max(self.last_iter, 0)
        if epoch > self.last_epoch > -math.inf and it <= self.last_iter:
            self.epoch_base += self.last_iter
        elif epoch < self.last_epoch:
            self.epoch_base = 0
        self.last_iter, self.last_epoch = it, epoch
        return self.epoch_base + it

    # ------------------------------------------------------------------ out
    def _emit(self, row: int, values: Mapping[str, Any], time: float) -> None:
        step, step_key = self._step_of(values)
        self.last_step = step
        time_key, time = _time_of(values, time)
        prefix = "val/" if values.get("mode") == "val" else ""
        found = False
        for key, raw in values.items():
            if key in (step_key, time_key):
                continue
            value = number(raw)
            if value is None:
                self.skipped[_kind(raw)] += 1
                continue
            column = self._columns.get(prefix + key)
            if column is None:
                column = self._columns[prefix + key] = _Column()
            column.step.append(step)
            column.time.append(time)
            column.value.append(value)
            column.row.append(row)
            found = found or not _is_epoch(key)
        self.metric_rows += found
        self._look_for_the_end(row, step, values)

    def _look_for_the_end(self, row: int, step: int, values: Mapping[str, Any]) -> None:
        if "train_runtime" in values or "train/train_runtime" in values:
            self._events.append(Finish(row, "the trainer wrote its final summary"))
            return
        key = find_key(values, TOTAL_KEYS)
        total = None if key is None else number(values[key])
        if total is not None and 0 < total <= step:
            self._events.append(Finish(row, f"step {step} of {int(total)}"))


def find_key(values: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    """Return the first of `names` among the keys, however it is capitalised."""
    return _find(tuple(values), names)


@lru_cache(maxsize=512)  # a log has few sets of keys and many records
def _find(keys: tuple[str, ...], names: tuple[str, ...]) -> str | None:
    for name in names:
        if name in keys:
            return name
    if any(k[:1].isupper() for k in keys):
        lower = {k.lower(): k for k in reversed(keys)}
        for name in names:
            if name in lower:
                return lower[name]
    return None


@lru_cache(maxsize=4096)
def _is_epoch(key: str) -> bool:
    return _find((key,), EPOCH_KEYS) is not None


@lru_cache(maxsize=512)
def _time_keys(keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return the keys that may hold the wall time, the likeliest first."""
    return tuple(key for name in TIME_KEYS if (key := _find(keys, (name,))) is not None)


def number(raw: Any) -> float | None:
    """Return a number, a number in a string, or None if it is neither; ±1.797e308 stands for infinity."""
    if type(raw) is float and abs(raw) < INFINITE:
        return raw
    if isinstance(raw, bool) or raw is None:
        return None
    if isinstance(raw, str):
        text = raw.strip()
        if not text or not (text[0] in "+-.0123456789" or text[:1] in "nNiI"):
            return None
        try:
            raw = float(text)
        except ValueError:
            return None
        if "_" in text:
            return None
    if isinstance(raw, int | float):
        try:
            value = float(raw)
        except OverflowError:
            return math.inf if raw > 0 else -math.inf
        return math.copysign(math.inf, value) if abs(value) >= INFINITE else value
    return None


def flatten(record: Mapping[str, Any], prefix: str = "", depth: int = 8) -> dict[str, Any]:
    """Return nested objects as one level, keys joined with "/"; deeper than `depth` is dropped."""
    out: dict[str, Any] = {}
    for key, value in record.items():
        if isinstance(value, Mapping):
            if depth > 0:
                out.update(flatten(value, f"{prefix}{key}/", depth - 1))
        else:
            out[f"{prefix}{key}"] = value
    return out


def _kind(raw: Any) -> str:
    if raw is None:
        return "nulls"
    if isinstance(raw, bool):
        return "booleans"
    return "lists" if isinstance(raw, list | tuple) else "text values"


def _epoch(values: Mapping[str, Any]) -> float | None:
    key = find_key(values, EPOCH_KEYS)
    epoch = None if key is None else number(values[key])
    return epoch if epoch is not None and math.isfinite(epoch) else None


def _time_of(values: Mapping[str, Any], known: float) -> tuple[str | None, float]:
    """Return the record's wall time in seconds since the epoch, and the key that gave it."""
    for key in _time_keys(tuple(values)):
        raw = values[key]
        value = number(raw)
        if value is not None:
            if 1e8 < value < 1e11:
                return key, value
            if 1e11 <= value < 1e14:
                return key, value / 1000.0
        elif isinstance(raw, str) and (stamp := parse_time(raw)) is not None:
            return key, stamp
    return None, known


def parse_time(text: str) -> float | None:
    """Return an ISO-like time stamp as seconds since the epoch (UTC where no zone is given), else None."""
    try:
        when = datetime.fromisoformat(text.strip().replace(",", "."))
    except ValueError:
        return None
    if when.tzinfo is None:
        from datetime import UTC  # noqa: PLC0415

        when = when.replace(tzinfo=UTC)
    return when.timestamp()
