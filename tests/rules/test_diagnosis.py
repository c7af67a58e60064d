"""diagnose: real runs through the engine, and what the routing table says about their incidents."""

import copy
import itertools
import math
import pickle

import pytest

from trainmon import Monitor
from trainmon_rules.diagnosis import Knowledge, diagnose, put_right
from trainmon_rules.engine import Settings
from trainmon_rules.factnames import fact_names
from trainmon_rules.facts import find_facts
from trainmon_rules.findings import Finding, Severity, State
from trainmon_rules.incidents import group
from trainmon_rules.knowledge import parse_table, shipped_table
from trainmon_rules.report import Route
from trainmon_rules.rules import SYMPTOMS
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
