"""What the command line does when something goes wrong: one line, the right status, never a traceback.

Status 2 for bad arguments, config, input or output; 130 after Ctrl-C; 70 for a fault of ours, whose traceback
`TRAINMON_DEBUG=1` shows. A reader of our output that goes away (`| head`) is no error.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click

from trainmon_rules.debug import debugging
from trainmon_rules.errors import BadConfig, BadOutput, TrainmonError

if TYPE_CHECKING:
    from trainmon_rules.report import SourceError

SHOWN = 20  # errors printed; the report lists all
INTERRUPTED = 130
FAULT = 70  # EX_SOFTWARE of sysexits.h

T = TypeVar("T")


class GuardedGroup(click.Group):
    """A group whose commands end with one line and a status, whatever happens in them."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; turn what it raises into a line and a status."""
        try:
            result = super().invoke(ctx)
            quietly(lambda: None)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except TrainmonError as error:
            complain_all(error.problems if isinstance(error, BadConfig) else [str(error)])
            ctx.exit(2)
        except KeyboardInterrupt:
            complain("interrupted")
            ctx.exit(INTERRUPTED)
        except BrokenPipeError:
            abandon(sys.stdout)
            ctx.exit(0)
        except Exception as error:  # noqa: BLE001 - the last resort: said in a line, with a status of its own
            if debugging():
                traceback.print_exc()
            what = f"{type(error).__name__}: {error}"
            complain(f"internal error: {what}; please report it, with the traceback that TRAINMON_DEBUG=1 shows")
            ctx.exit(FAULT)
        return result


def complain(text: str) -> None:
    """Print one line to standard error, whatever the text holds."""
    from trainmon_exporters.escape import clean  # noqa: PLC0415 - only when something is wrong

    try:
        click.echo(f"trainmon: {clean(text)}", err=True)
    except OSError:  # nobody can be told; the status still says it
        abandon(sys.stderr)


def complain_of(errors: Sequence[SourceError]) -> None:
    """Print a line an error, the fatal ones first, and after `SHOWN` of them how many more there are."""
    lines = []
    for e in sorted(errors, key=lambda e: not e.fatal):
        where = f":{e.line}" if e.line is not None else f" at byte {e.offset}" if e.offset is not None else ""
        lines.append(f"{e.source}{where}: {e.error}")
    complain_all(lines, "; --format json lists all")


def complain_all(lines: Sequence[str], where: str = "") -> None:
    """Print the first `SHOWN` lines, and how many more there are; `where` says where they stand."""
    for line in lines[:SHOWN]:
        complain(line)
    if len(lines) > SHOWN:
        complain(f"{len(lines) - SHOWN:,} more{where}")


def quietly(write: Callable[[], T]) -> T | None:
    """Write to standard output; if nobody reads it any more, drop the rest and go on.

    Raises
    ------
    BadOutput
        If it can't be written to for another reason, such as a full disk.
    """
    try:
        result = write()
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        abandon(sys.stdout)
        return None
    except OSError as error:
        abandon(sys.stdout)
        raise BadOutput("standard output", (error.strerror or str(error)).lower()) from None
    return result


def abandon(stream: TextIO) -> None:
    """Let what is still buffered for a reader that went away vanish, so that the exit is silent."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)
