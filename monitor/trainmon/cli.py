"""The command line. Heavy imports happen inside the commands, so that `trainmon --help` is quick."""

from __future__ import annotations

from pathlib import Path

import click

from trainmon import __version__
from trainmon.guard import GuardedGroup
from trainmon_exporters import FORMATS

LEVELS = ("info", "warning", "critical")
SHELLS = ("bash", "zsh", "fish")


@click.group(cls=GuardedGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="trainmon")
def main() -> None:
    """Read the logs of training runs; say what is going wrong, since which step, why, and what to do first."""


@main.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(allow_dash=True, readable=False))
@click.option("--format", "fmt", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, readable=False),
    metavar="FILE",
    help="Write the report to this file.",
)
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
    output: Path | None,
    fail_on: str | None,
    config: str | None,
    answers: tuple[str, ...],
) -> None:
    """Replay finished or growing logs and print what went wrong.

    PATH is a file, a directory, or - for standard input.

    Exit status: 0 replayed; 1 with --fail-on when such an incident was found; 2 when an argument or a path could
    not be used (the others are still replayed).
    """
    from trainmon.config import load_settings  # noqa: PLC0415
    from trainmon.guard import complain_of, quietly  # noqa: PLC0415
    from trainmon.progress import bar  # noqa: PLC0415
    from trainmon.replaying import find, replay_found, size_of  # noqa: PLC0415
    from trainmon.speaking import exit_status, speak, writable  # noqa: PLC0415

    settings = load_settings(config, answers)
    writable(output)
    found, errors = find(paths, settings)
    with bar(size_of(found)) as progress:
        report = replay_found(found, errors, settings, progress)
    quietly(lambda: speak(report, fmt, output))
    complain_of(report.errors)
    click.get_current_context().exit(exit_status(report, fail_on))


@main.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(allow_dash=True, readable=False))
@click.option("--format", "fmt", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--config", "config", metavar="FILE", help="Config file.  [default: trainmon.toml, if there is one]")
def inspect(paths: tuple[str, ...], fmt: str, config: str | None) -> None:
    """Show what logs hold and how they are understood: runs, tags and their roles, what is blind.

    PATH is a file, a directory, or - for standard input.
    """
    from trainmon.config import load_settings  # noqa: PLC0415
    from trainmon.guard import complain_of, quietly  # noqa: PLC0415
    from trainmon.inspecting import inspect as run  # noqa: PLC0415
    from trainmon.speaking import show  # noqa: PLC0415

    found = run(*paths, settings=load_settings(config))
    quietly(lambda: show(found, fmt))
    complain_of(found.errors)
    click.get_current_context().exit(2 if any(e.fatal for e in found.errors) else 0)


@main.command()
@click.argument("name", required=False)
@click.option("--config", "config", metavar="FILE", help="Config file.  [default: trainmon.toml, if there is one]")
def explain(name: str | None, config: str | None) -> None:
    """Print the manual page of a sheet, symptom, rule or cause; without NAME, list them.

    The beginning of a sheet's name will do.
    """
    from trainmon.config import load_settings  # noqa: PLC0415
    from trainmon.guard import quietly  # noqa: PLC0415
    from trainmon.speaking import show_manual  # noqa: PLC0415

    settings = load_settings(config)
    quietly(lambda: show_manual(name, settings.rules))


@main.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the completion script for a shell.

    \b
    bash:  trainmon completion bash > ~/.local/share/bash-completion/completions/trainmon
    zsh:   trainmon completion zsh > "${fpath[1]}/_trainmon"
    fish:  trainmon completion fish > ~/.config/fish/completions/trainmon.fish
    """  # noqa: D301 - click reads the backspace
    from trainmon.speaking import completion_script  # noqa: PLC0415

    click.echo(completion_script(main, shell), nl=False)
