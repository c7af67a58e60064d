"""The command line. Heavy imports happen inside the commands, so that `trainmon --help` is quick."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from trainmon import __version__
from trainmon.completing import answers, names, scenarios
from trainmon.guard import GuardedGroup
from trainmon_exporters import FORMATS

LEVELS = ("info", "warning", "critical")
SHELLS = ("bash", "zsh", "fish")
HALVES = ("tuning", "test")
LOGS = click.Path(allow_dash=True, readable=False)
Command = TypeVar("Command", bound=Callable[..., Any])


def option_config(command: Command) -> Command:
    """Add `--config` and `--rules`: what changes the rules."""
    rules = click.option(
        "--rules", metavar="FILE", type=click.Path(), help="Rule file: rules changed, added, disabled."
    )
    config = click.option(
        "--config", metavar="FILE", type=click.Path(), help="Config file.  [default: trainmon.toml, if there is one]"
    )
    return config(rules(command))


@click.group(cls=GuardedGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="trainmon")
def main() -> None:
    """Read the logs of training runs; say what is going wrong, since which step, why, and what to do first."""


@main.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=LOGS)
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
@click.option("--against", metavar="PATH", type=LOGS, help="Another run: tell where the two part.")
@option_config
@click.option(
    "--set",
    "given",
    multiple=True,
    metavar="KEY=VALUE",
    help="Tell what the log can't; may be repeated. `trainmon explain settings` lists the keys.",
    shell_complete=answers,
)
def replay(
    paths: tuple[str, ...],
    fmt: str,
    output: Path | None,
    fail_on: str | None,
    against: str | None,
    config: str | None,
    rules: str | None,
    given: tuple[str, ...],
) -> None:
    """Replay finished or growing logs and print what went wrong.

    PATH is a file, a directory, or - for standard input.

    Exit status: 0 replayed; 1 with --fail-on when such an incident was found; 2 when an argument or a path could
    not be used (the others are still replayed).
    """
    from trainmon.config import files_read, load_settings  # noqa: PLC0415
    from trainmon.guard import complain_of, quietly  # noqa: PLC0415
    from trainmon.progress import bar  # noqa: PLC0415
    from trainmon.replaying import files_of, find, replay_found, size_of  # noqa: PLC0415
    from trainmon.speaking import exit_status, speak, writable  # noqa: PLC0415

    settings = load_settings(config, given, rules)
    writable(output)
    found, errors = find(paths, settings)
    others, more = find([against] if against is not None else [], settings)
    if output is not None:
        given_paths = [Path(p) for p in (*paths, against) if p]
        writable(output, [*given_paths, *files_of([*found, *others]), *files_read(config, rules)])
    if against is None:
        with bar(size_of(found)) as progress:
            report = replay_found(found, errors, settings, progress)
    else:
        from trainmon.comparing import replay_against  # noqa: PLC0415

        with bar(size_of([*found, *others])) as progress:
            report = replay_against(found, others, [*errors, *more], settings, progress)
    quietly(lambda: speak(report, fmt, output))
    complain_of(report.errors)
    click.get_current_context().exit(exit_status(report, fail_on))


@main.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=LOGS)
@click.option("--format", "fmt", type=click.Choice(["text", "json"]), default="text", show_default=True)
@option_config
def inspect(paths: tuple[str, ...], fmt: str, config: str | None, rules: str | None) -> None:
    """Show what logs hold and how they are understood: runs, tags and their roles, what is blind.

    PATH is a file, a directory, or - for standard input.
    """
    from trainmon.config import load_settings  # noqa: PLC0415
    from trainmon.guard import complain_of, quietly  # noqa: PLC0415
    from trainmon.inspecting import inspect as run  # noqa: PLC0415
    from trainmon.speaking import show  # noqa: PLC0415

    found = run(*paths, settings=load_settings(config, (), rules))
    quietly(lambda: show(found, fmt))
    complain_of(found.errors)
    click.get_current_context().exit(2 if any(e.fatal for e in found.errors) else 0)


@main.command()
@click.argument("name", required=False, shell_complete=names)
@option_config
def explain(name: str | None, config: str | None, rules: str | None) -> None:
    """Print the manual page of a sheet, symptom, rule or cause, or of the settings; without NAME, list them.

    The beginning of a sheet's name will do.
    """
    from trainmon.config import load_settings  # noqa: PLC0415
    from trainmon.guard import quietly  # noqa: PLC0415
    from trainmon.speaking import show_manual  # noqa: PLC0415

    settings = load_settings(config, (), rules)
    quietly(lambda: show_manual(name, settings))


@main.group()
def rules() -> None:
    """List the rules; check a file that changes them."""


@rules.command("list")
@click.option("--format", "fmt", type=click.Choice(["text", "json"]), default="text", show_default=True)
@option_config
def list_rules(fmt: str, config: str | None, rules: str | None) -> None:
    """List the rules, and what a file changed about them."""
    from trainmon.config import load_settings  # noqa: PLC0415
    from trainmon.guard import quietly  # noqa: PLC0415
    from trainmon.speaking import show_rules  # noqa: PLC0415

    settings = load_settings(config, (), rules)
    quietly(lambda: show_rules(settings, fmt))


@rules.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path())
def check(files: tuple[str, ...]) -> None:
    """Check rule files, or config files (.toml).

    Prints all problems of a file, a line each, or how many rules it changes.

    Exit status: 0 if there is no problem, else 2.
    """
    from trainmon.checking import check_files  # noqa: PLC0415
    from trainmon.guard import complain_all, quietly  # noqa: PLC0415

    good, problems = check_files(files)
    quietly(lambda: click.echo("\n".join(good)) if good else None)
    complain_all(problems)
    click.get_current_context().exit(2 if problems else 0)


@main.command()
@click.argument("text", nargs=-1, required=True, metavar="TEXT...")
@click.option("--format", "fmt", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option(
    "--set",
    "given",
    multiple=True,
    metavar="KEY=VALUE",
    help="Answer a question; may be repeated.",
    shell_complete=answers,
)
def route(text: tuple[str, ...], fmt: str, given: tuple[str, ...]) -> None:
    """Say what to read, or ask, about a problem told in words, without a log.

    \b
    trainmon route "my loss is NaN"
    trainmon route "training is slow" --set gpu_utilization=35

    Exit status: 0, also where nothing was recognised and the closest symptoms are listed; 2 for an empty TEXT.
    """  # noqa: D301 - click reads the backspace
    from trainmon.answers import parse_options  # noqa: PLC0415
    from trainmon.guard import quietly  # noqa: PLC0415
    from trainmon.speaking import show_route  # noqa: PLC0415
    from trainmon_rules.routing import route as routed  # noqa: PLC0415

    found = routed(" ".join(text), parse_options(given))
    quietly(lambda: show_route(found, fmt))


@main.command()
@click.argument("chosen", nargs=-1, metavar="[SCENARIO...]", shell_complete=scenarios)
@click.option("--list", "listing", is_flag=True, help="List the scenarios.")
@click.option("--all", "every", is_flag=True, help="Train all of them.")
@click.option("--half", type=click.Choice(HALVES), help="With --list and --all: only this half.")
@click.option("--out", metavar="DIR", type=click.Path(path_type=Path), help="Where the runs go, as NAME/seed-N.")
@click.option("--seeds", type=click.IntRange(1), default=1, show_default=True, help="Runs a scenario.")
@click.option(
    "--jobs", type=click.IntRange(1), help="Processes at a time, one thread each.  [default: one a processor]"
)
def simulate(
    chosen: tuple[str, ...],
    listing: bool,
    every: bool,
    half: str | None,
    out: Path | None,
    seeds: int,
    jobs: int | None,
) -> None:
    """Train small runs with a known fault, and healthy ones; write their logs with the truth beside them.

    \b
    trainmon simulate --list
    trainmon simulate rate-raised-text --out runs
    trainmon simulate --all --half tuning --out runs --seeds 3

    Needs torch, but for --list: pip install 'trainmon[reference]'.

    Exit status: 0; 2 when an argument could not be used or a run failed (the others are still made).
    """  # noqa: D301 - click reads the backspace
    from trainmon.guard import complain_all, quietly  # noqa: PLC0415
    from trainmon.simulating import choose, simulate_all  # noqa: PLC0415

    if bool(chosen) + listing + every != 1:
        raise click.UsageError("give names of scenarios, or --all, or --list")
    if half and chosen:
        raise click.UsageError("--half goes with --list and --all")
    if out is None and not listing:
        raise click.UsageError("--out is missing: the folder that the runs go to")
    wanted = choose(chosen, half)
    if out is None or listing:
        from trainmon.speaking import show_scenarios  # noqa: PLC0415

        quietly(lambda: show_scenarios(wanted))
        return
    written, problems = simulate_all(wanted, range(seeds), out, jobs)
    quietly(lambda: click.echo(f"{written} of {len(wanted) * seeds} runs written to {out}"))
    complain_all(problems)
    click.get_current_context().exit(2 if problems else 0)


@main.command()
@click.argument("folder", metavar="DIR", type=click.Path(readable=False))
@click.option("--format", "fmt", type=click.Choice(["text", "json", "markdown"]), default="text", show_default=True)
@click.option(
    "--half",
    type=click.Choice(["tuning", "test", "all"]),
    default="test",
    show_default=True,
    help="Which scenario families; thresholds may only be chosen on the tuning half.",
)
@option_config
def evaluate(folder: str, fmt: str, half: str, config: str | None, rules: str | None) -> None:
    """Score trainmon, and its peers, on traces whose truth is known.

    DIR holds traces: folders with a log and its truth.json, as `trainmon simulate` writes them.

    Exit status: 0 scored; 2 when there was nothing to score, or a trace could not be used (the others still were).
    """
    from trainmon.config import load_settings  # noqa: PLC0415
    from trainmon.evaluating import evaluate as run  # noqa: PLC0415
    from trainmon.guard import complain_of, quietly  # noqa: PLC0415
    from trainmon.progress import counting  # noqa: PLC0415
    from trainmon.speaking import show_evaluation  # noqa: PLC0415

    settings = load_settings(config, (), rules)
    with counting("traces") as progress:
        found = run(folder, half, settings, progress)
    quietly(lambda: show_evaluation(found, fmt))
    complain_of(found.errors)
    click.get_current_context().exit(2 if found.errors else 0)


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
