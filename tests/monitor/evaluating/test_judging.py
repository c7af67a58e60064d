"""One run: what is a hit, what is tolerated, what is a false alarm, and how late it came."""

import numpy as np
import pytest

from trainmon.evaluating.alarms import Alarm
from trainmon.evaluating.judging import judge
from trainmon.evaluating.traces import Trace
from trainmon_reference.scenarios.scenario import Truth
from trainmon_reference.truth import Labelled


def trace(interval=10, nonfinite=None, **truth):
    """Return a run that logged every 10 steps from 10 to 1000."""
    rows = np.arange(10, 1001, 10)
    return Trace("t", Labelled("s", "f", "test", 0, "", Truth(**truth)), interval, rows, nonfinite, (), {})


def faulty(**more):
    return trace(cause="divergence", onset=500, symptoms=("divergence", "loss-spike"), also=("plateau",), **more)


def alarm(step, *symptoms, severity="warning", **more):
    return Alarm(symptoms, severity, step, **more)


def words(run, *alarms):
    return [word for _, word in judge(run, alarms).judged]


@pytest.mark.parametrize(
    ("step", "symptoms", "word"),
    [
        (500, ("divergence",), "hit"),
        (490, ("divergence",), "hit"),  # a report early
        (489, ("divergence",), "false"),
        (1000, ("grad-spike", "loss-spike"), "hit"),  # one of its findings
        (500, ("plateau",), "tolerated"),
        (480, ("plateau",), "false"),  # nothing is right before the onset
        (500, ("overfit", "plateau"), "tolerated"),
        (500, ("overfit",), "false"),
    ],
)
def test_a_faulty_run(step, symptoms, word):
    assert words(faulty(), alarm(step, *symptoms)) == [word]


@pytest.mark.parametrize(
    ("symptoms", "word"),
    [(("plateau",), "tolerated"), (("plateau", "slow"), "false"), (("nonfinite",), "false")],
)
def test_a_healthy_run(symptoms, word):
    assert words(trace(also=("plateau",)), alarm(5, *symptoms)) == [word]


def test_an_info_is_a_note_and_it_is_known_whether_it_would_have_been_right():
    verdict = judge(faulty(), [alarm(600, "divergence", severity="info")])
    assert (verdict.hit, verdict.false, verdict.noted) == (None, [], True)
    assert words(faulty(), alarm(600, "overfit", severity="info")) == ["note"]
    assert not judge(faulty(), [alarm(600, "overfit", severity="info")]).noted
    assert not judge(faulty(), [alarm(400, "divergence", severity="info")]).noted


def test_the_first_hit_counts_in_whatever_order_they_come():
    alarms = [alarm(700, "divergence"), alarm(400, "divergence"), alarm(600, "loss-spike")]
    verdict = judge(faulty(), alarms)
    assert verdict.hit is alarms[2]
    assert verdict.false == [alarms[1]]


@pytest.mark.parametrize(
    ("step", "steps", "rows"), [(490, 0, 0), (500, 0, 0), (505, 5, 0), (510, 10, 1), (600, 100, 10)]
)
def test_the_delay_is_from_the_onset_in_steps_and_in_rows(step, steps, rows):
    verdict = judge(faulty(), [alarm(step, "divergence")])
    assert (verdict.delay_steps, verdict.delay_rows) == (steps, rows)


def test_the_lead_is_over_the_first_loss_that_is_not_finite():
    hit = [alarm(520, "divergence")]
    assert judge(faulty(nonfinite=550), hit).lead == 30
    assert judge(faulty(nonfinite=510), hit).lead == -10
    assert judge(faulty(), hit).lead is None
    assert judge(faulty(nonfinite=550), []).lead is None


def test_the_primary_route_is_right_if_it_is_one_of_the_truth():
    run = faulty(routes=("learning-rate-scheduling",), questions=("precision",))
    right = judge(run, [alarm(500, "divergence", route="learning-rate-scheduling")])
    assert (right.right_route, right.right_question, right.asked) == (True, False, False)
    asks = judge(run, [alarm(500, "divergence", route="gradient-management", asks=("precision", "batch_size"))])
    assert (asks.right_route, asks.right_question, asks.asked) == (False, True, True)
    wrong = judge(run, [alarm(500, "divergence", asks=("batch_size",))])
    assert (wrong.right_route, wrong.right_question, wrong.asked) == (False, False, True)


def test_without_a_hit_or_a_route_in_the_truth_there_is_no_verdict_on_it():
    assert judge(faulty(), [alarm(500, "divergence", route="x")]).right_route is None
    assert judge(faulty(routes=("x",)), []).right_route is None
