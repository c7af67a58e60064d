"""Numbers on which an ordinary formula divides by nothing: the detector has nothing to say, and doesn't fail."""

import math
import random

import numpy as np
import pytest

from tests.engine import SETTINGS
from trainmon_rules.detectors import Rule
from trainmon_rules.diagnosis import Knowledge
from trainmon_rules.engine import Session
from trainmon_rules.findings import Severity
from trainmon_rules.points import Batch, Params, chunk
from trainmon_rules.postmortem import report_runs

KNOWLEDGE = Knowledge.load()


def report(tags, step=None, time=None, params=None, rules=()):
    n = len(next(iter(tags.values())))
    steps = np.arange(n) if step is None else np.asarray(step)
    session = Session("run", SETTINGS.judged_by((*SETTINGS.rules, *rules)))
    events = [Params(0, params)] if params else []
    session.feed("log", Batch([chunk(tag, steps, v, time) for tag, v in tags.items()], events))
    session.end()
    [told] = report_runs(session, KNOWLEDGE)
    return {i.rule: i for i in told.incidents}


def test_an_epoch_that_goes_up_and_down_is_no_length_of_one():
    """Folds, phases of an adversarial training, ranks in turn."""
    rng = random.Random(0)
    loss = [2 + 0.3 * ((i % 20) / 20) + rng.gauss(0, 0.01) for i in range(400)]
    told = report({"epoch": [(i // 20) % 2 for i in range(400)], "loss": loss})
    assert all("period in epochs" not in i.evidence for i in told.values())
    assert "overfit" not in told


def test_a_step_that_stands_still_has_no_growth_a_step():
    told = report({"gpu_memory_allocated": 1e9 + 1e7 * np.arange(600)}, step=[7] * 600)
    assert told == {}


def test_margins_beyond_all_reason_have_no_level():
    rng = random.Random(0)
    margins = [rng.choice([1e308, -1e308, 1.7e308]) for _ in range(300)]
    told = report({"rewards/margins": margins, "rewards/accuracies": [0.7] * 300})
    assert "preference-margin" not in told


@pytest.mark.parametrize("cycle", [[10.0, *[math.inf] * 19], [math.inf, -1e308, 2.0**63, -math.inf]])
def test_an_endless_throughput_is_no_pace(cycle):
    told = report({"throughput": cycle * (1200 // len(cycle))}, time=1.7e9 + np.arange(1200 // len(cycle) * len(cycle)))
    assert told == {}


def test_a_pace_of_nothing_is_no_usual_one():
    steps = np.array([30.0 if i % 20 == 0 else 0.0 for i in range(600)])
    assert "periodic-stall" not in report({"loss": [1.5] * 600}, time=1.7e9 + np.cumsum(steps))


@pytest.mark.parametrize("level", [-900.0, 0.0])
def test_a_level_of_a_role_that_is_judged_as_it_is_may_be_anything(level):
    rule = Rule("logps-spike", "grad-spike", ("logps",), "grad-spike", Severity.WARNING, "instability")
    rng = random.Random(0)
    logps = [level + rng.gauss(0, 1) for _ in range(300)]
    logps[200:206] = [level + 5000.0] * 6
    told = report({"logps/chosen": logps}, rules=[rule])["logps-spike"]
    assert told.onset_step == 200
    assert abs(told.evidence["level before"] - level) < 3


@pytest.mark.parametrize(("first", "total"), [(-303, 1000), (10**18, 10**18 + 400)])
def test_steps_below_nothing_or_beyond_counting_have_no_factor(first, total):
    rate = 1e-3 * 0.5 * (1 + np.cos(np.pi * np.arange(600) / 600))
    params = {"max_steps": total, "lr_scheduler_type": "cosine", "learning_rate": 1e-3, "warmup_steps": 0}
    told = report({"learning_rate": rate}, step=first + np.arange(600), params=params)
    assert told.keys() <= {"lr-declared"}
