"""Where a command's report goes: to the terminal, to standard output, to a file; and with which status it ends."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, TypeGuard

import click

from trainmon_exporters import render
from trainmon_exporters.files import check_no_input, check_writable, write_whole
from trainmon_rules.errors import BadConfig, BadOutput
from trainmon_rules.findings import Severity
from trainmon_rules.report import Report

if TYPE_CHECKING:
    from trainmon_reference.scenarios import Scenario
    from trainmon_rules.evaluation import Evaluation
    from trainmon_rules.inspection import Inspection
    from trainmon_rules.routing import Routed
    from trainmon_rules.state import Settings


def writable(output: Path | None, inputs: Iterable[Path | int] = ()) -> None:
    """Raise BadOutput if the file can't be written to, or is an input: what a user reads is never written over."""
    if _is_file(output):
        check_writable(output)
        check_no_input(output, inputs)


def _is_file(output: Path | None) -> TypeGuard[Path]:
    return output is not None and str(output) != "-"


def speak(report: Report, fmt: str, output: Path | None = None) -> None:
    """Write a report to a file, or else to standard output; on a terminal, text has its width and colours."""
    if _is_file(output):
        write_whole(output, render(report, fmt).encode("utf-8"))
    elif fmt == "text":
        from trainmon_exporters.page import console_for  # noqa: PLC0415
        from trainmon_exporters.terminal import print_report  # noqa: PLC0415

        print_report(report, console_for(_stdout()))
    else:
        _stdout()
        click.echo(render(report, fmt).encode("utf-8"), nl=False)


def show(inspection: Inspection, fmt: str) -> None:
    """Write what `inspect` found to standard output."""
    from trainmon_exporters.inspect_table import print_inspection, render_inspect_json  # noqa: PLC0415

    if fmt == "text":
        from trainmon_exporters.page import console_for  # noqa: PLC0415

        print_inspection(inspection, console_for(_stdout()))
    else:
        _stdout()
        click.echo(render_inspect_json(inspection).encode("utf-8", "backslashreplace"), nl=False)


def show_manual(name: str | None, settings: Settings) -> None:
    """Write a page of the manual, or the names of all pages, to standard output; BadConfig for an unknown name."""
    from trainmon_exporters.manual_page import print_names, print_page  # noqa: PLC0415
    from trainmon_exporters.page import console_for  # noqa: PLC0415
    from trainmon_rules.diagnosis.manual import explain, names  # noqa: PLC0415

    every = (*settings.rules, *settings.off)
    if name is None:
        print_names(names(every), console_for(_stdout()))
    else:
        print_page(explain(name, every), console_for(_stdout()))


def show_rules(settings: Settings, fmt: str) -> None:
    """Write the rules in force to standard output."""
    from trainmon_exporters.rules_table import print_rules, render_rules_json  # noqa: PLC0415
    from trainmon_rules.rulebook import rule_facts  # noqa: PLC0415

    rules = rule_facts(settings)
    if fmt == "text":
        from trainmon_exporters.page import console_for  # noqa: PLC0415

        print_rules(rules, console_for(_stdout()))
    else:
        _stdout()
        click.echo(render_rules_json(rules).encode("utf-8", "backslashreplace"), nl=False)


def show_route(routed: Routed, fmt: str) -> None:
    """Write the answer to a query to standard output."""
    from trainmon_exporters.route_answer import print_routed, render_route_json  # noqa: PLC0415

    if fmt == "text":
        from trainmon_exporters.page import console_for  # noqa: PLC0415

        print_routed(routed, console_for(_stdout()))
    else:
        _stdout()
        click.echo(render_route_json(routed).encode("utf-8"), nl=False)


def show_scenarios(scenarios: Sequence[Scenario]) -> None:
    """Write a list of scenarios to standard output."""
    from trainmon_exporters.page import console_for  # noqa: PLC0415
    from trainmon_exporters.scenarios_table import print_scenarios  # noqa: PLC0415

    rows = [(s.name, s.family, s.half, s.truth.cause, s.about) for s in scenarios]
    print_scenarios(rows, console_for(_stdout()))


def show_evaluation(evaluation: Evaluation, fmt: str) -> None:
    """Write an evaluation to standard output."""
    from trainmon_exporters.evaluation_markdown import render_evaluation_markdown  # noqa: PLC0415
    from trainmon_exporters.evaluation_page import print_evaluation, render_evaluation_json  # noqa: PLC0415

    if fmt == "text":
        from trainmon_exporters.page import console_for  # noqa: PLC0415

        print_evaluation(evaluation, console_for(_stdout()))
    else:
        _stdout()
        text = render_evaluation_json(evaluation) if fmt == "json" else render_evaluation_markdown(evaluation)
        click.echo(text.encode("utf-8", "backslashreplace"), nl=False)


def _stdout() -> TextIO:
    """Return standard output, made to spell out what its encoding can't write."""
    if sys.stdout is None:
        raise BadOutput("standard output", "it is closed")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    return sys.stdout


def exit_status(report: Report, fail_on: str | None) -> int:
    """Return 2 if something could not be read, 1 if an incident of the level or above was found, else 0.

    What a run is held against is a yardstick: its incidents don't count.
    """
    if any(e.fatal for e in report.errors):
        return 2
    if fail_on is None:
        return 0
    level = Severity.parse(fail_on)
    judged = [r for r in report.runs if r.run not in report.yardsticks]
    return int(any(Severity.parse(i.severity) >= level for r in judged for i in r.incidents))


def completion_script(command: click.Command, shell: str) -> str:
    """Return the script that completes `trainmon` in a shell (without asking that shell for its version)."""
    from click.shell_completion import get_completion_class  # noqa: PLC0415

    kind = get_completion_class(shell)
    if kind is None:
        raise BadConfig(f"shell {shell!r} is unknown; known: bash, zsh, fish")
    complete = kind(command, {}, "trainmon", "_TRAINMON_COMPLETE")
    return complete.source_template % complete.source_vars()
