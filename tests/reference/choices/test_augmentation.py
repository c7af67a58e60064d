"""Augmentation: what it changes, what it leaves, and that each trains."""

import pytest

from tests.reference.training import RunConfig, Trainer, learns, series, torch, trained
from trainmon_reference.choices.augmentation import ALSO, STRENGTHS, augmented, distorted
from trainmon_reference.data.glyphs import glyphs
from trainmon_rules.vocabulary import vocabulary


@pytest.mark.parametrize("strength", [*STRENGTHS, *ALSO])
def test_each_strength_trains(strength):
    assert learns("images", augmentation=strength)


@pytest.mark.parametrize("task", ["tabular", "text", "sequence"])
def test_what_is_no_image_trains_too(task):
    assert learns(task, augmentation="strong")


@pytest.mark.parametrize("change", [{"mixup": 0.4}, {"cutmix": 1.0}, {"mixup": 0.4, "cutmix": 1.0}])
@pytest.mark.parametrize("task", ["images", "tabular", "sequence"])
def test_mixup_and_cutmix_train_classifications_and_regressions(task, change):
    assert learns(task, **change)


def test_every_strength_that_a_fix_may_ask_for_is_there():
    assert {*STRENGTHS, *ALSO} == set(vocabulary()["augmentation"].choices)


def test_no_augmentation_is_the_batch_itself():
    batch = glyphs(8, 0)
    assert all(a is b for a, b in zip(augmented(batch, RunConfig(), 1, 10), batch, strict=True))


def test_stronger_is_further_away_and_targets_stay():
    images, labels = glyphs(256, 0)
    away = []
    for strength in STRENGTHS:
        changed, same = augmented((images, labels), RunConfig(augmentation=strength), 1, 10)
        assert same is labels and changed.shape == images.shape
        away.append(float((changed - images).square().mean()))
    assert away == sorted(away) and away[1] > 0


def test_a_shift_moves_an_image_and_fills_with_background():
    image = torch.zeros(200, 1, 8, 8)
    image[:, :, 0, 0] = 100.0
    moved = distorted(image, "light", 0).round()
    places = {tuple(index) for index in (moved > 50).nonzero()[:, 2:].tolist()}
    assert places == {(0, 0), (0, 1), (1, 0), (1, 1)}
    assert ((moved > 50).sum((1, 2, 3)) <= 1).all()


def test_half_of_the_images_are_mirrored_where_it_is_strong():
    image = torch.zeros(400, 1, 8, 8)
    image[:, :, :, 2] = 100.0  # shifts of up to 2: columns 0 … 4, mirrored 3 … 7
    at = distorted(image, "strong", 0).mean(2)[:, 0].argmax(1)
    assert {*at.tolist()} == {*range(8)} and 60 < (at > 4).sum() < 180


def test_symbols_are_replaced_by_symbols_and_few_of_them():
    text = torch.randint(50, (512, 16), generator=torch.Generator().manual_seed(0))
    changed = distorted(text, "strong", 0)
    assert changed.dtype == text.dtype
    assert (changed != text).float().mean() == pytest.approx(0.098, abs=0.01)  # one in fifty is itself


def test_mixup_mixes_inputs_and_class_shares_alike():
    inputs = torch.eye(4)
    mixed, shares = augmented((inputs, torch.arange(4)), RunConfig(mixup=1.0), 3, 4)
    assert torch.allclose(mixed, shares) and torch.allclose(shares.sum(1), torch.ones(4))
    assert not torch.equal(mixed, inputs)


def test_cutmix_takes_a_patch_and_shares_its_area():
    images = torch.arange(16.0).view(16, 1, 1, 1).expand(16, 1, 8, 8)
    mixed, shares = augmented((images, torch.arange(16)), RunConfig(cutmix=1.0), 2, 16)
    for number, (image, share) in enumerate(zip(mixed[:, 0], shares, strict=True)):
        kept = float((image == number).float().mean())
        assert share[number] == pytest.approx(kept)
        assert len(image.unique()) <= 2
    assert any(len(image.unique()) == 2 for image in mixed)


def test_a_regression_s_targets_are_mixed_as_numbers():
    inputs, targets = torch.tensor([[0.0], [1.0]]), torch.tensor([0.0, 1.0])
    for number in range(5):
        mixed, values = augmented((inputs, targets), RunConfig(mixup=1.0), number)
        assert torch.allclose(mixed[:, 0], values)


def test_a_batch_is_augmented_the_same_after_a_restore():
    config = RunConfig(task="images", augmentation="medium", mixup=0.4, save_steps=5, total_steps=10)
    first = Trainer(config)
    list(first.run(5))
    checkpoint = first.checkpoint
    rest = series(list(first.run()), "train_loss")
    second = Trainer(config)
    checkpoint.restore(second)
    assert series(list(second.run()), "train_loss") == rest


def test_validation_data_are_never_augmented():
    change = {"learning_rate": 0.0, "eval_steps": 1, "normalization": "none"}
    plain, strong = (trained("images", 1, augmentation=how, **change) for how in ("none", "strong"))
    assert series(plain, "val_loss", "valid") == series(strong, "val_loss", "valid")
