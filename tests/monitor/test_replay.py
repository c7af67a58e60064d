"""replay: from a file to its report."""

import json

from trainmon import replay


def write(path, rows):
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    return path


def test_a_loss_that_turns_nan_is_critical_and_dated(tmp_path):
    rows = [{"step": 10 * i, "loss": 2.0 - i / 100 if i < 50 else float("nan")} for i in range(60)]
    run = replay(write(tmp_path / "run.jsonl", rows)).runs[0]
    assert run.verdict == "critical"
    [incident] = run.incidents
    assert (incident.symptom, incident.onset_step, incident.detected_step) == ("nonfinite", 500, 500)


def test_a_missing_path_is_one_error_and_the_others_are_read(tmp_path):
    good = write(tmp_path / "good.jsonl", [{"step": i, "loss": 2.0 - i / 100} for i in range(20)])
    report = replay(tmp_path / "missing", good)
    assert [r.run for r in report.runs] == ["good.jsonl"]
    [error] = report.errors
    assert error.fatal
    assert error.error == "no such file or directory"
