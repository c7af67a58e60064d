"""Optimizers: each trains, goes on from a checkpoint as if it hadn't stopped, and is what its name says."""

import sys

import pytest

from tests.reference.training import RunConfig, Trainer, fell, series, torch
from trainmon_reference.choices.optimizers import OPTIMIZERS, build_optimizer
from trainmon_rules.errors import BadConfig

RATES = {
    "sgd": 0.1, "momentum": 0.03, "nesterov": 0.03, "adagrad": 0.03, "muon": 0.01, "lamb": 0.01, "lion": 1e-3,
    "sophia": 0.1, "shampoo": 0.05, "prodigy": 1.0,
}  # fmt: skip
LIBRARY = ("lamb", "lion", "sophia", "shampoo", "ademamix", "schedule-free", "prodigy")


def run_of(name, task="tabular", **change):
    if name in LIBRARY:
        pytest.importorskip("pytorch_optimizer")
    settings = {"optimizer": name, "learning_rate": RATES.get(name, 3e-3), "batch_size": 16, "total_steps": 40}
    return RunConfig(task=task).changed({**settings, **change})


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_each_optimizer_lowers_the_loss(name):
    assert fell(series(list(Trainer(run_of(name)).run()), "train_loss"))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_run_that_goes_on_from_a_checkpoint_is_the_run_that_never_stopped(name):
    config = run_of(name, total_steps=16, save_steps=8, eval_steps=8, weight_decay=0.01)
    first = Trainer(config)
    list(first.run(8))
    checkpoint = first.checkpoint
    rest = series(list(first.run()), "train_loss")
    second = Trainer(config)
    checkpoint.restore(second)
    again = series(list(second.run()), "train_loss")
    assert len(again) == 8 and again == pytest.approx(rest, rel=1e-5)


@pytest.mark.parametrize("name", ["sophia", "muon", "shampoo"])
def test_those_that_look_at_matrices_or_curvature_train_a_transformer(name):
    assert fell(series(list(Trainer(run_of(name, "text", total_steps=24)).run()), "train_loss"))


def test_muon_has_the_hidden_matrices_and_adamw_the_rest():
    trainer = Trainer(RunConfig(task="text", optimizer="muon"))
    muon, adamw = trainer.optimizer.parts
    names = {id(parameter): name for name, parameter in trainer.model.named_parameters()}
    hidden = {names[id(p)] for group in muon.param_groups for p in group["params"]}
    others = {names[id(p)] for group in adamw.param_groups for p in group["params"]}
    assert isinstance(muon, torch.optim.Muon) and isinstance(adamw, torch.optim.AdamW)
    assert hidden == {name for name in names.values() if name.startswith("layers") and "norm" not in name} - {
        name for name in names.values() if name.endswith("bias")
    }
    assert {"symbol.weight", "place.weight", "head.weight"} <= others


def test_the_rate_reaches_both_parts_of_muon_also_after_a_restore():
    config = RunConfig(task="tabular", optimizer="muon", learning_rate=0.25, save_steps=1, total_steps=2)
    trainer = Trainer(config)
    list(trainer.run(1))
    second = Trainer(config.changed({"learning_rate": 0.125}))
    trainer.checkpoint.restore(second)
    list(second.run())
    assert {group["lr"] for part in second.optimizer.parts for group in part.param_groups} == {0.125}


def test_schedule_free_is_validated_with_the_weights_that_it_means():
    pytest.importorskip("pytorch_optimizer")
    trainer = Trainer(run_of("schedule-free", total_steps=20, eval_steps=20))
    seen = []
    evaluate = trainer.task.outcome

    def outcome(model, batch):
        seen.append((model.training, model.head.weight.detach().clone()))
        return evaluate(model, batch)

    trainer.task.outcome = outcome
    list(trainer.run())
    trained, validated = [w for training, w in seen if training][-1], [w for training, w in seen if not training][-1]
    assert not torch.allclose(trained, validated, atol=1e-3)


def test_vectors_and_embeddings_are_not_decayed_and_what_is_frozen_has_no_place():
    model = torch.nn.Sequential(torch.nn.Embedding(3, 4), torch.nn.Linear(4, 4), torch.nn.Linear(4, 2))
    model[2].requires_grad_(False)
    optimizer = build_optimizer(model, RunConfig(weight_decay=0.1))
    decay = {id(p): group["weight_decay"] for group in optimizer.param_groups for p in group["params"]}
    assert decay == {id(model[0].weight): 0.0, id(model[1].weight): 0.1, id(model[1].bias): 0.0}


@pytest.mark.parametrize("name", LIBRARY)
def test_without_the_library_one_line_says_what_to_install(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "pytorch_optimizer", None)
    with pytest.raises(BadConfig, match=rf"{name} needs pytorch-optimizer: pip install 'trainmon\[reference\]'"):
        Trainer(RunConfig(task="tabular", optimizer=name))


def test_an_unknown_name_is_one_clear_line():
    with pytest.raises(BadConfig, match="optimizer: unknown 'adamax'; known: sgd, momentum"):
        Trainer(RunConfig(task="tabular", optimizer="adamax"))


@pytest.mark.parametrize("name", ["adamw", "momentum", "muon"])
def test_an_update_that_overflows_is_skipped(name):
    trainer = Trainer(run_of(name, precision="fp16", total_steps=1))
    trainer.scaler = torch.amp.GradScaler("cpu", init_scale=1e30)
    before = [p.detach().clone() for p in trainer.model.parameters()]
    list(trainer.run())
    assert all(torch.equal(a, b) for a, b in zip(before, trainer.model.parameters(), strict=True))
    assert trainer.scaler.get_scale() < 1e30
