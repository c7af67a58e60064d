"""Schedules: the rate that is applied is the one that the settings announce, and torch's where torch has it."""

import numpy as np
import pytest

from tests.reference.training import RunConfig, Trainer, learns, series, torch, trained
from trainmon_reference.choices.schedules import SCHEDULES, RateSchedule
from trainmon_reference.simulate import settings_of
from trainmon_rules.errors import BadConfig
from trainmon_rules.schedules import SHAPES, Schedule, announced, shape_of

TOTAL, PEAK = 200, 0.5
SHAPE = {"reduce-on-plateau": "plateau"}


def config(name, **change):
    return RunConfig(lr_schedule=name, total_steps=TOTAL, learning_rate=PEAK).changed(change)


def shares(name, **change):
    """The applied rate over the peak, of the updates to steps 1 … TOTAL."""
    rate = RateSchedule(config(name, **change))
    return np.array([rate(made) for made in range(TOTAL)]) / PEAK


@pytest.mark.parametrize("name", SCHEDULES)
def test_each_schedule_trains_and_is_known_by_its_name(name):
    assert shape_of(name) == SHAPE.get(name, name)
    assert shape_of(name) in SHAPES
    assert learns("tabular", lr_schedule=name, eval_steps=10)


@pytest.mark.parametrize("floor", [0.0, 0.05])
@pytest.mark.parametrize("warmup", [0, 20])
@pytest.mark.parametrize("name", ["constant", "linear", "cosine", "exponential", "wsd"])
def test_what_is_announced_is_what_is_applied(name, warmup, floor):
    change = {"warmup_steps": warmup, "min_learning_rate": floor * PEAK, "phase_steps": 40}
    plan = Schedule(name, warmup, TOTAL, PEAK, floor, decay=40)
    expected = plan.share(np.arange(1, TOTAL + 1))
    if name == "exponential" and not floor:
        assert np.isnan(expected[-1])  # not announced where it ends
        return
    assert shares(name, **change) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", ["constant", "linear", "cosine", "exponential"])
def test_the_settings_in_the_log_announce_it(name):
    change = config(name, warmup_steps=20, min_learning_rate=0.1 * PEAK, decay_steps=150)
    plan = announced(settings_of(change).get)
    assert plan is not None
    rate = RateSchedule(change)
    applied = [rate(made) / PEAK for made in range(TOTAL)]
    assert applied == pytest.approx(plan.share(np.arange(1, TOTAL + 1)), abs=1e-12)


def test_the_trainer_reports_the_rate_of_the_step_that_it_reports():
    records = trained("tabular", 20, lr_schedule="cosine", warmup_steps=5, learning_rate=PEAK)
    plan = Schedule("cosine", 5, 20, PEAK)
    steps = np.array([record.step for record in records])
    assert series(records, "learning_rate") == pytest.approx(PEAK * plan.share(steps))


lr = torch.optim.lr_scheduler


def torch_shares(make):
    """torch's rate over the peak at steps 0 … TOTAL."""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=PEAK)
    schedule = make(optimizer)
    rates = [optimizer.param_groups[0]["lr"]]
    for _ in range(TOTAL):
        optimizer.step()
        schedule.step()
        rates.append(optimizer.param_groups[0]["lr"])
    return np.array(rates) / PEAK


RISE = (0.3 * TOTAL + 1) / (TOTAL + 1)  # torch counts from 0 to its steps less one


@pytest.mark.parametrize(
    ("name", "change", "make"),
    [
        ("step", {"phase_steps": 60}, lambda o: lr.StepLR(o, 60)),
        ("cosine", {}, lambda o: lr.CosineAnnealingLR(o, TOTAL)),
        ("exponential", {}, lambda o: lr.ExponentialLR(o, 0.01 ** (1 / TOTAL))),
        ("one-cycle", {}, lambda o: lr.OneCycleLR(o, PEAK, TOTAL + 1, cycle_momentum=False, pct_start=RISE)),
    ],
)
def test_a_schedule_that_torch_has_is_torch_s(name, change, make):
    assert shares(name, **change) == pytest.approx(torch_shares(make)[1:], abs=1e-6)


def test_warm_restarts_are_torch_s_update_for_update():
    theirs = torch_shares(lambda o: lr.CosineAnnealingWarmRestarts(o, 30, T_mult=2))
    assert shares("restarts", phase_steps=30) == pytest.approx(theirs[:-1], abs=1e-6)


def test_a_plateau_lowers_the_rate_when_torch_s_does():
    losses = np.random.default_rng(0).random(60) + np.linspace(1.0, 0.0, 60)
    ours = RateSchedule(config("reduce-on-plateau"))
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=PEAK)
    theirs = lr.ReduceLROnPlateau(optimizer, factor=0.1, patience=2, eps=0.0)
    falls = 0
    for loss in losses:
        before = ours(100)
        ours.observe(float(loss))
        theirs.step(float(loss))
        assert ours(100) == pytest.approx(optimizer.param_groups[0]["lr"])
        falls += ours(100) < before
    assert falls > 2


def test_the_trainer_tells_the_plateau_its_validation_loss_and_a_checkpoint_keeps_it():
    change = {"lr_schedule": "reduce-on-plateau", "learning_rate": 1e-9, "min_learning_rate": 1e-11}
    run = RunConfig(task="tabular", total_steps=10, eval_steps=1, save_steps=10).changed(change)
    trainer = Trainer(run)  # so low a rate gains nothing
    rates = series(list(trainer.run()), "learning_rate")
    assert rates[0] == 1e-9 and rates[-1] == pytest.approx(1e-11)
    second = Trainer(run)
    trainer.checkpoint.restore(second)
    assert second.schedule(0) == pytest.approx(1e-11)


def test_restarts_come_back_to_the_peak_and_a_floor_holds():
    rate = shares("restarts", phase_steps=50, min_learning_rate=0.1 * PEAK)
    assert rate[0] == rate[50] == 1.0 and 0.1 <= rate[49] < 0.11
    assert rate.min() >= 0.1


def test_three_cycles_and_three_stairs_where_the_config_says_nothing():
    restarts, stairs = shares("restarts"), shares("step")
    assert (np.diff(restarts) > 0.5).sum() == 2 and restarts[-1] < 0.01
    assert sorted(set(stairs.round(9))) == [0.01, 0.1, 1.0]


def test_one_cycle_rises_from_a_twenty_fifth_and_ends_near_nothing():
    rate = shares("one-cycle")
    assert rate[0] == pytest.approx(0.04, abs=1e-3) and rate.max() == 1.0 and rate[-1] == pytest.approx(4e-6)
    assert int(rate.argmax()) == 59


def test_an_unknown_name_is_one_clear_line():
    with pytest.raises(BadConfig, match="lr_schedule: unknown 'cosin'; known: constant, linear"):
        RateSchedule(config("cosin"))
