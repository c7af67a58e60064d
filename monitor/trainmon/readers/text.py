"""Text logs: the lines that training frameworks print.

What a line looks like is data (`dialects.yaml`); this module finds the pattern that fits, and turns what it
caught into records. Several dialects may stand in one file (Hugging Face's dicts between DeepSpeed's overflow
lines). Lines that fit none are passed over: a text log is mostly other things, and its beginning may be the
training script itself.

A skipped mixed-precision update becomes a record of `loss_scale` (after the reduction) and `skipped_steps`
(all skipped so far). A last line without an end is read like any other.
"""

from __future__ import annotations

import math
import re
from collections import Counter, deque
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

from trainmon.readers.dialects import LinePattern, load_dialects
from trainmon.readers.jsonl import parse_json
from trainmon.readers.keys import STEP_KEYS
from trainmon.readers.lines import BOM, LineCutter
from trainmon.readers.linewise import LinewiseReader
from trainmon.readers.prefixes import Bar, clean, strip_prefix, take_bar
from trainmon.readers.textscale import Overflows
from trainmon.readers.textsteps import Steps
from trainmon.readers.textvalues import cells, column_starts, to_number
from trainmon.readers.values import find_key, flatten, number

MAX_TEXT = 1 << 14  # bytes; expressions are not tried on longer lines, so that no line costs much time
MAX_COUNT = 2**53  # the largest step that a float still counts
RECENT = 64  # lines remembered to recognise one that is printed again


class TextReader(LinewiseReader):
    """Reads text logs as they come.

    Parameters
    ----------
    extra : path, optional
        A user's dialect file, tried before the shipped one; BadConfig if it can't be used.
    """

    format: ClassVar[str] = "text"

    def __init__(self, extra: Path | None = None) -> None:
        super().__init__()
        self.matched: Counter[str] = Counter()  # dialect → lines
        self._dialects = load_dialects(extra)
        self._preferred = -1
        self._steps = Steps()
        self._overflows = Overflows()
        self._on_steps = False
        self._told_total: int | None = None
        self._finished = False
        self._seen: set[str] = set()
        self._columns: list[tuple[int, str]] = []
        self._drawn: tuple[int, set[str]] = (-1, set())
        self._recent: deque[str] = deque(maxlen=RECENT)
        self._first: int | None = None

    # ------------------------------------------------------------------ lines
    def _read(self, lines: Iterable[tuple[int, int, bytes]], cut: bool = False) -> None:
        for n, _, raw in lines:
            if len(raw) > MAX_TEXT:
                self.records.skipped["lines over the limit"] += 1
                continue
            line = clean(raw.removeprefix(BOM) if n == 1 else raw)
            if line:
                self._line(line)

    def _line(self, line: str) -> None:
        text, time = strip_prefix(line)
        bar, rest = take_bar(text)
        if bar is not None:
            self._steps.take_bar(bar)
            if bar.metrics:
                self._message(bar.text, time, None)
            text, behind = strip_prefix(rest)
            time = behind if math.isfinite(behind) else time
        if text:
            self._message(text, time, bar)

    def _message(self, text: str, time: float, bar: Bar | None) -> None:
        found = self._dialects.find(text, self._preferred)
        if found is None:
            return
        self._preferred, m = found
        pattern = self._dialects.patterns[self._preferred]
        self.matched[pattern.dialect] += 1
        match pattern.kind:
            case "metrics":
                self._metrics(pattern, m, text, time)
            case "position":
                self._position(m.groupdict())
            case "overflow":
                self._overflow(pattern, m, text, time, bar)
            case "floor":
                self._floor(m, time, bar)
            case "header":
                self._columns = column_starts(m["columns"])

    # ------------------------------------------------------------------ what the patterns caught
    def _position(self, groups: dict[str, str | None]) -> None:
        if (step := _whole(groups.get("step"))) is not None:
            self._steps.at(step)
        self._steps.name_epoch(_whole(groups.get("epoch")), _whole(groups.get("epochs")))

    def _metrics(self, p: LinePattern, m: re.Match[str], text: str, time: float) -> None:
        groups = m.groupdict() if len(p.groups) > 1 or "pairs" not in p.groups else {"pairs": m["pairs"]}
        if p.last_batch and (_whole(groups.get("batch")) or 0) < (_whole(groups.get("batches")) or 0) - 1:
            return
        values = self._values(p, groups)
        if not values:
            return
        before = self._steps.last
        step = self._step_of(p, groups, values)
        if step is not None and "step" in p.groups and self._is_reprint(step, before, text):
            self.records.skipped["repeated lines"] += 1
            self._steps.last = before
            return
        if p.redrawn and step is not None:
            values = self._undrawn(step, values)
        if p.missing is not None:
            self._put_missing(p, values)
        if values:
            self._add(step, values, time, groups.get("epoch"))

    def _is_reprint(self, step: int, before: int | None, text: str) -> bool:
        """Tell a line that was printed before (by another rank, in a summary of the run's end) from a restart.

        The first line of a run may well equal that of the run before (untrained loss, no time yet), so it is none.
        """
        if self._first is None or step < self._first:
            self._first = step
        if before is not None and self._first < step <= before and text in self._recent:
            return True
        self._recent.append(text)
        return False

    def _values(self, p: LinePattern, groups: dict[str, str | None]) -> dict[str, Any]:
        """Return tags and values of a line; pairs that hold the step are still among them."""
        raw: dict[str, Any] = {g: v for g in p.metrics if (v := groups[g]) is not None}
        if p.pairs is not None:
            raw.update(p.pairs.findall(groups["pairs"] or ""))
        if "json" in p.groups:
            raw.update(_json(groups["json"] or ""))
        if "columns" in p.groups:
            raw.update(cells(groups["columns"] or "", self._columns))
        values: dict[str, Any] = {}
        for key, text in raw.items():
            if key in p.drop:
                continue
            value = to_number(text) if isinstance(text, str) else number(text)
            if value is None:
                continue
            tag = p.names.get(key, key) if p.names is not None else key
            if p.prefix and tag not in p.plain and tag not in p.step_from and not tag.startswith(p.prefix):
                tag = p.prefix + tag
            if p.absent is not None and p.absent.get(tag) == value:
                continue
            values[tag] = value
        return values

    def _step_of(self, p: LinePattern, groups: dict[str, str | None], values: dict[str, Any]) -> int | None:
        if (step := _whole(groups.get("step"))) is not None:
            self._steps.max_steps = _whole(groups.get("total")) or self._steps.max_steps
            return self._steps.at(step)
        if (batch := _whole(groups.get("batch"))) is not None and not p.last_batch:
            self._steps.name_epoch(None, _whole(groups.get("epochs")))
            epoch, batches = _whole(groups.get("epoch")), _whole(groups.get("batches"))
            return self._steps.unrolled(epoch, batch, batches, p.epochs_from)
        key = find_key(values, p.step_from + (STEP_KEYS if "json" in p.groups else ()))
        if key is not None and abs(values[key]) < MAX_COUNT and values[key] == int(values[key]):
            return self._steps.at(int(values.pop(key)))
        return self._steps.implied(training=any(not k.startswith(("eval", "val", "test")) for k in values))

    def _undrawn(self, step: int, values: dict[str, Any]) -> dict[str, Any]:
        """Return what a progress bar shows for the first time at this batch."""
        if self._drawn[0] != step:
            self._drawn = (step, set())
        fresh = {k: v for k, v in values.items() if k not in self._drawn[1]}
        self._drawn[1].update(fresh)
        return fresh

    def _put_missing(self, p: LinePattern, values: dict[str, Any]) -> None:
        """Put back the NaN that Megatron drops.

        Megatron prints a loss only if its mean is above zero, which NaN is not. The mean is also zero where every
        iteration of the report was skipped by the loss scaler; then "skipped iterations" says so, and no NaN was
        seen unless "nan iterations" counts it.
        """
        rule = p.missing
        if rule is None:
            return
        if rule.tag in values:
            self._seen.add(rule.tag)
            return
        was_skipped = values.get(rule.unless, 0) > 0 and not values.get(rule.sure, 0) > 0
        if rule.tag in self._seen and rule.beside in values and not was_skipped:
            values[rule.tag] = math.nan

    def _overflow(self, p: LinePattern, m: re.Match[str], text: str, time: float, bar: Bar | None) -> None:
        if p.copies and not self._overflows.is_new(text):
            return
        groups = m.groupdict()
        self._add(
            self._steps.of_overflow(bar),
            self._overflows.skip(to_number(groups["scale"] or ""), groups.get("scaler")),
            time,
        )

    def _floor(self, m: re.Match[str], time: float, bar: Bar | None) -> None:
        values = self._overflows.floor(m.groupdict().get("scale"))
        if values:
            self._add(self._steps.of_overflow(bar), values, time)

    # ------------------------------------------------------------------ out
    def _add(self, step: int | None, values: dict[str, Any], time: float, epoch: str | None = None) -> None:
        """Hand a record on, with the step if the axis is known; else `Records` finds one: whole epochs, or the row."""
        if epoch is not None and "epoch" not in values:
            values = {"epoch": to_number(epoch), **values}
        if step is not None and not self._on_steps:
            self._on_steps = self.records.settle("step", step)
        if step is None or not self._on_steps:
            self.records.add(values, time)
            return
        if self._steps.max_steps:
            self._tell_total(step, self._steps.max_steps)
        self.records.add({"step": step, **values}, time)

    def _tell_total(self, step: int, total: int) -> None:
        """Report the planned steps once a run, and once that they are reached."""
        if total != self._told_total or step < self.records.last_step:
            self._told_total, self._finished = total, False
            self.records.params({"max_steps": total})
        if step >= total and not self._finished:
            self._finished = True
            self.records.finish_run(f"step {step} of {total}")


def looks_like_text_log(head: bytes, extra: Path | None = None) -> bool:
    """Return whether a line of `head` holds metrics or a skipped step in a known dialect."""
    dialects = load_dialects(extra)
    for _, _, raw in LineCutter().feed(head + b"\n"):
        if len(raw) > MAX_TEXT or not (line := clean(raw)):
            continue
        text = strip_prefix(line)[0]
        bar, rest = take_bar(text)
        texts = (text,) if bar is None else (bar.text, strip_prefix(rest)[0])
        for t in texts:
            found = dialects.find(t) if t else None
            if found is not None and dialects.patterns[found[0]].kind in ("metrics", "overflow", "floor"):
                return True
    return False


def _whole(text: str | None) -> int | None:
    """Return a count, None if there is none; a user's pattern may catch anything."""
    value = None if text is None else to_number(text)
    return None if value is None or not abs(value) < MAX_COUNT else int(value)


def _json(text: str) -> dict[str, Any]:
    try:
        record = parse_json(text.encode())
    except ValueError:
        return {}
    return flatten(record) if isinstance(record, dict) else {}
