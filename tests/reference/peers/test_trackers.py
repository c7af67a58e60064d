"""W&B's z-score: mean and deviation of the 30 before, more than three of them off, once a day."""

from tests.reference.peers.runs import NAN, points, told, wobble
from trainmon_reference.peers import RisingZScore, ZScore

SPIKE = ("loss-spike", "divergence")


def test_more_than_three_deviations_off_is_an_alarm_and_exactly_three_are_none():
    assert told(ZScore(), train_loss=[*wobble(30), 5.0]) == {}
    assert told(ZScore(), train_loss=[*wobble(30), 5.01]) == {31: SPIKE}


def test_nothing_is_judged_before_the_window_is_full():
    assert told(ZScore(), train_loss=[*wobble(28), 2.0, 100.0]) == {}


def test_a_fall_is_an_alarm_unless_only_a_rise_is_asked_for():
    fall = [*wobble(30), -1.01]
    assert told(ZScore(), train_loss=fall) == {31: SPIKE}
    assert told(RisingZScore(), train_loss=fall) == {}
    assert told(RisingZScore(), train_loss=[*wobble(30), 5.01]) == {31: SPIKE}


def test_a_nan_is_no_alarm_and_blinds_the_rule_until_it_has_left_the_window():
    assert told(ZScore(), train_loss=[*wobble(30), NAN, *wobble(28), 2.0, 100.0]) == {}
    assert told(ZScore(), train_loss=[*wobble(30), NAN, *wobble(30), 100.0]) == {62: SPIKE}


def test_one_that_is_constant_is_never_off():
    assert told(ZScore(), train_loss=[2.0] * 30 + [9.0]) == {}


def test_it_fires_once_in_a_day():
    spikes = [*wobble(30), 100.0, *wobble(30), 1000.0, *wobble(30), 9999.0]
    hourly = points(spikes, seconds=3600.0)  # the spikes are 31 hours apart
    assert list(told(ZScore(), train_loss=hourly)) == [31, 62, 93]
    half = points(spikes, seconds=1800.0)  # 15.5 hours: the second falls into the quiet day
    assert list(told(ZScore(), train_loss=half)) == [31, 93]
    assert list(told(ZScore(), train_loss=spikes)) == [31]  # without wall times: once


def test_without_a_loss_there_is_nothing():
    assert told(ZScore(), grad_norm=[*wobble(30), 100.0]) == {}
