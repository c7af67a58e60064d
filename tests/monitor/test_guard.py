"""guard: whatever a command raises ends in one line and a status."""

import click
import pytest
from click.testing import CliRunner

from trainmon.guard import GuardedGroup, complain_of
from trainmon_rules.errors import BadConfig, BadInput
from trainmon_rules.report import SourceError


@click.group(cls=GuardedGroup)
def group():
    pass


@group.command()
@click.argument("what")
def fail(what):
    errors = {
        "bug": ZeroDivisionError("division by\nzero\x1b[31m"),
        "config": BadConfig("trainmon.toml:3: unknown role 'los'"),
        "input": BadInput("run.jsonl", "is empty"),
        "ctrl-c": KeyboardInterrupt(),
        "usage": click.UsageError("no"),
    }
    raise errors[what]


@pytest.mark.parametrize(
    ("what", "status", "said"),
    [
        ("bug", 70, "trainmon: internal error: ZeroDivisionError: division by\\nzero\\e[31m; please report it"),
        ("config", 2, "trainmon: trainmon.toml:3: unknown role 'los'\n"),
        ("input", 2, "trainmon: run.jsonl: is empty\n"),
        ("ctrl-c", 130, "trainmon: interrupted\n"),
    ],
)
def test_what_is_raised_becomes_a_line_and_a_status(what, status, said, monkeypatch):
    monkeypatch.delenv("TRAINMON_DEBUG", raising=False)
    done = CliRunner().invoke(group, ["fail", what])
    assert done.exit_code == status
    assert done.stderr.startswith(said)
    assert len(done.stderr.splitlines()) == 1


def test_usage_errors_stay_those_of_click():
    done = CliRunner().invoke(group, ["fail", "usage"])
    assert done.exit_code == 2
    assert "Usage:" in done.stderr


def test_the_traceback_is_shown_to_who_asks(monkeypatch):
    monkeypatch.setenv("TRAINMON_DEBUG", "1")
    done = CliRunner().invoke(group, ["fail", "bug"])
    assert done.exit_code == 70
    assert "Traceback (most recent call last):" in done.stderr


def test_fatal_errors_are_printed_first_and_the_rest_is_counted(capsys):
    errors = [SourceError("a", "cut", line=i) for i in range(30)]
    errors += [SourceError("b", "bad checksum", offset=12), SourceError("gone", "no such file", fatal=True)]
    complain_of(errors)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "trainmon: gone: no such file"
    assert lines[1] == "trainmon: a:0: cut"
    assert lines[20] == "trainmon: 12 more; --format json lists all"
    assert len(lines) == 21


def test_an_offset_is_said_where_there_is_no_line(capsys):
    complain_of([SourceError("b", "bad checksum", offset=12)])
    assert capsys.readouterr().err == "trainmon: b at byte 12: bad checksum\n"
