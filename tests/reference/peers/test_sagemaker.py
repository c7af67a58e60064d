"""SageMaker Debugger's rules on the numbers of a log; each ends when it fires."""

from tests.reference.peers.runs import NAN, points, told
from trainmon_reference.peers import LossNotDecreasing, Overfit, StalledTraining, VanishingGradient

STUCK = ("flat", "slow", "plateau", "divergence")


def falling(n):
    return [100.0 - i for i in range(n)]


def test_a_loss_that_is_no_lower_than_ten_steps_before_is_told_and_a_tie_is_no_decrease():
    assert told(LossNotDecreasing(), train_loss=falling(50)) == {}
    assert told(LossNotDecreasing(), train_loss=[2.0] * 50) == {11: STUCK}


def test_only_every_tenth_step_is_looked_at():
    loss = falling(50)
    loss[15] = 500.0  # step 16: between step 11 and step 21
    assert told(LossNotDecreasing(), train_loss=loss) == {}
    loss[20] = loss[10]  # step 21 ties with step 11
    assert told(LossNotDecreasing(), train_loss=loss) == {21: STUCK}


def test_a_sparse_log_is_held_against_the_report_before():
    assert told(LossNotDecreasing(), train_loss=points([3.0, 2.0, 2.5], every=500)) == {1001: STUCK}
    # every 4 steps: step 13 is the first ten on; the last at least ten back is step 1
    assert told(LossNotDecreasing(), train_loss=points([3.0, 1.0, 1.0, 2.9, 1.0], every=4)) == {}


def test_the_validation_loss_speaks_first():
    validation = points([3.0, 2.0, 2.0], first=50, every=50)
    assert told(LossNotDecreasing(), train_loss=[2.0] * 200, val_loss=validation) == {150: STUCK}


def test_a_nan_does_not_fire_it_and_a_percentage_is_heard():
    assert told(LossNotDecreasing(), train_loss=[*falling(10), NAN]) == {}
    assert told(LossNotDecreasing(diff_percent=50.0), train_loss=falling(50)) == {11: STUCK}


def test_a_validation_loss_a_tenth_above_the_training_losses_since_the_last_is_overfit():
    validation = points([2.125, 2.25], first=10, every=10)
    assert told(Overfit(), train_loss=[2.0] * 20, val_loss=validation) == {20: ("overfit",)}
    # the mean of steps 11 to 20 counts, not that of all
    assert told(Overfit(), train_loss=[2.0] * 10 + [1.0] * 10, val_loss=points([2.0, 2.0], 10, 10)) == {
        20: ("overfit",)
    }


def test_patience_counts_evaluations_in_a_row():
    validation = points([3.0, 2.0, 3.0, 3.0], first=10, every=10)
    assert told(Overfit(patience=2), train_loss=[2.0] * 40, val_loss=validation) == {40: ("overfit",)}


def test_what_is_not_finite_is_never_overfit():
    assert told(Overfit(), train_loss=[NAN] * 10, val_loss=points([3.0], first=10)) == {}


def test_a_mean_gradient_below_the_threshold_has_vanished():
    assert told(VanishingGradient(), grad_norm=[1.0, 1e-7, 0.9e-7, 0.0]) == {3: ("grad-vanishing",)}
    assert told(VanishingGradient(), 0, 10_000, grad_norm=[1.0, 1.1e-5, 0.9e-5]) == {3: ("grad-vanishing",)}
    assert told(VanishingGradient(), grad_norm=[NAN, 1.0]) == {}


def test_more_than_half_an_hour_of_silence_is_a_stall_at_the_report_before():
    one = points([1.0, 1.0], seconds=1800.0)
    assert told(StalledTraining(), train_loss=one) == {}
    late = points([1.0, 1.0, 1.0], seconds=1801.0)
    assert told(StalledTraining(), train_loss=late) == {1: ("stall",)}


def test_an_evaluation_breaks_the_silence_and_without_wall_times_there_is_none():
    between = points([1.0], first=1, start=1000.0, seconds=1.0)
    assert told(StalledTraining(), train_loss=points([1.0, 1.0], seconds=2000.0), val_loss=between) == {}
    assert told(StalledTraining(), train_loss=[1.0, 1.0]) == {}
