"""What every registered detector must keep, whoever wrote it.

A new detector is covered as soon as it is registered and has a run in `tests.streams.AILING` on which it fires.
"""

import pickle
import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.columns import Columns
from tests.streams import AILING, HEALTHY, SETTINGS, batch, findings, gaussian, sessions
from trainmon_rules.detectors import DETECTORS
from trainmon_rules.engine import Session
from trainmon_rules.findings import Severity, State
from trainmon_rules.postmortem import _six

RULES = {r.name: r.detector for r in SETTINGS.rules}
AWKWARD = [float("nan"), float("inf"), float("-inf"), 1e300, -1e300, 0.0, float("nan")]
EXPECTED = {("warm_restarts", "loss-spike"), ("ar1", "loss-spike")}
"""Healthy streams on which a rule may warn: each restart of the rate does lift the loss, by eight sigma here."""


def story(session):
    """All that must not depend on how the points came: findings with evidence to six digits."""
    return [
        sorted(
            (
                *(f.key, f.onset_step, f.detected_step, f.severity, f.state, f.resolved_step, f.summary, f.recovery),
                *((k, _six(v)) for k, v in sorted(f.evidence.items())),
            )
            for f in run.findings.values()
        )
        for run in session.runs
    ]


def fires(name, columns):
    return [f for f in findings(columns) if RULES[f.rule] == name]


def test_every_detector_has_a_rule_and_a_run_on_which_it_fires():
    assert set(DETECTORS) == set(RULES.values())
    assert set(DETECTORS) == set(AILING)


@pytest.mark.parametrize("name", DETECTORS)
def test_it_fires_on_its_fault(name):
    assert fires(name, AILING[name](0))


@pytest.mark.parametrize("name", DETECTORS)
@given(st.integers(0, 3), st.lists(st.integers(1, 1200), max_size=30))
@settings(max_examples=5)
def test_cuts_change_nothing(name, seed, cuts):
    columns = AILING[name](seed)
    assert story(sessions(columns, cuts)) == story(sessions(columns))


@pytest.mark.parametrize("name", DETECTORS)
def test_row_by_row_is_the_same_as_at_once(name):
    columns = AILING[name](1)
    assert story(sessions(columns, range(2000))) == story(sessions(columns))


@pytest.mark.parametrize("name", DETECTORS)
def test_a_report_in_between_changes_nothing(name):
    columns = AILING[name](0)
    asked, rest = Session("run", SETTINGS), sessions(columns, range(0, 2000, 7))
    asked.open("log")
    for a in range(0, max(map(len, columns.values())), 7):
        asked.feed("log", batch(columns, a, a + 7))
        asked.refresh()
    assert story(asked) == story(rest)
    for session in (asked, rest):
        session.end()
    assert story(asked) == story(rest)


def hasty(rule):
    """The rule with whole-numbered parameters so small that it decides within its first reports."""
    small = {k: min(v, 4) for k, v in DETECTORS[rule.detector].parameters().items() if type(v) is int}
    own = {k: min(v, 4) if type(v) is int else v for k, v in rule.parameters}
    return replace(rule, parameters=tuple({**small, **own}.items()))


HASTY = replace(SETTINGS, rules=tuple(hasty(r) for r in SETTINGS.rules))


def in_steps(columns, seed, n=60):
    """The columns' first level, then levels of theirs and far outside, each for some reports."""
    rng, out = random.Random(seed), Columns(columns)
    out.settings = getattr(columns, "settings", {}) | {"preference_method": "grpo"}
    for tag, values in columns.items():
        known = [v for v in values if v is not None] or [1.0]
        levels = [known[0], known[-1], 0.0, 0.05, 1.0, 9.0, max(known), 4 * max(known)]
        row = []
        while len(row) < n:
            row += [rng.choice(levels)] * rng.randrange(1, 9)
        out[tag] = values[:n] if tag in ("time", "step", "epoch") else row[:n]
    return out


@pytest.mark.parametrize("name", DETECTORS)
def test_no_detector_looks_ahead_within_its_first_reports(name):
    for seed in range(4):
        columns = in_steps(AILING[name](0), seed)
        at_once = story(sessions(columns, settings=HASTY))
        assert at_once == story(sessions(columns, range(60), settings=HASTY)), f"seed {seed}"


@pytest.mark.parametrize("name", DETECTORS)
@given(st.integers(0, 3), st.lists(st.integers(1, 1200), min_size=1, max_size=5))
@settings(max_examples=3)
def test_a_snapshot_in_between_changes_nothing(name, seed, cuts):
    columns = AILING[name](seed)
    assert story(sessions(columns, cuts, pickled=True)) == story(sessions(columns))


@pytest.mark.parametrize("name", DETECTORS)
@pytest.mark.parametrize("seed", range(2))
def test_awkward_numbers_and_gaps_never_raise(name, seed):
    rng = random.Random(seed)
    columns = AILING[name](seed)
    for values in columns.values():
        for i in rng.sample(range(len(values)), 60):
            values[i] = rng.choice([*AWKWARD, None, None])
        gap = rng.randrange(len(values) - 50)
        values[gap : gap + 50] = [None] * 50
    story(sessions(columns))


@pytest.mark.parametrize("value", AWKWARD)
@pytest.mark.parametrize("name", DETECTORS)
def test_a_series_of_one_awkward_number_never_raises(name, value):
    columns = {tag: [value] * 300 for tag in AILING[name](0)}
    story(sessions(columns))


@pytest.mark.parametrize("name", DETECTORS)
def test_awkward_numbers_do_not_blind_it(name):
    columns = AILING[name](0)
    for values in columns.values():
        values[40 : 40 + len(AWKWARD)] = AWKWARD
    found = fires(name, columns)  # what was said early and still holds is as good
    assert [f for f in found if f.detected_step > 60 or f.state is State.FIRING]


def own_state(session):
    """The size of what each detector owns, without the series it shares."""
    shared = {"series", "peer", "settings", "rule", "params"}
    sizes = {}
    for t in session.runs[0].attempts[0].tracked.values():
        for d in [*t.detectors, *t.waiting]:
            inner = getattr(d, "inner", d)
            own = {k: v for k, v in vars(inner).items() if k not in shared}
            sizes[inner.name, t.series.tag] = len(pickle.dumps(own))
    return sizes


def test_memory_is_bounded():
    columns = gaussian(100_000, 0)
    columns["eval_loss"] = columns["loss"] + 0.1
    session, sizes = Session("run", SETTINGS), []
    for start in range(0, 100_000, 2_000):
        session.feed("log", batch(columns, start, start + 2_000))
        if start + 2_000 in (10_000, 100_000):
            sizes.append((own_state(session), len(pickle.dumps(session))))
    (small, whole_small), (large, whole_large) = sizes
    assert {k: large[k] - small[k] for k in small if large[k] > small[k] + 4_000} == {}
    assert max(large.values()) < 16_000
    assert whole_large < whole_small + 80_000


def loud(name, n, seed):
    found = findings(HEALTHY[name](n, seed))
    assert [f for f in found if f.severity is Severity.CRITICAL] == []
    return [(f.rule, f.detected_step, f.summary) for f in found if f.severity is Severity.WARNING]


@pytest.mark.parametrize("name", HEALTHY)
def test_silence_on_healthy_noise(name):
    for seed in range(10):
        unexpected = [w for w in loud(name, 3_000, seed) if (name, w[0]) not in EXPECTED]
        assert unexpected == [], f"seed {seed}"


@pytest.mark.slow
@pytest.mark.parametrize("name", HEALTHY)
def test_silence_on_twenty_thousand_healthy_steps(name):
    for seed in range(20):
        unexpected = [w for w in loud(name, 20_000, seed) if (name, w[0]) not in EXPECTED]
        assert unexpected == [], f"seed {seed}"


def test_the_healthy_streams_differ_by_seed_and_repeat_by_seed():
    for make in HEALTHY.values():
        assert np.array_equal(make(300, 1)["loss"], make(300, 1)["loss"])
        assert not np.array_equal(make(300, 1)["loss"], make(300, 2)["loss"])
