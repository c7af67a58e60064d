"""Diagnoses of real incidents of accuracies, validation, units, activations and preference or RLHF runs."""

import numpy as np
import pytest

from tests import ailing_outcomes as ailing
from tests.streams import batch
from trainmon_rules.diagnosis import Knowledge
from trainmon_rules.engine import Session
from trainmon_rules.points import Batch, Params
from trainmon_rules.postmortem import report_runs
from trainmon_rules.state import Settings


def diagnosed(columns, symptom, answers=None, params=None):
    """The report of the one incident of that symptom."""
    s = Session("run", Settings.default(answers))
    s.open("log")
    points = batch(columns)
    s.feed("log", Batch(points.chunks, [Params(0, params)] if params else []))
    s.end()
    [report] = report_runs(s, Knowledge.load())
    [incident] = [i for i in report.incidents if i.symptom == symptom]
    return incident


def ranks(report):
    return {r.sheet: r.rank for r in report.routes}


def primary(report):
    assert [r.rank for r in report.routes].count("primary") == 1
    return report.routes[0].sheet


def changes(report):
    return {k: v for fix in report.fixes for k, v in (fix.change or {}).items()}


def actions(report):
    return " ".join(fix.action for fix in report.fixes)


def evaluated(val, tag="eval_loss", n=700, train=None):
    loss = ailing.learning(n, 0) if train is None else train
    return {"loss": list(loss), tag: [float(val(loss[i])) if i % 20 == 19 else None for i in range(n)]}


# ------------------------------------------------------------------ chance-accuracy
def test_guessing_speaks_for_inputs_and_labels():
    d = diagnosed(ailing.guesses(), "chance-accuracy")
    assert d.causes[0].cause == "data pipeline"
    assert any("guessing among 10 classes gives 0.1" in s for s in d.causes[0].evidence_for)
    assert "the loss stands at ln 10, the value of pure guessing" in d.causes[0].evidence_for
    assert primary(d) == "learning-rate-scheduling"
    assert "once inputs and labels are checked" in d.routes[0].why
    assert {"loss-functions-and-objectives", "training-loop-architecture"} <= set(ranks(d))
    assert d.fixes[0].action.startswith("Overfit a single batch")
    assert "labels are whole numbers from 0 to 9" in actions(d)
    assert d.questions == ()  # the rate is logged


def test_guessing_without_a_rate_asks_for_it_and_the_answer_ends_the_question():
    run = ailing.guesses()
    del run["lr"]
    d = diagnosed(run, "chance-accuracy")
    [question] = d.questions
    assert question.startswith("What optimizer and learning rate are you using?")
    far = diagnosed(run, "chance-accuracy", {"learning_rate": 1e-8})
    assert far.questions == ()
    assert "learning rate too low" in {c.cause for c in far.causes}
    assert changes(far)["learning_rate"] == pytest.approx(3e-4)


def test_validation_that_guesses_while_training_learns_is_a_matter_of_the_evaluation():
    run = evaluated(lambda x: 0.1, "eval_accuracy")
    d = diagnosed(run, "chance-accuracy", {"num_classes": 10})
    assert d.causes[0].cause == "labels or evaluation of the validation set"
    assert "data pipeline" in {c.cause for c in d.ruled_out}
    assert "once the evaluation is checked" in d.routes[0].why


def test_a_training_accuracy_that_guesses_while_its_loss_falls_points_at_the_loss():
    n = 700
    accuracy = np.random.default_rng(0).binomial(128, 0.1, n) / 128
    d = diagnosed(
        {"loss": list(ailing.learning(n, 0)), "accuracy": list(accuracy)}, "chance-accuracy", {"num_classes": 10}
    )
    assert d.causes[0].cause == "wrong loss"
    assert primary(d) == "loss-functions-and-objectives"


# ------------------------------------------------------------------ val-suspect
@pytest.mark.parametrize(
    ("columns", "cause", "first"),
    [
        (ailing.perfect_validation(), "labels or evaluation of the validation set", "Count the examples"),
        (evaluated(lambda x: 1.2345), "labels or evaluation of the validation set", "Count the examples"),
        (evaluated(lambda x: x), "labels or evaluation of the validation set", "Check that the validation loader"),
        (evaluated(lambda x: 0.3 * x), "leak or broken validation", "Look for duplicates"),
        (
            evaluated(lambda x: 1.0, "val_acc", train=0.7 - 0.0003 * np.arange(700)),
            "leak or broken validation",
            "Look for duplicates",
        ),
    ],
)
def test_what_is_wrong_with_validation_decides_the_cause(columns, cause, first):
    d = diagnosed(columns, "val-suspect")
    assert d.causes[0].cause == cause
    assert d.fixes[0].action.startswith(first)
    assert primary(d) == "training-loop-architecture"


def test_a_loss_far_below_training_asks_for_augmentation_and_the_answer_explains_it():
    run = evaluated(lambda x: 0.3 * x)
    d = diagnosed(run, "val-suspect")
    assert d.questions == ("Are you using data augmentation? How heavy? (answer with --set augmentation=heavy)",)
    heavy = diagnosed(run, "val-suspect", {"augmentation": "heavy"})
    assert heavy.questions == ()
    assert heavy.causes[0].cause == "training is the harder task"
    assert ranks(heavy)["data-augmentation-strategies"] == "secondary"
    none = diagnosed(run, "val-suspect", {"augmentation": "none"})
    assert none.causes[0].cause == "leak or broken validation"


def test_accumulated_losses_may_be_of_another_scale():
    run = evaluated(lambda x: x / 32)
    d = diagnosed(run, "val-suspect", params={"gradient_accumulation_steps": 32})
    assert d.causes[0].cause == "two losses of different scale"
    assert changes(d)["normalize_accumulation"] is True


# ------------------------------------------------------------------ dead units, activations
def test_dying_relus_take_smaller_steps_and_another_activation():
    run = ailing.dying_units() | {"lr": [3e-3] * 700}
    d = diagnosed(run, "dead-units", params={"hidden_act": "relu"})
    assert d.causes[0].cause == "dead activations"
    assert "70 % of the units are dead (more than half is dying ReLU)" in d.causes[0].evidence_for
    assert primary(d) == "gradient-management"
    assert changes(d) == {"activation": "gelu", "initialization": "he", "learning_rate": pytest.approx(1e-3)}


def test_features_of_an_autoencoder_are_another_matter():
    rng = np.random.default_rng(0)
    counts = np.where(np.arange(700) < 300, 100, 5000) + rng.poisson(5, 700)
    d = diagnosed({"loss": list(ailing.learning(700, 0)), "sparsity/dead_features": list(counts * 1.0)}, "dead-units")
    assert d.causes[0].cause == "features of the autoencoder die"
    assert "dead activations" not in {c.cause for c in (*d.causes, *d.ruled_out)}
    assert ranks(d)["loss-functions-and-objectives"] == "secondary"


def test_growing_activations_say_when_fp16_ends():
    d = diagnosed(ailing.runaway_activations(), "activation-scale", params={"fp16": True})
    assert d.causes[0].cause == "activations drift"
    assert any("FP16 ends at 65,504: at this pace in" in s for s in d.causes[0].evidence_for)
    assert primary(d) == "gradient-management"
    assert changes(d)["precision"] == "bf16"
    assert d.fixes[0].action.startswith("Log the norm of each layer's output")


def test_sharp_attention_is_normalised_unless_it_is_already():
    d = diagnosed(ailing.sharp_attention(), "activation-scale")
    assert changes(d)["qk_norm"] is True
    normed = diagnosed(ailing.sharp_attention(), "activation-scale", params={"qk_layernorm": True})
    assert "qk_norm" not in changes(normed)
    assert any("queries and keys are normalised" in s for c in normed.causes for s in c.evidence_against)


# ------------------------------------------------------------------ preference-instability
RUNS = {
    "margin": ailing.lost_margin,
    "displacement": ailing.displaced,
    "kl": ailing.runaway_policy,
    "cut": ailing.cut_answers,
}


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("method", [None, "dpo", "grpo"])
def test_the_method_comes_before_the_optimizer(name, method):
    """The table's mistake: "DPO training unstable, fix optimizer"."""
    d = diagnosed(RUNS[name](), "preference-instability", {"preference_method": method} if method else None)
    assert primary(d) == "llm-specialist"
    assert d.routes[0].pack == "llm-specialist"
    assert ranks(d)["gradient-management"] == ranks(d)["learning-rate-scheduling"] == "secondary"
    assert ranks(d)["optimization-algorithms"] in ("secondary", "also")
    assert "optimizer" not in changes(d)


def test_a_loss_that_diverges_with_its_margins_is_for_both_packs():
    run = ailing.lost_margin()
    for i in range(300, 700):
        run["loss"][i] += 0.02 * (i - 300)
    d = diagnosed(run, "divergence")
    assert "preference-instability" in {symptom for symptom, _ in d.others}
    assert primary(d) == "llm-specialist"
    assert ranks(d)["gradient-management"] == "secondary"


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("margin", "preference method"),
        ("displacement", "preference method"),
        ("kl", "policy updates too large"),
        ("cut", "answers never end"),
    ],
)
def test_what_left_its_path_decides_the_cause(name, cause):
    assert diagnosed(RUNS[name](), "preference-instability").causes[0].cause == cause


def test_beta_is_doubled_from_what_it_is():
    d = diagnosed(ailing.displaced(), "preference-instability", params={"beta": 0.1})
    assert changes(d)["preference_beta"] == pytest.approx(0.2)
    assert "Double β, from 0.1 to 0.2" in actions(d)
    assert "supervised term on the chosen answers" in actions(d)


def test_the_length_limit_is_doubled_from_what_it_is():
    d = diagnosed(ailing.cut_answers(), "preference-instability", params={"max_completion_length": 512})
    assert d.causes[0].evidence_for == ("100 % of the answers are cut at 512 tokens",)
    assert changes(d)["max_answer_length"] == 1024


def test_a_rate_for_supervised_tuning_is_too_high_here():
    high = ailing.lost_margin() | {"learning_rate": [1e-4] * 700}
    d = diagnosed(high, "preference-instability")
    assert any("is high for preference tuning" in s for c in d.causes for s in c.evidence_for)
    assert changes(d)["learning_rate"] == pytest.approx(3.33e-5)
    low = diagnosed(ailing.lost_margin(), "preference-instability")
    assert "learning rate too high" in {c.cause for c in low.ruled_out}
    assert "learning_rate" not in changes(low)


def test_groups_without_spread_have_nothing_to_learn_from():
    run = ailing.policy()
    run["frac_reward_zero_std"][300:] = [1.0] * 400
    run["reward"] = list(0.3 + np.random.default_rng(0).normal(0, 0.05, 700))
    d = diagnosed(run, "preference-instability")
    assert d.causes[0].cause == "no reward to learn from"
    assert (
        "in 100 % of the groups all answers get the same reward, so their advantages are 0" in d.causes[0].evidence_for
    )


def test_gradients_that_are_only_ever_zero_are_explained_before_anything_is_clipped():
    """A NaN among norms of exactly 0, and 0 again after it: no recovery, and nothing that clipping could mend."""
    i = diagnosed({"loss": [208.1, 208.9, 208.4, 208.6], "grad_norm": [0.0, 0.0, np.nan, 0.0]}, "nonfinite")
    assert i.state == "ended"
    assert "gradient explosion" in {c.cause for c in i.ruled_out}
    assert i.fixes[0].action.startswith("Explain the gradients of exactly 0 first")


def test_nan_in_validation_alone_is_looked_for_in_the_evaluation():
    n = 200
    val = [np.nan if i % 10 == 9 and i > 50 else 2.1 if i % 10 == 9 else None for i in range(n)]
    i = diagnosed({"loss": (2 + np.exp(-np.arange(n) / 40)).tolist(), "val_loss": val}, "nonfinite")
    assert i.causes[0].cause == "labels or evaluation of the validation set"
    assert i.fixes[0].action.startswith("Evaluate batch by batch")


def test_a_rate_that_is_usual_for_preference_tuning_is_never_raised_to_that_of_pretraining():
    rng, n = np.random.default_rng(0), 300
    run = {
        "loss": (np.log(2) + rng.normal(0, 0.02, n)).tolist(),
        "rewards/margins": rng.normal(0, 0.05, n).tolist(),
        "rewards/accuracies": (0.5 + rng.normal(0, 0.05, n)).tolist(),
        "learning_rate": [5e-7] * n,
    }
    assert changes(diagnosed(run, "flat")).get("learning_rate", 0) <= 5e-6


def test_a_scale_below_one_is_stopped_before_anything_is_set():
    n = 60
    scale = [65536.0] * 20 + [65536.0 / 2 ** (i + 1) for i in range(40)]
    run = {"loss": [2.0 + 0.01 * (i % 5) for i in range(n)], "loss_scale": scale}
    i = diagnosed(run, "loss-scale-collapse", params={"fp16": True})
    assert i.fixes[0].action.startswith("Stop, and resume from the last checkpoint before step")
    assert i.fixes[0].change == {"precision": "bf16"}
