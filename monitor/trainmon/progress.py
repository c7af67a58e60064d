"""A progress bar for long work, on standard error, and only where a person watches it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from trainmon.replaying import Progress

LONG = 20 << 20  # bytes to read, from which on a bar is worth showing


class Bar:
    """Adds up what was read of each source and moves a bar; compressed sources may read more than their size.

    Parameters
    ----------
    total : int
        Bytes to read.
    console : Console
        Where to draw it.
    """

    def __init__(self, total: int, console: Console) -> None:
        from rich import progress  # noqa: PLC0415 - only for long reads

        self.total = total
        self.done = 0
        self._of: dict[str, int] = {}
        self._bar = progress.Progress(
            progress.TextColumn("reading"),
            progress.BarColumn(),
            progress.DownloadColumn(),
            progress.TimeRemainingColumn(),
            console=console,
            transient=True,
        )
        self._task = self._bar.add_task("reading", total=total)

    def __enter__(self) -> Bar:
        self._bar.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._bar.stop()

    def __call__(self, source: str, done: int) -> None:
        """Take that `done` bytes of a source were read; fewer than before means another source of that name."""
        before = self._of.get(source, 0)
        self._of[source] = done
        self.done = min(self.total, self.done + (done - before if done >= before else done))
        self._bar.update(self._task, completed=self.done)


@contextmanager
def bar(total: int) -> Iterator[Progress | None]:
    """Show a bar while the body runs, if there is much to read and standard error is a terminal."""
    if total < LONG or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415

    with Bar(total, Console(stderr=True)) as shown:
        yield shown


@contextmanager
def counting(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """Show how many of so many are done while the body runs, if standard error is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich import progress  # noqa: PLC0415 - only where it is seen
    from rich.console import Console  # noqa: PLC0415

    columns = (progress.TextColumn(what), progress.BarColumn(), progress.MofNCompleteColumn())
    with progress.Progress(
        *columns, progress.TimeRemainingColumn(), console=Console(stderr=True), transient=True
    ) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
