"""OLMo-core, llm-foundry and Lightning Fabric: their windows, their patience, and what a NaN does to them."""

import pytest

from tests.reference.peers.runs import INF, NAN, told, wobble
from trainmon_reference.peers import FabricSpike, KillLossSpike, StabilityMonitor

LOSS, NORM = ("loss-spike", "divergence"), ("grad-spike", "grad-explosion")


# ------------------------------------------------------------------------------------------ OLMo-core
def test_more_than_six_sigma_above_the_mean_of_the_128_before_is_a_spike():
    assert told(StabilityMonitor(), train_loss=[*wobble(128), 8.0]) == {}
    assert told(StabilityMonitor(), train_loss=[*wobble(128), 8.01]) == {129: LOSS}
    assert told(StabilityMonitor(), train_loss=[*wobble(126), 1.0, 100.0]) == {}  # 127 before it


def test_a_spike_of_the_gradient_norm_is_one_of_the_gradient():
    assert told(StabilityMonitor(), grad_norm=[*wobble(128), 9.0], train_loss=wobble(130)) == {129: NORM}


def test_a_fall_is_no_spike_and_a_flat_window_judges_nothing():
    assert told(StabilityMonitor(), train_loss=[*wobble(128), -100.0]) == {}
    assert told(StabilityMonitor(), train_loss=[2.0] * 128 + [100.0]) == {}


def test_a_spike_enters_the_window_and_hides_the_next():
    # with 1000 in it the 128 have mean 9.8 and deviation 87.9: nothing below 537 is a spike
    assert told(StabilityMonitor(), train_loss=[*wobble(128), 1000.0, 500.0]) == {129: LOSS}


def test_one_nan_blinds_it_for_128_reports():
    assert told(StabilityMonitor(), train_loss=[*wobble(128), NAN]) == {}
    assert told(StabilityMonitor(), train_loss=[*wobble(128), NAN, *wobble(126), 1.0, 100.0]) == {}
    assert told(StabilityMonitor(), train_loss=[*wobble(128), NAN, *wobble(128), 100.0]) == {258: LOSS}


# ---------------------------------------------------------------------------------------- llm-foundry
def test_the_fifth_report_in_a_row_of_twice_the_mean_is_told():
    # the outliers enter the window: its mean is 1.08 at the fifth, still less than half of 3
    assert told(KillLossSpike(), train_loss=[1.0] * 100 + [3.0] * 4 + [1.0]) == {}
    assert told(KillLossSpike(), train_loss=[1.0] * 100 + [3.0] * 6) == {105: LOSS, 106: LOSS}


def test_exactly_twice_the_mean_is_an_outlier():
    # 2.0 against 1.0 is one, but then the mean is 1.01 and 2.0 isn't any more: the count starts anew
    assert told(KillLossSpike(patience=0), train_loss=[1.0] * 100 + [2.0, 2.0]) == {101: LOSS}


def test_a_nan_is_no_outlier_and_resets_the_count():
    assert told(KillLossSpike(), train_loss=[1.0] * 100 + [3.0] * 4 + [NAN] + [3.0] * 10) == {}


def test_the_spike_of_bloom_is_never_told():
    assert told(KillLossSpike(), train_loss=[2.2] * 200 + [5.1, 4.6, 4.2, 3.9, 3.6] + [2.2] * 50) == {}


def test_the_window_is_five_per_cent_of_a_long_run():
    spike = [1.0] * 100 + [3.0] * 5
    assert told(KillLossSpike(), 2000, train_loss=spike) == {105: LOSS}
    assert told(KillLossSpike(), 2020, train_loss=spike) == {}  # 101 reports


def test_half_a_window_above_the_highest_of_the_first_is_a_high_loss():
    # from step 201 on; at step 251 the window before it holds 50 of them
    found = told(KillLossSpike(), train_loss=[3.0] * 200 + [3.5] * 52)
    assert found == {251: ("divergence",), 252: ("divergence",)}
    assert told(KillLossSpike(), train_loss=[3.0] * 100 + [3.5] * 99) == {}  # not before two windows
    assert list(told(KillLossSpike(), train_loss=[12.0] * 201)) == [200, 201]  # the cap is 10


# ------------------------------------------------------------------------------------ Lightning Fabric
@pytest.mark.parametrize(("value", "found"), [(2.99, {}), (3.0, {11: LOSS}), (-5.0, {})])
def test_three_times_the_mean_is_a_spike_and_what_is_better_never(value, found):
    assert told(FabricSpike(), train_loss=[1.0] * 10 + [value]) == found


@pytest.mark.parametrize("value", [NAN, INF, -INF])
def test_a_loss_that_is_not_finite_is_told(value):
    assert told(FabricSpike(), train_loss=[1.0, value, 1.0]) == {2: ("nonfinite",)}


def test_neither_spikes_nor_nan_enter_the_window():
    found = told(FabricSpike(), train_loss=[1.0] * 10 + [100.0, NAN, 3.0, 2.9])
    assert found == {11: LOSS, 12: ("nonfinite",), 13: LOSS}


def test_the_mean_is_of_the_last_ten_good_ones():
    # 10 of 4 push the ones out: 11.9 isn't three times 4, but would be three times anything lower
    assert told(FabricSpike(), train_loss=[2.0] * 10 + [4.0] * 10 + [11.9]) == {}
    assert told(FabricSpike(), train_loss=[2.0] * 10 + [4.0] * 9 + [11.9]) == {20: LOSS}


def test_the_first_report_is_never_judged():
    assert told(FabricSpike(), train_loss=[NAN, 1.0]) == {}
