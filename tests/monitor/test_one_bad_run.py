"""A fault in one run, ours or a user's detector's, never stops the others."""

import json
from dataclasses import dataclass
from typing import ClassVar

import pytest

from trainmon import replay
from trainmon.inspecting import inspect
from trainmon_rules.detectors import DETECTORS, Detector, Rule
from trainmon_rules.findings import Severity
from trainmon_rules.roles import RoleTable
from trainmon_rules.state import Settings


class Fragile(Detector):
    """A detector with a bug: it can't stand the number 13."""

    name: ClassVar[str] = "fragile"

    @dataclass(frozen=True, slots=True)
    class Params:
        pass

    def update(self, block):
        if (block.value == 13).any():
            raise ArithmeticError("thirteen")
        return ()


@pytest.fixture
def settings(monkeypatch):
    monkeypatch.setitem(DETECTORS, "fragile", Fragile)
    rule = Rule("fragile", "fragile", ("train_loss",), "flat", Severity.INFO, "learning")
    return Settings((rule,), RoleTable.load())


@pytest.fixture
def paths(tmp_path):
    out = []
    for name, odd in (("a", 1.0), ("bad", 13.0), ("z", 1.0)):
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps({"step": i, "loss": odd if i == 20 else 1.0}) + "\n" for i in range(40)))
        out.append(path)
    return out


def test_the_others_are_replayed_and_the_fault_is_listed(settings, paths, monkeypatch):
    monkeypatch.delenv("TRAINMON_DEBUG", raising=False)
    report = replay(*paths, settings=settings)
    assert [r.run for r in report.runs] == ["a.jsonl", "z.jsonl"]
    [error] = report.errors
    assert (error.source, error.fatal) == ("bad.jsonl", True)
    assert error.error.startswith("internal error: ArithmeticError: thirteen")


def test_who_debugs_gets_the_exception(settings, paths, monkeypatch):
    monkeypatch.setenv("TRAINMON_DEBUG", "1")
    with pytest.raises(ArithmeticError, match="thirteen"):
        replay(*paths, settings=settings)


def test_inspect_shows_the_others_too(settings, paths, monkeypatch):
    monkeypatch.delenv("TRAINMON_DEBUG", raising=False)
    shown = inspect(*paths, settings=settings)
    assert [r.run for r in shown.runs] == ["a.jsonl", "z.jsonl"]
    assert [(e.source, e.fatal) for e in shown.errors] == [("bad.jsonl", True)]
