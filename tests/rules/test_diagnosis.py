"""diagnose: real runs through the engine, and what the routing table says about their incidents."""

import copy
import itertools
import math
import pickle
import re

import pytest

from trainmon import Monitor
from trainmon_rules.diagnosis import Knowledge, diagnose
from trainmon_rules.diagnosis.conditions import show
from trainmon_rules.diagnosis.factnames import fact_names
from trainmon_rules.diagnosis.facts import find_facts
from trainmon_rules.diagnosis.fixes import advise, in_one_voice
from trainmon_rules.diagnosis.knowledge import parse_table, shipped_table
from trainmon_rules.diagnosis.routes import put_right
from trainmon_rules.diagnosis.table import FixRule
from trainmon_rules.findings import Finding, Severity, State
from trainmon_rules.incidents import group
from trainmon_rules.report import Route
from trainmon_rules.rules import SYMPTOMS
from trainmon_rules.state import Settings
from trainmon_rules.yamlfile import load_packaged

NAN = math.nan
PRECISION = "Are you using mixed precision training? FP16, BF16, or FP8? (answer with --set precision=fp16)"
ROLES = {"train_loss": "loss", "grad_norm": "grad_norm", "loss_scale": "loss_scale", "val_loss": "val/loss"}


def watched(rows, params=None, answers=None):
    monitor = Monitor("run", Settings.default(answers), params=params)
    for i, row in enumerate(rows):
        monitor.log({k: v for k, v in row.items() if k != "step"}, step=row.get("step", i))
    monitor.close()
    return monitor


def diagnosed(rows, params=None, answers=None):
    """The report of the first incident of a run that is fed these rows."""
    return watched(rows, params, answers).report().runs[0].incidents[0]


def supposed(symptom, rows=(), answers=None, role="train_loss", onset=None, params=None, **changes):
    """The diagnosis of a finding put on a real run, for symptoms whose detector doesn't matter here."""
    rows = list(rows) or [{"loss": 2.0 + 0.01 * (i % 5)} for i in range(60)]
    run = watched(rows, params, answers).session.runs[0]
    step = len(rows) - 1 if onset is None else onset
    found = Finding(
        rule=symptom, symptom=symptom, family="instability", severity=Severity.WARNING, source="log", tag=ROLES[role],
        role=role, attempt=0, onset_step=step, detected_step=step, last_step=step, index=step, row=step, interval=1,
        summary=symptom,
    ).changed(**changes)  # fmt: skip
    [incident] = group("run", [found])
    return diagnose(incident, run, Knowledge.load())


def ranks(report):
    return {r.sheet: r.rank for r in report.routes}


def primary(report):
    assert [r.rank for r in report.routes].count("primary") == 1
    assert report.routes[0].rank == "primary"
    return report.routes[0].sheet


def changes(report):
    return {k: v for fix in report.fixes for k, v in (fix.change or {}).items()}


def nan_run(n=70, bad=60, grad=None, scale=None, lr=3e-4):
    rows = []
    for k in range(n):
        row = {"loss": 2 + 0.5 * math.exp(-k / 30) + 0.01 * (k * 7 % 5) if k < bad else NAN}
        row |= {"lr": lr(k) if callable(lr) else lr} if lr else {}
        row |= {"grad_norm": grad(k)} if grad else {}
        row |= {"loss_scale": scale(k)} if scale else {}
        rows.append(row)
    return rows


def leading(k):
    return 0.5 + 0.01 * (k % 3) if k < 56 else 0.5 * 3 ** (k - 55) if k < 60 else NAN


def calm(k):
    return 0.5 + 0.01 * (k % 3) if k < 60 else NAN


# -------------------------------------------------------------------------------------------- nonfinite
def test_a_gradient_that_leads_is_the_cause_and_nothing_is_asked():
    d = diagnosed(nan_run(grad=leading))
    assert d.causes[0].cause == "gradient explosion"
    assert d.causes[0].evidence_for == ("the gradient norm rose to 79.4× its usual level 3 reports before the loss",)
    assert primary(d) == "gradient-management"
    assert ranks(d)["learning-rate-scheduling"] == "secondary"
    assert d.questions == ()
    assert changes(d)["max_grad_norm"] == 1.0
    assert changes(d)["learning_rate"] == pytest.approx(1e-4)
    assert "between 3e-05 and 0.0001" in next(f.action for f in d.fixes if "learning_rate" in (f.change or {}))


def test_a_calm_gradient_rules_the_explosion_out_but_the_table_still_leads_to_it():
    d = diagnosed(nan_run(grad=calm))
    assert "gradient explosion" in {c.cause for c in d.ruled_out}
    assert d.causes[0].cause == "loss numerics"
    assert primary(d) == "gradient-management"
    assert ranks(d)["loss-functions-and-objectives"] == "secondary"
    assert d.questions == (PRECISION,)


def test_nan_at_step_0_speaks_for_inputs_loss_and_initialisation():
    d = diagnosed(nan_run(5, 0, lr=None))
    assert {c.cause for c in d.causes[:3]} == {"loss numerics", "bad initialization", "bad batch"}
    assert primary(d) == "gradient-management"
    assert not any("Resume" in f.action for f in d.fixes)
    assert d.questions == (PRECISION,)


@pytest.mark.parametrize("precision", ["fp16", "bf16", "fp32", "fp8"])
def test_the_answer_routes_and_the_question_is_gone(precision):
    d = diagnosed(nan_run(5, 0, lr=None), answers={"precision": precision})
    assert d.questions == ()
    expected = {"fp16": "secondary", "bf16": "also", "fp32": "also", "fp8": "primary"}[precision]
    assert ranks(d)["batch-size-and-memory-tradeoffs"] == expected
    assert ranks(d)["pytorch-engineering"] == "cross-pack"
    assert ranks(d)["gradient-management"] == ("secondary" if precision == "fp8" else "primary")
    out = {c.cause for c in d.ruled_out}
    assert ("loss scale" in out) == (precision in ("bf16", "fp32"))


def test_precision_is_read_from_the_run_and_not_asked():
    d = diagnosed(nan_run(grad=calm), params={"args": {"bf16": True, "fp16": False}})
    assert d.questions == ()
    assert "loss scale" in {c.cause for c in d.ruled_out}


def test_a_falling_loss_scale_is_a_matter_of_precision_never_of_the_rate():
    d = diagnosed(nan_run(80, scale=lambda k: 65536 if k < 45 else 65536 / 2 ** (k - 44)))
    assert d.causes[0].cause == "loss scale"
    assert primary(d) == "batch-size-and-memory-tradeoffs"
    assert ranks(d)["pytorch-engineering"] == "cross-pack"
    assert ranks(d)["gradient-management"] == "secondary"
    assert changes(d)["precision"] == "bf16"
    assert d.questions == ()


def test_a_hidden_nan_is_told_first():
    rows = [
        {"loss": 3.0 - 0.05 * k + 0.01 * (k % 3) if k < 30 else 0.0, "grad_norm": 1.0 if k < 30 else NAN}
        for k in range(40)
    ]
    d = diagnosed(rows)
    assert "logging_nan_inf_filter" in d.fixes[0].action
    assert primary(d) == "gradient-management"


def test_clipping_that_is_there_is_not_recommended_again():
    d = diagnosed(nan_run(grad=leading), params={"max_grad_norm": 5.0})
    assert any(f.action == "Clip the gradient norm tighter: from 5 to 1.0" for f in d.fixes)
    off = diagnosed(nan_run(grad=leading), params={"clip_grad": 0.0})
    assert any("Switch gradient clipping on" in f.action for f in off.fixes)


def test_a_late_warm_up_is_lengthened():
    rows = nan_run(grad=leading, lr=lambda k: 1e-6 * (k + 1))
    d = diagnosed(rows, params={"warmup_steps": 100, "max_steps": 10_000})
    assert changes(d)["warmup_steps"] == 200
    assert any("still rising" in s for c in d.causes for s in c.evidence_for)


@pytest.mark.parametrize(
    ("rate", "phase"),
    [
        (lambda k: 3e-4, "constant"),
        (lambda k: 1e-6 * (k + 1), "warmup"),
        (lambda k: min(1.0, (k + 9000) / 10_000) * 1e-3, "warmup"),
        (lambda k: 1e-3 * min(1.0, k / 10), "constant"),
        (lambda k: 1e-3 * (1 - k / 100), "decay"),
        (lambda k: 1e-3 if k < 20 else 1e-4, "decay"),
        (lambda k: 1e-3 * (1 - (k % 58) / 60), "restart"),
        (lambda k: 0.0, "zero"),
    ],
)
def test_where_the_schedule_stood(rate, phase):
    run = watched(nan_run(lr=rate)).session.runs[0]
    facts = find_facts(run.incidents[0], run)
    assert facts["lr_phase"] == phase
    assert ("learning_rate" in facts) == (phase != "zero")


# ------------------------------------------------------------------------------------------ other symptoms
def test_overfitting_is_never_one_sheet_and_hangs_on_the_dataset():
    rows = [{"loss": 2.0 - 0.02 * k, "val/loss": 1.5 + 0.01 * abs(k - 20)} for k in range(60)]
    d = supposed("overfit", rows, role="val_loss")
    assert primary(d) == "overfitting-prevention"
    assert ranks(d)["data-augmentation-strategies"] == "secondary"
    assert d.questions == (
        "How large is your dataset (number of training examples)? (answer with --set dataset_size=50000)",
    )
    assert any("step 20" in s for s in d.causes[0].evidence_for)
    assert changes(d)["early_stopping"] == 10
    for size, first in (
        (500, "data-augmentation-strategies"),
        ("5K", "overfitting-prevention"),
        (200_000, "overfitting-prevention"),
    ):
        answered = supposed("overfit", rows, {"dataset_size": size}, role="val_loss")
        assert primary(answered) == first
        assert answered.questions == ()
        assert {"overfitting-prevention", "data-augmentation-strategies"} <= set(ranks(answered))
    assert "neural-architectures" in ranks(answered)


def test_weight_decay_and_dropout_rise_from_what_they_are():
    d = supposed("overfit", role="val_loss", params={"weight_decay": 0.01, "dropout": 0.1})
    assert changes(d)["weight_decay"] == 0.03
    assert changes(d)["dropout"] == 0.2


def test_never_learning_is_never_the_optimizers_fault_first():
    rows = [{"loss": 2.3 + 0.001 * (k % 3), "lr": 1e-8} for k in range(60)]
    d = supposed("flat", rows)
    assert primary(d) == "learning-rate-scheduling"
    assert ranks(d)["optimization-algorithms"] == "secondary"
    assert d.causes[0].cause == "learning rate too low"
    assert changes(d)["learning_rate"] == pytest.approx(3e-4)  # three times nothing is nothing
    assert "from 1e-08 into the usual range (1e-05 to 0.01)" in d.fixes[0].action
    assert d.questions == ()


def test_a_zero_rate_is_named():
    d = supposed("flat", [{"loss": 2.3, "lr": 0.0} for _ in range(60)])
    assert d.causes[0].cause == "rate is zero"
    assert "learning rate too low" in {c.cause for c in d.ruled_out}


def test_flat_at_chance_speaks_for_the_data():
    d = supposed("flat", [{"loss": math.log(10) + 0.001 * (k % 3), "lr": 1e-3} for k in range(60)])
    assert d.causes[0].cause == "data pipeline"
    assert "the loss stands at ln 10, the value of pure guessing" in d.causes[0].evidence_for


def test_a_zero_loss_asks_for_the_labels():
    rows = [{"loss": 0.0, "lr": 1e-4} for _ in range(60)]
    [question] = supposed("flat", rows).questions
    assert question.startswith("The loss is exactly zero: are the labels loaded")
    assert "--set labels_loaded=" in question
    no, yes = (supposed("flat", rows, {"labels_loaded": a}) for a in ("no", "yes"))
    assert no.questions == yes.questions == ()
    assert no.causes[0].cause == "data pipeline"
    assert yes.causes[0].cause == "wrong loss"
    assert ranks(yes)["loss-functions-and-objectives"] == "secondary"


def test_a_plateau_asks_for_validation_only_where_there_is_none():
    rows = [{"loss": 1.0 + math.exp(-k / 5), "lr": 1e-3} for k in range(80)]
    d = supposed("plateau", rows)
    assert primary(d) == "learning-rate-scheduling"
    assert d.questions[0].startswith("Training accuracy poor or validation accuracy poor or both?")
    assert changes(d)["learning_rate"] == pytest.approx(1e-4)
    assert primary(supposed("plateau", rows, {"poor": "validation"})) == "overfitting-prevention"
    with_val = [{**r, "val/loss": r["loss"] + 0.1} for r in rows]
    assert supposed("plateau", with_val).questions == ()


@pytest.mark.parametrize(
    ("use", "first"),
    [
        (30, "pytorch-engineering"),
        (65, "pytorch-engineering"),
        ("95%", "batch-size-and-memory-tradeoffs"),
    ],
)
def test_slow_runs_ask_for_the_gpu_first(use, first):
    for symptom in ("throughput-drop", "low-utilization"):
        d = supposed(symptom)
        assert primary(d) == "pytorch-engineering"
        assert d.questions[0].startswith("What's your GPU utilization percentage?")
        answered = supposed(symptom, answers={"gpu_utilization": use})
        assert primary(answered) == first
        assert "GPU utilization" not in " ".join(answered.questions)


def test_heavy_augmentation_on_a_busy_gpu():
    d = supposed("throughput-drop", answers={"gpu_utilization": 95, "augmentation": "heavy"})
    assert primary(d) == "data-augmentation-strategies"
    assert d.questions == ()


def test_an_unstable_preference_run_is_for_both_packs():
    d = supposed("preference-instability")
    assert primary(d) == "llm-specialist"
    assert d.routes[0].pack == "llm-specialist"
    assert {"gradient-management", "learning-rate-scheduling"} <= set(ranks(d))
    spike = supposed("loss-spike", answers={"preference_method": "dpo"})
    assert primary(spike) == "gradient-management"
    assert ranks(spike)["llm-specialist"] == "cross-pack"


def test_a_spike_that_came_back_points_at_its_batch():
    rows = nan_run(60, 60, grad=lambda k: 0.5 + 0.01 * (k % 3))
    d = supposed("loss-spike", rows, onset=50, state=State.RESOLVED, resolved_step=52)
    assert d.causes[0].cause == "bad batch"
    assert any("step 50" in f.action for f in d.fixes)


def test_a_collapsed_loss_scale():
    d = supposed("loss-scale-collapse", role="loss_scale", rows=nan_run(60, 60, scale=lambda k: 65536 / 2 ** (k // 2)))
    assert primary(d) == "batch-size-and-memory-tradeoffs"
    assert ranks(d)["pytorch-engineering"] == "cross-pack"
    assert ranks(d).get("learning-rate-scheduling") in (None, "also")


# ------------------------------------------------------------------------- advice that fits, in one voice
def reported(rows, params=None, answers=None):
    return watched(rows, params, answers).report().runs[0].incidents


def spoken(d):
    """All that is said for, against and about the causes, and in the fixes."""
    causes = [s for c in (*d.causes, *d.ruled_out) for s in (c.why, *c.evidence_for, *c.evidence_against)]
    return causes + [f.action for f in d.fixes] + [r.why for r in d.routes]


def warming(k):
    """Nothing is learnt during a warm-up from 1e-5 to 1e-4, nor at its peak."""
    return {"loss": 2.3 + 0.001 * (k * 7 % 3), "lr": min(1e-4, 1e-5 * (k + 1))}


def collapsing(k, metric="accuracy"):
    """A policy that is trained from rewards, refuses everything from step 25 on and stays there."""
    bad = k >= 25
    return {
        metric: 0.6 if k >= 40 else 0.99 - 0.03 * max(0, min(k - 25, 13)),
        "mean_reward": (0.2 if bad else 0.9) + 0.02 * (k * 7 % 5),
        "policy_loss": 0.1 * ((k * 7) % 5),
        "entropy": 0.7 * 0.3 ** max(0, k - 20),
        "heldout_false_refuse_rate": 1.0 if bad else 0.05 + 0.01 * (k % 3),
        "lr": 2e-5,
        "step": 25 * k,
    }


def test_no_report_of_a_run_moves_one_setting_up_and_down():
    everything = [
        [collapsing(k) for k in range(60)],
        nan_run(grad=leading),
        [warming(k) for k in range(60)],
        [{"loss": 2.0 - 0.02 * min(k, 60), "val/loss": 1.5 + 0.01 * abs(k - 20), "lr": 1e-4} for k in range(120)],
        [
            {"loss": 0.7 if k > 60 else math.exp(-k / 9) + 0.01 * (k % 3), "acc": 0.5 if k > 60 else 0.9}
            for k in range(160)
        ],
    ]
    for rows in everything:
        for given in ({}, {"precision": "fp16"}, {"learning_rate": 10}, {"dataset_size": 300}):
            fixes = [f.action for i in reported(rows, answers=given) for f in i.fixes]
            up = [a for a in fixes if a.startswith(("Raise the learning rate", "Halve the warm-up"))]
            down = [a for a in fixes if a.startswith(("Lower the learning rate", "Let the rate decay", "Take smaller"))]
            assert not (up and down), fixes
            for i in reported(rows, answers=given):
                keys = [k for f in i.fixes for k in (f.change or {})]
                assert len(keys) == len(set(keys))


def test_without_numbers_the_directions_still_exclude_each_other():
    no_rate = [{"loss": 2.3 + 0.001 * (k % 3)} for k in range(60)]
    d = supposed("plateau", no_rate)
    said = [f.action for f in d.fixes if "learning rate" in f.action or "rate decay" in f.action]
    assert len(said) == 1
    flat, fall = (advise(supposed_fixes(name), {}) for name in ("learning-rate-too-low", "learning-rate-too-high"))
    assert flat[0].moves == {"learning_rate": "up"}
    assert fall[0].moves == {"learning_rate": "down"}
    first, later = in_one_voice([fall, flat])
    assert first == fall
    assert not any("learning_rate" in a.moves for a in later)
    assert in_one_voice([fall, fall]) == [fall, fall]


def supposed_fixes(cause):
    return shipped_table().causes[cause].fixes


def test_the_earlier_incident_speaks_for_precision_and_clipping():
    def advice(**change):
        rule = FixRule("x", "gradient-management", None, {}, {}, change)
        return advise([rule], {"max_grad_norm": 5.0})

    to_bf16, to_fp32 = advice(precision={"value": "bf16"}), advice(precision={"value": "fp32"})
    tighter, looser = advice(max_grad_norm={"value": 1.0}), advice(max_grad_norm={"times": ["max_grad_norm", 2]})
    assert in_one_voice([to_bf16, to_fp32, tighter, looser, to_bf16]) == [to_bf16, (), tighter, (), to_bf16]


def test_a_run_that_never_learned_is_judged_by_its_peak_rate_not_by_its_warm_up():
    [incident] = [i for i in reported([warming(k) for k in range(60)]) if i.symptom == "flat"]
    assert changes(incident)["learning_rate"] == pytest.approx(3e-4)
    assert any("from 0.0001 to between 0.0002 and 0.0005" in f.action for f in incident.fixes)
    assert not any("lower end" in s for s in spoken(incident))


def test_a_rate_of_a_warm_up_that_goes_on_is_no_rate_too_low():
    d = diagnosed(nan_run(12, 8, lr=lambda k: 1e-7 * (k + 1)))
    assert not any("below the usual" in s for s in spoken(d))
    assert "learning_rate" not in changes(d)  # nor is it lowered further
    [out] = [c for c in d.ruled_out if c.cause == "learning rate too high"]
    assert out.evidence_against == ("the rate was only 9e-07 then",)


@pytest.mark.parametrize(
    ("rate", "optimizer", "cause", "said"),
    [
        (10, None, "learning rate too high", "10 is far above the usual 1e-05 to 0.01"),
        (1e-7, None, "learning rate too low", "1e-07 is far below the usual 1e-05 to 0.01"),
        (1e-5, "sgd", "learning rate too low", "1e-05 is far below the usual 0.001 to 1"),
        (0.3, "adamw", "learning rate too high", "0.3 is far above the usual 1e-05 to 0.01"),
    ],
)
def test_a_rate_that_is_told_counts_and_leads_into_the_usual_range(rate, optimizer, cause, said):
    answers = {"learning_rate": rate} | ({"optimizer": optimizer} if optimizer else {})
    d = supposed("flat", [{"loss": 2.0 + 0.001 * (k % 3)} for k in range(60)], answers)
    assert d.causes[0].cause == cause
    assert d.causes[0].evidence_for == (said,)
    assert changes(d)["learning_rate"] == {"sgd": 1e-2}.get(optimizer, 3e-4)
    assert d.questions == ()


def test_a_usual_rate_is_neither():
    rows = [{"loss": 2.0 + 0.001 * (k % 3)} for k in range(60)]
    for rate, optimizer in ((0.1, "sgd"), (3e-4, "adamw"), (0.1, None)):
        answers = {"learning_rate": rate} | ({"optimizer": optimizer} if optimizer else {})
        text = " ".join(spoken(supposed("flat", rows, answers)))
        assert "far " not in text
        assert "lower end" not in text


def test_the_question_for_the_optimizer_takes_it():
    rows = [{"loss": 2.0 + 0.001 * (k % 3)} for k in range(60)]
    [asked] = supposed("flat", rows).questions
    assert asked.endswith("(answer with --set learning_rate=0.0003 --set optimizer=adamw)")
    [still] = supposed("flat", rows, {"optimizer": "sgd"}).questions
    assert still.endswith("(answer with --set learning_rate=0.0003)")
    assert any("instead of sgd" in f.action for f in supposed("flat", rows, {"optimizer": "sgd"}).fixes)
    assert not any("AdamW with" in f.action for f in supposed("flat", rows, {"optimizer": "adamw"}).fixes)


def zero_metric(n=60):
    rows = [{"loss": 2e-2 * 0.8**k + 1e-6, "lr": 2.5e-3 * (1 - k / 61)} for k in range(n)]
    rows[-1]["val/AP50"] = 0.0
    return rows


def test_a_metric_of_0_beside_a_vanished_loss_is_about_labels_and_evaluation():
    [incident] = [i for i in reported(zero_metric()) if i.symptom == "flat"]
    assert "are there any labels?" in incident.summary
    assert [c.cause for c in incident.causes] == ["labels or evaluation of the validation set", "data pipeline"]
    assert "learning rate too low" in {c.cause for c in incident.ruled_out}
    assert not any("learning_rate" in (f.change or {}) for f in incident.fixes)
    assert primary(incident) == "learning-rate-scheduling"  # the table's
    assert "once labels and evaluation are checked" in incident.routes[0].why
    assert "--set labels_loaded=no" in incident.questions[0]
    [no] = [i for i in reported(zero_metric(), answers={"labels_loaded": "no"}) if i.symptom == "flat"]
    assert no.causes[0].cause == "data pipeline"
    assert no.questions == ()


@pytest.mark.parametrize("size", [500, 5000, 50_000, 5_000_000])
def test_the_size_of_the_dataset_decides_about_augmentation(size):
    rows = [{"loss": 2.0 - 0.02 * k, "val/loss": 1.5 + 0.01 * abs(k - 20)} for k in range(60)]
    d = supposed("overfit", rows, {"dataset_size": size}, role="val_loss")
    wanted = {500: "heavy", 5000: "medium", 50_000: "light", 5_000_000: None}[size]
    assert changes(d).get("augmentation") == wanted
    first = [f.action for f in d.fixes if "augment" in f.action.lower()]
    assert len(first) == (wanted is not None)
    if size == 500:
        assert d.fixes[0].action == "Augment heavily: with only 500 examples augmentation is critical"
    if size == 5_000_000:
        assert "up to 100K" not in " ".join(spoken(d))
        assert ranks(d)["data-augmentation-strategies"] == "also"


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("rows", [nan_run(5, 0, lr=None), nan_run(grad=leading), nan_run(grad=calm)])
def test_with_full_range_nobody_talks_of_half_precision(precision, rows):
    d = diagnosed(rows, answers={"precision": precision})
    said = " ".join(s for s in spoken(d) if "needs no loss scale" not in s)
    assert not re.search("FP16|FP8|loss scale|GradScaler", said)


def test_the_tables_first_stop_says_how_it_fits_this_run():
    d = diagnosed(nan_run(grad=calm))
    assert primary(d) == "gradient-management"
    assert "although the gradient norm was calm here" in d.routes[0].why
    flat = supposed("flat", [{"loss": math.log(10), "lr": 1e-3} for _ in range(60)])
    assert "the data are as suspect" in flat.routes[0].why
    led = diagnosed(nan_run(grad=leading))
    assert "exploding gradients are the most common cause" in led.routes[0].why


def test_a_log_that_begins_late_says_nothing_about_the_start_of_the_run():
    rows = [{**r, "step": 12_695 + k} for k, r in enumerate(nan_run(20, 2, lr=None))]
    d = diagnosed(rows)
    assert not any("of the run" in s for s in spoken(d))
    assert "bad initialization" not in {c.cause for c in d.causes}
    early = diagnosed([{**r, "step": 100 * k} for k, r in enumerate(nan_run(20, 2, lr=None))])
    assert any("it began in report 3 of the run" in s for s in spoken(early))


def test_excerpts_with_holes_are_no_beginning_either():
    steps = [708, 1954, 1956]
    run = watched([{"loss": NAN, "step": s} for s in steps]).session.runs[0]
    facts = find_facts(run.incidents[0], run)
    assert facts["mid_run"] is True
    assert "at_start" not in facts


def test_one_number_for_one_thing():
    rows = [{"loss": 3 * 0.97**k, "grad_norm": 1.0 + 0.1 * (k % 3) if k < 60 else 5000.0} for k in range(66)]
    d = diagnosed(rows)
    assert d.symptom == "grad-explosion"
    [said] = [s for c in d.causes for s in c.evidence_for if "× its usual level" in s]
    assert said == f"the gradient norm reached {show(d.evidence['ratio'])}× its usual level"
    rows = [{"loss": 2.0 * 0.95**k + 0.02, "val/loss": 1.5 + 0.02 * abs(k - 20) + 0.004 * (k % 2)} for k in range(60)]
    [overfit] = [i for i in reported(rows) if i.symptom == "overfit"]
    best, now = show(overfit.evidence["best"]), show(overfit.evidence["last"])
    assert f"the validation loss is {now}, after its best {best}" in overfit.causes[0].evidence_for[0]


def test_both_losses_rising_is_not_learning_by_heart():
    rows = [
        {"loss": 1e-3 * (1 + (k - 20) / 40 if k > 20 else 2 - k / 20), "val/loss": 4e-4 + 1e-5 * abs(k - 20)}
        for k in range(60)
    ]
    evidence = {
        "best": 4e-4,
        "best at step": 20,
        "last": 8e-4,
        "training loss then": 1e-3,
        "training loss now": 2e-3,
    }
    d = supposed("overfit", rows, role="val_loss", evidence=evidence)
    assert d.causes[0].cause == "training worsens too"
    assert d.causes[0].evidence_for == ("the training loss rose with it, from 0.001 to 0.002",)
    assert not {"dropout", "weight_decay", "augmentation"} & set(changes(d))
    assert primary(d) == "overfitting-prevention"
    below = supposed("overfit", rows, role="val_loss", evidence={**evidence, "training loss then": 3e-3})
    assert any("no sign of learning by heart" in s for s in below.causes[0].evidence_against)


# ------------------------------------------------------------------------------ runs that learn from rewards
SUPERVISED = ("mislabelled", "single batch", "logits or probabilities", "BF16", "dropout", "Augment")


def test_a_policy_that_collapses_gets_the_advice_of_its_field():
    first, *later = reported([collapsing(k) for k in range(60)])
    assert first.symptom == "divergence"
    assert first.causes[0].cause == "too little exploration"
    assert any("the policy's entropy fell from 0.7 to" in s for s in first.causes[0].evidence_for)
    assert primary(first) == "gradient-management"
    assert ranks(first)["deep-rl"] == "cross-pack"
    assert first.questions == ()
    for i in (first, *later):
        assert not any(word in f.action for f in i.fixes for word in SUPERVISED)


def test_what_follows_from_a_collapse_is_a_part_of_it():
    found = reported([collapsing(k) for k in range(80)])
    assert [i.symptom for i in found if any(s == "plateau" for s, _ in i.others)] == ["divergence"]
    assert "plateau" not in {i.symptom for i in found}


def test_a_rate_that_comes_to_stand_at_its_worst_is_noticed():
    rewards = [0.2 + 0.7 * min(k, 25) / 25 + 0.02 * (k * 7 % 5) for k in range(160)]
    calm = {"entropy": 0.7, "accuracy": None}
    run = watched([{**collapsing(k), **calm, "mean_reward": r} for k, r in enumerate(rewards)]).session.runs[0]
    [incident] = [i for i in run.incidents if i.symptom == "plateau"]
    facts = find_facts(incident, run)
    assert (facts["pinned_tag"], facts["pinned_at"]) == ("heldout_false_refuse_rate", 1.0)
    assert facts["entropy_collapsed"] is False


def test_a_sparse_reward_is_named():
    rows = [{"train/return": -50.0 if k % 9 else -49.0, "step": 100 * k} for k in range(60)]
    [incident] = reported(rows)
    assert incident.symptom == "flat"
    assert incident.causes[0].cause == "no reward to learn from"
    assert "the reward is -50 in nearly every report" in incident.causes[0].evidence_for
    assert not any(word in f.action for f in incident.fixes for word in SUPERVISED)
    assert primary(incident) == "learning-rate-scheduling"


def test_a_metric_that_falls_while_the_reward_rises_is_a_gamed_reward():
    rows = [{**collapsing(k), "mean_reward": 0.1 + 0.01 * k, "entropy": 0.7} for k in range(60)]
    first = reported(rows)[0]
    assert first.causes[0].cause == "the reward is gamed"
    assert any(s.startswith("the reward held (0.12 first, ") for s in first.causes[0].evidence_for)


# ------------------------------------------------------------------------------------------- the contracts
ANSWERS = [
    {},
    {"precision": "fp8"},
    {"precision": "fp16", "max_grad_norm": 0},
    {"dataset_size": 100, "model_size": "1B"},
    {"gpu_utilization": 97, "memory_limited": "yes"},
    {"learning_rate": 0, "total_steps": 0, "warmup_steps": 0},
    {"poor": "validation", "preference_method": "dpo", "optimizer": "adamw", "labels_loaded": "no"},
]


@pytest.mark.parametrize(("symptom", "answers"), list(itertools.product(SYMPTOMS, ANSWERS)))
def test_every_symptom_gets_one_primary_route_a_cause_and_a_fix(symptom, answers):
    d = supposed(symptom, answers=answers)
    table = shipped_table()
    first = primary(d)
    assert d.causes
    assert d.fixes
    assert len(d.questions) <= 1
    assert len({r.sheet for r in d.routes}) == len(d.routes)
    assert all(r.sheet in table.sheets if r.pack is None else r.sheet in table.packs for r in d.routes)
    assert {f.sheet for f in d.fixes} <= {r.sheet for r in d.routes}
    for mistake in table.mistakes:
        if symptom in mistake.symptoms and mistake.how == "primary" and (not mistake.when or not answers):
            assert first != mistake.wrong
        if symptom in mistake.symptoms and mistake.how == "alone":
            assert [r.sheet for r in d.routes] != [mistake.wrong]


def test_a_mistake_that_the_data_would_make_is_put_right():
    table = shipped_table()
    by_id = {m.id: m for m in table.mistakes}
    wrong_first = [Route("learning-rate-scheduling", "primary", "x"), Route("gradient-management", "secondary", "y")]
    fixed = put_right(by_id["mistake-nan"], wrong_first)
    assert [(r.sheet, r.rank) for r in fixed] == [
        ("gradient-management", "primary"),
        ("batch-size-and-memory-tradeoffs", "also"),
        ("learning-rate-scheduling", "secondary"),
    ]
    alone = put_right(by_id["mistake-overfitting"], [Route("overfitting-prevention", "primary", "x")])
    assert {r.sheet for r in alone} == {"overfitting-prevention", "data-augmentation-strategies"}


ODD = [
    [],
    [{"loss": NAN}],
    [{"loss": 0.0}] * 3,
    [{"loss": NAN, "grad_norm": NAN, "lr": NAN, "loss_scale": NAN, "val/loss": NAN}] * 5,
    [{"loss": -math.inf, "grad_norm": 0.0, "lr": 0.0, "loss_scale": 0.0, "val/loss": 0.0}] * 30,
    [{"loss": 1e150 * (-1) ** k, "grad_norm": 1e300, "lr": 1e300, "val/loss": -1e150} for k in range(40)],
    [{"other": 1.0}],
]


@pytest.mark.parametrize("rows", ODD)
@pytest.mark.parametrize("symptom", ["nonfinite", "flat", "overfit", "divergence"])
def test_nothing_that_is_missing_or_odd_makes_it_fail(symptom, rows):
    run = watched(rows or [{"x": 1.0}]).session.runs[0]
    for role, tag in ROLES.items():
        for step in (0, 3, 10**9):
            found = Finding(
                symptom, symptom, "instability", Severity.INFO, "elsewhere", tag, role, 0, step, step, step, 0, 0, 0, ""
            )
            [incident] = group("run", [found])
            d = diagnose(incident, run, Knowledge.load())
            assert d.routes
            assert set(find_facts(incident, run)) <= fact_names()


def test_facts_are_found_however_long_the_run_went_on_after():
    rows = nan_run(3000, 60, grad=leading)
    d = diagnosed(rows)
    assert primary(d) == "gradient-management"
    assert changes(d)["learning_rate"] == pytest.approx(1e-4)


def test_the_same_run_is_diagnosed_the_same_and_a_monitor_can_be_pickled():
    a, b = watched(nan_run(grad=leading)), watched(nan_run(grad=leading))
    assert a.report() == b.report()
    assert pickle.loads(pickle.dumps(a)).report() == a.report()


def test_the_mistakes_hold_on_a_real_incident_even_if_the_symptoms_file_gets_it_wrong():
    routing, causes, symptoms = (copy.deepcopy(load_packaged(f"{n}.yaml")) for n in ("routing", "causes", "symptoms"))
    symptoms["nonfinite"]["routes"] = [{"take": ["which-learning-rate"]}]
    symptoms["nonfinite"].pop("fixes")
    run = watched(nan_run(grad=leading)).session.runs[0]
    d = diagnose(run.incidents[0], run, Knowledge(parse_table(routing, causes, symptoms)))
    assert primary(d) == "gradient-management"
    assert ranks(d)["learning-rate-scheduling"] == "secondary"
