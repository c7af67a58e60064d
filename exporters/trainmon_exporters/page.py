"""Lines of a terminal report: how wide, which letters, which colours; wrapped with a hanging indent."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TextIO

from rich.console import Console
from rich.text import Text

from trainmon_exporters.escape import clean, plain

PIPED_WIDTH = 100
INDENT, COLUMN = 3, 11  # of labelled paragraphs
NARROW, WIDE = 40, 120  # a report is never set narrower or wider than this
STYLES = {
    "critical": "bold red",
    "warning": "bold yellow",
    "info": "cyan",
    "healthy": "bold green",
    "insufficient-data": "bold",
    "train": "cyan",
    "val": "magenta",
    "bad": "bold red",
    "label": "dim",
    "name": "bold",
    "for": "green",
    "against": "red",
    "copy": "bold cyan",
    "first": "bold",
    "": "",
}


class _Piped(Console):
    """A console that leaves a reader that has gone to its caller: rich would end the program with status 1."""

    def on_broken_pipe(self) -> None:
        """Pass the error on that is being handled."""
        raise  # noqa: PLE0704 - rich calls it while it handles the error


def console_for(stream: TextIO) -> Console:
    """Return a console that writes to `stream` with the width and colours that it has.

    A terminal's own width, COLUMNS where that is set, else 100. NO_COLOR, FORCE_COLOR and TERM=dumb are
    respected (by rich).
    """
    columns = os.environ.get("COLUMNS", "")
    tty = stream.isatty()
    width = int(columns) if columns.isdecimal() and 0 < int(columns) < 10_000 else None if tty else PIPED_WIDTH
    height = None if width is None else 25  # rich takes a width seriously only with a height, where TERM=dumb
    return _Piped(
        file=stream, width=width, height=height, highlight=False, markup=False, emoji=False, legacy_windows=False
    )


def speaks_unicode(console: Console) -> bool:
    """Whether braille and box characters can be shown: a real terminal whose encoding is Unicode."""
    return console.is_terminal and not console.is_dumb_terminal and console.encoding.lower().startswith("utf")


@dataclass(slots=True)
class Page:
    """Prints lines, fields and rows of pieces to a console; every text is cleaned on its way."""

    console: Console
    unicode: bool
    width: int

    @classmethod
    def on(cls, console: Console) -> Page:
        """Return a page as wide as the console, within reason."""
        return cls(console, speaks_unicode(console), min(WIDE, max(NARROW, console.width)))

    def say(self, text: object, style: str = "", limit: int = 0) -> Text:
        """Return a piece of text, made safe and, where need be, ASCII."""
        safe = clean(text, limit)
        return Text(safe if self.unicode else plain(safe), STYLES.get(style, ""))

    def put(self, *pieces: Text, indent: int = 0, hanging: int = 0, spare: Text | None = None) -> None:
        """Print pieces as one paragraph, wrapped; lines after the first are indented by `hanging` more.

        `spare` is added at the end if that takes no further line.
        """
        room = max(12, self.width - indent - hanging)
        lines = list(self._wrap(Text.assemble(*pieces), room, hanging))
        if spare is not None:
            more = list(self._wrap(Text.assemble(*pieces, spare), room, hanging))
            lines = more if len(more) == len(lines) else lines
        for n, line in enumerate(lines):
            self.raw(Text(" " * (indent + (hanging if n else 0))) + line)

    def _wrap(self, whole: Text, room: int, hanging: int) -> Iterable[Text]:
        """Wrap to `room` columns; the first line has `hanging` more."""
        lines = whole.wrap(self.console, room + hanging, overflow="fold")
        yield lines[0] if lines else Text()
        if len(lines) > 1:
            rest = whole[len(lines[0]) :]
            rest = rest[len(rest.plain) - len(rest.plain.lstrip()) :]
            yield from rest.wrap(self.console, room, overflow="fold")

    def field(self, label: str, *pieces: Text, deeper: int = 0, spare: Text | None = None) -> None:
        """Print a labelled paragraph: the label in its column, the text beside it, from its second line on `deeper`."""
        head = Text(label.ljust(COLUMN), STYLES["label"])
        self.put(head, *pieces, indent=INDENT, hanging=COLUMN + deeper, spare=spare)

    def copy(self, text: str, indent: int) -> None:
        """Print something to copy: on a line of its own, never wrapped."""
        self.raw(Text(" " * indent) + self.say(text, "copy"))

    def row(self, pieces: Iterable[tuple[str, str]], indent: int = 0) -> None:
        """Print a row of styled pieces as it is."""
        line = Text(" " * indent)
        for text, style in pieces:
            line.append(text, STYLES.get(style, ""))
        self.raw(line)

    def raw(self, line: Text) -> None:
        """Print one line without wrapping or cropping, and without blanks at its end."""
        line = line.copy()
        line.rstrip()
        self.console.print(line, soft_wrap=True)

    def blank(self) -> None:
        """Print an empty line."""
        self.console.print()
