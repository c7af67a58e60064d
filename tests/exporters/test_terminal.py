"""terminal: the report as a person reads it."""

import io

import pytest
from rich.console import Console

from tests.golden import check_golden
from trainmon_exporters.page import console_for
from trainmon_exporters.terminal import print_report, render_text


def on_terminal(report, width=80, encoding="utf-8", **environ):
    """Return what a terminal of that width would be sent."""
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding, errors="backslashreplace")
    environ = {"TERM": "xterm-256color", **environ}
    console = Console(
        file=file, width=width, height=25, force_terminal=True, highlight=False, legacy_windows=False, _environ=environ
    )
    print_report(report, console)
    file.flush()
    return raw.getvalue().decode(encoding)


@pytest.mark.parametrize("width", [60, 100])
def test_a_broken_run(make, width):
    check_golden(f"terminal/broken-{width}.txt", render_text(make.report(), width))


def test_several_runs_the_worst_first(make):
    text = render_text(make.many())
    check_golden("terminal/several.txt", text)
    assert text.index("CRITICAL") < text.index("INSUFFICIENT-DATA") < text.index("HEALTHY")


def test_a_healthy_run_is_told_in_a_few_lines(make):
    text = render_text(make.report(make.healthy()))
    check_golden("terminal/healthy.txt", text)
    assert len(text.splitlines()) <= 5


def test_names_do_not_steer_the_terminal(make):
    nasty = make.NASTY
    curve = make.curve(nasty, "train_loss", range(100), lambda s: 1.0 + s)
    run = make.run(
        run=nasty,
        unmapped=(nasty,),
        skipped={nasty: 1},
        curves=(curve,),
        roles={"train_loss": [nasty]},
        incidents=(make.incident(series=(nasty,), summary=nasty, evidence={nasty: nasty}),),
    )
    text = on_terminal(make.report(run, make.healthy(nasty)), NO_COLOR="1")
    assert "\x07" not in text
    assert "\u202e" not in text
    assert "\x1b[31m" not in text
    assert "\\e[31m[red]\\u202eevil\\n" in text.replace("\n", "")
    assert "\n| `x`" not in text


def test_colour_only_where_it_is_wanted(make):
    report = make.report()
    assert "\x1b[1;31mCRITICAL" in on_terminal(report)
    assert "\x1b[1;31m" not in on_terminal(report, NO_COLOR="1")
    assert "\x1b" not in on_terminal(report, TERM="dumb")
    assert "\x1b" not in render_text(report)


def test_braille_only_where_it_can_be_shown(make):
    report = make.report()
    assert "┤" in on_terminal(report)
    assert on_terminal(report, encoding="latin-1", NO_COLOR="1").replace("\x1b[0m", "").isascii()
    assert on_terminal(report, TERM="dumb").isascii()
    assert render_text(report).isascii()


@pytest.mark.parametrize("width", [40, 80, 120, 500])
def test_lines_fit_except_those_to_copy(make, width):
    lines = on_terminal(make.many(), width, TERM="dumb").splitlines()
    to_copy = ("max_grad_norm:", "learning_rate:", "warmup_steps:")
    assert all(len(line) <= width for line in lines if not line.strip().startswith(to_copy))
    assert max(map(len, lines)) <= 120


def test_a_change_to_copy_is_never_wrapped(make):
    fix = make.incident().fixes[0]
    long = type(fix)(fix.action, fix.sheet, {"command": "x" * 300})
    text = render_text(make.report(make.run(incidents=(make.incident(fixes=(long,)),))))
    assert "command: " + "x" * 300 in text


def test_many_incidents_are_told_briefly(make):
    incidents = tuple(make.incident(id=f"{n:012x}", onset_step=n, severity="warning") for n in range(40))
    text = render_text(make.report(make.run(verdict="warning", incidents=incidents)))
    assert text.count("WARNING nonfinite") == 5
    assert text.count("warning nonfinite:") == 20
    assert "and 15 more incidents" in text


def test_the_worst_are_told_in_full_in_the_order_of_their_onset(make):
    incidents = [make.incident(id=f"{n:012x}", onset_step=n, severity="warning") for n in range(9)]
    incidents.append(make.incident(id="f" * 12, onset_step=1999))
    text = render_text(make.report(make.run(incidents=tuple(incidents))))
    assert text.index("4  WARNING") < text.index("5  CRITICAL")


def test_a_run_that_is_not_healthy_but_only_noted_has_no_plot(make):
    note = make.incident(severity="info", symptom="lr-schedule", summary="the rate never moves")
    text = render_text(make.report(make.healthy(incidents=(note,))))
    assert "info lr-schedule: the rate never moves" in text
    assert "+--" not in text


def test_of_several_runs_one_that_is_only_noted_is_a_line(make):
    note = make.incident(severity="info", symptom="lr-schedule", summary="the rate never moves")
    text = render_text(make.report(make.healthy(incidents=(note,)), make.healthy("exp/other.jsonl")))
    assert len(text.splitlines()) == 2
    assert "1 note -- steps 0 to 1990" in text


def test_no_run_is_no_text(make):
    assert render_text(type(make.report())(())) == ""


def test_the_width_without_a_terminal(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert console_for(io.StringIO()).width == 100
    monkeypatch.setenv("COLUMNS", "72")
    assert console_for(io.StringIO()).width == 72
    for odd in ("0", "-3", "wide", "99999999999"):
        monkeypatch.setenv("COLUMNS", odd)
        assert console_for(io.StringIO()).width == 100
