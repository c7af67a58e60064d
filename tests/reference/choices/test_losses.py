"""Losses: each trains its task, and is the formula that it should be."""

import math

import pytest

from tests.reference.training import RunConfig, Trainer, fell, learns, series, torch, trained
from trainmon_reference.choices import losses
from trainmon_rules.errors import BadConfig

TASK = {
    **dict.fromkeys(losses.REGRESSION, "sequence"),
    **dict.fromkeys(losses.CLASSIFICATION, "tabular"),
    **dict.fromkeys(losses.PAIR, "contrastive"),
    **dict.fromkeys(losses.RECONSTRUCTION, "autoencoder"),
}


@pytest.mark.parametrize("name", [name for name in losses.LOSSES if name in TASK])
def test_each_loss_falls_while_its_task_is_trained(name):
    assert learns(TASK[name], loss_function=name)


def test_the_adversarial_loss_brings_the_generated_points_to_the_real_ones():
    records = trained("gan", 200, loss_function="wgan-gp")
    assert fell(series(records, "train_error"), 20)
    assert all(math.isfinite(x) for x in series(records, "adversarial_loss.critic"))


def test_the_seed_s_seventeen_losses_are_there():
    assert len(losses.REGRESSION) == 5
    assert {*losses.CLASSIFICATION} == {"bce", "cross-entropy", "focal", "label-smoothing", "hinge", "kl"}
    assert {*losses.PAIR, *losses.RECONSTRUCTION, *losses.ADVERSARIAL, "kl"} == {
        "contrastive", "triplet", "infonce", "kl", "reconstruction-l1", "reconstruction-l2", "perceptual", "wgan-gp",
    }  # fmt: skip


def test_log_cosh_is_its_formula_and_does_not_overflow():
    output, target = torch.tensor([0.3, -1.0, 2.0]), torch.zeros(3)
    assert losses.log_cosh(output, target) == pytest.approx(float(output.cosh().log().mean()), rel=1e-5)
    assert losses.log_cosh(torch.tensor([1e4]), torch.zeros(1)) == pytest.approx(1e4 - math.log(2), rel=1e-6)


def test_the_quantile_loss_is_least_at_its_percentile():
    numbers = torch.arange(101.0)
    at = [float(losses.quantile(torch.full_like(numbers, guess), numbers)) for guess in range(101)]
    assert at.index(min(at)) == 90


def test_focal_is_the_cross_entropy_less_where_the_class_is_sure():
    config, logits = RunConfig(), torch.tensor([[3.0, 0.0], [0.0, 0.0]])
    shares = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    p = logits.softmax(1)[:, 0]
    assert losses.focal(logits, shares, config) == pytest.approx(float((-((1 - p) ** 2) * p.log()).mean()), rel=1e-5)


def test_hinge_is_zero_beyond_the_margin_and_straight_before():
    config, shares = RunConfig(), torch.tensor([[1.0, 0.0]])
    assert losses.hinge(torch.tensor([[1.5, -2.0]]), shares, config) == 0.0
    assert losses.hinge(torch.tensor([[-1.0, -2.0]]), shares, config) == 1.0  # (2 + 0) / 2


def test_label_smoothing_punishes_certainty():
    sure, unsure = torch.tensor([[30.0, 0.0]]), torch.tensor([[3.0, 0.0]])
    shares, config = torch.tensor([[1.0, 0.0]]), RunConfig()
    smoothed, plain = losses.CLASSIFICATION["label-smoothing"], losses.CLASSIFICATION["cross-entropy"]
    assert smoothed(sure, shares, config) > smoothed(unsure, shares, config)
    assert plain(sure, shares, config) < plain(unsure, shares, config)


@pytest.mark.parametrize("name", losses.PAIR)
def test_pairs_that_lie_together_cost_less_than_pairs_that_are_crossed(name):
    points = torch.eye(4)
    assert losses.PAIR[name](points, points) < losses.PAIR[name](points, points.roll(1, 0))


def test_the_gradient_penalty_is_zero_for_a_slope_of_one():
    real, fake = torch.randn(8, 2), torch.randn(8, 2)
    assert losses.gradient_penalty(lambda x: x[:, :1], real, fake) == pytest.approx(0.0, abs=1e-6)
    assert losses.gradient_penalty(lambda x: 3.0 * x[:, :1], real, fake) == pytest.approx(4.0, rel=1e-5)


def test_the_squared_error_on_class_numbers_is_a_wrong_loss_that_can_be_trained():
    wrong = Trainer(RunConfig(task="tabular", loss_function="mse", total_steps=150))
    right = Trainer(RunConfig(task="tabular", total_steps=150))
    assert wrong.model.head.out_features == 1
    accuracy = [sum(series(list(each.run()), "train_metric")[-20:]) / 20 for each in (wrong, right)]
    assert accuracy[0] < accuracy[1] - 0.1


def test_a_binary_cross_entropy_on_numbers_is_a_wrong_loss_that_falls_below_zero():
    records = trained("sequence", 150, loss_function="bce")
    assert min(series(records, "train_loss")) < 0


@pytest.mark.parametrize(
    ("task", "name", "words"),
    [
        ("sequence", "cross-entropy", "this task takes no 'cross-entropy'; it takes: mse, mae"),
        ("images", "infonce", "this task takes no 'infonce'"),
        ("preference", "mse", "this task takes no 'mse'; it takes: dpo"),
        ("text", "msee", "unknown 'msee'; it takes: mse, mae"),
    ],
)
def test_a_loss_that_the_task_cannot_have_is_one_clear_line(task, name, words):
    with pytest.raises(BadConfig, match=f"^loss_function: {words}"):
        Trainer(RunConfig(task=task, loss_function=name))
