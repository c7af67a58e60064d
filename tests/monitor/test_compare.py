"""`trainmon replay A --against B` on real files: which runs are held against which, and what comes out."""

import json
import random

import pytest
from click.testing import CliRunner

from tests.monitor.test_cli import trainmon
from trainmon import replay
from trainmon.cli import main


def write(path, seed, at=None, n=400, every=1, nan=False):
    """Write a healthy run; from step `at` on its rate is doubled and its loss a step higher (or NaN)."""
    rng = random.Random(seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [{"config": {"learning_rate": 1e-3, "seed": seed, "batch_size": 32}}]
    for step in range(0, n, every):
        late = at is not None and step >= at
        loss = 2 + 3 * 0.98**step + rng.gauss(0, 0.02) + 0.5 * late
        rows.append({"step": step, "loss": float("nan") if nan and late else loss, "lr": 1e-3 * (1 + late)})
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    return path


def command(*args, status=0):
    done = CliRunner(env={"COLUMNS": "100"}).invoke(main, ["replay", *map(str, args)])
    assert done.exit_code == status, done.output
    return done


def comparisons(*args):
    """Return run → its comparison (None for none), as JSON."""
    data = json.loads(command(*args, "--format", "json").stdout)
    return {r["run"]: r.get("comparison") for r in data["runs"]}


def test_two_files_of_one_name_are_told_apart_by_their_folders(tmp_path):
    a, b = write(tmp_path / "a/log.jsonl", 1, 200), write(tmp_path / "b/log.jsonl", 2)
    found = comparisons(a, "--against", b)
    assert list(found) == ["a/log.jsonl", "b/log.jsonl"]
    assert found["b/log.jsonl"] is None
    told = found["a/log.jsonl"]
    assert (told["against"], told["chosen"], told["verdict"]) == ("b/log.jsonl", "the only run there", "healthy")
    assert (told["parted_step"], told["parted_series"]) == (200, "lr")
    assert {s["series"]: s["parted_step"] for s in told["series"]} == {"loss": 200, "lr": 200}
    assert told["settings"] == [{"setting": "seed", "value": 1, "against_value": 2, "known": False}]


def test_runs_of_two_folders_are_paired_by_name_else_with_the_longest(tmp_path):
    for name in ("one", "two"):
        write(tmp_path / f"new/{name}.jsonl", 1)
        write(tmp_path / f"old/{name}.jsonl", 2)
    write(tmp_path / "new/three.jsonl", 3)
    write(tmp_path / "old/long.jsonl", 4, n=500)
    found = comparisons(tmp_path / "new", "--against", tmp_path / "old")
    pairs = {name: (told["against"], told["chosen"]) for name, told in found.items() if told}
    assert pairs == {
        "new/one.jsonl": ("old/one.jsonl", "the run of the same name"),
        "new/two.jsonl": ("old/two.jsonl", "the run of the same name"),
        "three.jsonl": ("long.jsonl", "the longest of 3 runs there"),
    }
    assert set(found) == {*pairs, *(against for against, _ in pairs.values())}  # no other run of the second folder


def test_each_of_several_paths_is_held_against_the_one(tmp_path):
    paths = [write(tmp_path / f"{i}.jsonl", i, at=100 * i) for i in (1, 2)]
    found = comparisons(*paths, "--against", write(tmp_path / "base.jsonl", 9))
    assert {name: told["parted_step"] for name, told in found.items() if told} == {"1.jsonl": 100, "2.jsonl": 200}


def test_without_against_nothing_is_said_of_it(tmp_path):
    path = write(tmp_path / "a.jsonl", 1)
    data = json.loads(command(path, "--format", "json").stdout)
    assert "comparison" not in data["runs"][0]
    assert "COMPARED" not in command(path).stdout


def test_the_run_is_judged_as_without_a_comparison(tmp_path):
    a, b = write(tmp_path / "a.jsonl", 1, 200), write(tmp_path / "b.jsonl", 2)
    [alone] = json.loads(command(a, "--format", "json").stdout)["runs"]
    held = json.loads(command(a, "--against", b, "--format", "json").stdout)["runs"][0]
    del held["comparison"]
    assert held == alone


def test_the_yardstick_does_not_fail(tmp_path):
    good, bad = write(tmp_path / "good.jsonl", 1), write(tmp_path / "bad.jsonl", 2, 200, nan=True)
    command(good, "--against", bad, "--fail-on", "info")
    command(bad, "--against", good, "--fail-on", "critical", status=1)


def test_a_yardstick_that_is_not_there_is_an_error_and_the_rest_is_replayed(tmp_path):
    done = command(write(tmp_path / "a.jsonl", 1), "--against", tmp_path / "none", status=2)
    assert "HEALTHY  a.jsonl" in done.stdout
    assert done.stderr.endswith("none: no such file or directory\n")
    assert "COMPARED" not in done.stdout


def test_it_may_come_from_standard_input(tmp_path):
    a, b = write(tmp_path / "a.jsonl", 1, 200), write(tmp_path / "b.jsonl", 2)
    done = trainmon("replay", a, "--against", "-", "--format", "json", stdin=b.read_bytes())
    told = json.loads(done.stdout)["runs"][0]["comparison"]
    assert (told["against"], told["parted_step"]) == ("stdin", 200)


@pytest.mark.parametrize("fmt", ["text", "markdown", "jsonl"])
def test_every_format_tells_it(tmp_path, fmt):
    a, b = write(tmp_path / "a.jsonl", 1, 200), write(tmp_path / "b.jsonl", 2)
    text = command(a, "--against", b, "--format", fmt).stdout
    if fmt == "jsonl":
        first, second = map(json.loads, text.splitlines())
        assert (first["comparison"]["parted_step"], "comparison" in second) == (200, False)
    else:
        assert "They part first in lr, at step 200; 1 more series follows." in text
        assert "0.002 against 0.001 (2 times as high)" in text
        assert "seed: 1 here, 2 there" in text


def test_from_python(tmp_path):
    report = replay(write(tmp_path / "a.jsonl", 1, 200), against=write(tmp_path / "b.jsonl", 2))
    assert [r.run for r in report.runs] == ["a.jsonl", "b.jsonl"]
    assert (report.runs[0].comparison.parted_step, report.yardsticks) == (200, {"b.jsonl"})
