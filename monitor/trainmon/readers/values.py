"""What a single logged value or name means: numbers, times, nested objects, and names made safe to show."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np

from trainmon_rules.points import FloatArray

INFINITE = 1.797e308  # MLflow and others store infinity as the largest double
MAX_NAME = 256  # characters of a tag
MAX_DEPTH = 8  # levels of nested objects
MEDIA = "media objects"  # W&B's histograms, images and tables
DEEP = "objects nested too deeply"

# Control characters, surrogates, bidi and zero-width controls: a hostile name must not move the cursor of a
# terminal, break an encoder or reorder a line of a report.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
)


def clean_name(name: str) -> str:
    """Return a tag's name with everything that isn't plainly printable replaced by U+FFFD, cut to 256 characters."""
    return _UNSAFE.sub("\ufffd", name[:MAX_NAME])


def number(raw: Any) -> float | None:
    """Return a number, a number in a string, or None if it is neither; ±1.797e308 stands for infinity."""
    if isinstance(raw, str):
        text = raw.strip()
        if not text or text[0] not in "+-.0123456789nNiI" or "_" in text or not text.isascii():
            return None
        try:
            raw = float(text)
        except ValueError:
            return None
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        return None
    try:
        value = float(raw)
    except OverflowError:
        return math.inf if raw > 0 else -math.inf
    return math.copysign(math.inf, value) if abs(value) >= INFINITE else value


def whole(raw: Any, limit: int = 2**62) -> int | None:
    """Return a step: the integer part of a finite number below `limit`, exact for integers; else None."""
    if type(raw) is not int:
        if isinstance(raw, str):
            try:
                raw = int(raw) if len(raw) < 32 and raw.isascii() and "_" not in raw else number(raw)
            except ValueError:
                raw = number(raw)
        else:
            raw = number(raw)
        if raw is None or not math.isfinite(raw):
            return None
        raw = int(raw)
    return raw if -limit < raw < limit else None


def is_whole(raw: Any) -> bool:
    """Whether the value is a finite number without a fraction."""
    value = number(raw)
    return value is not None and math.isfinite(value) and value == math.floor(value)


def numbers(column: tuple[Any, ...], skipped: Counter[str]) -> tuple[FloatArray, list[int] | None]:
    """Convert one column of values; the same as `number` for each, at the speed of C where all are alike.

    Parameters
    ----------
    column : tuple
        Values of one key in consecutive records, of any type.
    skipped : Counter
        Counts what is no number, by kind.

    Returns
    -------
    values : float64 array, shape (m,)
    kept : list of int or None
        Index of each value in `column`; None if all were kept.
    """
    kinds = set(map(type, column))
    values: FloatArray | None = None
    try:
        if kinds <= {float, int}:
            values = np.array(column, np.float64)
        elif kinds == {str}:
            joined = "".join(column)
            if joined.isascii() and "_" not in joined:
                values = np.array(list(map(float, column)), np.float64)
    except (ValueError, OverflowError):
        values = None
    if values is not None:
        big = np.abs(values) >= INFINITE
        if big.any():
            values[big] = np.copysign(np.inf, values[big])
        return values, None
    out, kept = [], []
    for i, raw in enumerate(column):
        value = number(raw)
        if value is None:
            skipped[kind_of(raw)] += 1
        else:
            out.append(value)
            kept.append(i)
    return np.array(out, np.float64), kept


def kind_of(raw: Any) -> str:
    """Name what a value is, for the count of what was passed over."""
    if raw is None:
        return "nulls"
    if isinstance(raw, bool):
        return "booleans"
    return "lists" if isinstance(raw, list | tuple) else "text values"


def flatten(
    record: Mapping[str, Any], prefix: str = "", depth: int = MAX_DEPTH, skipped: Counter[str] | None = None
) -> dict[str, Any]:
    """Return nested objects as one level, keys joined with "/".

    Objects deeper than `depth` and W&B's media objects (those with a `_type`) hold no metrics and are left
    out; `skipped` counts them.
    """
    out: dict[str, Any] = {}
    for key, value in record.items():
        if not isinstance(value, Mapping):
            out[f"{prefix}{key}"] = value
        elif isinstance(value.get("_type"), str):
            if skipped is not None:
                skipped[MEDIA] += 1
        elif depth > 0:
            out.update(flatten(value, f"{prefix}{key}/", depth - 1, skipped))
        elif skipped is not None:
            skipped[DEEP] += 1
    return out


def settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the plain values among settings (text, numbers, booleans), under clean names."""
    return {clean_name(k): v for k, v in values.items() if isinstance(v, str | int | float)}


def wall_time(raw: Any) -> float | None:
    """Return a time stamp as seconds since the epoch: a number in s, ms, µs or ns, or an ISO-like text."""
    value = number(raw)
    if value is None:
        return parse_time(raw) if isinstance(raw, str) else None
    for upper, unit in ((1e11, 1.0), (1e14, 1e3), (1e17, 1e6), (1e20, 1e9)):
        if value / unit > 1e8 and value < upper:
            return value / unit
    return None


def parse_time(text: str) -> float | None:
    """Return an ISO-like time stamp as seconds since the epoch (UTC where no zone is given), else None."""
    if not 10 <= len(text) <= 40:
        return None
    try:
        when = datetime.fromisoformat(text.strip().replace(",", ".").replace("/", "-"))
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def find_key(values: Iterable[str], names: tuple[str, ...]) -> str | None:
    """Return the first of `names` among the keys, however it is capitalised."""
    known = values if isinstance(values, Mapping) else set(values)
    for name in names:
        if name in known:
            return name
    lower = {k.lower(): k for k in reversed(list(values)) if k != k.lower()}
    return next((lower[name] for name in names if name in lower), None) if lower else None
