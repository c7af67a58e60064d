"""A scenario becomes a log and the truth beside it: whole or not at all, and the same bytes each time."""

import dataclasses

import pytest

from tests.reference.logs.reading import read, series
from trainmon_reference.config import RunConfig
from trainmon_reference.layout import draft_of, folder_of
from trainmon_reference.scenarios import LogSpec, Resume, Scenario, Truth
from trainmon_reference.truth import FILE, read_truth
from trainmon_rules.errors import BadConfig, BadOutput

torch = pytest.importorskip("torch")
simulating = pytest.importorskip("trainmon_reference.simulate")
simulate, settings_of = simulating.simulate, simulating.settings_of

TINY = RunConfig(task="text", total_steps=60, batch_size=4, width=8, depth=1, eval_steps=20, save_steps=20)
TRUTH = Truth(cause="learning-rate-too-high", onset=50, symptoms=("divergence",))
HERE = Scenario("tiny", "tiny", "tuning", "A tiny run.", TINY, LogSpec("nanogpt", every=2), TRUTH)
STOPPED = dataclasses.replace(HERE, resume=Resume(at=50, since=40))


def bytes_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(autouse=True)
def _as_before():
    threads, strict = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    yield
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(strict)


@pytest.mark.parametrize("framework", ["wandb", "nanogpt", "lightning-tensorboard"])
def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(tmp_path, framework):
    scenario = dataclasses.replace(STOPPED, log=LogSpec(framework, every=2))
    first, again = (bytes_of(simulate(scenario, 0, tmp_path / out)) for out in "ab")
    other = bytes_of(simulate(scenario, 1, tmp_path / "a"))
    assert first == again
    assert not set(first.values()) & set(other.values())


def test_a_resumed_job_is_one_run_with_two_attempts(tmp_path):
    folder = simulate(STOPPED, 0, tmp_path)
    assert len(list(folder.glob("events.out.tfevents.*"))) == 2
    session = read(folder)
    assert len(session.runs) == 1
    first, second = series(session, "train/loss")
    assert (first.last_step, second.tail(second.count).step[0], second.last_step) == (50, 42, 60)
    assert second.tail(second.count).time[0] > first.tail(1).time[0]


def test_the_truth_stands_beside_the_log(tmp_path):
    folder = simulate(HERE, 7, tmp_path)
    assert folder == folder_of(tmp_path, "tiny", 7) == tmp_path / "tiny" / "seed-7"
    found = read_truth(folder)
    assert (found.scenario, found.seed, found.truth, found.torch) == ("tiny", 7, TRUTH, torch.__version__)


def test_a_run_is_made_anew_and_what_an_interrupted_one_left_is_gone(tmp_path):
    folder = simulate(HERE, 0, tmp_path)
    (folder / "old").write_text("old")
    draft = draft_of(tmp_path, "tiny", 0)
    draft.mkdir()
    (draft / "half").write_text("half")
    simulate(HERE, 0, tmp_path)
    assert not (folder / "old").exists()
    assert [path.name for path in folder.parent.iterdir()] == ["seed-0"]
    assert (folder / FILE).exists() and not (folder / "half").exists()


def test_a_folder_that_holds_no_run_is_left_alone(tmp_path):
    folder = folder_of(tmp_path, "tiny", 0)
    folder.mkdir(parents=True)
    (folder / "thesis.tex").write_text("mine")
    with pytest.raises(BadOutput, match="it is there and holds no simulated run"):
        simulate(HERE, 0, tmp_path)
    assert (folder / "thesis.tex").read_text() == "mine"


def test_a_run_that_fails_leaves_nothing(tmp_path):
    with pytest.raises(BadConfig, match="tiny: no checkpoint at 30; save_steps has to fit"):
        simulate(dataclasses.replace(HERE, resume=Resume(at=50, since=30)), 0, tmp_path)
    assert list((tmp_path / "tiny").iterdir()) == []


def test_settings_that_a_run_makes_no_use_of_are_not_told():
    told = settings_of(dataclasses.replace(TINY, eval_steps=0))
    assert told["max_grad_norm"] == told["weight_decay"] == 0.0  # says that they are off
    assert not {"eval_steps", "decay_steps", "loss_scale", "preference_beta", "initialization", "seed"} & set(told)
    assert settings_of(dataclasses.replace(TINY, precision="fp16"))["loss_scale"] == 65536.0
