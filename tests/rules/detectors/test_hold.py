"""`for:` keeps short episodes quiet and dates long ones to the report that decided."""

from dataclasses import replace

import numpy as np
import pytest

from trainmon_rules.engine import Session
from trainmon_rules.points import Batch, chunk
from trainmon_rules.state import Settings


def detected(values, hold, size):
    default = Settings.default()
    rules = tuple(replace(r, hold=hold) for r in default.rules if r.name == "nonfinite")
    session = Session("run", replace(default, rules=rules))
    for at in range(0, len(values), size):
        part = values[at : at + size]
        steps = np.arange(at, at + len(part)) * 10
        session.feed("log", Batch([chunk("loss", steps, part, row=np.arange(at, at + len(part)))]))
    return [(f.onset_step, f.detected_step, str(f.state)) for f in session.runs[0].findings.values()]


@pytest.mark.parametrize("size", [1, 3, 100])
def test_only_what_lasts_is_said(size):
    values = np.ones(60)
    values[10:12] = np.nan
    values[30:50] = np.nan
    assert detected(values, 0, size) == [(100, 100, "resolved"), (300, 300, "resolved")]
    assert detected(values, 5, size) == [(300, 350, "resolved")]
