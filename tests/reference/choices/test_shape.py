"""What shapes a model and its training: activations, normalisations, initialisations, regularisers."""

import pytest

from tests.reference.training import RunConfig, Trainer, fell, learns, series, torch, trained
from trainmon_reference.choices.activations import ACTIVATIONS
from trainmon_reference.choices.initialization import ALSO, INITIALIZATIONS, initialize
from trainmon_reference.choices.normalization import NORMALIZATIONS, build_normalization
from trainmon_reference.choices.regularization import DropPath, penalty
from trainmon_rules.errors import BadConfig

nn = torch.nn


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_each_activation_trains(name):
    assert learns("tabular", activation=name)


@pytest.mark.parametrize("name", NORMALIZATIONS)
def test_each_normalisation_trains_on_images(name):
    assert learns("images", normalization=name)


@pytest.mark.parametrize("name", [name for name in NORMALIZATIONS if name != "instance"])
def test_each_normalisation_of_features_trains_on_rows(name):
    assert learns("tabular", normalization=name)


@pytest.mark.parametrize("name", ["layer", "rms", "none"])
def test_each_normalisation_of_a_place_trains_on_text(name):
    assert learns("text", normalization=name)


OVER = {  # axes over which the output has mean 0 and variance 1, once cut into groups of channels
    ("batch", False): (0,),
    ("batch", True): (0, 3, 4),
    ("layer", False): (1, 2),
    ("layer", True): (1, 2, 3, 4),
    ("group", False): (2,),
    ("group", True): (2, 3, 4),
    ("instance", True): (3, 4),
}


@pytest.mark.parametrize(("name", "images"), OVER)
def test_a_normalised_output_has_mean_0_and_variance_1_over_what_it_looks_at(name, images):
    x = 5.0 + 3.0 * torch.randn((16, 32, 4, 4) if images else (16, 32), generator=torch.Generator().manual_seed(0))
    y = build_normalization(name, 32, images=images)(x).detach().unflatten(1, (4, 8))
    over = OVER[name, images]
    assert y.mean(over).abs().max() < 1e-5
    assert (y.var(over, correction=0) - 1.0).abs().max() < 1e-3


@pytest.mark.parametrize("images", [False, True])
def test_the_root_mean_square_over_features_is_1(images):
    x = 5.0 + torch.randn((16, 8, 4, 4) if images else (16, 8))
    y = build_normalization("rms", 8, images=images)(x).detach()
    torch.testing.assert_close(y.square().mean(1), torch.ones_like(y[:, 0]), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", [*INITIALIZATIONS, *ALSO])
def test_each_initialisation_trains(name):
    assert learns("images", initialization=name, learning_rate=1e-2)


@pytest.mark.parametrize(
    ("name", "deviation"),
    [("xavier-normal", (2 / (400 + 200)) ** 0.5), ("xavier-uniform", (2 / (400 + 200)) ** 0.5),
     ("kaiming-normal", (2 / 400) ** 0.5), ("kaiming-uniform", (2 / 400) ** 0.5), ("he", (2 / 400) ** 0.5),
     ("large", 1.0), ("zero", 0.0)],
)  # fmt: skip
def test_weights_are_as_large_as_they_should_be(name, deviation):
    layer = nn.Linear(400, 200)
    torch.manual_seed(0)
    initialize(layer, name)
    assert float(layer.weight.detach().std()) == pytest.approx(deviation, rel=0.02)


def test_an_orthogonal_matrix_keeps_lengths_and_embeddings_stay():
    model = nn.Sequential(nn.Embedding(5, 8), nn.Linear(8, 8))
    before = model[0].weight.detach().clone()
    initialize(model, "orthogonal")
    torch.testing.assert_close(model[1].weight @ model[1].weight.T, torch.eye(8))
    assert torch.equal(model[0].weight, before)


@pytest.mark.parametrize(
    "change",
    [
        {"l1": 1e-4},
        {"l2": 1e-3},
        {"l1": 1e-4, "l2": 1e-3},
        {"dropout": 0.2},
        {"drop_path": 0.2},
        {"label_smoothing": 0.1},
    ],
    ids=["l1", "l2", "elastic", "dropout", "drop-path", "label-smoothing"],
)
def test_each_regulariser_trains(change):
    assert learns("images", **change)


def test_the_penalty_is_on_matrices_that_are_trained():
    model = nn.Sequential(nn.Linear(2, 1), nn.Linear(1, 1))
    with torch.no_grad():
        model[0].weight.copy_(torch.tensor([[1.0, -2.0]]))
        model[1].weight.fill_(9.0)
    model[1].requires_grad_(False)
    assert penalty(model, RunConfig(l1=0.5, l2=0.25)).item() == pytest.approx(0.5 * 3 + 0.25 * 5)
    assert penalty(model, RunConfig()) == 0.0


@pytest.mark.parametrize("setting", ["l1", "l2"])
def test_a_strong_penalty_shrinks_the_weights(setting):
    def size(value):
        trainer = Trainer(RunConfig(task="tabular", total_steps=80).changed({setting: value}))
        list(trainer.run())
        return float(sum(p.detach().abs().sum() for p in trainer.model.parameters() if p.ndim > 1))

    assert size(0.05) < 0.7 * size(0.0)


def test_a_dropped_path_is_zero_for_whole_examples_and_the_mean_stays():
    torch.manual_seed(0)
    drop = DropPath(0.25)
    x = torch.ones(4000, 3, 2)
    y = drop(x)
    rows = y.flatten(1)
    assert (rows == rows[:, :1]).all() and y.mean() == pytest.approx(1.0, abs=0.03)
    assert (rows[:, 0] == 0).float().mean() == pytest.approx(0.25, abs=0.02)
    assert torch.equal(drop.eval()(x), x)


def test_dropout_acts_while_training_only():
    records = trained("tabular", 1, dropout=0.9, eval_steps=1, learning_rate=0.0)
    again = trained("tabular", 1, eval_steps=1, learning_rate=0.0)
    assert series(records, "val_loss", "valid") == series(again, "val_loss", "valid")
    assert series(records, "train_loss") != series(again, "train_loss")


def test_a_deep_sigmoid_network_has_vanishing_gradients_and_residual_paths_bring_them_back():
    deep = {"depth": 12, "activation": "sigmoid", "initialization": "xavier-normal"}

    def first_and_last(**change):
        trainer = Trainer(RunConfig(task="tabular", total_steps=1).changed({**deep, **change}))
        list(trainer.run())
        return trainer.model.stem[0].weight.grad.norm() / trainer.model.head.weight.grad.norm()

    assert first_and_last(residual=False) < 1e-5
    assert first_and_last(residual=True) > 1e-2


def test_a_deep_badly_initialised_network_has_exploding_gradients_and_he_cures_them():
    deep = {"depth": 8, "residual": False}
    assert series(trained("tabular", 1, initialization="large", **deep), "grad_norm")[0] > 1e5
    assert series(trained("tabular", 1, initialization="he", **deep), "grad_norm")[0] < 1e2


def test_a_plain_cell_loses_its_gradient_over_a_long_sequence_and_explodes_with_large_weights():
    long = {"length": 60, "cell": "rnn", "depth": 1}

    def reach(**change):
        """How much of the gradient arrives at the first step, of that at the last."""
        trainer = Trainer(RunConfig(task="sequence", total_steps=1).changed({**long, **change}))
        data, target = (part[:32] for part in trainer.task.train)
        data = data.clone().requires_grad_()
        trainer.task.outcome(trainer.model, (data, target)).loss.backward()
        return float(data.grad[:, 0].norm() / data.grad[:, -1].norm())

    assert reach() < 1e-6
    grown = trained("sequence", 1, initialization="large", activation="relu", **long)
    assert not series(grown, "grad_norm")[0] < 1e10
    assert fell(series(trained("sequence", 60, length=4, cell="gru"), "train_loss"))


@pytest.mark.parametrize(
    ("task", "change", "words"),
    [
        ("tabular", {"activation": "swish"}, "activation: unknown 'swish'; known: relu"),
        ("tabular", {"normalization": "instance"}, "normalization: instance needs images"),
        ("text", {"normalization": "batch"}, "normalization: a transformer has layer, rms, none, not 'batch'"),
        ("images", {"normalization": "weight"}, "normalization: unknown 'weight'"),
        ("tabular", {"initialization": "lecun"}, "initialization: unknown 'lecun'"),
        ("sequence", {"activation": "gelu", "cell": "rnn"}, "activation: a recurrent model has tanh or relu"),
        ("sequence", {"cell": "elman"}, "cell: unknown 'elman'; known: rnn, lstm, gru"),
        ("tabular", {"num_classes": 1}, "num_classes is 2 or more"),
        ("tabular", {"augmentation": "huge"}, "augmentation: unknown 'huge'; known: none, light"),
        ("text", {"mixup": 0.2}, "mixup, cutmix: symbols can't be mixed"),
        ("poem", {}, "task: unknown 'poem'; known: autoencoder, bandit"),
    ],
)
def test_what_is_not_possible_is_one_clear_line(task, change, words):
    with pytest.raises(BadConfig, match=words):
        next(Trainer(RunConfig(task=task).changed(change)).run())
