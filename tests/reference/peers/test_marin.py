"""Marin's floor: the lowest of the last five minutes against the fifty-five before; a report each ten seconds."""

from tests.reference.peers.runs import NAN, points, told
from trainmon_reference.peers import TrainingLossSpike

SPIKE = ("loss-spike", "divergence")


def every_ten_seconds(values):
    return points(values, first=0, seconds=10.0)


def test_a_level_is_told_once_all_of_five_minutes_are_above():
    # 3.0 from second 3600 on. The last 2.0, of second 3590, leaves the five minutes at second 3890: the minute after
    # is second 3900, at report 390
    assert told(TrainingLossSpike(), train_loss=every_ten_seconds([2.0] * 360 + [3.0] * 60)) == {390: SPIKE}


def test_single_steps_are_never_told():
    loss = [2.0] * 360 + [50.0 if i % 30 else 2.0 for i in range(60)]
    assert told(TrainingLossSpike(), train_loss=every_ten_seconds(loss)) == {}


def test_a_rise_of_less_than_five_hundredths_is_none():
    assert told(TrainingLossSpike(), train_loss=every_ten_seconds([2.0] * 360 + [2.04] * 60)) == {}


def test_it_warms_up_until_there_are_twenty_before_and_five_recent():
    # with 19 reports more than five minutes old the level isn't seen; by the next minute it is part of the baseline
    assert told(TrainingLossSpike(), train_loss=every_ten_seconds([2.0] * 13 + [3.0] * 60)) == {}
    sparse = points([2.0] * 60 + [3.0] * 10, first=0, seconds=100.0)  # three in five minutes
    assert told(TrainingLossSpike(), train_loss=sparse) == {}


def test_what_is_not_finite_is_a_reason_of_its_own():
    # the NaN of second 610 is recent at minute 11, report 66
    assert told(TrainingLossSpike(), train_loss=every_ten_seconds([2.0] * 61 + [NAN] + [2.0] * 60)) == {
        66: ("nonfinite",)
    }


def test_a_nan_in_the_baseline_blinds_it():
    loss = [2.0] * 300 + [NAN] + [2.0] * 59 + [3.0] * 60
    assert told(TrainingLossSpike(), train_loss=every_ten_seconds(loss)) == {300: ("nonfinite",)}


def test_with_the_wait_of_five_minutes_a_level_is_never_told():
    loss = every_ten_seconds([2.0] * 360 + [3.0] * 360)
    assert told(TrainingLossSpike(pending_minutes=1), train_loss=loss) == {396: SPIKE}
    assert told(TrainingLossSpike(pending_minutes=5), train_loss=loss) == {}


def test_without_wall_times_nothing_can_be_said():
    assert told(TrainingLossSpike(), train_loss=[2.0] * 400 + [9.0] * 100) == {}
