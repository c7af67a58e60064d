"""`trainmon simulate` as a user runs it."""

import os
import signal
import subprocess
import sys
import threading

import pytest
from watchdog.events import FileSystemEventHandler
from watchdog.observers import Observer

from tests.monitor.test_cli import CLEAN, one_line, start, trainmon
from trainmon_reference.scenarios import load_scenarios

QUICK = sorted(load_scenarios().values(), key=lambda s: (s.config.total_steps, s.name))[:2]
A, B = (scenario.name for scenario in QUICK)


def without_torch(*args):
    code = f"import sys; sys.modules['torch'] = None\nfrom trainmon.cli import main\nmain({list(args)!r})"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, env=CLEAN, timeout=120, check=False)


# ---------------------------------------------------------------------- without torch
def test_the_list_needs_no_torch_and_tells_each_scenario():
    done = without_torch("simulate", "--list")
    assert (done.returncode, done.stderr) == (0, b"")
    head, *lines = done.stdout.decode().splitlines()
    assert head.split() == ["scenario", "family", "half", "cause"]
    rows = [line.split() for line in lines if not line.startswith(" ")]
    assert rows == [[s.name, s.family, s.half, s.truth.cause or "healthy"] for s in load_scenarios().values()]


@pytest.mark.parametrize("half", ["tuning", "test"])
def test_the_list_of_a_half(half):
    lines = trainmon("simulate", "--list", "--half", half).stdout.decode().splitlines()[1:]
    names = [line.split()[0] for line in lines if not line.startswith(" ")]
    assert names == [s.name for s in load_scenarios().values() if s.half == half]


def test_training_without_torch_is_one_line(tmp_path):
    one_line(without_torch("simulate", A, "--out", str(tmp_path)), "torch", "pip install 'trainmon[reference]'")


# ---------------------------------------------------------------------- arguments
def test_each_unknown_name_is_said_with_the_closest(tmp_path):
    done = trainmon("simulate", A[:-1], "zzzz", "--out", tmp_path / "out")
    first, second = done.stderr.decode().splitlines()
    assert done.returncode == 2
    assert first.startswith(f"trainmon: no scenario is called {A[:-1]!r}; did you mean ")
    assert A in first
    assert second == "trainmon: no scenario is called 'zzzz'; `trainmon simulate --list` lists all"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((), "give names of scenarios, or --all, or --list"),
        (("--all", "--list"), "give names of scenarios, or --all, or --list"),
        ((A, "--all"), "give names of scenarios, or --all, or --list"),
        (("--all",), "--out is missing"),
        ((A, "--half", "test", "--out", "x"), "--half goes with --list and --all"),
        (("--all", "--out", "x", "--seeds", "0"), "--seeds"),
    ],
)
def test_unusable_arguments_are_said(args, said):
    done = trainmon("simulate", *args)
    assert (done.returncode, done.stdout) == (2, b"")
    assert said in done.stderr.decode()


def test_a_folder_that_can_not_be_made_is_one_line(tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "file").write_text("")
    one_line(trainmon("simulate", A, "--out", tmp_path / "file" / "x"), "can't be written: not a directory")


def test_completion_offers_scenarios():
    code = "from trainmon.cli import main; main(prog_name='trainmon')"
    words = {"COMP_WORDS": f"trainmon simulate {A}", "COMP_CWORD": "2", "_TRAINMON_COMPLETE": "bash_complete"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, env={**CLEAN, **words}, timeout=60, check=False
    )
    assert f"plain,{A}" in done.stdout.decode().splitlines()


# ---------------------------------------------------------------------- training
@pytest.mark.slow
def test_runs_are_the_same_for_any_number_of_jobs_and_a_failing_one_stops_no_other(tmp_path):
    pytest.importorskip("torch")
    for seed in ("seed-0", "seed-1"):
        (tmp_path / "two" / B / seed / "mine").mkdir(parents=True)
    two = trainmon("simulate", B, A, "--seeds", "2", "--jobs", "2", "--out", tmp_path / "two")
    lines = two.stderr.decode().splitlines()
    assert (two.returncode, len(lines)) == (2, 2)
    for seed, line in enumerate(lines):
        assert line.startswith(f"trainmon: {B}, seed {seed}: ")
        assert line.endswith("it is there and holds no simulated run")
    assert two.stdout.decode() == f"2 of 4 runs written to {tmp_path / 'two'}\n"
    one = trainmon("simulate", A, "--seeds", "2", "--jobs", "1", "--out", tmp_path / "one")
    assert (one.returncode, one.stderr) == (0, b"")
    for seed in ("seed-0", "seed-1"):
        first, second = (
            {p.name: p.read_bytes() for p in (tmp_path / out / A / seed).iterdir()} for out in ("one", "two")
        )
        assert first == second
        assert len(first) >= 2


@pytest.mark.slow
def test_ctrl_c_ends_cleanly_and_leaves_no_half_run(tmp_path):
    pytest.importorskip("torch")
    begun = threading.Event()

    class Watch(FileSystemEventHandler):
        def on_created(self, event):
            if event.is_directory and event.src_path.endswith(".part"):
                begun.set()

    observer = Observer()
    observer.schedule(Watch(), str(tmp_path), recursive=True)
    observer.start()
    try:
        with start(
            "simulate",
            A,
            B,
            "--seeds",
            "50",
            "--jobs",
            "2",
            "--out",
            str(tmp_path),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        ) as process:
            assert begun.wait(120)
            os.killpg(process.pid, signal.SIGINT)
            out, err = process.communicate(timeout=60)
    finally:
        observer.stop()
        observer.join()
    assert (process.returncode, out, err) == (130, b"", b"trainmon: interrupted\n")
    assert list(tmp_path.rglob("*.part")) == []
    for folder in tmp_path.glob("*/seed-*"):
        assert (folder / "truth.json").is_file()
