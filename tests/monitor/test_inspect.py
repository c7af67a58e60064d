"""inspect: what the logs hold and how they were understood."""

import io
import json
import math

import pytest
from click.testing import CliRunner
from rich.console import Console

from trainmon.cli import main
from trainmon.inspecting import inspect
from trainmon_exporters.inspect_table import broken, print_inspection, render_inspect_json

BEGAN = 1_700_000_000


@pytest.fixture
def folder(tmp_path):
    """A run that resumed at step 200 and went on to NaN, told by two sources, and one log apart."""
    steps = [*range(0, 300, 10), *range(200, 400, 10)]
    rows = [{"step": s, "ts": BEGAN + 3 * i, "loss": 2.0, "odd": 1, "note": "x"} for i, s in enumerate(steps)]
    rows[-1]["loss"] = float("nan")
    write(tmp_path / "run/metrics.jsonl", rows)
    write(tmp_path / "run/log.txt", [{"step": s, "lr": 0.001} for s in range(20)])
    write(tmp_path / "apart.jsonl", [{"step": 7, "lr": 0.5}])
    return tmp_path


def write(path, rows):
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))


def text(inspection):
    out = io.StringIO()
    print_inspection(inspection, Console(file=out, width=80))
    return out.getvalue()


def test_sources_attempts_and_tags(folder):
    apart, run = inspect(folder).runs
    assert (apart.run, run.run) == ("apart.jsonl", "run")
    assert [(s.source, s.format, s.records, s.points) for s in run.sources] == [
        ("run/metrics.jsonl", "jsonl", 50, 100),
        ("run/log.txt", "jsonl", 20, 20),
    ]
    assert run.sources[0].skipped == {"text values": 50}
    assert [(a.attempt, a.first_step, a.last_step) for a in run.attempts] == [(1, 0, 290), (2, 200, 390)]
    loss = next(t for t in run.tags if t.tag == "loss")
    assert (loss.role, loss.source, loss.points) == ("train_loss", "run/metrics.jsonl", 50)
    assert (loss.first_step, loss.last_step) == (0, 390)
    assert (loss.steps_per_report, loss.seconds_per_report) == (10, 3.0)
    assert math.isnan(loss.last_value)
    assert run.unmapped == ("odd",)
    [lr] = apart.tags
    assert (lr.role, lr.steps_per_report, lr.seconds_per_report) == ("learning_rate", None, None)
    assert apart.blind[0].rule == "nonfinite"


def test_cadence_and_steps_hold_where_the_ring_has_forgotten_the_beginning(tmp_path):
    write(tmp_path / "long.jsonl", [{"step": 5 * i + 3, "ts": BEGAN + i, "loss": 2.0} for i in range(3000)])
    [loss] = inspect(tmp_path / "long.jsonl").runs[0].tags
    assert (loss.points, loss.first_step, loss.last_step) == (3000, 3, 14998)
    assert (loss.steps_per_report, loss.seconds_per_report) == (5, 1.0)


def test_the_table_fits_80_columns_and_is_plain_when_piped(folder):
    shown = text(inspect(folder))
    assert max(len(line) for line in shown.splitlines()) <= 80
    assert "\x1b" not in shown
    words = " ".join(shown.split())
    for part in (
        "run step 0–390, 120 points",
        "1 run/metrics.jsonl jsonl 50 100 50 text values",
        "2 200–390",
        "learning_rate lr 2 20 0–19",
        "10 steps, 3 s",
        "unmapped odd",
        "not judged loss-scale-collapse (no loss scale is logged)",
    ):
        assert part in words


@pytest.mark.parametrize(
    ("name", "width", "lines"),
    [
        ("heldout_false_refuse_rate", 20, ["heldout_false_", "refuse_rate"]),
        ("train/policy_loss", 14, ["train/policy_", "loss"]),
        ("train/policy_loss", 20, ["train/policy_loss"]),
        ("averyverylongword/x", 12, ["avery...word/", "x"]),
        ("", 12, [""]),
    ],
)
def test_names_break_at_their_joints(name, width, lines):
    found = broken(name, width).split("\n")
    assert [line[:6] + line[-4:] for line in found] == [line[:6] + line[-4:] for line in lines]
    assert max(map(len, found)) <= width


def test_no_name_is_broken_in_the_middle_of_a_word(tmp_path):
    tags = ["heldout_false_refuse_rate/accuracy", "rollout/policy_gradient_loss", "train/loss"]
    write(tmp_path / "log.jsonl", [{"step": s, **dict.fromkeys(tags, 0.5)} for s in range(100_000, 100_900, 300)])
    shown = text(inspect(tmp_path / "log.jsonl"))
    assert max(map(len, shown.splitlines())) <= 80
    for word in ("heldout_", "refuse_", "accuracy", "policy_", "gradient_", "loss"):
        assert word in shown


def test_a_tag_cannot_command_the_terminal(tmp_path):
    write(tmp_path / "log.jsonl", [{"step": 1, "loss\x1b[2J[bold]": 1.0, "x\u202e": 2}])
    shown = text(inspect(tmp_path / "log.jsonl"))
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "loss\ufffd[2J[bold]" in shown


def test_json_is_strict(folder):
    data = json.loads(render_inspect_json(inspect(folder)), parse_constant=pytest.fail)
    assert data["schema"] == "trainmon.inspect/1"
    loss = next(t for t in data["runs"][1]["tags"] if t["tag"] == "loss")
    assert loss["last_value"] == "NaN"


def test_the_command(folder):
    run = CliRunner()
    good = run.invoke(main, ["inspect", str(folder), "--format", "json"])
    assert good.exit_code == 0
    assert [r["run"] for r in json.loads(good.stdout)["runs"]] == ["apart.jsonl", "run"]
    bad = run.invoke(main, ["inspect", str(folder / "missing"), str(folder / "apart.jsonl")])
    assert bad.exit_code == 2
    assert "missing: no such file or directory" in bad.stderr
    assert "apart.jsonl" in bad.stdout
