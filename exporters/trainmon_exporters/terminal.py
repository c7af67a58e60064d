"""The report for a terminal: verdict first, then each incident, last what was blind."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

from trainmon_rules.report import IncidentReport, Report, RunReport

STYLE = {"critical": "bold red", "warning": "bold yellow", "info": "cyan", "healthy": "bold green"}


def print_report(report: Report, console: Console) -> None:
    """Print the report."""
    for run in report.runs:
        _print_run(run, console)


def _print_run(run: RunReport, console: Console) -> None:
    style = STYLE.get(run.verdict, "bold")
    console.print(f"[{style}]{run.verdict.upper()}[/] {escape(run.run)}", highlight=False)
    for incident in run.incidents:
        _print_incident(incident, console)


def _print_incident(i: IncidentReport, console: Console) -> None:
    style = STYLE.get(i.severity, "bold")
    console.print(f"[{style}]{i.severity} {i.symptom}[/]: {escape(i.summary)}", highlight=False)
