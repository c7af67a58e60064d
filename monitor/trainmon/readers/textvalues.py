"""Numbers and columns as people print them."""

from __future__ import annotations

import re

_UNIT = re.compile(
    r"(?P<a>[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?(?:[eE][-+]?\d+)?)"
    r"(?:/(?P<b>\d+)|\s?(?:%|[A-Za-zµ][A-Za-zµ/]{0,11}))?(?:\([^)]{0,32}\))?"
)
_NOT_FINITE = re.compile(r"([-+]?(?:nan|inf))\.0", re.IGNORECASE)
_CELL = re.compile(r"\S+(?: \S+)*")


def to_number(text: str) -> float | None:
    """Return the number that a printed value means, or None.

    "12.5ms", "34%", "1,234" and "12.3GiB(13.1%)" are 12.5, 34, 1234 and 12.3; "9820/10000" is 0.982. Units are
    dropped. A nan with a unit ("nanms") is no measurement but a division by zero, and None. "nan.0" is what
    Lightning's progress bar makes of NaN.
    """
    try:
        value = float(text)
    except ValueError:
        pass
    else:
        return None if "_" in text else value
    text = text.strip().rstrip(",").strip("*")
    if (m := _UNIT.fullmatch(text)) is not None:
        a = float(m["a"].replace(",", ""))
        if m["b"] is None:
            return a
        return a / float(m["b"]) if float(m["b"]) else None
    if (m := _NOT_FINITE.fullmatch(text)) is not None:
        return float(m[1])
    try:
        return float(text)
    except ValueError:
        return None


def column_starts(header: str) -> list[tuple[int, str]]:
    """Return the position and name of each column of a header line."""
    return [(m.start(), m[0]) for m in _CELL.finditer(header)]


def cells(row: str, columns: list[tuple[int, str]]) -> dict[str, str]:
    """Return a row of a table by column name, without the first two columns (epoch and iteration).

    A cell belongs to the last column that begins at or before it, which is how Chainer pads them; an empty cell
    is simply missing. Without a header the columns are named by their place: col2, col3, ….
    """
    out: dict[str, str] = {}
    for i, m in enumerate(re.finditer(r"\S+", row)):
        held = next((c for start, c in reversed(columns) if start <= m.start()), "")
        name = held if columns else f"col{i}"
        if i >= 2 and name:
            out[name] = m[0]
    return out
