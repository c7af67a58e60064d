"""terminal: the report as a person reads it."""

import io
import math
from dataclasses import replace

import pytest
from rich.console import Console

from tests.golden import check_golden
from trainmon_exporters.markdown import render_markdown
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


def test_over_notes_it_never_says_that_nothing_went_wrong(make):
    ended = make.incident(severity="info", symptom="plateau", summary="the reward stands at 3", state="ended")
    over = make.incident(
        id="b" * 12, severity="info", symptom="flat", summary="no gain", state="resolved", resolved_step=1600
    )
    text = render_text(make.report(make.healthy(incidents=(ended, over))))
    assert "No incident found. train/loss 3.338 -> 1.148. Nothing that needs action; 2 notes:" in text
    assert "note plateau: the reward stands at 3 (since step 1500, to the end of the log)" in text
    assert "note flat: no gain (step 1500 to 1600)" in text
    assert "recovered" not in text
    assert "+--" not in text


def test_notes_of_several_runs_are_told_below_the_table(make):
    note = make.incident(severity="info", symptom="lr-schedule", summary="the rate never moves")
    text = render_text(make.report(make.healthy(incidents=(note,)), make.healthy("exp/other.jsonl")))
    table, notes = text.split("\n\n")
    assert len(table.splitlines()) == 2
    assert "1 note; steps 0 to 1990" in table
    assert "exp/good.jsonl: lr-schedule: the rate never moves" in notes


def test_the_verdict_and_the_first_fix_stand_at_the_end(make):
    end = " ".join(render_text(make.report(), 80).split("\n\n")[-1].split())
    assert end == (
        "CRITICAL nonfinite on train/loss since step 1500, not recovered "
        "First: Clip the gradient norm at 1.0, just above its healthy level -- max_grad_norm: 1.0"
    )
    many = render_text(make.many(), 80)
    assert many.index("3 runs: 1 critical") > many.index("Passed over")
    assert "(incident 2 of 2); exp/broken.jsonl" in " ".join(many.split())
    assert "First:" not in render_text(make.report(make.healthy()))


def test_one_incident_fits_a_screen_and_two_nearly(make):
    one = make.incident(also=(), questions=())
    two = make.incident(id="c" * 12, symptom="flat", rule="flat", onset_step=1700, also=(), questions=())
    run = make.run(unmapped=(), skipped={}, incidents=(one,))
    assert len(render_text(make.report(run), 80).splitlines()) <= 38
    run = make.run(unmapped=(), skipped={}, incidents=(one, two))
    assert len(render_text(make.report(run), 80).splitlines()) <= 53


def test_two_causes_and_three_fixes_are_told_the_ruled_out_by_name(make):
    i = make.incident()
    causes = tuple(type(i.causes[0])(f"cause {n}", "", (f"because {n}",), (f"not {n}",)) for n in range(4))
    fixes = tuple(type(i.fixes[0])(f"do {n}", "gradient-management") for n in range(5))
    text = render_text(make.report(make.run(incidents=(make.incident(causes=causes, ruled_out=causes, fixes=fixes),))))
    assert "2. cause 1: + because 1" in text
    assert "3. cause 2" not in text
    assert "ruled out  cause 0 (not 0); cause 1 (not 1)\n" in text
    assert "3. do 2 [gradient]" in text
    assert "4. do 3" not in text


def test_a_cause_that_nothing_speaks_for_is_told_only_where_there_is_no_other(make):
    i = make.incident()
    bare, shown = (type(i.causes[0])(name, "why it may be", evidence) for name, evidence in (("a", ()), ("b", ("x",))))
    text = render_text(make.report(make.run(incidents=(make.incident(causes=(shown, bare)),))))
    assert "1. b: + x" in text
    assert "2. a" not in text
    assert "1. a: why it may be" in render_text(make.report(make.run(incidents=(make.incident(causes=(bare,)),))))


def test_precursors_of_one_event_are_told_once(make):
    [p] = make.incident().precursors
    twin = replace(p, symptom="grad-explosion", rule="grad-explosion")
    later = replace(p, symptom="loss-spike", series="train/loss", onset_step=1480, lead="the loss led", summary="up")
    i = make.incident(precursors=(p, twin, later))
    text = flat(render_text(make.report(make.run(incidents=(i,)))))
    assert text.count("grad norm 14.2 x its level of 1.02") == 1
    assert "step 1480: the loss led; up" in text
    page = render_markdown(make.report(make.run(incidents=(i,))))
    assert "- grad-spike, grad-explosion on `train/grad_norm` at step 1460" in page
    itself = replace(p, symptom="loss-spike", series="train/loss", onset_step=1500, lead_steps=0, summary="the same")
    assert "the same" not in render_text(make.report(make.run(incidents=(make.incident(precursors=(p, itself)),))))


def test_how_a_detector_decided_is_not_for_the_terminal(make):
    evidence = {"baseline points": 64, "threshold": 2.3373, "peak step": 1153, "peak": 4060.2, "scale": 1048576.0}
    i = make.incident(summary="loss jumped to 4,060 (peak at step 1153)", evidence=evidence)
    text = render_text(make.report(make.run(incidents=(i,))))
    assert "numbers    scale 1,048,576\n" in text
    assert "baseline points" in render_markdown(make.report(make.run(incidents=(i,))))


def test_siblings_with_the_same_fault_refer_to_the_first(make):
    twin = make.run(run="exp/twin.jsonl", incidents=(make.incident(onset_step=1700),))
    other = make.run(run="exp/other.jsonl", incidents=(make.incident(fixes=()),))
    text = render_text(make.report(make.run(), twin, other))
    assert "as in incident 1 of exp/broken.jsonl: the same causes, fixes and reading" in text
    assert text.count("do first") == 1
    assert text.count("ruled out") == 2
    assert text.count("Not judged") == 1
    assert text.count("trainmon explain") == 1


def test_a_spike_that_recovered_says_so_at_once(make):
    spike = make.incident(severity="warning", symptom="loss-spike", state="resolved", resolved_step=1520)
    text = render_text(make.report(make.run(verdict="warning", incidents=(spike,))))
    assert "1  WARNING loss-spike, recovered  since step 1500" in text
    assert "WARNING  loss-spike on train/loss since step 1500, recovered" in text


def flat(text):
    return " ".join(text.split())


def test_what_did_not_come_back_is_not_called_recovered(make):
    spike = {"severity": "warning", "symptom": "loss-spike", "state": "resolved", "resolved_step": 1650}
    partly = make.incident(grade="partly", recovery="partly recovered: 80 % of the rise came back", **spike)
    run = make.run(verdict="warning", incidents=(partly,))
    text = flat(render_text(make.report(run)))
    assert "WARNING loss-spike since step 1500" in text
    assert "; until step 1650: partly recovered: 80 % of the rise came back" in text
    assert text.count("WARNING loss-spike on train/loss since step 1500, partly recovered") == 1
    assert "loss-spike; steps" in flat(render_text(make.report(run, make.healthy())))
    lost = make.run(verdict="warning", incidents=(make.incident(grade="not", **spike),))
    assert "since step 1500, not recovered" in flat(render_text(make.report(lost)))
    assert ", recovered" not in flat(render_text(make.report(lost)))


def test_what_goes_on_stands_at_the_end_before_what_was_worse(make):
    over = make.incident(symptom="divergence", state="resolved", resolved_step=1600, grade="recovered", onset_step=900)
    partly = make.incident(id="b" * 12, severity="warning", symptom="overfit", series=("val/loss",), onset_step=1700)
    end = flat(render_text(make.report(make.run(incidents=(over, partly)))).split("\n\n")[-1])
    assert end.startswith(
        "CRITICAL overfit on val/loss since step 1700, not recovered "
        "(a warning, incident 2 of 2, what was critical is over)"
    )


def test_of_several_runs_one_in_which_something_goes_on_stands_at_the_end(make):
    over = make.run(run="a", incidents=(make.incident(state="resolved", resolved_step=1600),))
    on = make.run(run="b", verdict="warning", incidents=(make.incident(severity="warning", symptom="flat"),))
    end = flat(render_text(make.report(over, on)).split("\n\n")[-1])
    assert "2 runs: 1 critical, 1 warning" in end
    assert "WARNING flat on train/loss since step 1500, not recovered; b" in end


def test_many_critical_ones_that_are_over_do_not_push_out_what_goes_on(make):
    over = [
        make.incident(id=f"{n:012x}", symptom=f"s{n}", state="resolved", resolved_step=n, onset_step=n)
        for n in range(100, 108)
    ]
    on = make.incident(id="f" * 12, severity="warning", symptom="flat", onset_step=1900)
    text = render_text(make.report(make.run(incidents=(*over, on))))
    assert "5  WARNING flat" in text
    assert "CRITICAL  flat on train/loss" in text


def test_what_happened_again_and_came_back_each_time_is_told_once(make):
    same = {"severity": "warning", "symptom": "loss-spike", "state": "resolved"}
    spikes = [make.incident(id=f"{n:012x}", onset_step=n, resolved_step=n + 5, **same) for n in range(100, 800, 100)]
    other = make.incident(id="f" * 12, onset_step=1500)
    text = render_text(make.report(make.run(incidents=(*spikes, other))))
    assert text.count("loss-spike, recovered, the first of 7") == 1
    assert "and again  6 times between steps 200 and 700, recovered each time" in text
    assert "Also noted" not in text
    assert "loss-spike 7 times, nonfinite" in render_text(
        make.report(make.run(incidents=(*spikes, other)), make.healthy())
    )


def test_the_plot_marks_what_it_shows_only(make):
    accuracy = make.curve("accuracy", "train_metric", range(0, 2000, 10), lambda s: s / 2000)
    low = make.incident(id="c" * 12, symptom="flat", series=("accuracy",), onset_step=700, severity="warning")
    run = make.run(incidents=(low,), curves=(*make.run().curves, accuracy))
    assert "-- accuracy   1: where the incident began" in render_text(make.report(run))
    run = make.run(incidents=(low, make.incident()), curves=(*make.run().curves, accuracy))
    assert "-- train/loss   o val/loss   2: where the incident began" in render_text(make.report(run))


def test_too_few_points_for_a_plot_are_told(make):
    few = make.curve("train/loss", "train_loss", (0, 10, 20), lambda s: 2.0 if s < 20 else math.nan)
    text = render_text(make.report(make.run(curves=(few,))))
    assert "train/loss: 2 at step 0, 2 at step 10, not finite at step 20" in text
    still = make.curve("train/loss", "train_loss", range(50), lambda s: 0.0)
    text = render_text(make.report(make.run(curves=(still,))))
    assert "train/loss: 0 from step 0 to 49" in text
    assert "+--" not in text


def test_a_logarithmic_axis_is_said(make):
    falling = make.curve("train/loss", "train_loss", range(0, 2000, 10), lambda s: 10.0 ** (-s / 500))
    assert "-- train/loss (log scale)" in render_text(make.report(make.run(curves=(falling,))))
    assert "log scale" not in render_text(make.report())


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_table_of_runs_fits_and_explains_the_second_run_once(make, width):
    long = "a/very/long/path/of/an/experiment/with/a/date/in/it/2026-01-01/metrics.jsonl"
    runs = [make.healthy(long), make.healthy(f"{long}#2"), make.run(run=f"{long}#3")]
    text = render_text(make.report(*runs), width)
    table = text.split("\n\n")[0].splitlines()
    assert len(table) == 4
    assert max(map(len, table)) <= width
    assert table[0].startswith("CRITICAL  a/very/")
    assert table[3] == "#2: the second run in the same file (its steps begin again)"


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
