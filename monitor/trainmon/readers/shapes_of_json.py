"""How the shapes of a JSON document become records.

- an object with `log_history` (Hugging Face's trainer_state.json, under any name): its rows; its settings
  (`max_steps`, `num_train_epochs`, `train_batch_size`, …) are settings, its state (`epoch`, `best_metric`) is
  passed over. The closing summary's numbers are means over the whole run: they get tags under `final/`
  (`final/train_loss`), so that none becomes a point of the live loss;
- a list of objects, or an object that holds such lists (`history`, `train` and `val`);
- an object of parallel lists, of different lengths where some belong to another axis (`iters`/`loss` and
  `val_iters`/`val_loss`); each list goes with the axis of its own length and prefix, else its index is the row;
- an object of numbers alone: one record if it names a result (a loss, a score, a step), else settings.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trainmon.readers.jsonl import CONFIG_KEYS, add_record
from trainmon.readers.keys import EPOCH_KEYS, STEP_KEYS
from trainmon.readers.records import Records
from trainmon.readers.values import find_key, flatten, number, whole

NOTHING = "is a JSON document without metrics that we know how to read (rows, parallel lists, or named results)"
ROWS = ("log_history", "history", "logs", "log", "metrics", "records", "rows", "data", "results", "entries", "events")
_STATE = frozenset(
    {"epoch", "global_step", "total_flos", "best_metric", "best_global_step", "best_model_checkpoint",
     "num_input_tokens_seen", "is_hyper_param_search", "is_local_process_zero", "is_world_process_zero",
     "stateful_callbacks", "trial_name"}
)  # fmt: skip
_RESULT = re.compile(
    r"(^|[^a-z])(loss|nll|acc|accuracy|error|err|ppl|perplexity|bpb|reward|return|score|f1|auc|map|ap|iou|bleu|rouge"
    r"|wer|cer|mse|mae|rmse|precision|recall|psnr|fid|runtime|val|valid|eval|test)([^a-z]|$)|_per_second|top_?[15]",
    re.IGNORECASE,
)
_AXIS = {n for k in (*STEP_KEYS, *EPOCH_KEYS) for n in (k, k + "s", k.removesuffix("s"))} | {"its", "x"}
_HELD_OUT = ("val_", "valid_", "validation_", "eval_", "test_", "train_")


def add_document(records: Records, document: Any) -> bool:
    """Give a document's records to `records`; False if it holds none."""
    if isinstance(document, list):
        return _add_rows(records, document)
    if not isinstance(document, Mapping):
        return False
    if isinstance(document.get("log_history"), list):
        return _add_trainer_state(records, document)
    lists = {k: v for k, v in document.items() if _is_rows(v)}
    if lists:
        return _add_row_lists(records, document, lists)
    config = {k: v for k, v in document.items() if k in CONFIG_KEYS and isinstance(v, Mapping)}
    rest = {k: v for k, v in document.items() if k not in config and k != "_wandb"}
    is_record = any(isinstance(rest[k], int | float) for k in _axis_keys(rest))
    columns = {k: c for k, v in _branches(rest) if (c := _column(v)) is not None}
    if columns and not is_record:
        return _add_columns(records, document, columns)
    flat = flatten(rest)
    if is_record or any(_RESULT.search(k) for k, v in flat.items() if number(v) is not None):
        if config:
            records.params(flatten(_joined(config)))
        add_record(records, rest)
    else:
        records.params(flat | flatten(_joined(config)))
    return bool(flat or config)


def _axis_keys(record: Mapping[str, Any]) -> list[str]:
    return [k for k in (find_key(record, STEP_KEYS), find_key(record, EPOCH_KEYS)) if k is not None]


def _joined(config: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {k: v for c in config.values() for k, v in c.items()}


def _add_rows(records: Records, rows: Iterable[Any], total: int = 0) -> bool:
    records.total = total
    found = False
    for row in rows:
        if isinstance(row, Mapping):
            add_record(records, row)
            found = True
        else:
            records.skipped["rows that are no object"] += 1
    return found


def _add_trainer_state(records: Records, state: Mapping[str, Any]) -> bool:
    records.params(flatten({k: v for k, v in state.items() if k not in _STATE and k != "log_history"}))
    _add_rows(records, state["log_history"], max(0, whole(state.get("max_steps")) or 0))
    return True  # a run that has just begun has no row yet


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], Mapping)


def _add_row_lists(records: Records, document: Mapping[str, Any], lists: Mapping[str, Sequence[Any]]) -> bool:
    """Read one list of objects, or several (their keys become prefixes) in the order of their steps."""
    records.params(flatten({k: v for k, v in document.items() if k not in lists}))
    named = [k for k in ROWS if k in lists] or list(lists)[: 1 if len(lists) == 1 else None]
    if len(named) == 1:
        return _add_rows(records, lists[named[0]])
    rows: list[tuple[float, int, Mapping[str, Any]]] = []
    for key in named:
        last = -math.inf
        for row in lists[key]:
            if isinstance(row, Mapping):
                axis = next(iter(_axis_keys(row)), None)
                place = number(row[axis]) if axis else None
                last = last if place is None or not math.isfinite(place) else max(last, place)
                rows.append((last, len(rows), {k if k == axis else f"{key}/{k}": v for k, v in row.items()}))
    return _add_rows(records, (row for _, _, row in sorted(rows, key=lambda r: r[:2])))


def _branches(document: Mapping[str, Any], prefix: str = "", depth: int = 4) -> Iterable[tuple[str, Any]]:
    """Yield the lists of a document with their joined names."""
    for key, value in document.items():
        if isinstance(value, Mapping) and _column(value) is None:
            if depth and not isinstance(value.get("_type"), str):
                yield from _branches(value, f"{prefix}{key}/", depth - 1)
        elif isinstance(value, list | Mapping):
            yield f"{prefix}{key}", value


def _column(value: Any) -> list[Any] | None:
    """Return a list of numbers, also where it is an object of "0", "1", … (pandas); None if it is neither."""
    if isinstance(value, Mapping):
        if len(value) < 2 or not all(isinstance(k, str) and k.isascii() and k.isdigit() for k in value):
            return None
        value = list(value.values())
    if not isinstance(value, list) or not value or any(isinstance(v, list | Mapping) for v in value):
        return None
    return value if any(number(v) is not None for v in value) else None


def _is_axis(name: str) -> bool:
    return _bare(name) in _AXIS


def _bare(name: str) -> str:
    """Return a column's name without folder and without what says which data it is of."""
    base = name.rsplit("/", 1)[-1].lower()
    return next((base[len(p) :] for p in _HELD_OUT if base.startswith(p)), base)


def _stem(name: str) -> str:
    """Return what `_bare` leaves out: "train/" of "train/iters", "val_" of "val_iters"."""
    return name[: len(name) - len(_bare(name))]


def _add_columns(records: Records, document: Mapping[str, Any], columns: Mapping[str, Sequence[Any]]) -> bool:
    """Turn parallel lists into rows, in the order of their steps; equal steps in the order of the document."""
    plain = {k: v for k, v in flatten(document).items() if not isinstance(v, list) and number(k) is None}
    records.params({k: v for k, v in plain.items() if k.rsplit("/", 1)[0] not in columns})
    axes = {k: v for k, v in columns.items() if _is_axis(k)}
    groups: dict[str, dict[str, Sequence[Any]]] = {}
    for name, column in columns.items():
        if name not in axes:
            groups.setdefault(_axis_of(name, len(column), axes), {})[name] = column
    rows: list[tuple[float, int, dict[str, Any]]] = []
    for order, (axis, members) in enumerate(groups.items()):
        rows.extend(_rows(axes.get(axis), axis, members, order, bool(axes)))
    rows.sort(key=lambda r: r[:2])
    return _add_rows(records, (row for _, _, row in rows))


def _axis_of(name: str, length: int, axes: Mapping[str, Sequence[Any]]) -> str:
    """Return the axis list that a column belongs to: as long as it is, with its own prefix if there are several."""
    fitting = [k for k, v in axes.items() if len(v) == length]
    same = [k for k in fitting if _stem(k) == _stem(name)]
    for candidates in (same, fitting):
        steps = [k for k in candidates if not _bare(k).startswith("epoch")]
        if steps or candidates:
            return (steps or candidates)[0]
    return ""


def _rows(
    axis: Sequence[Any] | None, name: str, members: Mapping[str, Sequence[Any]], order: int, named: bool
) -> Iterable[tuple[float, int, dict[str, Any]]]:
    last = -math.inf
    key = "epoch" if _bare(name).startswith("epoch") else "step"
    for i in range(max(map(len, members.values()))):
        row = {n: c[i] for n, c in members.items() if i < len(c)}
        place: Any = i if axis is None else axis[i]
        value = number(place)
        last = last if value is None or not math.isfinite(value) else max(last, value)
        yield last, order, ({key: place, **row} if named else row)
