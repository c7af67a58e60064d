"""A log of each framework, written from records made by hand and read back by the real readers."""

import math

import numpy as np
import pytest

from tests.reference.logs.reading import (
    EPOCH,
    EVERY,
    HALF,
    KINDS,
    LAST,
    STOP,
    TENSORBOARD,
    keys_of,
    name_of,
    read,
    record,
    records,
    resumed,
    series,
    value_of,
    written,
)
from trainmon_reference.logs import FORMATS, check_log, framework, frameworks, open_log
from trainmon_reference.logs.base import START
from trainmon_reference.record import role_of
from trainmon_reference.scenarios import LogSpec
from trainmon_rules.errors import BadConfig

BY_EPOCH = ("keras", "ultralytics")
SECONDS = {"wandb": 0.0, "megatron": 1.0, "fairseq": 1.0, "openmmlab": 1.0} | dict.fromkeys(TENSORBOARD, 0.0)
"""Frameworks that log wall times, and how far those may be off."""
DIGITS = {"megatron": 5e-4, "fairseq": 5e-4, "openmmlab": 5e-5, "huggingface": 5e-5, "trl": 5e-5, "ultralytics": 5e-6}
"""Half of the last digit that a framework prints."""
SHORT = {("megatron", "loss_scale"), ("fairseq", "throughput")}  # printed with one digit
RENAMED = {("megatron", "valid", "lm loss value"): "lm loss validation", ("openmmlab", "valid", "loss"): "val/loss"}
"""Tags that a dialect tells apart."""
BESIDE = {"epoch", "runtime", "skipped_steps", "final_summary", "step", ""}
"""Roles of what a format holds besides."""


@pytest.fixture(autouse=True)
def _torch(request):
    kind = request.node.callspec.params.get("kind", "wandb") if hasattr(request.node, "callspec") else "wandb"
    if name_of(kind) in TENSORBOARD:
        pytest.importorskip("torch")


def tag_of(kind, phase, key):
    tag = getattr(framework(name_of(kind)), phase)[key]
    return RENAMED.get((kind, phase, tag), tag)


def pairs(kind):
    return [(phase, key) for phase in ("train", "valid") for key in keys_of(kind, phase)]


def expected(kind, phase, key, first=EVERY, last=LAST):
    """Return the steps and values that should have been read."""
    steps = [r.step for r in records(kind, first, last) if r.phase == phase]
    if name_of(kind) not in BY_EPOCH:
        return steps, [value_of(key, step) for step in steps]
    begin = framework(kind).options["first"]
    epochs = [range(n * EPOCH + EVERY, (n + 1) * EPOCH + 1, EVERY) for n in range(LAST // EPOCH)]
    if phase == "valid" or key == "learning_rate":
        return list(range(begin, begin + len(epochs))), [value_of(key, e[-1]) for e in epochs]
    return list(range(begin, begin + len(epochs))), [sum(value_of(key, s) for s in e) / len(e) for e in epochs]


# ---------------------------------------------------------------------- what is written is read
@pytest.mark.parametrize("kind", KINDS)
def test_roles_steps_and_values_come_back(tmp_path, kind):
    session = read(written(tmp_path, kind, records(kind)))
    for phase, key in pairs(kind):
        [one] = series(session, tag_of(kind, phase, key))
        assert one.role == role_of(key), (key, one.tag)
        steps, values = expected(kind, phase, key)
        view = one.tail(one.count)
        assert view.step.tolist() == steps
        assert view.value == pytest.approx(
            values, rel=1e-6, abs=0.05 if (kind, key) in SHORT else DIGITS.get(kind, 0.0)
        )
        off = np.abs(view.time - START - np.array([record(kind, phase, s).seconds for s in steps]))
        if name_of(kind) in SECONDS and (kind, phase) != ("megatron", "valid"):  # a line without a time stamp
            assert off.max() <= SECONDS[name_of(kind)]
        else:
            assert np.isnan(view.time).all()


@pytest.mark.parametrize("kind", KINDS)
def test_no_role_is_read_that_was_not_written(tmp_path, kind):
    session = read(written(tmp_path, kind, records(kind), settings={"total_steps": LAST}))
    [run] = session.runs
    assert run.roles - BESIDE == {role_of(key) for _, key in pairs(kind)}


@pytest.mark.parametrize("kind", KINDS)
def test_nan_and_infinity_survive(tmp_path, kind):
    roles = {"train_loss", "grad_norm", "val_loss", "rl_loss", "adversarial_loss"} & {
        role_of(k) for _, k in pairs(kind)
    }
    lost = {key: math.nan if "loss" in key else math.inf for _, key in pairs(kind) if role_of(key) in roles}
    kept = records(kind, last=LAST - EPOCH)
    broken = [record(kind, "train", step, **lost) for step in range(LAST - EPOCH + EVERY, LAST + 1, EVERY)]
    session = read(written(tmp_path, kind, [*kept, *broken, record(kind, "valid", LAST, **lost)]))
    for phase, key in pairs(kind):
        [one] = series(session, tag_of(kind, phase, key))
        if key in lost:
            assert one.last_value == pytest.approx(lost[key], nan_ok=True), (key, one.tag)
            assert one.last_step == expected(kind, phase, key)[0][-1]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("lightning", "huggingface", "trl")])
def test_a_resume_is_a_second_attempt_of_the_same_run(tmp_path, kind):
    session = read(written(tmp_path, kind, *resumed(kind)))
    [run] = session.runs
    assert len([a for a in run.attempts if a.tracked]) == 2
    key = keys_of(kind, "train")[0]
    first, second = series(session, tag_of(kind, "train", key))
    steps = expected(kind, "train", key)[0]
    assert (first.tail(1).step[0], second.last_step) == (steps[len(steps) * 3 // 4 - 1], steps[-1])
    assert second.tail(second.count).step[0] == steps[len(steps) // 2]


@pytest.mark.parametrize("kind", ["huggingface", "trl"])
def test_a_trainer_state_forgets_what_was_logged_after_the_checkpoint(tmp_path, kind):
    again = [record(kind, "train", step, train_loss=9.0) for step in range(HALF + EVERY, LAST + 1, EVERY)]
    session = read(written(tmp_path, kind, records(kind, last=STOP), again))
    [one] = series(session, "loss")
    view = one.tail(one.count)
    assert view.step.tolist() == list(range(EVERY, LAST + 1, EVERY))
    assert (view.value[view.step > HALF] == 9.0).all()


def test_a_resume_that_would_be_two_tables_is_refused(tmp_path):
    with pytest.raises(BadConfig, match="lightning: a resumed job begins another table"):
        written(tmp_path, "lightning", *resumed("lightning"))


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_records_give_the_same_bytes(tmp_path, kind):
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
        written(folder, kind, records(kind, last=100))
    first, second = ({p.name: p.read_bytes() for p in folder.iterdir()} for folder in folders)
    assert first == second
    assert len(first) == 1


# ---------------------------------------------------------------------- settings
SETTINGS = {"total_steps": 1000, "learning_rate": 3e-4, "precision": "bf16", "max_grad_norm": 0.0, "weight_decay": 0.1,
    "lr_schedule": "restarts", "shuffle": False, "batch_size": 64, "optimizer": "adamw", "eval_steps": 50}  # fmt: skip
LINES = {"total_steps": 1000}
STATE = {"total_steps": 1000, "batch_size": 64, "eval_steps": 50}
TOLD = {
    "wandb": SETTINGS,
    "huggingface-tensorboard": {
        **SETTINGS,
        "lr_schedule": "cosine_with_restarts",
        "optimizer": "adamw_torch",
        "shuffle": None,
    },
    "lightning-tensorboard": {**SETTINGS, "shuffle": None, "eval_steps": None},
    "nanogpt": {**SETTINGS, "shuffle": None, "lr_schedule": None, "optimizer": None},
    "huggingface": STATE,
    "trl": STATE,
    "megatron": LINES,
    "openmmlab": LINES,
}


@pytest.mark.parametrize("kind", list(frameworks()))
def test_settings_arrive_where_the_format_holds_them(tmp_path, kind):
    session = read(written(tmp_path, kind, records(kind), settings=SETTINGS))
    [run] = session.runs
    told = TOLD.get(kind, {})
    found = {key: next((s.get(key) for s in run.said.values()), None) for key in SETTINGS}
    assert found == pytest.approx({key: told.get(key) for key in SETTINGS})


def test_no_settings_are_written_where_a_scenario_says_so(tmp_path):
    log = open_log(tmp_path, LogSpec("wandb", settings=False), SETTINGS)
    log.write(record("wandb", "train", 5))
    log.close()
    assert "config" not in (tmp_path / "log.jsonl").read_text()


# ---------------------------------------------------------------------- the table of frameworks
def test_each_framework_has_a_writer_and_each_writer_a_framework():
    assert {names.format for names in frameworks().values()} == set(FORMATS)


def test_a_role_that_a_framework_has_no_name_for_is_refused():
    check_log(LogSpec("keras", roles=("train_loss", "val_loss")))
    with pytest.raises(BadConfig, match="keras has no name for gpu_util; it has: eval_error, eval_metric"):
        check_log(LogSpec("keras", roles=("train_loss", "gpu_util")))
    with pytest.raises(BadConfig, match="unknown 'kera'"):
        check_log(LogSpec("kera"))


# ---------------------------------------------------------------------- epochs
def test_an_unfinished_epoch_has_no_row(tmp_path):
    session = read(written(tmp_path, "keras", records("keras", last=LAST + 15)))
    [one] = series(session, "loss")
    assert one.last_step == LAST // EPOCH - 1


def test_an_epoch_without_evaluation_says_so(tmp_path):
    only = [r for r in records("keras") if r.phase == "train" or r.step % (2 * EPOCH) == 0]
    written(tmp_path, "keras", only)
    rows = (tmp_path / "training.csv").read_text().splitlines()
    assert [row.count("NA") for row in rows] == [0, *[3, 0] * (LAST // EPOCH // 2)]


def test_an_update_is_found_in_its_epoch(tmp_path):
    log = open_log(tmp_path, LogSpec("ultralytics"), {})
    for one in records("ultralytics"):
        log.write(one)
    log.close()
    assert (log.axis, log.updates_per_step) == ("epoch", EPOCH)
    assert [log.place(update) for update in (0, EPOCH - 1, EPOCH, LAST - 1, LAST)] == [1, 1, 2, 8, 9]
