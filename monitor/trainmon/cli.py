"""The command line. Heavy imports happen inside the commands, so that `trainmon --help` is quick."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from trainmon import __version__
from trainmon_rules.errors import TrainmonError

if TYPE_CHECKING:
    from trainmon_rules.report import Report, SourceError

LEVELS = ("info", "warning", "critical")


class _Group(click.Group):
    """Turns our own errors into one line and status 2."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except TrainmonError as error:
            click.echo(f"trainmon: {error}", err=True)
            ctx.exit(2)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="trainmon")
def main() -> None:
    """Read the logs of training runs; say what is going wrong, since which step, why, and what to do first."""


@main.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--format",
    "fmt",
    type=click.Choice(["text", "json", "jsonl", "markdown"]),
    default="text",
    show_default=True,
)
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="Write the report to this file.")
@click.option(
    "--fail-on",
    type=click.Choice(LEVELS),
    help="Exit with 1 if an incident of this level or above was found.",
)
@click.option("--config", "config", metavar="FILE", help="Config file.  [default: trainmon.toml, if there is one]")
@click.option("--set", "answers", multiple=True, metavar="KEY=VALUE", help="Tell what the log can't; may be repeated.")
def replay(
    paths: tuple[str, ...],
    fmt: str,
    output: str | None,
    fail_on: str | None,
    config: str | None,
    answers: tuple[str, ...],
) -> None:
    """Replay finished or growing logs and print what went wrong.

    PATH is a file, a directory, or - for standard input.
    """
    from trainmon.config import load_settings  # noqa: PLC0415
    from trainmon.replaying import replay as run  # noqa: PLC0415

    report = run(*paths, settings=load_settings(config, answers))
    _write(report, fmt, output)
    _complain(report.errors)
    if any(e.fatal for e in report.errors):
        sys.exit(2)
    worst = max((LEVELS.index(i.severity) for r in report.runs for i in r.incidents), default=-1)
    if fail_on is not None and worst >= LEVELS.index(fail_on):
        sys.exit(1)


@main.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--format", "fmt", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--config", "config", metavar="FILE", help="Config file.  [default: trainmon.toml, if there is one]")
def inspect(paths: tuple[str, ...], fmt: str, config: str | None) -> None:
    """Show what logs hold and how they are understood: runs, tags and their roles, what is blind.

    PATH is a file, a directory, or - for standard input.
    """
    from trainmon.config import load_settings  # noqa: PLC0415
    from trainmon.inspecting import inspect as run  # noqa: PLC0415
    from trainmon_exporters.inspect_table import print_inspection, render_inspect_json  # noqa: PLC0415

    found = run(*paths, settings=load_settings(config))
    if fmt == "json":
        click.echo(render_inspect_json(found), nl=False)
    else:
        from rich.console import Console  # noqa: PLC0415

        print_inspection(found, Console())
    _complain(found.errors)
    if any(e.fatal for e in found.errors):
        sys.exit(2)


def _complain(errors: tuple[SourceError, ...]) -> None:
    for error in errors:
        where = "" if error.line is None else f":{error.line}"
        click.echo(f"trainmon: {error.source}{where}: {error.error}", err=True)


def _write(report: Report, fmt: str, output: str | None) -> None:
    from trainmon_exporters.json_report import render_json  # noqa: PLC0415

    if fmt == "text":
        from rich.console import Console  # noqa: PLC0415

        from trainmon_exporters.terminal import print_report  # noqa: PLC0415

        print_report(report, Console())
    else:
        click.echo(render_json(report), nl=False)
