"""`trainmon evaluate` as a user runs it: formats, halves, exit statuses, no torch."""

import json
import subprocess
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.monitor.evaluating.traceset import trace, write_truth
from trainmon.cli import main
from trainmon.progress import counting
from trainmon_rules import evaluation

NAN = {"cause": "bad-batch", "onset": 196, "symptoms": ["nonfinite"], "routes": ["gradient-management"]}


@pytest.fixture
def root(tmp_path):
    trace(tmp_path, "nan", "nan", nan_from=200, **NAN)
    trace(tmp_path, "missed", "missed", cause="overfitting", onset=100, symptoms=["overfit"])
    trace(tmp_path, "quiet", "quiet")
    trace(tmp_path, "paged", "paged", nan_from=200)
    trace(tmp_path, "labels", "labels", cause="label-noise", onset=0, traceless="labels aren't logged")
    return tmp_path


def command(*args, status=0):
    done = CliRunner(env={"COLUMNS": "100"}).invoke(main, ["evaluate", *map(str, args)])
    assert done.exit_code == status, done.output
    return done


def test_the_text_is_plain_and_no_wider_than_100(root):
    text = command(root).stdout
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= 100
    assert text.startswith("EVALUATION  the test half: 5 runs of 5 families (2 faulty, 2 healthy, 1 without a trace)\n")
    lines = text.splitlines()
    assert "  nonfinite     1  1.00 (0.21-1.00)  0.50 (0.00-1.00)  1 / 1  4 / 4   1.00      1" in lines
    assert "   missed/seed-0: overfit from step 100; nothing was told" in lines
    assert "   paged/seed-0: critical nonfinite at step 200 of a healthy run" in lines
    assert "   labels (1): labels aren't logged; told: nothing" in lines
    assert "   not met  recall: 0.50 (at least 0.95)" in lines
    assert any(line.startswith("  Keras TerminateOnNaN ") for line in lines)


def test_the_json_is_one_strict_document(root):
    data = json.loads(command(root, "--format", "json").stdout, parse_constant=pytest.fail)
    assert list(data) == [
        "schema", "half", "runs", "resamples", "total", "symptoms", "quiet", "peers", "traceless", "bars", "trials",
        "errors",
    ]  # fmt: skip
    assert data["schema"] == "trainmon.evaluation/1"
    assert data["total"]["recall"] == {"value": 0.5, "low": 0.0, "high": 1.0, "method": "bootstrap"}
    assert [t["outcome"] for t in data["trials"]] == ["traceless", "missed", "found", "disturbed", "quiet"]


def test_the_markdown_names_every_peer_with_its_source(root):
    text = command(root, "--format", "markdown").stdout
    assert text.startswith("## Evaluation: the test half")
    for words in ("### By symptom", "### Beside the peers", "### Without a trace", "### Missed", "OLMo-core 128/6σ"):
        assert words in text
    assert "kill\\_loss\\_spike\\_callback.py" in text or "kill_loss_spike_callback.py" in text
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert all(line.endswith("|") for line in tables)


def test_a_half_without_traces_is_an_error(root):
    done = command(root, "--half", "tuning", status=2)
    assert done.stdout == ""
    assert "no trace of the tuning half, but 5 of the other" in done.stderr


def test_a_folder_without_traces_is_an_error(tmp_path):
    for path in (tmp_path, tmp_path / "gone"):
        done = command(path, status=2)
        assert len(done.stderr.splitlines()) == 1


def test_one_bad_trace_is_one_line_and_the_rest_goes_on(root):
    write_truth(root / "no-log", "no-log", "no-log")
    done = command(root, status=2)
    assert done.stderr.splitlines() == ["trainmon: no-log: holds no training log"]
    assert "5 runs of 5 families" in done.stdout


def test_rules_of_a_users_own_are_what_is_scored(root, tmp_path):
    rules = tmp_path / "mine.yaml"
    rules.write_text("- {rule: nonfinite, severity: info}\n")
    data = json.loads(command(root, "--format", "json", "--rules", rules).stdout)
    assert (data["total"]["found"], data["total"]["as_info"], data["total"]["false_alarms"]) == (0, 1, 0)
    assert data["quiet"]["infos"] == 1


def test_torch_is_not_loaded(root):
    code = (
        "import sys\nfrom trainmon.cli import main\n"
        "try:\n    main(['evaluate', sys.argv[1], '--format', 'json'])\n"
        "except SystemExit as end:\n    assert not end.code\n"
        "assert 'trainmon_reference' in sys.modules and 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code, str(root)], check=True, capture_output=True, timeout=120)


def test_no_bar_without_a_terminal():
    with counting("traces") as progress:
        assert progress is None


RECORDS = [r for r in vars(evaluation).values() if is_dataclass(r) and r.__module__ == evaluation.__name__]


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: r.__name__)
def test_every_field_of_the_json_is_told(record):
    text = (Path(__file__).parents[3] / "docs" / "evaluate.md").read_text("utf-8")
    for f in fields(record):
        assert f"`{f.name}`" in text or f'"{f.name}"' in text, f.name
