"""truth.json: what is written is read; what can't be used is one clear line; no torch is needed."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest

from trainmon_reference.config import RunConfig
from trainmon_reference.logs import frameworks, open_log
from trainmon_reference.record import Record
from trainmon_reference.scenarios import LogSpec, Scenario, Truth
from trainmon_reference.truth import FILE, Labelled, read_truth, truth_of, write_truth
from trainmon_rules.errors import BadInput

FAULT = Truth(cause="learning-rate-too-high", onset=70, symptoms=("divergence",), routes=("gradient-management",))


def scenario(framework, truth):
    return Scenario("a-b", "a", "test", "About it.", RunConfig(), LogSpec(framework, every=2), truth)


def logged(folder, framework):
    """Return a closed log of 100 updates, 25 an epoch."""
    log = open_log(folder, LogSpec(framework), {"total_steps": 100})
    for step in range(1, 101):
        log.write(Record(step, step / 25, float(step), "train", {"train_loss": 1.0}))
    log.close()
    return log


@pytest.mark.parametrize(
    ("framework", "axis", "every", "updates", "onset"),
    [("wandb", "step", 2, 1.0, 70), ("keras", "epoch", 25, 25.0, 2), ("ultralytics", "epoch", 25, 25.0, 3)],
)
def test_a_truth_comes_back_with_the_onset_on_the_logs_own_axis(tmp_path, framework, axis, every, updates, onset):
    truth = truth_of(scenario(framework, FAULT), 3, logged(tmp_path, framework), "2.0")
    write_truth(tmp_path, truth)
    found = read_truth(tmp_path)
    assert found == truth
    assert (found.truth, found.healthy, found.label, found.seed) == (FAULT, False, "faulty", 3)
    assert (found.axis, found.every, found.updates_per_step, found.onset_logged) == (axis, every, updates, onset)


def test_a_healthy_run_has_no_onset(tmp_path):
    truth = truth_of(scenario("keras", Truth()), 0, logged(tmp_path, "keras"), "2.0")
    assert (truth.healthy, truth.label, truth.onset_logged) == (True, "healthy", -1)


def test_the_file_has_the_fields_of_the_truth_beside_the_others(tmp_path):
    write_truth(tmp_path, truth_of(scenario("wandb", FAULT), 3, logged(tmp_path, "wandb"), "2.0"))
    data = json.loads((tmp_path / FILE).read_text())
    names = {f.name for kind in (Labelled, Truth) for f in dataclasses.fields(kind)} - {"truth"}
    assert set(data) == names | {"schema", "label"}
    assert (data["schema"], data["label"], data["onset"]) == ("trainmon.truth/1", "faulty", 70)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema": "trainmon.truth/2"}, "is not of the schema trainmon.truth/1"),
        ({"onset": "70"}, "onset"),
        ({"symptoms": "divergence"}, "symptoms"),
        ({"half": "both"}, "half 'both' is none"),
        ({"label": "healthy"}, "label 'healthy' and cause 'learning-rate-too-high' don't fit"),
        ({"onset": -1}, "onset: -1 of a faulty run"),
        ({"cause": None}, "has no cause"),
    ],
)
def test_what_is_no_truth_is_said(tmp_path, change, said):
    truth = truth_of(scenario("wandb", FAULT), 3, logged(tmp_path, "wandb"), "2.0")
    data = {key: value for key, value in {**truth.as_dict(), **change}.items() if value is not None}
    (tmp_path / FILE).write_text(json.dumps(data))
    with pytest.raises(BadInput, match=said):
        read_truth(tmp_path)


@pytest.mark.parametrize(("text", "said"), [("{", "is no JSON"), ("[1]", "schema"), ("[" * 100_000, "is no JSON")])
def test_a_broken_file_is_said(tmp_path, text, said):
    (tmp_path / FILE).write_text(text)
    with pytest.raises(BadInput, match=said):
        read_truth(tmp_path)


def test_a_missing_file_is_said(tmp_path):
    with pytest.raises(BadInput, match="can't be read: no such file or directory"):
        read_truth(tmp_path)


def test_scenarios_logs_and_truths_load_without_torch():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import trainmon_reference.layout, trainmon_reference.truth, trainmon_reference.logs as logs\n"
        "from trainmon_reference.scenarios import load_scenarios\n"
        "for s in load_scenarios().values(): logs.check_log(s.log)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_each_field_and_each_framework_is_documented(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "simulate.md").read_text("utf-8")
    told = truth_of(scenario("wandb", FAULT), 3, logged(tmp_path, "wandb"), "2.0").as_dict()
    for name in (*told, *frameworks()):
        assert f"`{name}`" in page
