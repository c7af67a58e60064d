"""truth.json read back: what is written comes back, and what isn't a truth is refused in one line."""

import dataclasses
import json

import pytest

from trainmon_reference.scenarios import load_scenarios
from trainmon_reference.truth import SCHEMA, read_truth
from trainmon_rules.errors import BadInput


def truth(scenario, **changes):
    """Return what `simulate` writes beside a log, without torch."""
    head = {
        "schema": SCHEMA,
        "scenario": scenario.name,
        "family": scenario.family,
        "half": scenario.half,
        "seed": 3,
        "label": "healthy" if scenario.healthy else "faulty",
        "about": scenario.about,
    }
    return {**head, **dataclasses.asdict(scenario.truth), "torch": "2.13.0", **changes}


def written(folder, data):
    (folder / "truth.json").write_text(json.dumps(data))
    return read_truth(folder)


@pytest.mark.parametrize("scenario", load_scenarios().values(), ids=lambda s: s.name)
def test_what_is_written_comes_back(scenario, tmp_path):
    found = written(tmp_path, truth(scenario))
    assert found.truth == scenario.truth
    assert (found.scenario, found.family, found.half) == (scenario.name, scenario.family, scenario.half)
    assert (found.seed, found.healthy) == (3, scenario.healthy)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"schema": "trainmon.truth/2"}, "schema"),
        ({"half": "third"}, "half 'third'"),
        ({"label": "healthy"}, "label 'healthy'"),
        ({"seed": "3"}, "seed"),
        ({"symptoms": "divergence"}, "symptoms"),
        ({"symptoms": [1]}, "symptoms"),
        ({"onset": 2.5}, "onset"),
        ({"onset": -1}, "onset"),
        ({"curable": 1}, "curable"),
        ({"routes": None}, "routes"),
    ],
)
def test_a_truth_that_does_not_fit_is_refused(changes, word, tmp_path):
    with pytest.raises(BadInput, match=word) as refused:
        written(tmp_path, truth(load_scenarios()["rate-raised-text"], **changes))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("text", "word"), [("{", "no JSON"), ("[]", "schema"), ("\xff", "no JSON")])
def test_what_is_no_truth_is_refused(text, word, tmp_path):
    (tmp_path / "truth.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(BadInput, match=word):
        read_truth(tmp_path)
    (tmp_path / "truth.json").unlink()
    with pytest.raises(BadInput, match="no such file"):
        read_truth(tmp_path)
