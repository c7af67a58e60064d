"""EarlyStopping, TerminateOnNaN, ReduceLROnPlateau: patience to the evaluation, ties, NaN."""

import pytest

from tests.reference.peers.runs import INF, NAN, told
from trainmon_reference.peers import EarlyStopping, ReduceLROnPlateau, TerminateOnNaN

STOPPED = ("plateau", "flat", "overfit", "divergence")
LOWERED = ("plateau", "flat", "overfit")


def test_three_evaluations_without_improvement_stop_the_run_and_a_tie_is_none():
    assert told(EarlyStopping(), val_loss=[3.0, 2.0, 2.0, 2.0]) == {}
    assert told(EarlyStopping(), val_loss=[3.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0]) == {5: STOPPED}


def test_any_improvement_counts_from_the_beginning():
    assert told(EarlyStopping(), val_loss=[3.0, 3.1, 3.2, 2.999, 3.0, 3.1, 3.2]) == {7: STOPPED}
    assert told(EarlyStopping(min_delta=0.01), val_loss=[3.0, 3.1, 3.2, 2.999]) == {4: STOPPED}


def test_the_first_that_is_not_finite_stops_it():
    assert told(EarlyStopping(), val_loss=[3.0, NAN, 2.0]) == {2: ("nonfinite",)}
    assert told(EarlyStopping(check_finite=False), val_loss=[3.0, NAN, NAN, NAN]) == {4: STOPPED}


def test_early_stopping_hears_the_validation_loss_alone():
    assert told(EarlyStopping(), train_loss=[2.0] * 50 + [NAN]) == {}


@pytest.mark.parametrize("value", [NAN, INF, -INF])
def test_the_first_loss_that_is_not_finite_terminates(value):
    assert told(TerminateOnNaN(), train_loss=[1.0, 2.0, value, value]) == {3: ("nonfinite",)}


def test_terminate_on_nan_minds_no_finite_loss_and_no_gradient():
    assert told(TerminateOnNaN(), train_loss=[1.0, 1e30], grad_norm=[NAN, INF]) == {}


def test_the_rate_is_lowered_after_ten_evaluations_and_again_after_ten_more():
    assert told(ReduceLROnPlateau(), val_loss=[2.0] * 10) == {}
    assert told(ReduceLROnPlateau(), val_loss=[2.0] * 21) == {11: LOWERED, 21: LOWERED}


def test_less_than_the_least_difference_is_no_improvement():
    assert told(ReduceLROnPlateau(), val_loss=[2.0 - 0.9e-4 * (i % 2) for i in range(11)]) == {11: LOWERED}
    assert told(ReduceLROnPlateau(), val_loss=[2.0, *[2.0] * 9, 1.9998, *[2.0] * 9]) == {}


def test_a_nan_is_no_improvement():
    assert told(ReduceLROnPlateau(), val_loss=[2.0] + [NAN] * 10) == {11: LOWERED}


def test_a_cooldown_waits():
    assert list(told(ReduceLROnPlateau(cooldown=5), val_loss=[2.0] * 26)) == [11, 25]
