"""What a rule lacked is told: roles, reports, settings; and how detectors learn of settings."""

import numpy as np
import pytest

from tests.engine import session
from trainmon_rules.diagnosis import Knowledge
from trainmon_rules.engine import Session
from trainmon_rules.points import Batch, Params, chunk
from trainmon_rules.postmortem import report_runs
from trainmon_rules.state import Settings


def blind(tags):
    [report] = report_runs(session(tags), Knowledge.load())
    return {b.rule: b.needs for b in report.blind}


def falling(n):
    return 2 + np.exp(-np.arange(n) / 20)


def test_too_few_reports_are_told():
    assert blind({"loss": falling(79)})["plateau"] == "fewer than 80 reports are logged"
    assert "plateau" not in blind({"loss": falling(80)})


def test_one_series_that_can_be_judged_is_enough():
    assert "plateau" not in blind({"loss": falling(90), "reward": [None] * 60 + [1.0 + i for i in range(30)]})


def test_a_role_that_is_not_logged_is_told():
    assert blind({"loss": falling(90)})["overfit"] == "no validation loss is logged"


def asked(answers, events, name="total_steps"):
    """What a detector hears when it asks for a setting after 20 reports."""
    s = Session("run", Settings.default(answers))
    s.feed("log", Batch([chunk("loss", range(20), falling(20))], events))
    [tracked] = s.runs[0].attempts[0].tracked.values()
    return tracked.detectors[0].setting(name)


@pytest.mark.parametrize(
    ("answers", "events", "expected"),
    [
        ({}, [], None),
        ({}, [Params(0, {"trainer/max_steps": 500})], 500),
        ({}, [Params(15, {"max_steps": "2k"})], 2000),  # also where it comes after the first points
        ({}, [Params(0, {"max_steps": 500}), Params(10, {"max_steps": 600})], 600),  # the later word counts
        ({"total_steps": 700}, [Params(0, {"max_steps": 500})], 700),  # the user's goes first
        ({}, [Params(25, {"max_steps": 500})], None),  # not known yet
    ],
)
def test_a_detector_hears_settings_of_the_log_and_of_the_user(answers, events, expected):
    assert asked(answers, events) == expected
