"""Tasks: each learns, says what it measures by role, is drawn from its seed, and runs in each precision."""

import itertools
import math

import pytest

from tests.reference.training import HEALTHY, RunConfig, Trainer, fell, series, torch, trained
from trainmon_reference.data.corpus import corpus
from trainmon_reference.data.glyphs import CLASSES, glyphs
from trainmon_reference.models.perceptual import feature_distance, features
from trainmon_reference.tasks import TASKS, build_task
from trainmon_reference.tasks.preference import answers, of_text
from trainmon_reference.tasks.tabular import rows
from trainmon_rules.roles.rolefile import table

PROVES = {"bandit": "reward", "gan": "train_error"}
"""What shows that a task is learnt, where its loss is no measure of it."""


@pytest.mark.parametrize("name", TASKS)
def test_each_task_learns(name):
    updates = {"gan": 200, "bandit": 150}.get(name, 60)
    numbers = series(trained(name, updates), PROVES.get(name, "train_loss"))
    assert fell([-x for x in numbers] if name == "bandit" else numbers, 20)


@pytest.mark.parametrize("name", TASKS)
def test_what_is_measured_has_a_role(name):
    known = set(table().roles)
    for record in trained(name, 2, eval_steps=1):
        assert {key.partition(".")[0] for key in record.values} <= known
        assert all(map(math.isfinite, record.values.values()))


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
@pytest.mark.parametrize("name", TASKS)
def test_each_task_runs_in_half_precision(name, precision):
    records = trained(name, 6, precision=precision, loss_scale=256.0, eval_steps=3)
    assert all(map(math.isfinite, series(records, "train_loss") + series(records, "val_loss", "valid")))


@pytest.mark.parametrize("name", TASKS)
def test_the_same_seed_gives_the_same_run_and_another_seed_another(name):
    first, again, other = (trained(name, 3, eval_steps=3, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert series(first, "train_loss") != series(other, "train_loss")


@pytest.mark.parametrize("name", TASKS)
def test_a_small_set_is_a_part_of_the_large_one(name):
    large, small = (build_task(RunConfig(task=name, dataset_size=size)) for size in (0, 64))
    assert all(len(part) == 64 for part in small.train)
    assert all(torch.equal(a, b[:64]) for a, b in zip(small.train, large.train, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(small.valid, large.valid, strict=True))


@pytest.mark.parametrize("name", TASKS)
def test_a_run_goes_on_from_a_checkpoint_as_if_it_had_not_stopped(name):
    config = RunConfig(task=name, total_steps=12, save_steps=6, dropout=0.1).changed(HEALTHY[name])
    first = Trainer(config)
    list(first.run(6))
    checkpoint = first.checkpoint
    rest = series(list(first.run()), "train_loss")
    second = Trainer(config)
    checkpoint.restore(second)
    assert series(list(second.run()), "train_loss") == rest


def test_signed_losses_have_both_signs():
    records = trained("gan", 300)
    for side in ("critic", "generator"):
        numbers = series(records, f"adversarial_loss.{side}")
        assert min(numbers) < 0 < max(numbers)
    numbers = series(trained("bandit", 150), "rl_loss")
    assert min(numbers) < 0 < max(numbers)


def test_the_generator_moves_at_each_fifth_update_only():
    trainer = Trainer(RunConfig(task="gan", total_steps=10))
    weights = [trainer.model.generator.head.weight.detach().clone()]
    weights += [trainer.model.generator.head.weight.detach().clone() for _ in trainer.run()]
    moved = [not torch.equal(a, b) for a, b in itertools.pairwise(weights)]
    assert moved == [False, False, False, False, True] * 2


def test_a_policy_that_learns_leaves_where_it_began_and_tries_less():
    records = trained("bandit", 150)
    assert series(records, "kl")[0] == pytest.approx(0.0, abs=1e-6) and series(records, "kl")[-1] > 0.2
    assert series(records, "entropy")[-1] < series(records, "entropy")[0]


def test_dpo_begins_at_its_reference_and_parts_the_answers():
    records = trained("preference", 80)
    first, last = records[0].values, records[-1].values
    assert first["train_loss"] == pytest.approx(math.log(2)) and first["reward_margin"] == 0.0 == first["kl"]
    assert last["kl"] > 0.0 and sum(series(records, "reward_accuracy")[-20:]) / 20 > 0.65
    for values in (first, last):
        margin = values["implicit_reward.chosen"] - values["implicit_reward.rejected"]
        assert values["reward_margin"] == pytest.approx(margin, abs=1e-5)


def test_a_pair_s_log_probability_is_the_sum_over_its_answer():
    task = build_task(RunConfig(task="preference"))
    model, text = task.model().eval(), task.valid[0][:3]
    logps = of_text(answers(model, text), text)
    one_by_one = sum(model(text[:, :-1]).log_softmax(-1)[range(3), 5 + i, text[:, 6 + i]] for i in range(10))
    torch.testing.assert_close(logps, one_by_one)


@pytest.mark.parametrize(("beta", "expected"), [(0.1, 0.1), (0.5, 0.5)])
def test_beta_scales_the_implicit_reward(beta, expected):
    task = build_task(RunConfig(task="preference", preference_beta=beta))
    moved = task.model()
    with torch.no_grad():
        moved.head.bias += torch.linspace(0, 1, len(moved.head.bias))
    metrics = task.outcome(moved, task.valid).metrics
    chosen, _, anchor, _ = task.valid
    away = (metrics["logps.chosen"] - of_text(anchor, chosen).mean()) * expected
    assert float(metrics["implicit_reward.chosen"]) == pytest.approx(float(away), rel=1e-3)


def test_classes_are_as_many_and_as_unequal_as_the_config_says():
    _, labels = rows(4000, RunConfig(num_classes=3, imbalance=0.9))
    parts = torch.bincount(labels) / 4000
    assert parts.tolist() == pytest.approx([0.9, 0.05, 0.05], abs=0.02)
    _, labels = rows(4000, RunConfig(num_classes=2))
    assert (torch.bincount(labels) / 4000).tolist() == pytest.approx([0.5, 0.5], abs=0.03)


def test_images_of_a_digit_look_more_alike_than_those_of_others():
    images, labels = glyphs(2000, 0)
    assert set(labels.tolist()) == set(range(CLASSES))
    means = torch.stack([images[labels == digit].mean(0) for digit in range(CLASSES)]).flatten(1)
    assert torch.pdist(means).min() > 0.5


def test_the_text_is_plain_ascii_and_long_enough():
    assert len(corpus()) == 200_000 and corpus().isascii()


def test_the_network_of_the_perceptual_loss_is_made_once_and_touches_no_random_state():
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    features.cache_clear()
    first = features()
    assert torch.equal(torch.rand(1), expected)
    features.cache_clear()
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), features().parameters(), strict=True))
    images, _ = glyphs(8, 0)
    assert feature_distance(images, images) == 0.0
    assert feature_distance(images.roll(1, 0), images) > 4 * feature_distance(images + 0.05, images)


def test_a_contrastive_loss_is_the_same_in_a_long_batch_as_in_short_ones():
    task = build_task(RunConfig(task="contrastive"))
    model = task.model().eval()
    whole = task.outcome(model, task.valid).loss
    pieces = [task.outcome(model, tuple(part[at : at + 32] for part in task.valid)).loss for at in range(0, 512, 32)]
    torch.testing.assert_close(whole, torch.stack(pieces).mean())


def test_the_highest_attention_logit_is_told_and_query_key_norm_bounds_it():
    large = {"initialization": "large", "total_steps": 1}
    assert series(list(Trainer(RunConfig(task="text").changed(large)).run()), "attention")[0] > 50
    bounded = Trainer(RunConfig(task="text").changed({**large, "qk_norm": True}))
    assert series(list(bounded.run()), "attention")[0] <= 4.0 + 1e-4  # √16


def test_a_capped_logit_stays_below_its_cap():
    task = build_task(RunConfig(task="text", logit_soft_cap=2.0, initialization="large"))
    assert task.model()(task.valid[0]).abs().max() <= 2.0
