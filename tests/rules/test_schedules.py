"""Schedules: what names mean, the rate to expect at a step, and what settings announce."""

import numpy as np
import pytest

from tests.schedules import NAMES, PLAIN, TOTAL, WARMUP
from trainmon_rules.schedules import MOVING, PEAKED, SHAPES, Schedule, announced, shape_of
from trainmon_rules.vocabulary import RunSettings

T = np.arange(1, TOTAL + 1)


NAMED = {
    "cosine": "cosine COSINE cosine_with_min_lr WarmupCosineLR CosineAnnealingLR",
    "restarts": "cosine_with_restarts CosineAnnealingWarmRestarts sgdr CosineDecayRestarts",
    "linear": "linear SchedulerType.LINEAR linear_with_warmup WarmupDecayLR",
    "polynomial": "polynomial poly polynomial_decay torch.optim.lr_scheduler.PolynomialLR",
    "inverse-sqrt": "inverse_sqrt inverse-square-root noam",
    "wsd": "WSD warmup_stable_decay trapezoidal tri_stage",
    "one-cycle": "OneCycleLR one_cycle 1cycle",
    "step": "step StepLR MultiStepLR multistep PiecewiseConstantDecay",
    "exponential": "exponential ExponentialLR exp ExponentialDecay",
    "plateau": "plateau ReduceLROnPlateau reduce_lr_on_plateau",
    "constant": "constant constant_with_warmup fixed WarmupLR ConstantLR",
    "cyclic": "CyclicLR triangular cyclic",
    "": "LambdaLR SequentialLR linear_warmup LinearLR cosine_linear_envelope ddpm none",
}


@pytest.mark.parametrize(("shape", "name"), [(shape, n) for shape, names in NAMED.items() for n in names.split()])
def test_a_name_means_a_shape(shape, name):
    assert shape_of(name) == shape


def test_all_shapes_are_told_in_words_and_those_that_move_are_among_them():
    assert {shape_of(name) for name in NAMES.values()} <= set(SHAPES)
    assert set(MOVING) | set(PEAKED) <= set(SHAPES)


@pytest.mark.parametrize(
    ("name", "plan", "origin"),
    [
        ("cosine", Schedule("cosine", WARMUP, TOTAL), None),
        ("cosine_to_a_tenth", Schedule("cosine", WARMUP, TOTAL, floor=0.1), None),
        ("linear", Schedule("linear", WARMUP, TOTAL), None),
        ("polynomial", Schedule("polynomial", WARMUP, TOTAL, power=2.0), None),
        ("inverse_sqrt", Schedule("inverse-sqrt", WARMUP), None),
        ("wsd", Schedule("wsd", WARMUP, TOTAL, decay=TOTAL // 5), None),
        ("constant", Schedule("constant"), None),
        ("constant_with_warmup", Schedule("constant", WARMUP), None),
    ],
)
def test_the_share_to_expect_is_that_of_the_framework(name, plan, origin):
    assert plan.share(T, origin) == pytest.approx(PLAIN[name](T.astype(float)), abs=1e-9)


def test_after_the_warm_up_torchs_cosine_counts_from_the_first_step():
    late = T[WARMUP:]
    plan = Schedule("cosine", WARMUP, TOTAL)
    assert plan.share(late, 0) == pytest.approx(PLAIN["cosine_from_step_0"](late.astype(float)), abs=1e-9)


@pytest.mark.parametrize(
    "plan", [Schedule("cosine"), Schedule("linear", WARMUP), Schedule("step", 0, TOTAL), Schedule("wsd", 0, TOTAL)]
)
def test_what_is_not_known_is_no_number(plan):
    assert np.isnan(plan.share(np.array([TOTAL // 2]))).all()


@pytest.mark.parametrize("shape", ["cosine", "linear"])
@pytest.mark.parametrize("floor", [0.0, 0.1])
def test_the_part_done_is_the_shares_inverse(shape, floor):
    plan = Schedule(shape, 0, TOTAL, floor=floor)
    done = [plan.done(float(x), floor) for x in plan.share(T[:-1])]
    assert done == pytest.approx(T[:-1] / TOTAL, abs=1e-6)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({}, None),
        ({"lr_scheduler_type": "LambdaLR"}, None),
        (
            {"lr_scheduler_type": "cosine", "learning_rate": 1e-3, "max_steps": 1000, "warmup_ratio": 0.05},
            Schedule("cosine", 50, 1000, 1e-3),
        ),
        ({"lr_scheduler_type": "cosine", "max_steps": -1, "warmup_steps": 100}, Schedule("cosine", 100)),
        (
            {"lr_scheduler_type": "cosine", "max_steps": 1000, "warmup_steps": 0, "warmup_ratio": 0.1},
            Schedule("cosine", 100, 1000),
        ),
        ({"lr_scheduler_type": "linear", "max_steps": 1000, "warmup_steps": 0}, Schedule("linear", 0, 1000)),
        (  # Megatron: counted in iterations, where the decay ends before the run …
            {"lr_decay_style": "cosine", "lr": 3e-4, "min_lr": 3e-5, "train_iters": 900, "lr_decay_iters": 800},
            Schedule("cosine", None, 800, 3e-4, 0.1),
        ),
        (  # … and in samples: then its zeros say nothing
            {"lr_decay_style": "cosine", "train_iters": 9, "lr_warmup_iters": 0, "lr_warmup_samples": 7,
             "lr_decay_samples": 99},
            Schedule("cosine"),
        ),
    ],
)  # fmt: skip
def test_settings_announce_a_schedule(raw, expected):
    plan = announced(RunSettings(raw=raw).get)
    if expected is None or expected.floor is None:
        assert plan == expected
    else:
        assert plan.floor == pytest.approx(expected.floor)
        assert (plan.shape, plan.warmup, plan.total, plan.peak) == (
            expected.shape, expected.warmup, expected.total, expected.peak,
        )  # fmt: skip


def test_a_number_below_zero_is_a_setting_that_is_not_set():
    assert RunSettings(raw={"max_steps": -1}).get("total_steps") is None
    assert RunSettings(raw={"max_steps": -1, "total_iterations": 700}).get("total_steps") == 700
