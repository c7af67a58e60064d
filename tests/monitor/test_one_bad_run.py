"""A fault in one detector or one run, ours or a user's, never stops the others."""

import json
from dataclasses import dataclass
from typing import ClassVar

import pytest

from tests.engine import SETTINGS, session
from trainmon import replay
from trainmon.inspecting import inspect
from trainmon_rules.detectors import DETECTORS, Detector, Rule
from trainmon_rules.diagnosis import Knowledge
from trainmon_rules.findings import Severity
from trainmon_rules.postmortem import report_runs
from trainmon_rules.roles import RoleTable
from trainmon_rules.state import Settings


class Fragile(Detector):
    """A detector with a bug: it can't stand the number 13, wherever its rule says."""

    name: ClassVar[str] = "fragile"

    @dataclass(frozen=True, slots=True)
    class Params:
        where: str = "update"

    params: Params

    def __init__(self, *given):
        super().__init__(*given)
        self.fail("init", self.series.tag == "train_loss")
        self.met = False

    def fail(self, where, unlucky):
        if unlucky and where == self.params.where:
            raise ArithmeticError("thirteen")

    def update(self, block):
        for i, value in enumerate(block.value):
            if value == 7:
                self.open = self.finding(block, i, "seven", {})
                yield self.open
            self.met = self.met or value == 13
            self.fail("update", self.met)

    def standing(self):
        self.fail("standing", self.met)
        return self.open

    def blind(self):
        self.fail("blind", self.met)
        return ""


def rule(where):
    parameters = (("where", where),)
    return Rule("fragile", "fragile", ("train_loss",), "flat", Severity.INFO, "learning", parameters=parameters)


@pytest.fixture
def settings(monkeypatch):
    """Settings by the place where the detector fails; faults are put into the report, as users have it."""
    monkeypatch.delenv("TRAINMON_DEBUG")
    monkeypatch.setitem(DETECTORS, "fragile", Fragile)
    return lambda where="update": Settings((rule(where),), RoleTable.load())


@pytest.fixture
def paths(tmp_path):
    out = []
    for name, odd, tag in (("a", 1.0, "loss"), ("bad", 13.0, "train_loss"), ("z", 1.0, "loss")):
        path = tmp_path / f"{name}.jsonl"
        values = [odd if i == 20 else 7.0 if i == 15 else 1.0 for i in range(40)]
        path.write_text("".join(json.dumps({"step": i, tag: v}) + "\n" for i, v in enumerate(values)))
        out.append(path)
    return out


@pytest.mark.parametrize(("where", "step"), [("update", 20), ("standing", 39), ("blind", 39)])
def test_a_detector_that_fails_is_listed_as_blind_and_the_run_is_told(settings, paths, where, step):
    report = replay(*paths, settings=settings(where))
    assert [r.run for r in report.runs] == ["a.jsonl", "bad.jsonl", "z.jsonl"]
    assert report.errors == ()
    needs = f"failed by an internal error at step {step} (please report it): ArithmeticError: thirteen"
    assert [[(b.rule, b.needs) for b in r.blind] for r in report.runs] == [[], [("fragile", needs)], []]
    assert [[i.summary for i in r.incidents] for r in report.runs] == [["seven"]] * 3


def test_the_other_rules_go_on(settings):
    loss = [2.0 + 0.01 * (i % 3) for i in range(300)]
    loss[100], loss[200] = 13.0, float("nan")
    every = Settings((rule("update"), *SETTINGS.rules), SETTINGS.roles)
    told = session({"loss": loss}, settings=settings("update"))
    both = session({"loss": loss}, settings=every)
    assert {f.rule for f in both.runs[0].findings.values()} >= {"nonfinite"}
    assert len(both.runs[0].failures) == len(told.runs[0].failures) == 1


def test_a_diagnosis_that_fails_costs_the_incident_its_causes_only(settings):
    loss = [2.0 + 0.01 * (i % 3) for i in range(300)]
    loss[200:] = [float("nan")] * 100
    run = session({"loss": loss})
    [report] = report_runs(run, Knowledge(own=object()))
    assert "nonfinite" in [i.symptom for i in report.incidents]
    assert [i.causes for i in report.incidents] == [()] * len(report.incidents)
    [needs] = [b.needs for b in report.blind if b.rule == "nonfinite"]
    assert needs.startswith("its diagnosis failed by an internal")


def test_the_other_runs_are_replayed_and_the_fault_is_listed(settings, paths):
    report = replay(*paths, settings=settings("init"))
    assert [r.run for r in report.runs] == ["a.jsonl", "z.jsonl"]
    [error] = report.errors
    assert (error.source, error.fatal) == ("bad.jsonl", True)
    assert error.error.startswith("internal error: ArithmeticError: thirteen")


@pytest.mark.parametrize("where", ["init", "update", "standing", "blind"])
def test_who_debugs_gets_the_exception(settings, paths, monkeypatch, where):
    monkeypatch.setenv("TRAINMON_DEBUG", "1")
    with pytest.raises(ArithmeticError, match="thirteen"):
        replay(*paths, settings=settings(where))


def test_inspect_shows_the_others_too(settings, paths):
    shown = inspect(*paths, settings=settings("init"))
    assert [r.run for r in shown.runs] == ["a.jsonl", "z.jsonl"]
    assert [(e.source, e.fatal) for e in shown.errors] == [("bad.jsonl", True)]
