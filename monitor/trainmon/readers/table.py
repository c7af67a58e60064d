"""Tables: CSV, TSV, semicolons; a header, then a row a report.

Covers Lightning's sparse metrics.csv (an empty cell is no value), Keras' CSVLogger (no step column: the row is
the step), Ultralytics (padded header and cells), TensorBoard's CSV export, rows shorter or longer than the
header, and tables without a header (columns `col0`, `col1`, …). A header that comes again, or a git conflict
marker, ends a run.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import ClassVar

from trainmon.readers.lines import BOM
from trainmon.readers.linewise import CONFLICT, LinewiseReader
from trainmon.readers.records import Records
from trainmon.readers.values import flatten, number
from trainmon_rules.points import Batch

DELIMITERS = ",\t;|"
MAX_QUOTED = 1 << 16  # characters, and lines, of one row with line breaks inside of quotes
MAX_QUOTED_LINES = 8
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")
_EXPORT = ("wall time", "step", "value")  # TensorBoard's "download CSV"

Row = tuple[str, ...]


def find_delimiter(line: str) -> str:
    """Return the delimiter that a header or row uses most, outside of quotes; "" if it has none."""
    bare = re.sub(r'"[^"]*"', "", line)
    best = max(DELIMITERS, key=bare.count)
    return best if best in bare else ""


def split_row(line: str, delimiter: str) -> Row:
    """Return the stripped cells of a row; ValueError if its quotes can't be read."""
    if not delimiter:
        return (line.strip().strip('"'),)
    if '"' not in line:
        return tuple(map(str.strip, line.split(delimiter)))
    try:
        return tuple(map(str.strip, next(csv.reader([line], delimiter=delimiter, skipinitialspace=True))))
    except (csv.Error, StopIteration) as error:
        raise ValueError(str(error)) from None


def is_row_of_numbers(cells: Row) -> bool:
    """Whether there are cells and each of them is a number or empty."""
    filled = [c for c in cells if c]
    return bool(filled) and all(number(c) is not None for c in filled)


class TableReader(LinewiseReader):
    """Reads a table as it comes.

    Parameters
    ----------
    tag : str
        Name for the column `Value` of a TensorBoard CSV export, whose metric is named by the file only.
    """

    format: ClassVar[str] = "table"

    def __init__(self, tag: str = "") -> None:
        self.tag = tag
        super().__init__(Records(settings_first=False))
        self.delimiter = ""
        self.header: Row = ()
        self.width = 0  # cells of the row before
        self._open: list[tuple[str, int, int]] = []  # lines of a row whose quote isn't closed yet

    def finish(self) -> Batch:
        """Return the last row and what was held back; a row cut in its middle is counted and not used."""
        self._read(self.lines.finish(), cut=True)
        while self._open:
            self._give_up_quote()
        return self.records.finish()

    # ------------------------------------------------------------------ lines
    def _read(self, lines: Iterable[tuple[int, int, bytes]], cut: bool = False) -> None:
        for at, offset, raw in lines:
            if CONFLICT.match(raw.rstrip()):
                self._conflict(at)
                continue
            line = (raw.removeprefix(BOM) if at == 1 else raw).decode("utf-8", "replace").strip("\0")
            self._take(line, at, offset, cut)

    def _take(self, line: str, at: int, offset: int, cut: bool = False) -> None:
        """Read a line, joined with those before it whose quote isn't closed."""
        if self._open or ('"' in line and line.count('"') % 2):
            self._open.append((line, at, offset))
            whole = "\n".join(text for text, _, _ in self._open)
            if whole.count('"') % 2:
                if len(self._open) > MAX_QUOTED_LINES or len(whole) > MAX_QUOTED:
                    self._give_up_quote()
                return
            _, at, offset = self._open[0]
            line, self._open = whole, []
        if line.strip():
            self._line(line, at, offset, cut)

    def _give_up_quote(self) -> None:
        """The first open line never closes its quote: report it, and read those after it on their own."""
        (_, at, offset), *rest = self._open
        self._open = []
        self._bad("a quote is never closed; the row was skipped", at, offset)
        for line, later, start in rest:
            self._take(line, later, start)

    def _line(self, line: str, at: int, offset: int, cut: bool) -> None:
        if not self.header and line.lstrip().startswith("#"):
            self._comment(line.lstrip().lstrip("#"))
            return
        if not self.header:
            self.delimiter = find_delimiter(line)
        try:
            cells = split_row(line, self.delimiter)
        except ValueError as error:
            self._bad(f"{error}; the row was skipped", at, offset)
            return
        if not self.header:
            self._first(cells)
        elif cut and len(cells) < self.width:  # its last number may have lost its end
            self.records.skipped["cut last line"] += 1
        elif len(cells) == 1 and len(self.header) > 1 and number(cells[0]) is None:
            self._bad("is no row of the table; it was skipped", at, offset)
        else:
            self._row(cells)
            self.width = len(cells)

    def _first(self, cells: Row) -> None:
        if is_row_of_numbers(cells):
            self.header = tuple(f"col{i}" for i in range(len(cells)))
            self._row(cells)
        else:
            self._set_header(cells)

    def _set_header(self, cells: Row) -> None:
        names = tuple(c or f"col{i}" for i, c in enumerate(cells))
        if self.tag and tuple(n.lower() for n in names) == _EXPORT:
            names = (*names[:2], self.tag)
        seen: Counter[str] = Counter()
        unique = []
        for name in names:
            seen[name] += 1
            unique.append(name if seen[name] == 1 else f"{name}.{seen[name] - 1}")  # as pandas does
        self.header = tuple(unique)
        self.width = len(unique)

    def _row(self, cells: Row) -> None:
        if self._is_header(cells):
            self.records.boundary("the header is printed again")
            self._set_header(cells)
            return
        header = self.header
        if len(cells) != len(header):
            if len(cells) > len(header):
                extra = sum(1 for c in cells[len(header) :] if c)
                if extra:
                    self.records.skipped["cells beyond the header"] += extra
                cells = cells[: len(header)]
            else:
                header = header[: len(cells)]
        if self.delimiter == ";":
            cells = tuple(c.replace(",", ".") if "," in c and _DECIMAL_COMMA.fullmatch(c) else c for c in cells)
        if "" in cells:
            kept = [i for i, c in enumerate(cells) if c]
            header, cells = tuple(header[i] for i in kept), tuple(cells[i] for i in kept)
        if cells:
            self.records.add_row(header, cells)

    def _is_header(self, cells: Row) -> bool:
        """Whether a row names columns: it has no number, and at least half of it stands in the header."""
        first = cells[0]
        if first and first[0] in "+-.0123456789":
            return False
        known = sum(c in self.header for c in cells if c)
        return known > 0 and 2 * known >= len(cells) and all(number(c) is None for c in cells if c)

    # ------------------------------------------------------------------ what is no row
    def _comment(self, text: str) -> None:
        """A comment before the header; Stable-Baselines3's monitor.csv has its settings there as JSON."""
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            return
        if isinstance(found, Mapping):
            self.records.params(flatten(found))

    def _bad(self, error: str, at: int, offset: int) -> None:
        self.records.skipped["corrupt records"] += 1
        self.records.problem(error, at, offset)
