"""A small plot in text: curves as braille dots (or ASCII), axes with numbers, onsets marked.

Every cell of a curve is drawn from its lowest to its highest value, so no spike is lost to averaging. The
second curve is drawn with the letter o, which tells it from the first without colour. The range is
logarithmic where the values are positive and span more than two decades.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from trainmon_exporters.plot_scale import GUTTER, Scale, labels
from trainmon_rules.report import Curve

Row = list[tuple[str, str]]
"""A line of output: pieces of text, each with the name of its style ("" for none)."""

_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))  # braille bit by (column, row) in a cell


@dataclass(frozen=True, slots=True)
class Mark:
    """Something at a step: a short label, and the name of its style."""

    step: int
    label: str
    style: str = ""


@dataclass(frozen=True, slots=True)
class Stroke:
    """One curve over its attempts. `dots` draws letters (for the sparse one), else a line."""

    curves: Sequence[Curve]
    style: str
    dots: bool = False


def draw(
    strokes: Sequence[Stroke],
    marks: Sequence[Mark] = (),
    width: int = 80,
    height: int = 11,
    unicode: bool = True,
    axis: str = "step",
) -> list[Row]:
    """Return the plot, a list of rows; empty if there is nothing finite (or not) to show.

    Parameters
    ----------
    strokes : sequence of Stroke
        What to draw, the most important last.
    marks : sequence of Mark
        Onsets: a label above the plot and a dotted line below it.
    width, height : int
        Columns of the whole and rows of the drawing area.
    unicode : bool
        Braille and box characters, else ASCII only.
    axis : str
        Name of the x axis.
    """
    steps = [s for k in strokes for c in k.curves for s in c.steps]
    if not steps:
        return []
    scale = Scale.of([c for k in strokes for c in k.curves])
    frame = _Frame(min(steps), max(steps), scale, max(16, width - GUTTER - 2), max(3, height), unicode)
    for stroke in strokes:
        frame.draw(stroke)
    rows = frame.mark([m for m in marks if frame.holds(m.step)])
    rows += frame.not_finite()
    if any(lo <= hi for k in strokes for c in k.curves for lo, hi in zip(c.low, c.high, strict=True)):
        rows += frame.body()
    rows += frame.x_axis(axis)
    return rows


@dataclass(slots=True)
class _Frame:
    first: int
    last: int
    scale: Scale
    width: int
    height: int
    unicode: bool
    dots: dict[tuple[int, int], str] = field(default_factory=dict)  # fine position → style
    letters: dict[tuple[int, int], str] = field(default_factory=dict)  # (column, row) → style
    bad: dict[int, str] = field(default_factory=dict)  # column → style
    guides: dict[int, str] = field(default_factory=dict)  # column → style

    @property
    def fine(self) -> tuple[int, int]:
        """Dots in a character: across and down."""
        return (2, 4) if self.unicode else (1, 3)

    # ------------------------------------------------------------------ drawing
    def x(self, step: int, across: int = 1) -> int:
        """Return the column of a step, counted in `across` dots a character."""
        span = max(1, self.last - self.first)
        return min(self.width * across - 1, max(0, round((step - self.first) / span * (self.width * across - 1))))

    def holds(self, step: int) -> bool:
        """Whether a step lies in the plot or hardly beside it; what another axis counts does not."""
        slack = (self.last - self.first) // 20 + 1
        return self.first - slack <= step <= self.last + slack

    def y(self, value: float, down: int = 1) -> int:
        """Return the row of a value from the top, counted in `down` dots a character."""
        return round((1 - self.scale.place(value)) * (self.height * down - 1))

    def draw(self, stroke: Stroke) -> None:
        for curve in stroke.curves:
            before: tuple[int, int] | None = None
            across, down = self.fine
            for i, (step, low, mean, high) in enumerate(
                zip(curve.steps, curve.low, curve.mean, curve.high, strict=True)
            ):
                if not low <= high or (i < len(curve.bad) and curve.bad[i]):
                    self.bad[self.x(step)] = stroke.style
                if not low <= high:
                    before = None
                elif stroke.dots:
                    self.letters[self.x(step), self.y(mean)] = stroke.style
                else:
                    here = (self.x(step, across), self.y(mean, down))
                    for y in range(self.y(high, down), self.y(low, down) + 1):
                        self.dots[here[0], y] = stroke.style
                    self._line(before or here, here, stroke.style)
                    before = here

    def _line(self, a: tuple[int, int], b: tuple[int, int], style: str) -> None:
        n = max(abs(b[0] - a[0]), abs(b[1] - a[1]), 1)
        for k in range(n + 1):
            self.dots[round(a[0] + (b[0] - a[0]) * k / n), round(a[1] + (b[1] - a[1]) * k / n)] = style

    # ------------------------------------------------------------------ rows
    def mark(self, marks: Sequence[Mark]) -> list[Row]:
        """Place the labels, in as many rows as they need (three at most), and remember the guides."""
        rows: list[list[tuple[int, Mark]]] = []
        for at, mark in self._merged(marks):
            self.guides.setdefault(at, mark.style)
            column = max(0, min(at, self.width - len(mark.label)))
            for row in rows:
                if row[-1][0] + len(row[-1][1].label) < column:
                    row.append((column, mark))
                    break
            else:
                if len(rows) < 3:
                    rows.append([(column, mark)])
        return [self._labels(row) for row in reversed(rows)]

    def _merged(self, marks: Sequence[Mark]) -> list[tuple[int, Mark]]:
        """Return the marks with their columns; those of one column are one: "1,2"."""
        columns: dict[int, Mark] = {}
        for mark in sorted(marks, key=lambda m: m.step):
            at = self.x(mark.step)
            known = columns.get(at)
            columns[at] = Mark(known.step, f"{known.label},{mark.label}", known.style) if known else mark
        return list(columns.items())

    def _labels(self, placed: list[tuple[int, Mark]]) -> Row:
        out: Row = [(" " * (GUTTER + 2), "")]
        at = 0
        for column, mark in placed:
            out += [(" " * (column - at), ""), (mark.label, mark.style)]
            at = column + len(mark.label)
        return out

    def not_finite(self) -> list[Row]:
        """Return the row that shows where a curve is NaN or infinite, if it is anywhere."""
        if not self.bad:
            return []
        cross = "×" if self.unicode else "x"
        edge = "│" if self.unicode else "|"
        cells: Row = [(cross, "bad") if c in self.bad else self._empty(c) for c in range(self.width)]
        return [[("NaN/inf".rjust(GUTTER) + " " + edge, ""), *_joined(cells)]]

    def _empty(self, column: int) -> tuple[str, str]:
        if column in self.guides:
            return ("┊" if self.unicode else ":", self.guides[column])
        return (" ", "")

    def body(self) -> list[Row]:
        """Return the drawing area with the y axis."""
        labelled = {0: 1.0, self.height - 1: 0.0}
        if self.height >= 5:
            middle = (self.height - 1) // 2
            labelled[middle] = 1 - middle / (self.height - 1)
        texts = dict(zip(labelled, labels([self.scale.at(p) for p in labelled.values()]), strict=True))
        rows: list[Row] = []
        for r in range(self.height):
            text = texts.get(r, "")
            tick = ("┤" if r in labelled else "│") if self.unicode else ("+" if r in labelled else "|")
            rows.append(
                [(text.rjust(GUTTER) + " " + tick, ""), *_joined([self._cell(c, r) for c in range(self.width)])]
            )
        return rows

    def _cell(self, column: int, row: int) -> tuple[str, str]:
        if (column, row) in self.letters:
            return ("o", self.letters[column, row])
        across, down = self.fine
        lit = [(i, j) for i in range(across) for j in range(down) if (column * across + i, row * down + j) in self.dots]
        if not lit:
            return self._empty(column)
        style = self.dots[column * across + lit[0][0], row * down + lit[0][1]]
        if self.unicode:
            return (chr(0x2800 + sum(_DOTS[i][j] for i, j in lit)), style)
        return ("|" if len(lit) > 1 else "'-."[lit[0][1]], style)

    def x_axis(self, axis: str) -> list[Row]:
        """Return the axis line and its numbers: first, middle and last step."""
        ticks = {0: self.first, self.width - 1: self.last}
        middle = (self.width - 1) // 2
        if self.last - self.first >= 2 and self.width >= 40:
            ticks[middle] = self.first + round((self.last - self.first) * middle / (self.width - 1))
        line, tick, corner = ("─", "┬", "└") if self.unicode else ("-", "+", "+")
        pad = " " * (GUTTER + 1)
        ruler = "".join(tick if c in ticks else line for c in range(self.width))
        text = [" "] * (self.width + 1)
        for column, step in sorted(ticks.items()):
            label = str(step)
            start = min(max(0, column + 1 - len(label) // 2), self.width + 1 - len(label))
            if start >= 0 and all(ch == " " for ch in text[max(0, start - 1) : start + len(label) + 1]):
                text[start : start + len(label)] = label
        return [
            [(pad + corner + ruler, "")],
            [(axis.rsplit(" ", maxsplit=1)[-1][:GUTTER].rjust(GUTTER) + " " + "".join(text).rstrip(), "")],
        ]


def _joined(cells: Row) -> Row:
    """Join neighbours of one style, and drop what is blank at the end."""
    out: Row = []
    for text, style in cells:
        if out and out[-1][1] == style:
            out[-1] = (out[-1][0] + text, style)
        else:
            out.append((text, style))
    if out and not out[-1][0].strip():
        out.pop()
    return out
