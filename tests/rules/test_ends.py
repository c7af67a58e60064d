"""When a run ends, and when it is asked in the middle: neither changes what is found."""

from math import inf, nan

import numpy as np
import pytest

from trainmon import Monitor
from trainmon_rules.engine import Session
from trainmon_rules.points import Batch, Boundary, chunk
from trainmon_rules.state import Settings

SETTINGS = Settings.default()
N = 100
AT = np.arange(6, N, 7)
VAL = 100000.0 + 45000 * np.arange(len(AT))


def validation(a, b):
    i, j = np.searchsorted(AT, [a, b])
    chunks = [chunk("val_loss", AT[i:j], VAL[i:j], 1.7e9 + AT[i:j], AT[i:j])] if j > i else []
    return Batch(chunks, [Boundary(61, "run", "x")] if a <= 61 < b else [])


def other(a, b):
    rows = np.arange(a, b)
    return Batch([chunk("misc", rows, np.ones(b - a), 1.7e9 + rows, rows)])


def told(order):
    session = Session("run", SETTINGS)
    for name in ("other", "val"):
        session.open(name)
    for name, a, b in order:
        session.feed(name, (other if name == "other" else validation)(a, b))
    session.end()
    return [
        (i.run, i.id, i.lead.detected_step, i.state, i.lead.summary, i.lead.evidence)
        for r in session.runs
        for i in r.incidents
    ]


def test_a_run_ends_only_when_all_of_it_was_judged():
    """Its source begins another run while its points still wait for the other source."""
    plain = told([("other", 0, N), ("val", 0, N)])
    assert plain
    for cut in range(1, N, 6):
        assert told([("other", 0, cut), ("val", 0, N), ("other", cut, N)]) == plain, f"cut {cut}"


@pytest.mark.parametrize("value", [[0.5, nan, inf]])
def test_reports_in_the_middle_leave_the_last_one_as_it_is(value):
    def last(ask):
        m = Monitor("r", Settings.default(None, {"c": "loss_component"}))
        for k, x in enumerate(value * 19):
            m.log({"c": x}, step=19 + 20 * k)
            if ask:
                m.report()
        m.close()
        return [(i.rule, i.state, i.summary, i.evidence) for i in m.report().runs[0].incidents]

    assert last(ask=True) == last(ask=False)
